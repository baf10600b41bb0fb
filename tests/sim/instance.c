/* SPDX-License-Identifier: BSD-2-Clause */

/* One lapsed: the real bridge and the real calls, on wires that break. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "daemon_calls.h"
#include "io/clock.h"
#include "ledger.h"
#include "lives.h"
#include "world.h"

#define IDLE_CALLS	90	/* in the ten seconds at the end: renewals, sweeps, scans */
#define WORD_EVERY	(2 * USEC_PER_SEC)
#define TURN_CALLS	1000	/* in one turn of the loop */

enum role { BOTH, BRIDGE, SWEEPER };

struct instance {
	struct world *w;
	unsigned number, life;
	enum role role;
	bool alive, linked, listening, stopping;
	usec_t frozen_until;
	usec_t full_until;		/* the producer has no room */
	unsigned subscriptions;		/* how many are over */
	usec_t heard_at;		/* when the last message arrives */
	usec_t word_asked;		/* of a word of ours on its way; 0: none */
	usec_t skew;			/* of its monotonic clock */
	struct redis *redis;
	struct bridge *bridge;
	struct calls *calls;
	struct routes *routes;
	struct bridge_conf conf;
	usec_t wake_at;			/* the alarm that is set */
	struct counters before;		/* of lives that are over */
	uint64_t marked;		/* calls made when it should begin to idle */
};

usec_t clock_now(void);

static struct world *the_world;	/* clock_now() has no argument */

usec_t clock_now(void)
{
	return the_world->now + (the_world->acting ? the_world->acting->skew : 0);
}

void instance_enter(struct instance *i)
{
	the_world = i->w;
	i->w->acting = i;
}

unsigned instance_life(const struct instance *i)
{
	return i->life;
}

unsigned instance_number(const struct instance *i)
{
	return i->number;
}

struct world *instance_world(const struct instance *i)
{
	return i->w;
}

usec_t instance_frozen_until(const struct instance *i)
{
	return i->frozen_until;
}

static usec_t soon(struct instance *i, uint64_t within)
{
	return i->w->now + 1000 + (usec_t)below(i->w, WIRE, within);
}

/* Connections ----------------------------------------------------------- */

static void connect_worker(struct world *w, void *arg)
{
	struct instance *i = arg;

	if (!i->alive || wire_is_up(i->redis))
		return;
	if (w->now < i->frozen_until) {
		at(w, i->frozen_until, connect_worker, i);
		return;
	}
	instance_enter(i);
	wire_up(i->redis);
	calls_load(i->calls);
}

static void on_loaded(void *arg, const char *error)
{
	struct instance *i = arg;

	if (error)
		redis_drop(i->redis, REDIS_BUSY, error);
	else if (!i->linked)
		bridge_link(i->bridge, i->linked = true, clock_now());
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
	if (!i->alive || !wire_is_up(i->redis))
		return;
	trace(i->w, "%u: connection cut", i->number);
	instance_enter(i);
	wire_down(i->redis);
	if (i->linked)
		bridge_link(i->bridge, i->linked = false, clock_now());
	at(i->w, soon(i, USEC_PER_SEC), connect_worker, i);
}

static void subscribe(struct world *w, void *arg)
{
	struct instance *i = arg;

	if (!i->alive || i->listening)
		return;
	if (w->now < i->frozen_until) {
		at(w, i->frozen_until, subscribe, i);
		return;
	}
	instance_enter(i);
	i->listening = true;
	i->word_asked = 0;
	bridge_heard_since(i->bridge, clock_now());
	bridge_subscribed(i->bridge, clock_now());
	instance_turn(i);
}

/* As src/daemon_server.c does: what comes behind our word is younger than it. */
static void word(struct world *w, void *arg)
{
	struct instance *i = arg;

	if (w->now < i->frozen_until) {
		at(w, i->frozen_until, word, i);
		return;
	}
	if (i->alive && i->listening && !i->word_asked) {
		instance_enter(i);
		i->word_asked = clock_now();
		instance_publish(i, BYTES(PREFIX ":wake"), BYTES("word"));
	}
	at(w, w->now + WORD_EVERY, word, i);
}

void instance_deafen(struct instance *i)
{
	if (!i->alive)
		return;
	trace(i->w, "%u: subscription lost", i->number);
	i->listening = false;
	i->subscriptions++;
	at(i->w, soon(i, 2 * USEC_PER_SEC), subscribe, i);
}

struct heard_message {
	struct instance *i;
	unsigned life, subscription;
	struct bytes channel, text;	/* owned */
	usec_t published;
	bool late;			/* behind what came after it */
};

static void heard_message_free(void *arg)
{
	struct heard_message *m = arg;

	free((char *)m->channel.p);
	free((char *)m->text.p);
	free(m);
}

/* As on_event() of src/daemon.c. */
static void hear_key(struct instance *i, const struct heard_message *m)
{
	struct bytes event = bytes_skip(m->channel, sizeof "__keyevent@0__:" - 1);
	enum watch_sign sign = watch_sign(event, true);
	uint64_t echoes = bridge_counters(i->bridge)->echoes;
	bool echo;
	unsigned db = (unsigned)strtoul(m->channel.p + sizeof "__keyevent@" - 1, NULL, 10);
	const struct route *route = routes_match(i->routes, db, m->text, NULL);
	char member[256];
	int n = snprintf(member, sizeof member, "k:%u:%.*s", db, (int)m->text.n, m->text.p);

	if (!route || i->role == SWEEPER)
		return;
	if (sign == WATCH_EXPIRED)
		bridge_heard(i->bridge, bytes_of(member, (size_t)n), route_heard(route),
			     clock_now());
	echo = bridge_counters(i->bridge)->echoes > echoes;
	if (route->registers & ROUTE_EVENTS && (sign != WATCH_WRITTEN || route->refresh))
		bridge_hint(i->bridge, bytes_of(member, (size_t)n), sign, clock_now());
	lives_heard(i->w->lives, i, event, m->text, m->published,
		    m->late || echo);
}

static void hear(struct world *w, void *arg)
{
	struct heard_message *m = arg;
	struct instance *i = m->i;

	if (w->now < i->frozen_until) {
		at_owned(w, i->frozen_until, hear, m, heard_message_free);
		return;
	}
	instance_enter(i);
	if (i->life == m->life && i->subscriptions == m->subscription && i->alive) {
		if (bytes_starts(m->channel, BYTES("__keyevent@")))
			hear_key(i, m);
		else if (bytes_eq(m->text, BYTES("word"))) {
			bridge_heard_since(i->bridge, i->word_asked);
			i->word_asked = 0;
		} else if (bytes_eq(m->text, BYTES("left")))
			bridge_peer_left(i->bridge, clock_now());
		else
			bridge_wake(i->bridge, strtoll(m->text.p, NULL, 10), clock_now());
		instance_turn(i);
	}
	heard_message_free(m);
}

static struct heard_message *message_new(struct instance *i, struct bytes channel,
					 struct bytes text)
{
	struct heard_message *m = mem_alloc(1, sizeof *m);

	m->i = i;
	m->life = i->life;
	m->subscription = i->subscriptions;
	m->channel = bytes_of(mem_copy(channel), channel.n);
	m->text = bytes_of(mem_copy(text), text.n);
	m->published = i->w->now;
	return m;
}

void instance_tell(struct instance *i, struct bytes channel, struct bytes key)
{
	struct heard_message *m;

	if (!i->alive || !i->listening || i->role == SWEEPER)
		return;
	if (!strikes(i->w, FAULT_REORDER)) {
		instance_publish(i, channel, key);
		if (strikes(i->w, FAULT_DOUBLED))
			instance_publish(i, channel, key);
		return;
	}
	m = message_new(i, channel, key);
	m->late = true;
	at_owned(i->w, i->w->now + 20 + (usec_t)below(i->w, WIRE, 100 * USEC_PER_MSEC), hear, m,
		 heard_message_free);
}

void instance_publish(struct instance *i, struct bytes channel, struct bytes message)
{
	usec_t when = i->w->now + 20 + (usec_t)below(i->w, WIRE, 2000);

	if (!i->alive || !i->listening)
		return;
	/* An own word that is lost makes the daemon subscribe anew. */
	if (strikes(i->w, FAULT_UNHEARD)) {
		if (bytes_eq(message, BYTES("word")))
			instance_deafen(i);
		return;
	}
	i->heard_at = when > i->heard_at ? when : i->heard_at + 1;
	at_owned(i->w, i->heard_at, hear, message_new(i, channel, message), heard_message_free);
}

/* The turn of the loop -------------------------------------------------- */

/* As src/daemon.c makes it; the topic for dead letters may refuse it, too. */
static void produce_dead(struct instance *i, struct entry *e)
{
	static const struct event_conf conf = {
		.source = { "sim", sizeof "sim" - 1 }, .shard = { PREFIX, sizeof PREFIX - 1 },
	};
	const struct dead_letter l = {
		e->member, e->envelope, e->batch->trigger, bytes_str(e->reason),
		topic_name(e->topic),
	};
	struct event_room room = { 0 };
	struct message m;
	struct produced p;

	event_build_dead(&l, i->routes, &conf, &room, &m);
	p = (struct produced){
		.topic = m.topic, .id = m.id, .poison = strikes(i->w, FAULT_POISON),
	};
	for (size_t k = 0; k < m.nheaders; k++)
		if (bytes_eq(m.headers[k].name, BYTES("ce_lapsereason")))
			p.reason = m.headers[k].value;
	kafka_fake_produce(i->w->kafka, i, e, &p);
	event_room_clear(&room);
}

static void produce(struct instance *i, struct entry *e)
{
	struct event ev;
	struct err err;
	struct buf id = { 0 };
	struct produced p = { 0 };

	if (e->death == DEATH_DYING) {
		produce_dead(i, e);
		return;
	}
	if (!event_read(&ev, i->routes, e->member, e->envelope, &err)) {
		bridge_verdict(i->bridge, e, VERDICT_CULPRIT, err.text, clock_now());
		return;
	}
	ce_id_write(&ev.member, ev.record.birth, ev.record.attempt, &id);
	p.topic = ev.route ? ev.route->topic : ev.record.topic;
	p.id = buf_view(&id);
	p.poison = bytes_eq(ev.record.payload, BYTES("poison"));
	kafka_fake_produce(i->w->kafka, i, e, &p);
	buf_clear(&id);
}

static void produce_all(struct instance *i)
{
	struct entry *e;

	while (i->w->now >= i->full_until && (e = bridge_next(i->bridge, clock_now()))) {
		if (!strikes(i->w, FAULT_FULL)) {
			produce(i, e);
			continue;
		}
		bridge_back(i->bridge, e);
		i->full_until = soon(i, 200 * USEC_PER_MSEC);
	}
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
	instance_enter(i);
	instance_turn(i);
}

static void set_alarm(struct instance *i)
{
	usec_t when = bridge_deadline(i->bridge, clock_now());

	if (when != USEC_NEVER)
		when -= i->skew;
	if (i->full_until > i->w->now && i->full_until < when)
		when = i->full_until;
	if (when == USEC_NEVER)
		return;
	if (when <= i->w->now)
		when = i->w->now + 1;
	if (i->wake_at >= i->w->now && i->wake_at <= when)
		return;
	i->wake_at = when;
	at(i->w, when, on_alarm, i);
}

static void say(struct instance *i, const struct note *n)
{
	if (n->kind == NOTE_FENCED && !struck(i->w, FAULT_FAILOVER) &&
	    holders_has(i->w->holders, bridge_lease(i->bridge)->nonce))
		complain(i->w, "instance %u drops what it holds, and holds its slot", i->number);
	trace(i->w, "%u: note %d %lld %lld %s %s", i->number, (int)n->kind, (long long)n->a,
	      (long long)n->b, n->text, n->why);
}

void instance_turn(struct instance *i)
{
	const struct ask *ask;
	struct note n;
	unsigned calls = 0;

	if (!i->alive)
		return;
	while ((ask = bridge_ask(i->bridge, clock_now()))) {
		calls_make(i->calls, ask);
		if (++calls == TURN_CALLS) {
			complain(i->w, "instance %u asks without end", i->number);
			return;
		}
	}
	produce_all(i);
	while (bridge_note(i->bridge, &n))
		say(i, &n);
	if (wire_dropped(i->redis))
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
	instance_enter(i);
	bridge_verdict(i->bridge, e, v, "refused", clock_now());
	instance_turn(i);
}

/* Life ------------------------------------------------------------------ */

static bool add_route(struct routes *rs, const char *pattern, unsigned registers,
		      enum route_inferred inferred, const char *topic, bool dead)
{
	const struct bytes p = bytes_str(pattern);
	const struct route route = {
		.name = p, .patterns = &p, .npatterns = 1, .registers = registers,
		.topic = bytes_str(topic), .copy = true, .inferred = inferred,
		.dead_topic = dead ? BYTES("dead1") : bytes_none,
	};
	struct err err;

	return routes_add(rs, &route, &err);
}

static struct routes *make_routes(const struct world *w)
{
	struct routes *rs = routes_new(BYTES("lapse:{"));
	bool dead = w->dead_topic;

	if (!add_route(rs, "w*", ROUTE_APP, ROUTE_EMIT, "topic0", dead) ||
	    !add_route(rs, "x*", ROUTE_APP, ROUTE_EMIT, "topic1", dead) ||
	    !add_route(rs, "d*", ROUTE_APP, ROUTE_DROP, "topic1", false) ||
	    !add_route(rs, "n*", ROUTE_NOTICE, ROUTE_EMIT, "topic2", false) || !foreign_routes(rs))
		abort();
	return rs;
}

static void begin(struct instance *i)
{
	static const struct calls_handlers handlers = { on_loaded, on_script_error };
	const struct calls_conf cc = {
		PREFIX, (int)i->w->database, "sim", LEASE / USEC_PER_MSEC,
	};
	char seed[LEASE_NONCE_LEN];

	instance_enter(i);
	snprintf(seed, sizeof seed, "i%u.%u", i->number, i->life);
	i->alive = true;
	i->linked = i->stopping = i->listening = false;
	i->wake_at = -1;
	i->full_until = 0;
	i->redis = wire_new(i);
	i->bridge = bridge_new(&i->conf, i->routes, seed, clock_now());
	i->calls = calls_new(i->redis, i->bridge, &cc, &handlers, i);
	i->marked = 0;
	at(i->w, soon(i, 20000), connect_worker, i);
	at(i->w, soon(i, 20000), subscribe, i);
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
	instance_enter(i);
	wire_free(i->redis);
	i->redis = NULL;
	i->alive = false;
	i->life++;
	lives_forget(i->w->lives, i);
	counters_add(&i->before, bridge_counters(i->bridge));
	calls_free(i->calls);
	bridge_free(i->bridge);
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
	i->frozen_until = 0;
	at(i->w, soon(i, 2 * LEASE), come_back, i);
}

void instance_freeze(struct instance *i, usec_t how_long)
{
	if (!i->alive || i->w->now < i->frozen_until)
		return;
	trace(i->w, "%u: frozen for %lld ms", i->number, (long long)how_long / 1000);
	i->frozen_until = i->w->now + how_long;
}

static void lose_patience(struct world *w, void *arg)
{
	struct instance *i = arg;

	if (!i->alive || !i->stopping)
		return;
	if (w->now < i->frozen_until) {
		at(w, i->frozen_until, lose_patience, i);
		return;
	}
	trace(w, "%u: gives up", i->number);
	instance_enter(i);
	bridge_give_up(i->bridge);
	instance_turn(i);
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
	if (!i->alive || i->stopping || i->w->now < i->frozen_until)
		return;
	trace(i->w, "%u: stop", i->number);
	instance_enter(i);
	i->stopping = true;
	bridge_drain(i->bridge);
	at(i->w, soon(i, USEC_PER_SEC), lose_patience, i);
	at(i->w, i->w->now + 5 * USEC_PER_SEC, kill_it, i);
	instance_turn(i);
}

static void choose_limits(struct instance *i)
{
	i->conf.claim_limit = 1 + below(i->w, FAULT, CLAIM_LIMIT);
	i->conf.max_events = i->conf.claim_limit + below(i->w, FAULT, MAX_EVENTS - CLAIM_LIMIT);
	i->conf.max_bytes = MAX_BYTES / (1 + below(i->w, FAULT, 8));
}

void instance_reload(struct instance *i)
{
	struct routes *old = i->routes;

	if (!i->alive || i->w->now < i->frozen_until)
		return;
	choose_limits(i);
	trace(i->w, "%u: reload, %zu events, %zu a claim", i->number, i->conf.max_events,
	      i->conf.claim_limit);
	i->routes = make_routes(i->w);
	instance_enter(i);
	bridge_configure(i->bridge, &i->conf, i->routes);
	routes_free(old);
	instance_turn(i);
}

struct instance *instance_new(struct world *w, unsigned number)
{
	static const enum role roles[] = { BOTH, BOTH, BRIDGE, SWEEPER };
	struct instance *i = mem_alloc(1, sizeof *i);

	i->w = w;
	i->number = number;
	i->role = roles[below(w, APP, number ? 4 : 1)];
	i->skew = (usec_t)(1 + number) * 86400 * USEC_PER_SEC;
	i->routes = make_routes(w);
	i->conf = (struct bridge_conf){
		.listens = i->role != SWEEPER, .sweeps = i->role != BRIDGE,
		.max_events = MAX_EVENTS, .max_bytes = MAX_BYTES, .claim_limit = CLAIM_LIMIT,
		.lease = LEASE, .grace = 50 * USEC_PER_MSEC,
		.sweep_interval = 5 * USEC_PER_SEC,
		.dead_topic = w->dead_topic ? BYTES("dead3") : bytes_none,
		.scan_rate = 4000, .rescan = RESCAN,
		.park_min = 500 * USEC_PER_MSEC, .park_max = 4 * USEC_PER_SEC,
	};
	begin(i);
	word(w, i);
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

/* Limits may shrink while events are in flight: the widest count. */
void instance_check(struct instance *i)
{
	struct bridge_gauges g;

	if (!i->alive)
		return;
	bridge_gauges(i->bridge, &g);
	if (g.inflight_events > MAX_EVENTS)
		complain(i->w, "instance %u holds %zu events", i->number, g.inflight_events);
	if (g.inflight_bytes > MAX_BYTES + CLAIM_LIMIT * (BIG + 1000))
		complain(i->w, "instance %u holds %zu bytes", i->number, g.inflight_bytes);
}

void instance_mark(struct instance *i)
{
	if (i->alive)
		i->marked = wire_calls(i->redis);
}

void instance_check_rest(struct instance *i)
{
	struct bridge_gauges g;

	if (!i->alive) {
		complain(i->w, "instance %u did not come back", i->number);
		return;
	}
	bridge_gauges(i->bridge, &g);
	if (g.inflight_events > CLAIM_LIMIT || g.with_producer)
		complain(i->w, "instance %u is not at rest: %zu events in %zu batches",
			 i->number, g.inflight_events, g.batches);
	if (wire_calls(i->redis) - i->marked > IDLE_CALLS)
		complain(i->w, "instance %u makes %llu calls in ten idle seconds", i->number,
			 (unsigned long long)(wire_calls(i->redis) - i->marked));
}
