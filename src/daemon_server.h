/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * daemon_server - the two connections to one Redis, and what is said of them.
 *
 * The worker runs scripts; the subscriber hears expiries and wake messages.
 * They come and go on their own.  A worker is of use when its server has been
 * looked at and the scripts are loaded:
 *
 *	up --> INFO, ROLE, CONFIG GET --> greeted() --> scripts --> link(up)
 *
 * Every 1.5 seconds a canary proves that both connections live and that what
 * Redis publishes arrives (core/canary.h).
 *
 * A replica is refused until it is one no more; a server in cluster mode or
 * older than 6.2 never becomes fit, and unfit() is told.
 */
#ifndef LAPSED_DAEMON_SERVER_H
#define LAPSED_DAEMON_SERVER_H

#include <ev.h>

#include "conf.h"
#include "io/redis.h"
#include "log.h"

struct server;

struct server_handlers {
	void (*greeted)(void *arg);	/* load the scripts now */
	void (*link)(void *arg, bool up);
	void (*subscribed)(void *arg);
	void (*unfit)(void *arg);	/* this server can't serve; it was logged */
	/* `expired`, `set` ...: those that the routes want to be heard. */
	void (*event)(void *arg, unsigned db, struct bytes event, struct bytes key);
	/* What is heard from now on was published after this. */
	void (*heard_since)(void *arg, usec_t since);
	void (*wake)(void *arg, struct bytes message);
	/* Call the canary script and tell server_canary_answered(). */
	void (*canary)(void *arg, unsigned db, const char *name, msec_t ttl);
	/* Expiries are, or are no longer, published to us. */
	void (*deaf)(void *arg, bool deaf);
};

/*
 * `prefix` and `log` are borrowed for life, `conf` until server_configure(); `name` is unique to the
 * process and names its canary.
 */
struct server *server_new(struct ev_loop *loop, const struct conf *conf, const char *prefix,
			  const char *name, struct log *log, const struct server_handlers *handlers, void *arg);
void server_free(struct server *s);	/* accepts NULL */
void server_start(struct server *s);

/* Another configuration takes the place of the one borrowed; its routes may ask
 * for another subscription. */
void server_configure(struct server *s, const struct conf *conf);

struct redis *server_worker(struct server *s);
void server_flush(struct server *s);

/* The answer to greeted(): NULL when all are there. */
void server_scripts_loaded(struct server *s, const char *error);

void server_canary_answered(struct server *s, bool gone, bool set);

/* How long the last gap in the subscription was; negative: it was the first. */
int64_t server_gap_ms(const struct server *s);

#endif
