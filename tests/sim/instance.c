/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One lapsed: the real bridge and the real calls, on wires that break.
 *
 * redis_call() here takes the place of src/io/redis.c: a call travels to the
 * store, the script runs, the reply travels back.  A cut drops whatever is on
 * the way in either direction, so a reply may be lost after the effect.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "daemon_calls.h"
#include "io/clock.h"
#include "world.h"

#define LEASE		(3 * USEC_PER_SEC)
#define MAX_EVENTS	60
#define CLAIM_LIMIT	10

/* What redis_new() would make; one per life of a worker connection. */
struct redis {
	struct instance *i;
	bool up;
	bool dropped;
	struct flight *flights;		/* calls without an answer */
};

struct flight {
	struct flight *next;
	struct redis *r;		/* NULL: the connection is gone */
	redis_callback *cb;
	void *priv;
	size_t argc;
	struct bytes *argv;		/* owned */
	struct reply reply;
};

struct instance {
	struct world *w;
	unsigned number, life;
	bool alive, listening;
	usec_t frozen_until;
	usec_t skew;			/* of its monotonic clock */
	struct redis *redis;
	struct bridge *bridge;
	struct calls *calls;
	struct routes *routes;
	usec_t wake_at;			/* the alarm that is set */
	struct counters before;		/* of lives that are over */
	bool stopping;
};

static void turn(struct instance *i);

usec_t clock_now(void);

static struct world *the_world;	/* clock_now() has no argument */

usec_t clock_now(void)
{
	return the_world->now + (the_world->acting ? the_world->acting->skew : 0);
}

static usec_t enter(struct instance *i)
{
	the_world = i->w;
	i->w->acting = i;
	return clock_now();
}

unsigned instance_life(const struct instance *i)
{
	return i->life;
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
	if (w->now < i->frozen_until) {
		at_owned(w, i->frozen_until, deliver, f, flight_free);
		return;
	}
	enter(i);
	flight_unlink(f);
	h = hiredis_reply(&f->reply);
	f->cb(i, f->priv, h);
	hiredis_free(h);
	flight_free(f);
	turn(i);
}

static void text_reply(struct reply *r, enum reply_kind kind, const char *text)
{
	*r = (struct reply){ .kind = kind };
	r->str = bytes_of(mem_copy(bytes_str(text)), strlen(text));
}

/* SCRIPT LOAD answers with the name in place of the SHA. */
static void load_script(struct flight *f)
{
	static const char mark[] = "return lapse_";
	const char *call = NULL;
	char sha[41];

	for (const char *p = f->argv[2].p; (p = strstr(p, mark)); p++)
		call = p + sizeof mark - 1;
	snprintf(sha, sizeof sha, "%-40.*s", call ? (int)strcspn(call, "(") : 0, call);
	text_reply(&f->reply, REPLY_STR, sha);
}

/* The arguments after the prefix, binary ones aside. */
static void trace_call(struct world *w, const struct flight *f)
{
	char line[400];
	size_t at_ = 0;

	if (!w->trace)
		return;
	for (size_t i = 4; i < f->argc && at_ < sizeof line - 60; i++)
		at_ += (size_t)snprintf(line + at_, sizeof line - at_, " %.*s",
					(int)(f->argv[i].n < 40 ? f->argv[i].n : 40), f->argv[i].p);
	trace(w, "%d: %.7s%s", f->r ? (int)f->r->i->number : -1, f->argv[1].p, at_ ? line : "");
}

static void run_script(struct world *w, struct flight *f)
{
	char name[41];

	snprintf(name, sizeof name, "%.*s", (int)strcspn(f->argv[1].p, " "), f->argv[1].p);
	if (chance(w, w->faults.refuse)) {
		text_reply(&f->reply, REPLY_ERROR, "LOADING Redis is loading the dataset");
		return;
	}
	trace_call(w, f);
	store_set_time(w->store, redis_us(w));
	host_run(w->host, w->store, name, 1, f->argc - 3, f->argv + 3, &f->reply);
}

/* The call is with Redis: it runs even if its caller is gone by now. */
static void serve(struct world *w, void *arg)
{
	struct flight *f = arg;

	if (f->r || below(w, 2)) {
		if (bytes_eq(f->argv[0], BYTES("SCRIPT")))
			load_script(f);
		else
			run_script(w, f);
	}
	at_owned(w, w->now + 50 + (usec_t)below(w, 1000), deliver, f, flight_free);
}

bool redis_call(struct redis *r, size_t argc, const struct bytes *argv,
		redis_callback *cb, void *priv)
{
	struct world *w = r->i->w;
	struct flight *f;

	if (!r->up || r->dropped)
		return false;
	f = mem_alloc(1, sizeof *f);
	f->next = r->flights;
	f->r = r;
	f->cb = cb;
	f->priv = priv;
	f->argc = argc;
	f->argv = mem_alloc(argc, sizeof *f->argv);
	for (size_t i = 0; i < argc; i++)
		f->argv[i] = bytes_of(mem_copy(argv[i]), argv[i].n);
	r->flights = f;
	at_owned(w, w->now + 50 + (usec_t)below(w, 500), serve, f, flight_free);
	return true;
}

void redis_drop(struct redis *r, enum redis_trouble trouble, const char *why)
{
	(void)trouble;
	(void)why;
	r->dropped = true;
}

/* Connections ----------------------------------------------------------- */

static void connect_worker(struct world *w, void *arg)
{
	struct instance *i = arg;

	(void)w;
	if (!i->alive || i->redis->up)
		return;
	enter(i);
	i->redis->up = true;
	i->redis->dropped = false;
	calls_load(i->calls);
}

static void on_loaded(void *arg, const char *error)
{
	struct instance *i = arg;

	if (error)
		instance_cut(i);
	else
		bridge_link(i->bridge, true, clock_now());
}

static void on_script_error(void *arg, const char *script, enum script_error code,
			    const char *text)
{
	struct instance *i = arg;

	(void)code;
	trace(i->w, "%u: %s refused: %s", i->number, script, text);
}

void instance_cut(struct instance *i)
{
	struct flight *f, *next;

	if (!i->alive || !i->redis->up)
		return;
	trace(i->w, "%u: connection cut", i->number);
	enter(i);
	i->redis->up = false;
	f = i->redis->flights;
	i->redis->flights = NULL;
	for (; f; f = next) {
		next = f->next;
		f->r = NULL;
		f->cb(i, f->priv, NULL);
	}
	bridge_link(i->bridge, false, clock_now());
	at(i->w, i->w->now + 1000 + (usec_t)below(i->w, USEC_PER_SEC), connect_worker, i);
}

static void subscribe(struct world *w, void *arg)
{
	struct instance *i = arg;

	(void)w;
	if (!i->alive || i->listening)
		return;
	enter(i);
	i->listening = true;
	bridge_subscribed(i->bridge, clock_now());
	turn(i);
}

void instance_deafen(struct instance *i)
{
	if (!i->alive)
		return;
	trace(i->w, "%u: subscription lost", i->number);
	i->listening = false;
	at(i->w, i->w->now + 1000 + (usec_t)below(i->w, 2 * USEC_PER_SEC), subscribe, i);
}

struct heard_message {
	struct instance *i;
	unsigned life;
	struct bytes channel, text;	/* owned */
};

static void heard_message_free(void *arg)
{
	struct heard_message *m = arg;

	free((char *)m->channel.p);
	free((char *)m->text.p);
	free(m);
}

static void hear(struct world *w, void *arg)
{
	struct heard_message *m = arg;
	struct instance *i = m->i;
	char member[256];

	if (w->now < i->frozen_until) {
		at_owned(w, i->frozen_until, hear, m, heard_message_free);
		return;
	}
	enter(i);
	if (i->life == m->life && i->alive && i->listening) {
		if (!bytes_starts(m->channel, BYTES("__keyevent@")))
			bytes_eq(m->text, BYTES("left")) ?
				bridge_peer_left(i->bridge, clock_now()) :
				bridge_wake(i->bridge, strtoll(m->text.p, NULL, 10), clock_now());
		else if (routes_match(i->routes, 0, m->text, NULL)) {
			int n = snprintf(member, sizeof member, "k:0:%.*s", (int)m->text.n,
					 m->text.p);

			bridge_heard(i->bridge, bytes_of(member, (size_t)n), false, clock_now());
		}
		turn(i);
	}
	heard_message_free(m);
}

void instance_publish(struct instance *i, struct bytes channel, struct bytes message)
{
	struct heard_message *m;

	if (!i->alive || !i->listening || chance(i->w, i->w->faults.unheard))
		return;
	m = mem_alloc(1, sizeof *m);
	m->i = i;
	m->life = i->life;
	m->channel = bytes_of(mem_copy(channel), channel.n);
	m->text = bytes_of(mem_copy(message), message.n);
	at_owned(i->w, i->w->now + 20 + (usec_t)below(i->w, 2000), hear, m,
		 heard_message_free);
}

/* The turn of the loop -------------------------------------------------- */

static void produce(struct instance *i, struct entry *e)
{
	struct event ev;
	struct err err;
	struct buf id = { 0 };
	struct bytes topic;

	if (!event_read(&ev, i->routes, e->member, e->envelope, &err)) {
		bridge_verdict(i->bridge, e, VERDICT_CULPRIT, err.text, clock_now());
		return;
	}
	ce_id_write(&ev.member, ev.record.birth, ev.record.attempt, &id);
	topic = ev.route ? ev.route->topic : ev.record.topic;
	kafka_fake_produce(i->w->kafka, i, e, topic, buf_view(&id),
			   bytes_eq(ev.record.payload, BYTES("poison")));
	buf_clear(&id);
}

static void on_alarm(struct world *w, void *arg)
{
	struct instance *i = arg;

	if (!i->alive || w->now != i->wake_at)
		return;
	i->wake_at = -1;
	if (w->now < i->frozen_until) {
		i->wake_at = i->frozen_until;
		at(w, i->wake_at, on_alarm, i);
		return;
	}
	enter(i);
	turn(i);
}

static void set_alarm(struct instance *i)
{
	usec_t when = bridge_deadline(i->bridge, clock_now());

	if (when == USEC_NEVER)
		return;
	when -= i->skew;
	if (when <= i->w->now)
		when = i->w->now + 1;
	if (i->wake_at >= i->w->now && i->wake_at <= when)
		return;
	i->wake_at = when;
	at(i->w, when, on_alarm, i);
}

static void come_back(struct world *w, void *arg);

static void say(struct instance *i, const struct note *n)
{
	trace(i->w, "%u: note %d %lld %lld %s %s", i->number, (int)n->kind, (long long)n->a,
	      (long long)n->b, n->text, n->why);
}

static void turn(struct instance *i)
{
	const struct ask *ask;
	struct entry *e;
	struct note n;

	if (!i->alive)
		return;
	while ((ask = bridge_ask(i->bridge, clock_now())))
		calls_make(i->calls, ask);
	while ((e = bridge_next(i->bridge, clock_now())))
		produce(i, e);
	while (bridge_note(i->bridge, &n))
		say(i, &n);
	if (i->redis->dropped)
		instance_cut(i);
	if (i->stopping && bridge_over(i->bridge))
		instance_crash(i);	/* it is out; a new one follows */
	else
		set_alarm(i);
}

void instance_report(struct instance *i, unsigned life, struct entry *e, enum verdict v)
{
	if (i->life != life)
		return;
	enter(i);
	bridge_verdict(i->bridge, e, v, "refused", clock_now());
	turn(i);
}

/* Life ------------------------------------------------------------------ */

static void begin(struct instance *i)
{
	static const struct bridge_conf conf = {
		.listens = true, .sweeps = true, .max_events = MAX_EVENTS, .max_bytes = 1 << 20, .claim_limit = CLAIM_LIMIT,
		.lease = LEASE, .grace = 50 * USEC_PER_MSEC,
		.sweep_interval = 5 * USEC_PER_SEC,
		.park_min = 500 * USEC_PER_MSEC, .park_max = 4 * USEC_PER_SEC,
	};
	static const struct calls_handlers handlers = { on_loaded, on_script_error };
	struct calls_conf cc = { "lapse:{0}", 0, "sim", LEASE / USEC_PER_MSEC };
	char seed[LEASE_NONCE_LEN];

	enter(i);
	snprintf(seed, sizeof seed, "i%u.%u", i->number, i->life);
	i->alive = true;
	i->stopping = false;
	i->listening = false;
	i->wake_at = -1;
	i->redis = mem_alloc(1, sizeof *i->redis);
	i->redis->i = i;
	i->bridge = bridge_new(&conf, i->routes, seed, clock_now());
	i->calls = calls_new(i->redis, i->bridge, &cc, &handlers, i);
	at(i->w, i->w->now + 1 + (usec_t)below(i->w, 20000), connect_worker, i);
	at(i->w, i->w->now + 1 + (usec_t)below(i->w, 20000), subscribe, i);
}

static void counters_add(struct counters *sum, const struct counters *c)
{
#define X(name, meaning)	sum->name += c->name;
	COUNTERS(X)
#undef X
}

/* Calls on the way go on without their caller. */
static void end(struct instance *i)
{
	struct flight *f, *next;

	enter(i);
	for (f = i->redis->flights; f; f = next) {
		next = f->next;
		f->r = NULL;
		f->cb(i, f->priv, NULL);
	}
	i->alive = false;
	i->life++;
	counters_add(&i->before, bridge_counters(i->bridge));
	calls_free(i->calls);
	bridge_free(i->bridge);
	free(i->redis);
}

static void come_back(struct world *w, void *arg)
{
	(void)w;
	begin(arg);
}

void instance_crash(struct instance *i)
{
	if (!i->alive)
		return;
	trace(i->w, "%u: %s", i->number, i->stopping ? "stopped" : "crash");
	end(i);
	at(i->w, i->w->now + 1000 + (usec_t)below(i->w, 2 * LEASE), come_back, i);
}

void instance_freeze(struct instance *i, usec_t how_long)
{
	if (i->alive)
		trace(i->w, "%u: frozen for %lld ms", i->number, (long long)how_long / 1000);
	i->frozen_until = i->w->now + how_long;
}

static void lose_patience(struct world *w, void *arg)
{
	struct instance *i = arg;

	if (!i->alive || !i->stopping)
		return;
	trace(w, "%u: gives up", i->number);
	enter(i);
	bridge_give_up(i->bridge);
	turn(i);
}

static void kill_it(struct world *w, void *arg)
{
	struct instance *i = arg;

	(void)w;
	if (i->stopping)
		instance_crash(i);
}

void instance_stop(struct instance *i)
{
	if (!i->alive || i->stopping)
		return;
	trace(i->w, "%u: stop", i->number);
	enter(i);
	i->stopping = true;
	bridge_drain(i->bridge);
	at(i->w, i->w->now + (usec_t)below(i->w, USEC_PER_SEC), lose_patience, i);
	at(i->w, i->w->now + 5 * USEC_PER_SEC, kill_it, i);
	turn(i);
}

static struct routes *make_routes(void)
{
	struct routes *rs = routes_new(BYTES("lapse:{"));
	const struct bytes pattern = BYTES("w*");
	const struct route route = {
		.name = BYTES("watched"), .patterns = &pattern, .npatterns = 1,
		.registers = ROUTE_APP, .topic = BYTES("topic0"), .copy = true,
	};
	struct err err;

	if (!routes_add(rs, &route, &err))
		abort();
	return rs;
}

struct instance *instance_new(struct world *w, unsigned number)
{
	struct instance *i = mem_alloc(1, sizeof *i);

	i->w = w;
	i->number = number;
	i->skew = (usec_t)(1 + number) * 86400 * USEC_PER_SEC;
	i->routes = make_routes();
	begin(i);
	return i;
}

void instance_free(struct instance *i)
{
	if (i->alive)
		end(i);
	routes_free(i->routes);
	free(i);
}

void instance_sum(const struct instance *i, struct counters *sum)
{
	counters_add(sum, &i->before);
	if (i->alive)
		counters_add(sum, bridge_counters(i->bridge));
}

bool instance_check(struct instance *i, bool at_rest)
{
	struct bridge_gauges g;

	if (!i->alive)
		return true;
	bridge_gauges(i->bridge, &g);
	if (g.inflight_events > MAX_EVENTS) {
		printf("instance %u holds %zu events\n", i->number, g.inflight_events);
		return false;
	}
	if (at_rest && (g.inflight_events > CLAIM_LIMIT || g.with_producer)) {
		printf("instance %u is not at rest: %zu events in %zu batches\n", i->number,
		       g.inflight_events, g.batches);
		return false;
	}
	return true;
}
