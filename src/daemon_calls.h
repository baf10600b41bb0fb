/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * daemon_calls - what the bridge asks of Redis, as calls of scripts.
 *
 * Each ask becomes one EVALSHA; its reply is taken apart and given back to the
 * bridge.  Nothing is decided here but how an error is classed.
 */
#ifndef LAPSED_DAEMON_CALLS_H
#define LAPSED_DAEMON_CALLS_H

#include "core/bridge.h"
#include "core/glance.h"
#include "io/redis.h"
#include "io/script.h"

struct calls;

struct calls_conf {
	const char *prefix;	/* of the shard's keys: lapse:{0} */
	int database;
	const char *instance;
	msec_t lease;
};

struct calls_handlers {
	/* Every script is there; `error` is NULL, or says why it is not. */
	void (*loaded)(void *arg, const char *error);
	/* A script was refused, and not for being fenced. */
	void (*error)(void *arg, const char *script, enum script_error code,
		      const char *text);
};

/* `r` and `b` are borrowed; `arg` is that of `r`'s handlers too. */
struct calls *calls_new(struct redis *r, struct bridge *b, const struct calls_conf *conf,
			const struct calls_handlers *handlers, void *arg);
void calls_free(struct calls *c);	/* accepts NULL; after redis_free() */

/* Loads the scripts; on every new connection, before anything is made. */
void calls_load(struct calls *c);

void calls_make(struct calls *c, const struct ask *ask);

/*
 * Runs the canary script; `cb` gets whether the canary was gone and whether it
 * could be set anew.  Without an answer it is not called.
 */
typedef void calls_canary_answer(void *arg, bool gone, bool set);
void calls_canary(struct calls *c, unsigned db, const char *name, msec_t ttl,
		  calls_canary_answer *cb);

/*
 * Runs glance.lua with the call's number, what it adds and how many keys are to
 * be looked at; `row` gets each row of the answer, then `end` is called.
 * Without an answer neither is.  Not to be called while calls_glancing().
 */
typedef void calls_glance_row(void *arg, unsigned db, uint64_t looked, uint64_t gone);
typedef void calls_glance_end(void *arg);
void calls_glance(struct calls *c, uint64_t serial, const struct glance_counts *add, unsigned keys,
		  calls_glance_row *row, calls_glance_end *end);
bool calls_glancing(const struct calls *c);

#endif
