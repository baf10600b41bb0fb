/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * server - what a Redis says of itself, and what it says it hears.
 */
#ifndef LAPSED_IO_SERVER_H
#define LAPSED_IO_SERVER_H

#include <stdbool.h>

#include "core/bytes.h"

struct server_info {
	char version[32];	/* as the server gives it */
	unsigned number;	/* 70015 for 7.0.15; of Valkey the Redis version */
	bool valkey;
	bool cluster;
};

/* From the reply to INFO; what is missing stays empty or 0. */
void server_info(struct bytes info, struct server_info *s);

/*
 * The letters of `needed` (such as "Ex") that `flags` (notify-keyspace-events)
 * lacks, into `missing`, which has room for all of `needed`.  The order of the
 * letters in `flags` means nothing, and A there stands for all but E and K.
 */
void server_notify_missing(struct bytes flags, const char *needed, char *missing);

/*
 * Takes `__keyevent@<db>__:<event>` apart; false for anything else.  `event`
 * borrows from `channel`.
 */
bool server_keyevent(struct bytes channel, unsigned *db, struct bytes *event);

#endif
