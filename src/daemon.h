/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * daemon - the one place that knows both sides: the pure bridge, and the loop
 * with its connections.
 *
 *	RUNNING --TERM--> DRAINING --all settled, or the limit--> FLUSHING --> STOPPED
 *
 *	RUNNING		claims what is due
 *	DRAINING	no more claims; what is open is delivered and settled
 *	FLUSHING	past stop_timeout: what Kafka has not acknowledged stays in
 *			its batches, the slot is left
 *	STOPPED		the loop ends
 *
 * A second TERM ends the loop at once; nothing is lost by that, it is what a
 * crash does.
 */
#ifndef LAPSED_DAEMON_H
#define LAPSED_DAEMON_H

#include "conf.h"
#include "log.h"

/*
 * Runs until stopped by a signal, or by a Redis that can never serve (cluster
 * mode, too old).  Takes `conf` over, since a reload replaces it.  Returns the
 * exit status.
 */
int daemon_main(struct conf *conf, const struct conf_source *source, struct log *log);

#endif
