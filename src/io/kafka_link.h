/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * kafka_link - whether any broker is connected and ready.
 *
 * librdkafka says when it has lost its last broker, and never when it is back.
 * So we ask from time to time while we are not sure that it is up.  It also
 * says so of each idle connection that a broker closes, which is nobody's
 * business when the next one is there a moment later: hence the doubt.
 *
 *   UNKNOWN ---------- a broker is up ----------> UP <------------+
 *      |                                          |  \            |
 *      |                                   doubt  |   \ up again  | up
 *      |                                          v    \  (quiet) |
 *      +------ 5 s, or 1 s after a doubt      DOUBTED --+         |
 *      |                                          | 1 s           |
 *      +----------------> DOWN <------------------+               |
 *                           +-------------------------------------+
 */
#ifndef LAPSED_IO_KAFKA_LINK_H
#define LAPSED_IO_KAFKA_LINK_H

#include <ev.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>

enum kafka_link_state {
	LINK_UNKNOWN,		/* at the start */
	LINK_UP,
	LINK_DOUBTED,		/* librdkafka says down; not told yet */
	LINK_DOWN
};

struct kafka_link {
	struct ev_loop *loop;
	/* When it turns up or down; doubts that prove wrong are not told. */
	void (*tell)(void *arg, bool up, const char *why);
	void *arg;
	rd_kafka_t *rk;		/* asked; may be changed at any time */
	enum kafka_link_state state;
	ev_timer probe;		/* unless UP */
	ev_timer patience;	/* when UNKNOWN or DOUBTED */
	char trouble[512];	/* what librdkafka last said */
};

/* The caller has set loop, tell, arg and rk, and zeroed the rest. */
void kafka_link_start(struct kafka_link *l);
void kafka_link_stop(struct kafka_link *l);	/* also when it was never started */

/* A broker has proved to be there. */
void kafka_link_seen(struct kafka_link *l, const char *how);

/* librdkafka says that no broker is connected. */
void kafka_link_doubt(struct kafka_link *l);

/* What an operator should read when it turns out to be down. */
void kafka_link_trouble(struct kafka_link *l, const char *text);

#endif
