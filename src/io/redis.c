/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/redis.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/async.h>
#include <hiredis/adapters/libev.h>

#include "core/mem.h"

#define RETRY_MIN	0.05	/* seconds */
#define RETRY_MAX	1.0
#define RETRY_SLOW	5.0	/* after a refusal that only an operator mends */
#define WATCH_EVERY	0.5

enum redis_state { REDIS_RESTING, REDIS_GREETING, REDIS_UP };

struct redis {
	struct ev_loop *loop;
	struct redis_conf conf;
	struct redis_handlers handlers;
	void *arg;
	enum redis_state state;
	redisAsyncContext *ac;
	unsigned greetings;	/* answers of the handshake that are owed */
	struct call *oldest, **newest;
	double retry;
	ev_timer retry_timer, watch_timer;
	ev_tstamp began;	/* when this connection was begun */
	bool unsent;		/* something was called since the last flush */
	redis_callback *listener;	/* of the subscription */
	void *listener_priv;
	bool dropped;		/* `trouble` and `why` say what for */
	enum redis_trouble trouble;
	char why[256];
};

/* One per command, in the order of sending, which is that of the answers. */
struct call {
	struct call *next;
	struct redis *r;
	redis_callback *cb;
	void *priv;
	ev_tstamp since;
};

static void connect_now(struct redis *r);

static enum redis_trouble trouble_of(const char *text)
{
	static const struct {
		const char *word;
		enum redis_trouble trouble;
	} table[] = {
		{ "NOAUTH", REDIS_AUTH }, { "WRONGPASS", REDIS_AUTH },
		{ "invalid password", REDIS_AUTH }, { "without any password", REDIS_AUTH },
		{ "NOPERM", REDIS_DENIED },
		{ "LOADING", REDIS_BUSY }, { "BUSY", REDIS_BUSY }, { "MASTERDOWN", REDIS_BUSY },
	};

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strstr(text, table[i].word))
			return table[i].trouble;
	return REDIS_LOST;
}

static void remember(struct redis *r, enum redis_trouble trouble, const char *why)
{
	if (r->dropped)
		return;
	r->dropped = true;
	r->trouble = trouble;
	snprintf(r->why, sizeof r->why, "%s", why && *why ? why : "connection closed");
}

/* The context is gone, or about to go with the library's own clean-up. */
static void went_down(struct redis *r)
{
	bool was_up = r->state == REDIS_UP;
	bool slow = r->trouble == REDIS_AUTH || r->trouble == REDIS_DENIED;

	r->ac = NULL;
	r->state = REDIS_RESTING;
	ev_timer_stop(r->loop, &r->watch_timer);
	r->retry = was_up || r->retry == 0 ? RETRY_MIN : 2 * r->retry;
	if (r->retry > RETRY_MAX)
		r->retry = RETRY_MAX;
	if (slow)
		r->retry = RETRY_SLOW;
	ev_timer_set(&r->retry_timer, r->retry, 0);
	ev_timer_start(r->loop, &r->retry_timer);
	r->dropped = false;
	r->handlers.down(r->arg, r->trouble, was_up, r->why, (int)(r->retry * 1000));
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct redis *r = ac->data;

	(void)status;
	if (!r)
		return;		/* redis_free() */
	remember(r, trouble_of(ac->errstr), ac->errstr);
	went_down(r);
}

static void greeted(struct redis *r)
{
	if (--r->greetings || r->state != REDIS_GREETING)
		return;
	r->state = REDIS_UP;
	r->retry = 0;
	r->handlers.up(r->arg);
}

static void on_greeting(void *arg, void *priv, redisReply *reply)
{
	struct redis *r = arg;
	bool optional = priv != NULL;

	if (!reply)
		return;
	/* Without a password everything is refused, and what is not is cut off. */
	if (reply->type == REDIS_REPLY_ERROR &&
	    (!optional || trouble_of(reply->str) == REDIS_AUTH)) {
		redis_drop(r, trouble_of(reply->str), reply->str);
		return;
	}
	greeted(r);
}

static void call_done(redisAsyncContext *ac, void *reply, void *priv)
{
	struct call *c = priv;
	struct redis *r = c->r;

	(void)ac;
	assert(r->oldest == c);
	r->oldest = c->next;
	if (!r->oldest)
		r->newest = &r->oldest;
	c->cb(r->arg, c->priv, reply);
	free(c);
}

static bool send_call(struct redis *r, size_t argc, const struct bytes *argv,
		      redis_callback *cb, void *priv)
{
	const char **p = mem_alloc(argc, sizeof *p);
	size_t *n = mem_alloc(argc, sizeof *n);
	struct call *c = mem_alloc(1, sizeof *c);
	bool sent;

	for (size_t i = 0; i < argc; i++) {
		p[i] = argv[i].p ? argv[i].p : "";
		n[i] = argv[i].n;
	}
	*c = (struct call){ NULL, r, cb, priv, ev_now(r->loop) };
	sent = redisAsyncCommandArgv(r->ac, call_done, c, (int)argc, p, n) == REDIS_OK;
	if (sent) {
		*r->newest = c;
		r->newest = &c->next;
		r->unsent = true;
	} else {
		free(c);
	}
	free(p);
	free(n);
	return sent;
}

bool redis_call(struct redis *r, size_t argc, const struct bytes *argv,
		redis_callback *cb, void *priv)
{
	return r->state == REDIS_UP && !r->dropped && send_call(r, argc, argv, cb, priv);
}

/* A greeting's callback gets the connection itself, not the user's arg. */
static void greeting_done(redisAsyncContext *ac, void *reply, void *priv)
{
	struct redis *r = ac->data;

	if (r)
		on_greeting(r, priv, reply);
}

static void greet(struct redis *r, size_t argc, const char **argv, bool optional)
{
	if (redisAsyncCommandArgv(r->ac, greeting_done, optional ? r : NULL, (int)argc,
				  argv, NULL) == REDIS_OK)
		r->greetings++;
}

static void greet_all(struct redis *r)
{
	const struct redis_conf *c = &r->conf;
	char db[16];

	r->greetings = 0;
	if (c->password && c->username)
		greet(r, 3, (const char *[]){ "AUTH", c->username, c->password }, false);
	else if (c->password)
		greet(r, 2, (const char *[]){ "AUTH", c->password }, false);
	if (c->name)
		greet(r, 3, (const char *[]){ "CLIENT", "SETNAME", c->name }, true);
	snprintf(db, sizeof db, "%d", c->database);
	/* A subscriber's rights may not include SELECT; it does not need it. */
	greet(r, 2, (const char *[]){ "SELECT", db }, c->database == 0);
}

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct redis *r = ac->data;

	if (!r || status == REDIS_OK)
		return;
	remember(r, REDIS_LOST, ac->errstr);
	went_down(r);		/* the library frees the context after this */
}

static void on_retry(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	connect_now(w->data);
}

/* Never inside a callback of the library: this is a timer's turn. */
static void on_watch(struct ev_loop *loop, ev_timer *w, int events)
{
	struct redis *r = w->data;
	double now = ev_now(loop) * USEC_PER_SEC;
	bool late = r->oldest &&
		    now - r->oldest->since * USEC_PER_SEC > (double)r->conf.answer_timeout;

	(void)events;
	if (r->state == REDIS_GREETING)
		late = late || now - r->began * USEC_PER_SEC > (double)r->conf.connect_timeout;
	if (!late && !r->dropped)
		return;
	remember(r, REDIS_SILENT, "no answer in time");
	redisAsyncFree(r->ac);	/* on_disconnect, unless it never connected */
	if (r->ac)
		went_down(r);
}

static void failed_at_once(struct redis *r)
{
	redisAsyncContext *ac = r->ac;

	remember(r, REDIS_LOST, ac ? ac->errstr : strerror(errno));
	r->ac = NULL;
	if (ac)
		redisAsyncFree(ac);
	went_down(r);
}

static void connect_now(struct redis *r)
{
	const struct redis_conf *c = &r->conf;

	r->dropped = false;
	r->ac = c->socket ? redisAsyncConnectUnix(c->socket) :
			    redisAsyncConnect(c->host, c->port);
	if (!r->ac || r->ac->err) {
		failed_at_once(r);
		return;
	}
	r->ac->data = r;
	if (redisLibevAttach(r->loop, r->ac) != REDIS_OK ||
	    redisAsyncSetConnectCallback(r->ac, on_connect) != REDIS_OK ||
	    redisAsyncSetDisconnectCallback(r->ac, on_disconnect) != REDIS_OK) {
		r->ac->data = NULL;
		failed_at_once(r);
		return;
	}
	if (!c->socket)
		redisEnableKeepAlive(&r->ac->c);
	r->state = REDIS_GREETING;
	r->began = ev_now(r->loop);
	ev_timer_again(r->loop, &r->watch_timer);
	greet_all(r);
}

struct redis *redis_new(struct ev_loop *loop, const struct redis_conf *conf,
			const struct redis_handlers *handlers, void *arg)
{
	struct redis *r = mem_alloc(1, sizeof *r);

	r->loop = loop;
	r->conf = *conf;
	r->handlers = *handlers;
	r->arg = arg;
	r->newest = &r->oldest;
	ev_timer_init(&r->retry_timer, on_retry, 0, 0);
	ev_timer_init(&r->watch_timer, on_watch, WATCH_EVERY, WATCH_EVERY);
	r->retry_timer.data = r->watch_timer.data = r;
	return r;
}

void redis_start(struct redis *r)
{
	ev_timer_set(&r->retry_timer, 0, 0);
	ev_timer_start(r->loop, &r->retry_timer);
}

void redis_free(struct redis *r)
{
	if (!r)
		return;
	ev_timer_stop(r->loop, &r->retry_timer);
	ev_timer_stop(r->loop, &r->watch_timer);
	if (r->ac) {
		r->ac->data = NULL;
		redisAsyncFree(r->ac);
	}
	free(r);
}

bool redis_is_up(const struct redis *r)
{
	return r->state == REDIS_UP && !r->dropped;
}

void redis_flush(struct redis *r)
{
	if (!r->unsent || !redis_is_up(r))
		return;
	r->unsent = false;
	redisAsyncHandleWrite(r->ac);
}

static void on_message(redisAsyncContext *ac, void *reply, void *priv)
{
	struct redis *r = ac->data;

	(void)priv;
	if (r)
		r->listener(r->arg, r->listener_priv, reply);
}

bool redis_subscribe(struct redis *r, bool pattern, const struct bytes *channels,
		     size_t n, redis_callback *cb, void *priv)
{
	const char **p = mem_alloc(n + 1, sizeof *p);
	size_t *len = mem_alloc(n + 1, sizeof *len);
	bool sent;

	p[0] = pattern ? "PSUBSCRIBE" : "SUBSCRIBE";
	len[0] = strlen(p[0]);
	for (size_t i = 0; i < n; i++) {
		p[i + 1] = channels[i].p;
		len[i + 1] = channels[i].n;
	}
	r->listener = cb;
	r->listener_priv = priv;
	sent = redis_is_up(r) && redisAsyncCommandArgv(r->ac, on_message, NULL, (int)n + 1,
						       p, len) == REDIS_OK;
	free(p);
	free(len);
	return sent;
}

void redis_drop(struct redis *r, enum redis_trouble trouble, const char *why)
{
	if (!r->ac)
		return;
	remember(r, trouble, why);
	/* Seen by the watch timer, outside of any callback. */
	ev_feed_event(r->loop, &r->watch_timer, EV_TIMER);
}
