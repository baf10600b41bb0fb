/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * redis - one connection that comes back.
 *
 *	        connect          AUTH, name, SELECT done
 *	RESTING -------> GREETING -----------------------> UP
 *	   ^                |                              |
 *	   +--- back-off ---+------- broken, refused ------+
 *
 * Built on hiredis' asynchronous context, whose traps stop here: the context
 * is never freed inside a callback, pointers to it are cleared when the
 * library frees it, and a call that is older than the limit means that the
 * server, or the way to it, is dead, whatever TCP says.
 */
#ifndef LAPSED_IO_REDIS_H
#define LAPSED_IO_REDIS_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "core/bytes.h"
#include "core/when.h"

struct redis;

/* Borrowed for the life of the connection. */
struct redis_conf {
	const char *host;	/* NULL when `socket` is set */
	int port;
	const char *socket;
	const char *username;	/* NULL: the default user */
	const char *password;	/* NULL: no AUTH */
	int database;
	const char *name;	/* CLIENT SETNAME; NULL: none */
	usec_t connect_timeout;	/* until the greeting is over */
	usec_t answer_timeout;	/* for any answer after that */
};

enum redis_trouble {
	REDIS_LOST,		/* the connection broke, or none could be made */
	REDIS_SILENT,		/* no answer in time */
	REDIS_AUTH,		/* user or password refused */
	REDIS_DENIED,		/* the ACL refuses a command or channel */
	REDIS_BUSY,		/* loading, or in somebody's long script */
};

struct redis_handlers {
	void (*up)(void *arg);
	/*
	 * Down, or still down after another try; `was_up` tells which.  `why`
	 * is a text for an operator, `retry_ms` when the next try comes.  The
	 * callbacks of all pending calls ran before, with NULL.
	 */
	void (*down)(void *arg, enum redis_trouble trouble, bool was_up,
		     const char *why, int retry_ms);
};

/* Does not connect before redis_start(). */
struct redis *redis_new(struct ev_loop *loop, const struct redis_conf *conf,
			const struct redis_handlers *handlers, void *arg);
void redis_start(struct redis *r);
/* Runs the callbacks of pending calls with NULL; `down` is not called. */
void redis_free(struct redis *r);	/* accepts NULL; not inside a callback */

bool redis_is_up(const struct redis *r);

/*
 * `reply` is NULL when no answer will come: the call may or may not have
 * happened.  Replies belong to the library and end with the callback.
 */
typedef void redis_callback(void *arg, void *priv, redisReply *reply);

/* Nothing is sent, and `cb` is not called, when this says false (not up). */
bool redis_call(struct redis *r, size_t argc, const struct bytes *argv,
		redis_callback *cb, void *priv);

/* Writes what was called to the socket now, not at the next turn. */
void redis_flush(struct redis *r);

/* (P)SUBSCRIBE: `cb` gets every message, and NULL when the connection ends. */
bool redis_subscribe(struct redis *r, bool pattern, const struct bytes *channels,
		     size_t n, redis_callback *cb, void *priv);

/*
 * Gives the connection up, as if it had broken; may be called in a callback.
 * The next try comes after the longest back-off when it is for configuration.
 */
void redis_drop(struct redis *r, enum redis_trouble trouble, const char *why);

#endif
