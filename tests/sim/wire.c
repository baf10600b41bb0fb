/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The wire between an instance and Redis, in place of src/io/redis.c.
 *
 * A call travels to the store, the script runs, the reply travels back, each
 * way in order.  A cut drops whatever is on the way in either direction, so a
 * reply may be lost after the effect.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "io/redis.h"
#include "ledger.h"
#include "lives.h"
#include "world.h"

#define SCRIPTS		32
#define LONG_WAY	(USEC_PER_SEC / 2)	/* a claim reckons with less than a second */

struct redis {
	struct instance *i;
	bool up;
	bool dropped;
	struct flight *flights, **end;	/* calls without an answer, in order */
	usec_t there, back;		/* when the last call, reply arrives */
	uint64_t calls;
};

struct flight {
	struct flight *next;
	struct redis *r;		/* NULL: the connection is gone */
	redis_callback *cb;
	void *priv;
	uint64_t sent;			/* w->order of then */
	usec_t since;			/* the same, as time */
	size_t argc;
	struct bytes *argv;		/* owned */
	struct reply reply;
};

/* The scripts that Redis knows. */
struct script_cache {
	char names[SCRIPTS][32];
	size_t n;
};

struct script_cache *script_cache_new(void)
{
	return mem_alloc(1, sizeof(struct script_cache));
}

void script_cache_free(struct script_cache *c)
{
	free(c);
}

void script_cache_flush(struct script_cache *c)
{
	c->n = 0;
}

static bool cached(const struct script_cache *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->names[i], name) == 0)
			return true;
	return false;
}

/* Replies as hiredis gives them --------------------------------------- */

static redisReply *hiredis_reply(const struct reply *r)
{
	static const int types[] = {
		[REPLY_NIL] = REDIS_REPLY_NIL, [REPLY_INT] = REDIS_REPLY_INTEGER,
		[REPLY_STR] = REDIS_REPLY_STRING, [REPLY_STATUS] = REDIS_REPLY_STATUS,
		[REPLY_ERROR] = REDIS_REPLY_ERROR, [REPLY_ARRAY] = REDIS_REPLY_ARRAY,
	};
	redisReply *h = mem_alloc(1, sizeof *h);

	h->type = types[r->kind];
	h->integer = r->integer;
	h->str = mem_copy(r->str);
	h->len = (int)r->str.n;
	h->elements = r->n;
	h->element = mem_alloc(r->n, sizeof *h->element);
	for (size_t i = 0; i < r->n; i++)
		h->element[i] = hiredis_reply(&r->items[i]);
	return h;
}

static void hiredis_free(redisReply *h)
{
	for (size_t i = 0; i < h->elements; i++)
		hiredis_free(h->element[i]);
	free(h->element);
	free(h->str);
	free(h);
}

/* Calls ---------------------------------------------------------------- */

static void flight_free(void *arg)
{
	struct flight *f = arg;

	for (size_t i = 0; i < f->argc; i++)
		free((char *)f->argv[i].p);
	free(f->argv);
	reply_clear(&f->reply);
	free(f);
}

static void flight_unlink(struct flight *f)
{
	struct flight **p = &f->r->flights;

	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	if (f->r->end == &f->next)
		f->r->end = p;
}

static void deliver(struct world *w, void *arg)
{
	struct flight *f = arg;
	struct instance *i;
	redisReply *h;

	if (!f->r) {
		flight_free(f);
		return;
	}
	i = f->r->i;
	if (w->now < instance_frozen_until(i)) {
		at_owned(w, instance_frozen_until(i), deliver, f, flight_free);
		return;
	}
	instance_enter(i);
	flight_unlink(f);
	h = hiredis_reply(&f->reply);
	f->cb(i, f->priv, h);
	hiredis_free(h);
	flight_free(f);
	instance_turn(i);
}

static void text_reply(struct reply *r, enum reply_kind kind, const char *text)
{
	*r = (struct reply){ .kind = kind };
	r->str = bytes_of(mem_copy(bytes_str(text)), strlen(text));
}

static const char *refusal(struct world *w)
{
	static const char *const texts[] = {
		"LOADING Redis is loading the dataset in memory",
		"BUSY Redis is busy running a script.",
		"READONLY You can't write against a read only replica.",
		"MISCONF Redis is configured to save RDB snapshots.",
		"NOREPLICAS Not enough good replicas to write.",
	};

	return texts[below(w, FAULT, sizeof texts / sizeof texts[0])];
}

/* SCRIPT LOAD answers with the name in place of the SHA. */
static void load_script(struct world *w, struct flight *f)
{
	static const char mark[] = "return lapse_";
	struct script_cache *c = w->scripts;
	const char *call = "";
	char sha[41], *name = c->names[c->n];

	if (strikes(w, FAULT_REFUSE)) {
		text_reply(&f->reply, REPLY_ERROR, refusal(w));
		return;
	}
	for (const char *p = f->argv[2].p; (p = strstr(p, mark)); p++)
		call = p + sizeof mark - 1;
	snprintf(name, sizeof c->names[0], "%.*s", (int)strcspn(call, "("), call);
	snprintf(sha, sizeof sha, "%-40s", name);
	text_reply(&f->reply, REPLY_STR, sha);
	if (!cached(c, name) && c->n + 1 < SCRIPTS)
		c->n++;
}

/* The arguments after the prefix, long ones cut. */
static void trace_call(struct world *w, const struct flight *f, const char *name)
{
	char line[400];
	size_t at_ = 0;

	if (!w->conf.trace)
		return;
	for (size_t i = 4; i < f->argc && at_ < sizeof line - 60; i++)
		at_ += (size_t)snprintf(line + at_, sizeof line - at_, " %.*s",
					(int)(f->argv[i].n < 40 ? f->argv[i].n : 40), f->argv[i].p);
	trace(w, "%d: %s%s", f->r ? (int)instance_number(f->r->i) : -1, name, at_ ? line : "");
}

/*
 * Every entry of an adopted batch may already be in Kafka, those of a parked
 * one too, which the answer does not tell and the daemon does not count.
 */
static void adopted(struct world *w, const struct bytes *argv, bool parked)
{
	struct buf key = { 0 }, id = { 0 };
	struct bytes get[] = { BYTES("HGETALL"), bytes_none };
	struct reply r;

	buf_printf(&key, "%s:b:%.*s:%.*s", PREFIX, (int)argv[0].n, argv[0].p, (int)argv[3].n,
		   argv[3].p);
	get[1] = buf_view(&key);
	command(w, w->database, 2, get, &r);
	for (size_t i = 0; i + 1 < r.n; i += 2) {
		struct member m;
		struct envelope env;
		struct record rec;

		if (!member_parse(r.items[i].str, &m, NULL) ||
		    !envelope_unpack(r.items[i + 1].str, &env, NULL) ||
		    !record_unpack(env.record, &rec, NULL))
			continue;
		buf_reset(&id);
		ce_id_write(&m, rec.birth, rec.attempt, &id);
		ledger_reason(w->ledger, buf_view(&id), !parked);
	}
	reply_clear(&r);
	buf_clear(&key);
	buf_clear(&id);
}

/* What it says of when keys were heard to expire is no longer so. */
static void slow_claim(struct world *w, const struct flight *f)
{
	for (size_t i = 12; i + 1 < f->argc; i += 2)
		ledger_heard_late(w->ledger, f->argv[i]);
}

static void run_script(struct world *w, struct flight *f)
{
	char name[41];

	snprintf(name, sizeof name, "%.*s", (int)strcspn(f->argv[1].p, " "), f->argv[1].p);
	if (strikes(w, FAULT_REFUSE)) {
		text_reply(&f->reply, REPLY_ERROR, refusal(w));
		return;
	}
	if (!cached(w->scripts, name)) {
		text_reply(&f->reply, REPLY_ERROR, "NOSCRIPT No matching script.");
		return;
	}
	trace_call(w, f, name);
	if (strcmp(name, "claim") == 0 && w->now - f->since > LONG_WAY)
		slow_claim(w, f);
	store_set_time(w->store, redis_us(w));
	host_run(w->host, w->store, name, 1, f->argc - 3, f->argv + 3, &f->reply);
	if (holders_saw(w, name, f->argv + 4, f->argc - 4, &f->reply))
		adopted(w, f->argv + 4, f->reply.items[5].str.n);
	lives_looked(w->lives, &(struct look){
		f->r ? f->r->i : NULL, f->sent, name, f->argv + 4, f->argc - 4
	}, &f->reply);
}

/* The call is with Redis: it runs even if its caller is gone by now. */
static void serve(struct world *w, void *arg)
{
	struct flight *f = arg;
	usec_t when = w->now + 50 + (usec_t)below(w, WIRE, 1000);

	if (f->r || below(w, WIRE, 2)) {
		if (bytes_eq(f->argv[0], BYTES("SCRIPT")))
			load_script(w, f);
		else
			run_script(w, f);
	}
	if (f->r && when <= f->r->back)
		when = f->r->back + 1;
	if (f->r)
		f->r->back = when;
	at_owned(w, when, deliver, f, flight_free);
}

bool redis_call(struct redis *r, size_t argc, const struct bytes *argv,
		redis_callback *cb, void *priv)
{
	struct world *w = instance_world(r->i);
	struct flight *f;

	if (!r->up || r->dropped)
		return false;
	f = mem_alloc(1, sizeof *f);
	f->r = r;
	f->sent = w->order;
	f->since = w->now;
	f->cb = cb;
	f->priv = priv;
	f->argc = argc;
	f->argv = mem_alloc(argc, sizeof *f->argv);
	for (size_t i = 0; i < argc; i++)
		f->argv[i] = bytes_of(mem_copy(argv[i]), argv[i].n);
	*r->end = f;
	r->end = &f->next;
	r->calls++;
	r->there = (r->there > w->now ? r->there : w->now) + 50 + (usec_t)below(w, WIRE, 300);
	if (strikes(w, FAULT_SLOW))
		r->there += (usec_t)below(w, FAULT, 1500 * USEC_PER_MSEC);
	at_owned(w, r->there, serve, f, flight_free);
	return true;
}

void redis_drop(struct redis *r, enum redis_trouble trouble, const char *why)
{
	(void)trouble;
	(void)why;
	r->dropped = true;
}

/* The connection ------------------------------------------------------- */

struct redis *wire_new(struct instance *i)
{
	struct redis *r = mem_alloc(1, sizeof *r);

	r->i = i;
	r->end = &r->flights;
	return r;
}

void wire_up(struct redis *r)
{
	r->up = true;
	r->dropped = false;
	r->there = r->back = 0;
}

void wire_down(struct redis *r)
{
	struct flight *f = r->flights, *next;

	r->up = false;
	r->flights = NULL;
	r->end = &r->flights;
	for (; f; f = next) {
		next = f->next;
		f->r = NULL;
		f->cb(r->i, f->priv, NULL);
	}
}

void wire_free(struct redis *r)
{
	wire_down(r);
	free(r);
}

bool wire_is_up(const struct redis *r)
{
	return r->up;
}

bool wire_dropped(const struct redis *r)
{
	return r->dropped;
}

uint64_t wire_calls(const struct redis *r)
{
	return r->calls;
}
