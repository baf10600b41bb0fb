/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * link - one blocking connection to Redis, for one run of lapse.
 *
 * Everything that can go wrong comes back as a sentence for whoever typed the
 * command: what, where, and what to do about it.
 */
#ifndef LAPSED_CLI_LINK_H
#define LAPSED_CLI_LINK_H

#include <hiredis/hiredis.h>

#include "conf.h"
#include "core/bytes.h"
#include "core/err.h"
#include "core/when.h"
#include "io/script.h"

/* A command while it is put together; zeroed, it is empty. */
struct call {
	const char **p;
	size_t *len;
	size_t n;
	size_t cap;
};

void call_add(struct call *c, struct bytes word);	/* borrows */
void call_clear(struct call *c);

struct link;

/*
 * Connects, authenticates and selects lapsed's database.  NULL, with the
 * reason in `err`, if that fails.  Borrows `conf`.
 */
struct link *link_open(const struct conf *conf, struct err *err) MUST_CHECK;
void link_free(struct link *l);		/* accepts NULL */

/* "localhost:6379" or the path of the socket. */
const char *link_where(const struct link *l);

/*
 * Sends the command and gives its answer, to be freed with freeReplyObject().
 * NULL, with the reason in `err`, for an error reply and for no reply at all.
 */
redisReply *link_call(struct link *l, const struct call *c, struct err *err) MUST_CHECK;

/* The same for a command without arguments of the user's ("INFO server"). */
redisReply *link_command(struct link *l, const char *command, struct err *err) MUST_CHECK;

/* The same in two steps, for many commands at a time: each send owes a receive. */
void link_send(struct link *l, const struct call *c);
redisReply *link_receive(struct link *l, struct err *err) MUST_CHECK;

/*
 * Runs a script of src/lua, which answers with an array.  `c` holds the number of keys, the keys and the
 * arguments, as after the hash of EVALSHA.  A link runs one script, however
 * often: its text is loaded once, and again if the server has lost it.
 */
redisReply *link_script(struct link *l, const char *name, const struct call *c,
			struct err *err) MUST_CHECK;

/*
 * The reply itself if it is of that REDIS_REPLY_ type, or NULL; any other is
 * freed, and NULL with the reason comes back.
 */
redisReply *link_expect(const struct link *l, redisReply *reply, int type,
			struct err *err) MUST_CHECK;

/* What the last error reply was; SCRIPT_ERR also when there was no reply. */
enum script_error link_code(const struct link *l);

/* The last error reply as the server put it; "" when there was none. */
const char *link_reply_text(const struct link *l);

/* Redis' clock. */
bool link_now(struct link *l, msec_t *now, struct err *err) MUST_CHECK;

#endif
