/* SPDX-License-Identifier: BSD-2-Clause */

/* The application: what it asks of the scripts, and does behind their back. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ledger.h"

#define ARGS	16

struct app {
	struct world *w;
	char big[BIG];
};

struct app *app_new(struct world *w)
{
	struct app *a = mem_alloc(1, sizeof *a);

	a->w = w;
	return a;
}

void app_free(struct app *a)
{
	free(a);
}

static const char *text(const struct reply *r, size_t i)
{
	return r->kind == REPLY_ARRAY && i < r->n ? r->items[i].str.p : "";
}

static int64_t number(const struct reply *r, size_t i)
{
	return strtoll(text(r, i), NULL, 10);
}

/* Arguments are strings, and end with NULL. */
static bool run(struct app *a, const char *script, size_t nkeys, struct reply *r, ...)
{
	struct world *w = a->w;
	struct bytes argv[ARGS] = { BYTES(PREFIX) };
	size_t argc = 1;
	const char *s;
	va_list ap;

	va_start(ap, r);
	while ((s = va_arg(ap, const char *)))
		argv[argc++] = bytes_str(s);
	va_end(ap);
	store_set_time(w->store, redis_us(w));
	host_run(w->host, w->store, script, nkeys, argc, argv, r);
	trace(w, "app %s %s -> %s %s", script, argc > 1 ? argv[1].p : "",
	      r->kind == REPLY_ERROR ? r->str.p : text(r, 0), text(r, 2));
	return r->kind == REPLY_ARRAY;
}

static const struct class *class_of(size_t name)
{
	return &classes[name / NAMES];
}

static void name_of(size_t name, char room[16])
{
	snprintf(room, 16, "%c%zu", class_of(name)->letter, name % NAMES);
}

/* Also what a database is called. */
static void db_of(size_t name, char room[16])
{
	snprintf(room, 16, "%u", class_of(name)->db);
}

static const char *payload(struct app *a)
{
	size_t n = 1000 + below(a->w, APP, BIG - 1001);

	if (!strikes(a->w, FAULT_BIG))
		return "payload";
	memset(a->big, 'b', n);
	a->big[n] = '\0';
	return a->big;
}

static void act_schedule(struct app *a, size_t name)
{
	struct world *w = a->w;
	bool poison = strikes(w, FAULT_POISON);
	char id[16], when[32], topic[16];
	struct reply r;

	name_of(name, id);
	snprintf(when, sizeof when, "+%llu", (unsigned long long)below(w, APP, 4) *
		 (unsigned long long)below(w, APP, 1500));
	snprintf(topic, sizeof topic, "topic%llu", (unsigned long long)below(w, APP, TOPICS));
	if (run(a, "schedule", 1, &r, id, when, topic, "", poison ? "poison" : payload(a),
		below(w, APP, 8) ? NULL : "nx", "1", NULL))
		ledger_begin(w->ledger, name, text(&r, 0), number(&r, 1), text(&r, 2), poison);
	reply_clear(&r);
}

static void act_setex(struct app *a, size_t name)
{
	char key[16], ttl[32], db[16];
	bool poison = !class_of(name)->may_drop && strikes(a->w, FAULT_POISON);
	struct reply r;

	name_of(name, key);
	db_of(name, db);
	snprintf(ttl, sizeof ttl, "%llu", 1 + (unsigned long long)below(a->w, APP, 3000));
	if (run(a, "setex", 2, &r, key, ttl, poison ? "poison" : payload(a), "db", db, NULL))
		ledger_begin(a->w->ledger, name, text(&r, 0), number(&r, 1), text(&r, 2), poison);
	reply_clear(&r);
}

static void act_end(struct app *a, size_t name)
{
	char id[16], db[16];
	struct reply r;
	bool done;

	name_of(name, id);
	db_of(name, db);
	done = class_of(name)->watched ? run(a, "del", 2, &r, id, "db", db, NULL) :
					 run(a, "cancel", 1, &r, id, NULL);
	if (done)
		ledger_end(a->w->ledger, ledger_life(a->w->ledger, name), text(&r, 0));
	reply_clear(&r);
}

static void act_reschedule(struct app *a, size_t name)
{
	struct life *life = ledger_life(a->w->ledger, name);
	char id[16], when[32];
	struct reply r;

	name_of(name, id);
	snprintf(when, sizeof when, "+%llu", (unsigned long long)below(a->w, APP, 3000));
	if (run(a, "reschedule", 1, &r, id, when, NULL) && life &&
	    strcmp(text(&r, 0), "rescheduled") == 0) {
		life->due = number(&r, 1);
		ledger_touch(a->w->ledger, life);
	}
	reply_clear(&r);
}

/* A plain command on a key; its integer reply. */
static int64_t on_key(struct app *a, size_t name, const char *cmd, const char *arg)
{
	char key[16];
	struct bytes argv[3] = { bytes_str(cmd) };
	struct reply r;
	int64_t n;

	name_of(name, key);
	argv[1] = bytes_str(key);
	argv[2] = bytes_str(arg ? arg : "");
	command(a->w, class_of(name)->db, arg ? 3 : 2, argv, &r);
	trace(a->w, "app %s %s %s -> %lld", cmd, key, arg ? arg : "", (long long)r.integer);
	n = r.integer;
	reply_clear(&r);
	return n;
}

/* The application changes the key behind lapsed's back. */
static void act_behind(struct app *a, size_t name)
{
	struct life *life = ledger_life(a->w->ledger, name);
	char at_ms[32];
	int64_t later = redis_ms(a->w) + 1 + (int64_t)below(a->w, APP, 3000);
	bool persist = below(a->w, APP, 4) == 0;
	int64_t done;

	if (!life)
		return;
	snprintf(at_ms, sizeof at_ms, "%lld", (long long)later);
	done = persist ? on_key(a, name, "PERSIST", NULL) : on_key(a, name, "PEXPIREAT", at_ms);
	/* A TTL again after PERSIST: whether it was looked at in between decides. */
	if (done == 1 && life->fate == ENDED)
		life->exempt = true;
	if (done == 1 && life->fate == PENDING) {
		ledger_touch(a->w->ledger, life);
		if (persist)
			life->fate = ENDED;
		life->hurried = life->hurried || later < life->due;
		if (!persist)
			life->due = later;
	}
}

/* A key that nobody announces, so that the notification is all there is. */
static void act_unannounced(struct app *a, size_t name)
{
	char key[16], ttl[32];
	struct bytes argv[] = { BYTES("SET"), bytes_none, BYTES("v"), BYTES("PX"), bytes_none };
	struct reply r;

	name_of(name, key);
	snprintf(ttl, sizeof ttl, "%llu", 1 + (unsigned long long)below(a->w, APP, 2000));
	argv[1] = bytes_str(key);
	argv[4] = bytes_str(ttl);
	if (a->w->now < USEC_PER_SEC)
		return;			/* the instances are listening from then on */
	command(a->w, 0, 5, argv, &r);
	reply_clear(&r);
	trace(a->w, "app SET %s PX %s", key, ttl);
}

static void act_replay(struct app *a)
{
	struct world *w = a->w;
	struct life *dead = ledger_dead_one(w->ledger, below(w, APP, 1000));
	struct reply r;

	if (!dead)
		return;
	if (below(w, APP, 4) == 0) {
		if (run(a, "dead_drop", 1, &r, dead->id, NULL))
			dead->replayed = true;
	} else if (run(a, "dead_replay", 1, &r, dead->id, NULL)) {
		ledger_replayed(w->ledger, dead, number(&r, 1), text(&r, 2));
	}
	reply_clear(&r);
}

/* Somebody writes where nobody should. */
static void act_corrupt(struct app *a, size_t name)
{
	static const struct bytes garbage[] = {
		BYTES("\1garbage"), BYTES("\2 of another version"), BYTES("?"),
		{ "\1\0\0\0\0\0\0\0\1\0\0z\0\1?", 15 }, { "\1\0\0\0\0\0\0\0\1\0\0t\xff\xff?", 15 },
	};
	struct life *life = ledger_life(a->w->ledger, name);
	char member[32];
	struct bytes argv[] = { BYTES("HEXISTS"), BYTES(PREFIX ":rec"), bytes_none, bytes_none };
	struct reply r;
	bool there;

	if (!life || life->fate == ENDED)
		return;
	snprintf(member, sizeof member, "%.*s", (int)strcspn(life->id, "@"), life->id);
	argv[2] = bytes_str(member);
	command(a->w, a->w->database, 3, argv, &r);
	there = r.integer;
	reply_clear(&r);
	if (!there)
		return;
	argv[0] = BYTES("HSET");
	argv[3] = garbage[below(a->w, APP, sizeof garbage / sizeof garbage[0])];
	command(a->w, a->w->database, 4, argv, &r);
	if (r.kind == REPLY_INT) {
		trace(a->w, "app corrupts %s", life->id);
		life->corrupt = true;
		ledger_touch(a->w->ledger, life);
	}
	reply_clear(&r);
}

static void act_look(struct app *a, size_t name)
{
	char id[16], db[16];
	struct reply r;

	name_of(name, id);
	db_of(name, db);
	if (class_of(name)->watched)
		run(a, "show", 1, &r, id, "watched", "1", "db", db, NULL);
	else
		run(a, "show", 1, &r, id, NULL);
	reply_clear(&r);
	run(a, "stats", 1, &r, NULL);
	reply_clear(&r);
}

void app_act(struct app *a)
{
	size_t name = below(a->w, APP, CLASSES * NAMES);
	uint64_t what = below(a->w, APP, 21);
	const struct class *c = class_of(name);

	if (what == 20)
		act_look(a, name);
	else if (c->unannounced)
		(what ? act_unannounced(a, name) : act_replay(a));
	else if (strikes(a->w, FAULT_CORRUPT))
		act_corrupt(a, name);
	else if (what < 12)
		(c->watched ? act_setex : act_schedule)(a, name);
	else if (what < 16)
		act_end(a, name);
	else
		(c->watched ? act_behind : act_reschedule)(a, name);
}
