/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/bridge.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/claims.h"
#include "core/mem.h"
#include "core/rclock.h"

/* A key that is gone before we looked may have been announced this long. */
#define HUSH_MS		100
/* Notifications of one expiry reach all instances within this time. */
#define WINDOW_MS	2000
/* A claim's way to Redis, for what may have been claimed before it got there. */
#define WAY_MS		1000
/* What is older than this may have been claimed by another instance, and `seen`
 * (a minute, trim_seen) have forgotten it. */
#define OLD_NEWS	(50 * USEC_PER_SEC)
/* Entries of a claim, in bytes; bounds the run time of the script. */
#define CLAIM_BYTES	(4u << 20)
#define RETRY_PAUSE	(200 * USEC_PER_MSEC)
#define HOLD_MIN	(50 * USEC_PER_MSEC)
#define HOLD_MAX	(2 * USEC_PER_SEC)
/* A batch that can't be read, after so many tries, no longer keeps others waiting. */
#define TRIES		3
#define HEARD_KEYS	100000
#define HEARD_BYTES	(8u << 20)
#define HINT_KEYS	100000
#define HINT_BYTES	(16u << 20)
/* Redis tells of one command several times, within a millisecond. */
#define GATHER		(3 * USEC_PER_MSEC)
#define DEAD_MANY	10000	/* warn from here on, unless max_dead says */
#define NOTES		64	/* a power of two */
/* Times that a batch of one record is adopted before the record is buried: more
 * than it takes to halve a full batch down to one. */
#define POISON		15

enum stage { STAGE_RUN, STAGE_DRAIN, STAGE_GIVE_UP };

struct bridge {
	struct bridge_conf conf;
	const struct routes *routes;
	struct lease lease;
	struct rclock clock;
	struct claims claims;
	struct walk walk;
	struct heard *heard;
	struct watch *watch;
	struct register_ask registering;
	struct scan scan;
	bool first;			/* of all instances, when we last looked */
	bool rerouted;			/* what was heard was by other routes */
	usec_t heard_since;
	struct topics *topics;
	struct batch *batches;
	struct batch *ready, **ready_end;	/* to be settled or forgotten */
	enum stage stage;
	bool up;			/* there is a connection to Redis */
	bool deaf;
	bool compare;			/* it is new: is what is open there what we hold? */
	usec_t hold_until, hold;	/* back off from a Redis that refuses */

	struct batch *reading;		/* the one that is being brought */
	bool read_owed;			/* its call is with Redis */
	usec_t read_asked, lease_asked;	/* since when; of the lease's calls */
	bool claim_next;		/* take turns: claim, recover, claim ... */
	struct batch_name *orphans;
	size_t n_orphans;

	size_t events, bytes;		/* in flight, reservations included */
	bool full;
	bool gap;			/* the next claim tells what a gap hid */
	size_t dead_told;		/* how many dead letters we last warned of */

	struct buf text;		/* where topics are filled in */
	struct ask ask;
	struct note notes[NOTES];
	struct note spare;		/* where notes go when the ring is full */
	size_t note_first, n_notes;
	struct counters counters;
	struct hist lateness;
};

static struct topics_conf topics_conf(const struct bridge_conf *conf)
{
	return (struct topics_conf){
		.retry_pause = RETRY_PAUSE,
		.park_min = conf->park_min, .park_max = conf->park_max,
		.batch_limit = conf->claim_limit,
	};
}

static struct scan_conf scan_conf(const struct bridge_conf *conf, const struct routes *routes)
{
	return (struct scan_conf){
		.on = routes_registers(routes) & ROUTE_SCAN,
		.rate = conf->scan_rate, .rescan = conf->rescan,
		.dbs = conf->dbs, .n_dbs = conf->n_dbs,
		.pattern = routes_scan_pattern(routes),
	};
}

static void take_conf(struct bridge *b, const struct bridge_conf *conf)
{
	b->conf = *conf;
	if (b->conf.claim_limit > conf->max_events)
		b->conf.claim_limit = conf->max_events;
}

struct bridge *bridge_new(const struct bridge_conf *conf, const struct routes *routes,
			  const char *seed, usec_t now)
{
	struct bridge *b = mem_alloc(1, sizeof *b);
	struct topics_conf tc;
	struct scan_conf sc = scan_conf(conf, routes);

	take_conf(b, conf);
	tc = topics_conf(&b->conf);
	b->routes = routes;
	scan_init(&b->scan, &sc, now);
	b->ready_end = &b->ready;
	b->heard = heard_new(HEARD_KEYS, HEARD_BYTES);
	b->watch = watch_new(HINT_KEYS, HINT_BYTES);
	b->topics = topics_new(&tc);
	lease_init(&b->lease, conf->lease, seed);
	claims_init(&b->claims, conf->listens, conf->grace, conf->sweep_interval, now);
	walk_init(&b->walk, conf->sweep_interval, now);
	return b;
}

void bridge_free(struct bridge *b)
{
	if (!b)
		return;
	while (b->batches) {
		struct batch *batch = b->batches;

		b->batches = batch->next;
		batch->flying = 0;	/* the producer is gone */
		batch_free(batch);
	}
	topics_free(b->topics);
	heard_free(b->heard);
	watch_free(b->watch);
	walk_clear(&b->walk);
	free(b->orphans);
	buf_clear(&b->text);
	free(b);
}

void bridge_configure(struct bridge *b, const struct bridge_conf *conf,
		      const struct routes *routes)
{
	struct topics_conf tc;
	struct scan_conf sc = scan_conf(conf, routes);

	take_conf(b, conf);
	tc = topics_conf(&b->conf);
	/* A new route may take keys that are there. */
	scan_want(&b->scan, 0);
	b->rerouted = true;
	scan_configure(&b->scan, &sc, 0);
	topics_configure(b->topics, &tc);
	b->claims.grace = conf->grace;
	b->claims.sweep_interval = conf->sweep_interval;
	walk_configure(&b->walk, conf->sweep_interval);
	b->routes = routes;
}

/* Notes: a full ring loses the newest, since the first ones tell the cause. */

static struct note *note_add(struct bridge *b, enum note_kind kind, int64_t n, int64_t m)
{
	struct note *note = &b->spare;

	if (b->n_notes < NOTES)
		note = &b->notes[(b->note_first + b->n_notes++) & (NOTES - 1)];
	note->kind = kind;
	note->a = n;
	note->b = m;
	note->text[0] = note->why[0] = '\0';
	return note;
}

static void note_text(struct note *n, struct bytes text, const char *why)
{
	snprintf(n->text, sizeof n->text, "%.*s", (int)text.n, text.p ? text.p : "");
	snprintf(n->why, sizeof n->why, "%s", why ? why : "");
}

bool bridge_note(struct bridge *b, struct note *n)
{
	if (b->n_notes == 0)
		return false;
	*n = b->notes[b->note_first];
	b->note_first = (b->note_first + 1) & (NOTES - 1);
	b->n_notes--;
	return true;
}

/* Triggers ------------------------------------------------------------ */

void bridge_link(struct bridge *b, bool up, usec_t now)
{
	b->up = up;
	if (!up)
		return;
	b->hold = 0;
	b->hold_until = now;
	b->compare = true;
	lease_hurry(&b->lease, now);
	claims_sweep(&b->claims, now);
}

void bridge_subscribed(struct bridge *b, usec_t now)
{
	b->gap = true;
	heard_gap(b->heard);
	claims_sweep(&b->claims, now);
	scan_want(&b->scan, now);
}

void bridge_heard_since(struct bridge *b, usec_t since)
{
	b->heard_since = since;
	heard_since(b->heard, since);
}

void bridge_heard(struct bridge *b, struct bytes member, enum heard_how how, usec_t now)
{
	bool old = b->heard_since && now - b->heard_since > OLD_NEWS;
	enum heard_result r = heard_add(b->heard, member, old ? HEARD_LISTED : how, now);

	b->counters.heard++;
	if (r == HEARD_ECHO)
		b->counters.echoes++;
	else if (r == HEARD_DROPPED)
		b->counters.heard_dropped++;
}

void bridge_hint(struct bridge *b, struct bytes member, enum watch_sign sign, usec_t now)
{
	if (sign != WATCH_EXPIRED)
		b->counters.hints++;
	if (!watch_hear(b->watch, member, sign, now) && sign != WATCH_EXPIRED)
		b->counters.hints_dropped++;
}

void bridge_wake(struct bridge *b, msec_t due, usec_t now)
{
	(void)now;
	b->counters.wakes++;
	claims_wake(&b->claims, due);
}

void bridge_deaf(struct bridge *b, bool deaf)
{
	b->counters.deaf += deaf && !b->deaf;
	b->deaf = deaf;
}

void bridge_peer_left(struct bridge *b, usec_t now)
{
	lease_hurry(&b->lease, now);
}

/* Batches ------------------------------------------------------------- */

static bool has_room(const struct bridge *b)
{
	return b->events + b->conf.claim_limit <= b->conf.max_events &&
	       b->bytes < b->conf.max_bytes;
}

static void batch_remove(struct bridge *b, struct batch *batch)
{
	*batch->link = batch->next;
	if (batch->next)
		batch->next->link = batch->link;
	b->events -= batch->n + batch->reserved;
	b->bytes -= batch->bytes;
	batch_free(batch);
	if (b->full && has_room(b)) {
		b->full = false;
		note_add(b, NOTE_FREE, 0, 0);
	}
}

/* An abandoned batch goes when nobody refers to it any more. */
static void abandoned_check(struct bridge *b, struct batch *batch)
{
	if (batch->state == BATCH_ABANDONED && !batch->called && batch->flying == 0)
		batch_remove(b, batch);
}

static struct batch *batch_add(struct bridge *b, uint64_t seq, enum batch_source source)
{
	struct batch *batch = batch_new(seq, source);

	batch->reserved = b->conf.claim_limit;
	b->events += batch->reserved;
	batch->next = b->batches;
	batch->link = &b->batches;
	if (batch->next)
		batch->next->link = &batch->next;
	b->batches = batch;
	return batch;
}

/* It now owes Redis a call: READY a settle, LOST a forget. */
static void batch_due(struct bridge *b, struct batch *batch, enum batch_state state)
{
	batch_move(batch, state);
	batch->ready_next = NULL;
	*b->ready_end = batch;
	b->ready_end = &batch->ready_next;
}

static struct batch *ready_take(struct bridge *b)
{
	struct batch *batch = b->ready;

	if (!batch)
		return NULL;
	b->ready = batch->ready_next;
	if (!b->ready)
		b->ready_end = &b->ready;
	return batch;
}

/* Nothing of it was delivered: it stays open in Redis as it is. */
static bool untouched(const struct batch *batch)
{
	for (size_t i = 0; i < batch->n; i++)
		if (batch->entries[i].state != ENTRY_LEFT)
			return false;
	return true;
}

static bool dying(const struct entry *e)
{
	return e->death == DEATH_DYING;
}

/* Where a dead letter goes besides; empty: nowhere. */
static struct bytes dead_topic(const struct bridge *b, const struct entry *e)
{
	const struct route *route = NULL;
	struct member m;

	if (member_parse(e->member, &m, NULL) && m.kind != MEMBER_SCHEDULED)
		route = routes_match(b->routes, m.db, m.name, NULL);
	return route && route->dead_topic.n ? route->dead_topic : b->conf.dead_topic;
}

static void note_untold(struct bridge *b, const struct batch *batch)
{
	size_t i = 0;

	while (batch->entries[i].death != DEATH_UNTOLD)
		i++;
	b->counters.dead_untold += batch->untold;
	note_text(note_add(b, NOTE_UNTOLD, (int64_t)batch->untold, 0),
		  dead_topic(b, &batch->entries[i]), NULL);
}

static void batch_decided(struct bridge *b, struct batch *batch)
{
	if (batch->state != BATCH_OPEN || batch->undecided)
		return;
	if (batch->untold)
		note_untold(b, batch);
	if (untouched(batch))
		batch_remove(b, batch);
	else
		batch_due(b, batch, BATCH_READY);
}

static void all_decided(struct bridge *b)
{
	struct batch *batch, *next;

	for (batch = b->batches; batch; batch = next) {
		next = batch->next;
		batch_decided(b, batch);
	}
}

static void note_buried(struct bridge *b, const struct entry *e)
{
	b->counters.buried++;
	note_text(note_add(b, NOTE_BURIED, 0, 0), e->member, e->reason);
}

/* Everything held is somebody else's now (fenced). */
static void abandon_all(struct bridge *b, usec_t now)
{
	struct batch *batch, *next;
	size_t batches = 0, entries = 0;

	for (batch = b->batches; batch; batch = next) {
		next = batch->next;
		if (batch->state == BATCH_ABANDONED)
			continue;
		batches++;
		entries += batch->n;
		for (size_t i = 0; i < batch->n; i++)
			if (batch->entries[i].state == ENTRY_FLYING ||
			    batch->entries[i].state == ENTRY_DONE)
				b->counters.possible_duplicates++;
		if (batch->topic && batch->state == BATCH_ASKED)
			topics_fetched(b->topics, batch->topic);
		batch_move(batch, BATCH_ABANDONED);
		topics_drop(b->topics, batch);
		abandoned_check(b, batch);
	}
	topics_unpark(b->topics);
	b->ready = NULL;
	b->ready_end = &b->ready;
	b->reading = NULL;
	b->read_owed = false;
	b->n_orphans = 0;
	if (b->claims.asked)
		claims_lost(&b->claims, now);
	walk_lost(&b->walk, now);
	watch_lost(b->watch, now);
	scan_lost(&b->scan, now);
	b->counters.fenced++;
	note_add(b, NOTE_FENCED, (int64_t)batches, (int64_t)entries);
	lease_fenced(&b->lease, now);
}

/* Asks ---------------------------------------------------------------- */

static const struct ask *ask_about(struct bridge *b, enum ask_kind kind, struct batch *batch)
{
	if (batch)
		batch->called = true;
	b->ask = (struct ask){ .kind = kind, .life = b->lease.joins, .batch = batch };
	return &b->ask;
}

static const struct ask *ask_lease(struct bridge *b, enum ask_kind kind, usec_t now)
{
	b->lease_asked = now;
	return ask_about(b, kind, NULL);
}

/* Where the entries that stay are to go; once for each batch. */
static void place_entries(struct bridge *b, struct batch *batch)
{
	uint64_t rest = 0;

	for (size_t i = 0; i < batch->n; i++) {
		struct entry *e = &batch->entries[i];
		size_t same = 0;
		uint64_t seq;
		bool fresh;

		if (e->state == ENTRY_LEFT && !e->park_seq) {
			if (!rest)
				rest = ++b->lease.seq;
			e->park_seq = rest;
		}
		if (e->state != ENTRY_PARKED || e->park_seq)
			continue;
		for (size_t j = i; j < batch->n; j++)
			same += batch->entries[j].state == ENTRY_PARKED &&
				batch->entries[j].topic == e->topic;
		seq = topics_place(b->topics, e->topic, same, b->lease.seq + 1, &fresh);
		b->lease.seq += fresh;
		e->park_first = true;
		for (size_t j = i; j < batch->n; j++)
			if (batch->entries[j].state == ENTRY_PARKED &&
			    batch->entries[j].topic == e->topic)
				batch->entries[j].park_seq = seq;
		b->counters.parked_entries += same;
	}
}

static const struct ask *ask_settle(struct bridge *b)
{
	struct batch *batch = ready_take(b);

	if (!batch)
		return NULL;
	if (batch->state == BATCH_LOST) {
		batch_move(batch, BATCH_FORGETTING);
		return ask_about(b, ASK_FORGET, batch);
	}
	place_entries(b, batch);
	batch_move(batch, BATCH_SETTLING);
	ask_about(b, ASK_SETTLE, batch);
	b->ask.keep = b->conf.drop_dead ? b->conf.max_dead : 0;
	return &b->ask;
}

static bool room_or_note(struct bridge *b)
{
	if (has_room(b))
		return true;
	if (!b->full) {
		b->full = true;
		note_add(b, NOTE_FULL, (int64_t)b->events, (int64_t)b->bytes);
	}
	return false;
}

static const struct ask *ask_read(struct bridge *b, enum ask_kind kind, usec_t now)
{
	b->read_owed = true;
	b->read_asked = now;
	return ask_about(b, kind, b->reading);
}

/* Batches whose slot nobody holds, and those of topics to be tried again. */
static const struct ask *ask_recover(struct bridge *b, usec_t now)
{
	uint64_t seq;
	struct topic *t;

	if (b->n_orphans) {
		struct batch_name from = b->orphans[--b->n_orphans];

		b->reading = batch_add(b, ++b->lease.seq, BATCH_ADOPTED);
		b->reading->from_slot = from.slot;
		b->reading->from_seq = from.seq;
		return ask_read(b, ASK_ADOPT, now);
	}
	if (topics_trial(b->topics, now, &seq, &t)) {
		b->reading = batch_add(b, seq, BATCH_FETCHED);
		b->reading->topic = t;
		return ask_read(b, ASK_FETCH, now);
	}
	return NULL;
}

/* How long before it was heard a key may have been claimed for the same expiry. */
static msec_t claim_window(const struct ask *ask)
{
	msec_t window = WINDOW_MS;

	for (size_t i = 0; i < ask->nheard; i++) {
		const struct heard_key *k = &ask->heard[i];
		msec_t old = (k->at - k->since) / USEC_PER_MSEC + WAY_MS;

		if (k->anyway && old > window)
			window = old;
	}
	return window;
}

static const struct ask *claim_call(struct bridge *b, usec_t now)
{
	size_t room = b->bytes < b->conf.max_bytes ? b->conf.max_bytes - b->bytes : 1;

	ask_read(b, ASK_CLAIM, now);
	b->ask.limit = b->conf.claim_limit;
	b->ask.bytes = room < CLAIM_BYTES ? room : CLAIM_BYTES;
	b->ask.hush = HUSH_MS;
	b->ask.nheard = b->conf.claim_limit;
	b->ask.heard = heard_peek(b->heard, &b->ask.nheard, now);
	b->ask.window = claim_window(&b->ask);
	b->ask.more = !heard_all(b->heard, b->ask.nheard);
	b->reading->heard = b->ask.nheard;
	return &b->ask;
}

static bool claim_wanted(const struct bridge *b, usec_t now)
{
	return claims_at(&b->claims, &b->clock, b->lease.rank, heard_oldest(b->heard),
			 now) <= now;
}

static const struct ask *ask_claim(struct bridge *b, usec_t now)
{
	if (!claim_wanted(b, now))
		return NULL;
	b->reading = batch_add(b, ++b->lease.seq, BATCH_CLAIMED);
	b->reading->trigger = claims_ask(&b->claims, now);
	if (b->reading->trigger == TRIGGER_SWEEP) {
		b->counters.sweeps++;
		b->compare = true;
	}
	return claim_call(b, now);
}

static const struct ask *ask_again(struct bridge *b, usec_t now)
{
	b->reading->resent = true;
	switch (b->reading->source) {
	case BATCH_CLAIMED:
		return claim_call(b, now);
	case BATCH_ADOPTED:
		return ask_read(b, ASK_ADOPT, now);
	case BATCH_FETCHED:
		break;
	}
	return ask_read(b, ASK_FETCH, now);
}

static bool recovery_wanted(const struct bridge *b, usec_t now)
{
	return b->n_orphans || topics_deadline(b->topics) <= now;
}

static const struct ask *ask_bring(struct bridge *b, usec_t now)
{
	const struct ask *ask = NULL;

	if (b->read_owed)
		return NULL;
	if (b->reading)
		return ask_again(b, now);
	if (b->stage != STAGE_RUN || (!claim_wanted(b, now) && !recovery_wanted(b, now)))
		return NULL;
	if (!room_or_note(b))
		return NULL;
	b->claim_next = !b->claim_next;
	if (b->claim_next)
		ask = ask_claim(b, now);
	if (!ask)
		ask = ask_recover(b, now);
	return ask || b->claim_next ? ask : ask_claim(b, now);
}

static bool walks(const struct bridge *b)
{
	return b->conf.sweeps && b->stage == STAGE_RUN;
}

static const struct ask *ask_walk(struct bridge *b, usec_t now)
{
	const struct walk_step *step = walks(b) ? walk_next(&b->walk, now) : NULL;

	if (!step)
		return NULL;
	ask_about(b, ASK_WALK, NULL);
	b->ask.walk = step;
	return &b->ask;
}

/* The first looks at once, the others at what it should have done by then. */
static usec_t gather_time(const struct bridge *b)
{
	return GATHER + (usec_t)b->lease.rank * b->conf.grace;
}

static const struct ask *ask_register(struct bridge *b, usec_t now)
{
	const struct watch_key *keys;

	if (b->stage != STAGE_RUN)
		return NULL;
	keys = watch_next(b->watch, gather_time(b), REGISTER_KEYS, now);
	if (!keys)
		return NULL;
	register_fill(&b->registering, b->routes, keys, b->heard);
	ask_about(b, ASK_REGISTER, NULL);
	b->ask.keys = &b->registering;
	return &b->ask;
}

/* The first scans for all, and goes on where the one before was.  What was found
 * before goes into the shadow first. */
static bool scans(const struct bridge *b)
{
	return b->stage == STAGE_RUN && b->lease.rank == 0 &&
	       watch_waiting(b->watch) < HINT_KEYS / 2;
}

static const struct ask *ask_scan(struct bridge *b, usec_t now)
{
	const struct scan_step *step;

	if (b->lease.rank == 0 && !b->first)
		scan_inherit(&b->scan, now);
	b->first = b->lease.rank == 0;
	if (watch_lossy(b->watch) || b->rerouted)
		scan_want(&b->scan, now);
	b->rerouted = false;
	step = scans(b) ? scan_next(&b->scan, watch_found(b->watch) == 0, now) : NULL;
	if (!step)
		return NULL;
	ask_about(b, ASK_SCAN, NULL);
	b->ask.scan = step;
	return &b->ask;
}

static const struct ask *ask_leave(struct bridge *b)
{
	if (b->stage == STAGE_RUN || b->batches || b->lease.state != LEASE_HELD)
		return NULL;
	b->lease.state = LEASE_LEAVING;
	return ask_about(b, ASK_LEAVE, NULL);
}

const struct ask *bridge_ask(struct bridge *b, usec_t now)
{
	const struct ask *ask;

	if (!b->up || now < b->hold_until)
		return NULL;
	if (b->lease.state != LEASE_HELD) {
		if (b->stage == STAGE_RUN && lease_wants_join(&b->lease, now))
			return ask_lease(b, ASK_JOIN, now);
		return NULL;
	}
	ask = ask_settle(b);
	if (!ask && lease_wants_renew(&b->lease, now)) {
		ask = ask_lease(b, ASK_RENEW, now);
		b->ask.own = b->compare;
		b->ask.deaf = b->deaf;
	}
	if (!ask)
		ask = ask_bring(b, now);
	if (!ask)
		ask = ask_register(b, now);
	if (!ask)
		ask = ask_scan(b, now);
	if (!ask)
		ask = ask_walk(b, now);
	return ask ? ask : ask_leave(b);
}

/* Answers ------------------------------------------------------------- */

static void redis_said(struct bridge *b, int64_t redis, usec_t sent, usec_t now)
{
	int64_t back = rclock_sample(&b->clock, redis, sent, now);

	b->hold = 0;
	if (back)
		note_add(b, NOTE_CLOCK, back / USEC_PER_MSEC, 0);
}

static void orphans_set(struct bridge *b, const struct batch_name *names, size_t n)
{
	b->orphans = mem_resize(b->orphans, n, sizeof *names);
	if (n)
		memcpy(b->orphans, names, n * sizeof *names);
	b->n_orphans = n;
}

void bridge_joined(struct bridge *b, unsigned life, int64_t redis, unsigned slot, uint64_t epoch,
		   uint64_t seq, const struct batch_name *open, size_t n, usec_t now)
{
	if (life != b->lease.joins)
		return;
	redis_said(b, redis, b->lease_asked, now);
	lease_joined(&b->lease, slot, epoch, seq, now);
	note_add(b, NOTE_JOINED, slot, (int64_t)epoch);
	orphans_set(b, open, n);
}

static bool is_ours(const struct bridge *b, const struct batch_name *name)
{
	if (name->slot != b->lease.slot)
		return false;
	for (const struct batch *batch = b->batches; batch; batch = batch->next)
		if (batch->seq == name->seq && batch->state != BATCH_ABANDONED)
			return true;
	return topics_has(b->topics, name->seq);
}

/* Those that nobody holds, in the place of those that are yet to be adopted. */
static void orphans_take(struct bridge *b, const struct batch_name *names, size_t n)
{
	size_t kept = 0;

	orphans_set(b, names, n);
	for (size_t i = 0; i < n; i++)
		if (!is_ours(b, &b->orphans[i]) &&
		    (b->conf.sweeps || b->orphans[i].slot == b->lease.slot))
			b->orphans[kept++] = b->orphans[i];
	b->n_orphans = kept;
}

void bridge_renewed(struct bridge *b, unsigned life, int64_t redis, const unsigned *slots,
		    const usec_t *left, size_t n, const struct batch_name *orphans,
		    size_t n_orphans, usec_t now)
{
	usec_t ends[LEASE_PEERS];

	if (life != b->lease.joins)
		return;
	redis_said(b, redis, b->lease_asked, now);
	if (n > LEASE_PEERS)
		n = LEASE_PEERS;
	for (size_t i = 0; i < n; i++)
		ends[i] = now + left[i];
	lease_renewed(&b->lease, slots, ends, n, now);
	b->compare = false;
	orphans_take(b, orphans, n_orphans);
}

void bridge_left(struct bridge *b, unsigned life)
{
	if (life != b->lease.joins)
		return;
	b->lease.state = LEASE_LEFT;
	note_add(b, NOTE_LEFT, b->lease.slot, 0);
}

/* A dead letter before it was sent; `topic` hears of it unless it is empty. */
static void entry_lost(struct bridge *b, struct entry *e, const char *why,
		       struct bytes topic)
{
	e->reason = mem_copy(bytes_str(why));
	note_buried(b, e);
	if (topic.n)
		topics_tell(b->topics, e, topic);
	else
		entry_move(e, ENTRY_BURIED);
}

/* Why a job that has no attempt left is dead. */
static void job_epitaph(const struct record *r, char *why, size_t n)
{
	const struct attempt *last = r->nhistory ? &r->history[r->nhistory - 1] : NULL;
	int len = last && last->failed ? (int)last->reason.n : 0;

	if (last && last->failed)
		snprintf(why, n, "attempt %u of %u failed%s%.*s", r->attempt + 1,
			 r->job.attempts, len ? ": " : "", len, last->reason.p);
	else
		snprintf(why, n, "attempt %u of %u was not finished within %lld ms",
			 r->attempt + 1, r->job.attempts, (long long)r->job.ttr);
}

static void count_certainty(struct counters *c, enum certainty certainty)
{
	c->expired_heard += certainty == CERTAINTY_HEARD;
	c->expired_found += certainty == CERTAINTY_FOUND;
	c->expired_inferred += certainty == CERTAINTY_INFERRED;
}

/* One entry of a batch that has come. */
static void entry_enter(struct bridge *b, struct entry *e)
{
	struct bytes topic;
	struct event ev;
	struct err err;

	if (!event_read(&ev, b->routes, e->member, e->envelope, &err)) {
		entry_lost(b, e, err.text, dead_topic(b, e));
		return;
	}
	e->due = ev.envelope.due;
	if (ev.record.job.spent) {
		char why[160];

		job_epitaph(&ev.record, why, sizeof why);
		entry_lost(b, e, why, dead_topic(b, e));
		return;
	}
	e->job = ev.record.job.ttr != 0 && ev.member.kind == MEMBER_SCHEDULED;
	if (e->batch->source == BATCH_CLAIMED)
		count_certainty(&b->counters, ev.envelope.certainty);
	if (ev.envelope.certainty == CERTAINTY_INFERRED && ev.route &&
	    ev.route->inferred == ROUTE_DROP) {
		b->counters.inferred_dropped++;
		entry_move(e, ENTRY_DONE);
		return;
	}
	if (!event_topic(&ev, &b->text, &topic, &err) && e->batch->source != BATCH_FETCHED)
		b->counters.no_topic++;
	topics_enter(b->topics, e, topic);
}

/* Its holders died so often that it must be what they died of. */
static bool is_poison(const struct batch *batch)
{
	return batch->n == 1 && batch->adopted >= POISON;
}

static void poison_enter(struct bridge *b, struct batch *batch)
{
	char why[64];

	snprintf(why, sizeof why, "poison: taken over %u times, and every holder died",
		 batch->adopted);
	/* Not even a message is made of it. */
	entry_lost(b, batch->entries, why, bytes_none);
	batch_decided(b, batch);
}

static void batch_enter(struct bridge *b, struct batch *batch, usec_t now)
{
	for (size_t i = 0; i < batch->n; i++) {
		struct entry *e = &batch->entries[i];

		/* Our look at it told everybody, ourselves included. */
		if (batch->source == BATCH_CLAIMED && e->envelope.n > 9 &&
		    e->envelope.p[9] == CERTAINTY_FOUND)
			heard_expect(b->heard, e->member, now);
		entry_enter(b, e);
	}
	if (batch->topic)
		topics_fetched(b->topics, batch->topic);
	batch_decided(b, batch);
}

/* Whether it is of a route that registers so, and there was room. */
static bool look_again(struct bridge *b, struct bytes member, unsigned registers, usec_t now)
{
	const struct route *route = NULL;
	struct member m;

	if (member_parse(member, &m, NULL))
		route = routes_match(b->routes, m.db, m.name, NULL);
	return route && route->registers & registers &&
	       watch_hear(b->watch, member, WATCH_FOUND, now);
}

static void claim_counted(struct bridge *b, struct batch *batch,
			  const struct batch_answer *a, usec_t now)
{
	b->counters.claims++;
	b->counters.claimed += a->n;
	if (batch->trigger == TRIGGER_SWEEP)
		b->counters.swept += a->n;
	b->counters.absorbed += a->absorbed;
	b->counters.followed += a->n_followed;
	/* Nothing was heard of its later end, so of its value maybe neither. */
	for (size_t i = 0; i < a->n_followed; i++)
		(void)look_again(b, a->followed[i], ROUTE_EVENTS | ROUTE_SCAN, now);
	claims_answer(&b->claims, a->next, a->n, now);
	/* A batch that was read again does not tell the next due time. */
	if (batch->resent)
		claims_sweep(&b->claims, now);
	/* Which keys went along with the try that was heeded is not known. */
	if (!batch->resent)
		heard_done(b->heard, batch->heard);
	if (b->gap) {
		b->gap = false;
		note_add(b, NOTE_SWEPT, (int64_t)a->n, 0);
	}
}

static void adopted(struct bridge *b, struct batch *batch, const struct batch_answer *a,
		    usec_t now)
{
	struct note *n;

	if (a->n == 0)
		return;
	b->counters.adopted_batches++;
	b->counters.adopted_entries += a->n;
	/* Its other half may be waiting (adopt.lua). */
	if (a->adopted > 2)
		lease_hurry(&b->lease, now);
	n = note_add(b, NOTE_ADOPTED, (int64_t)a->n, a->adopted);
	snprintf(n->text, sizeof n->text, "%u:%llu", batch->from_slot,
		 (unsigned long long)batch->from_seq);
}

void bridge_brought(struct bridge *b, struct batch *batch,
		    const struct batch_answer *a, usec_t now)
{
	batch->called = false;
	if (batch->state == BATCH_ABANDONED) {
		abandoned_check(b, batch);
		return;
	}
	assert(batch == b->reading);
	b->reading = NULL;
	b->read_owed = false;
	redis_said(b, a->redis, b->read_asked, now);
	if (batch->source == BATCH_CLAIMED)
		claim_counted(b, batch, a, now);
	else if (batch->source == BATCH_ADOPTED)
		adopted(b, batch, a, now);
	if (batch->source == BATCH_ADOPTED && a->topic.n) {
		topics_parked(b->topics, a->topic, batch->seq,
			      rclock_local(&b->clock, a->retry, now));
		batch_remove(b, batch);
		return;
	}
	if (a->n == 0) {
		if (batch->topic)
			topics_fetched(b->topics, batch->topic);
		batch_remove(b, batch);
		return;
	}
	b->events -= batch->reserved;
	batch->reserved = 0;
	batch->adopted = a->adopted;
	if (batch->source != BATCH_CLAIMED)
		batch->trigger = TRIGGER_RECOVERY;
	batch_fill(batch, a->members, a->envelopes, a->n);
	b->events += batch->n;
	b->bytes += batch->bytes;
	if (is_poison(batch))
		poison_enter(b, batch);
	else
		batch_enter(b, batch, now);
}

/* What was parked by it can be read again from now on. */
static void settled(struct bridge *b, struct batch *batch)
{
	for (size_t i = 0; i < batch->n; i++) {
		struct entry *e = &batch->entries[i];

		if (e->state == ENTRY_PARKED && e->park_first)
			topics_placed(b->topics, e->topic, e->park_seq);
	}
	b->counters.settled += batch->n;
	batch_remove(b, batch);
}

void bridge_settled(struct bridge *b, struct batch *batch, bool gone, usec_t now)
{
	(void)now;
	batch->called = false;
	if (batch->state == BATCH_ABANDONED) {
		abandoned_check(b, batch);
		return;
	}
	b->hold = 0;
	if (gone) {
		batch_due(b, batch, BATCH_LOST);
		return;
	}
	settled(b, batch);
}

void bridge_dead(struct bridge *b, size_t dead, size_t dropped, struct bytes first)
{
	size_t many = b->conf.max_dead ? b->conf.max_dead + 1 : DEAD_MANY;

	b->counters.dead_dropped += dropped;
	if (dropped)
		note_text(note_add(b, NOTE_DEAD_DROPPED, (int64_t)dropped, (int64_t)dead),
			  first, NULL);
	if (dead < many) {
		b->dead_told = 0;
	} else if (dead >= 2 * b->dead_told) {
		b->dead_told = dead;
		note_add(b, NOTE_DEAD_MANY, (int64_t)dead, (int64_t)b->conf.max_dead);
	}
}

void bridge_forgot(struct bridge *b, struct batch *batch, uint64_t lives, usec_t now)
{
	(void)now;
	batch->called = false;
	if (batch->state == BATCH_ABANDONED) {
		abandoned_check(b, batch);
		return;
	}
	/* A settle whose answer was lost leaves nothing to forget. */
	b->counters.gone += !batch->resettled || lives > 0;
	b->counters.forgotten += lives;
	if (!batch->resettled || lives > 0)
		note_add(b, NOTE_GONE, (int64_t)batch->n, (int64_t)lives);
	settled(b, batch);
}

/* One note for all of a kind, which come together. */
static void note_repaired(struct bridge *b, const struct walk_answer *a)
{
	struct note *n = NULL;
	struct bytes kind = bytes_none;
	size_t repaired = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (!a->found[i].done.n)
			continue;
		repaired++;
		if (!n || !bytes_eq(a->found[i].kind, kind)) {
			kind = a->found[i].kind;
			n = note_add(b, NOTE_REPAIRED, 0, 0);
			note_text(n, a->found[i].name, NULL);
			snprintf(n->why, sizeof n->why, "%.*s", (int)kind.n, kind.p);
		}
		n->a++;
	}
	b->counters.repaired += repaired;
}

void bridge_walked(struct bridge *b, unsigned life, const struct walk_answer *a, usec_t now)
{
	uint64_t before = b->counters.repaired;

	if (life != b->lease.joins)
		return;
	b->counters.walked += a->looked;
	note_repaired(b, a);
	/* Entries may be due, and batches of our own open, that we know nothing of. */
	if (b->counters.repaired > before)
		claims_sweep(&b->claims, now);
	walk_answer(&b->walk, a, b->lease.rank, now);
}

void bridge_registered(struct bridge *b, unsigned life, const struct register_answer *a,
		       usec_t now)
{
	struct counters *c = &b->counters;

	(void)now;
	if (life != b->lease.joins)
		return;
	if (a->dropped && !c->evicted_dropped)
		note_add(b, NOTE_EVICTED, (int64_t)a->dropped, 0);
	c->registered += a->registered;
	c->moved += a->moved;
	c->unregistered += a->unregistered;
	c->cancelled += a->cancelled;
	c->set_again += a->aside;
	c->evicted += a->evicted;
	c->evicted_dropped += a->dropped;
	c->not_copied += a->bare;
	watch_done(b->watch);
}

static void note_scan(struct bridge *b, enum note_kind kind, usec_t now)
{
	struct note *n = note_add(b, kind, (int64_t)b->scan.looked, (int64_t)b->scan.found);

	n->ms = (now - b->scan.begun) / USEC_PER_MSEC;
}

void bridge_scanned(struct bridge *b, unsigned life, const struct scan_answer *a, usec_t now)
{
	size_t found = 0;
	enum scan_news news;

	if (life != b->lease.joins)
		return;
	for (size_t i = 0; i < a->n; i++)
		found += look_again(b, a->members[i], ROUTE_SCAN, now);
	b->counters.scanned += a->looked;
	b->counters.scan_found += found;
	news = scan_answered(&b->scan, a, found, now);
	b->counters.scans += news == SCAN_DONE;
	if (news == SCAN_BEGUN)
		note_add(b, NOTE_SCAN_BEGIN, b->conf.scan_rate, 0);
	else if (news != SCAN_NOTHING)
		note_scan(b, news == SCAN_DONE ? NOTE_SCAN_DONE : NOTE_SCAN_GOES_ON, now);
}

static void hold_off(struct bridge *b, usec_t now)
{
	b->hold = b->hold ? 2 * b->hold : HOLD_MIN;
	if (b->hold > HOLD_MAX)
		b->hold = HOLD_MAX;
	b->hold_until = now + b->hold;
}

static void call_failed(struct bridge *b, enum ask_kind kind, struct batch *batch,
			usec_t again)
{
	switch (kind) {
	case ASK_JOIN:
	case ASK_RENEW:
		lease_lost(&b->lease, again);
		break;
	case ASK_LEAVE:
		if (b->lease.state == LEASE_LEAVING)
			b->lease.state = LEASE_HELD;
		break;
	case ASK_CLAIM:
	case ASK_ADOPT:
	case ASK_FETCH:
		if (batch == b->reading)
			b->read_owed = false;
		break;
	case ASK_SETTLE:
		batch->resettled = true;
		batch_due(b, batch, BATCH_READY);
		break;
	case ASK_FORGET:
		batch_due(b, batch, BATCH_LOST);
		break;
	case ASK_WALK:
		walk_lost(&b->walk, again);
		break;
	case ASK_SCAN:
		scan_lost(&b->scan, again);
		break;
	case ASK_REGISTER:
		watch_lost(b->watch, again);
		break;
	}
}

/* A right is missing, or its key is broken; the next renewal tells of it again. */
static void read_later(struct bridge *b, struct batch *batch)
{
	if (batch != b->reading || ++batch->refusals < TRIES)
		return;
	b->reading = NULL;
	b->compare = true;
	if (batch->topic)
		topics_fetched(b->topics, batch->topic);
	batch_remove(b, batch);
}

void bridge_refused(struct bridge *b, enum ask_kind kind, unsigned life,
		    struct batch *batch, enum refusal why, usec_t now)
{
	if (batch)
		batch->called = false;
	if (batch && batch->state == BATCH_ABANDONED) {
		abandoned_check(b, batch);
		return;
	}
	if (life != b->lease.joins)
		return;
	/* Nothing waits for a walk, and a right to it may be missing; memory may
	 * be, to register more. */
	if (why == REFUSAL_LATER && kind != ASK_WALK && kind != ASK_SCAN &&
	    kind != ASK_REGISTER)
		hold_off(b, now);
	call_failed(b, kind, batch, b->hold_until > now ? b->hold_until : now);
	if (why == REFUSAL_LATER && (kind == ASK_ADOPT || kind == ASK_FETCH))
		read_later(b, batch);
	if (why == REFUSAL_FENCED)
		abandon_all(b, now);
}

/* The producer -------------------------------------------------------- */

struct entry *bridge_next(struct bridge *b, usec_t now)
{
	struct entry *e;

	if (b->stage == STAGE_GIVE_UP)
		return NULL;
	if (topics_tick(b->topics, now))
		all_decided(b);
	e = topics_next(b->topics);
	if (e)
		b->counters.produced++;
	return e;
}

void bridge_back(struct bridge *b, struct entry *e)
{
	b->counters.produced--;
	topics_back(b->topics, e);
}

static void acknowledged(struct bridge *b, const struct entry *e, usec_t now)
{
	int64_t late = rclock_redis(&b->clock, now) - e->due * USEC_PER_MSEC;

	b->counters.acknowledged++;
	b->counters.early += late < 0;
	hist_add(&b->lateness, late);
}

static void verdict_counted(struct bridge *b, const struct entry *e, enum verdict v,
			    usec_t now)
{
	if (v == VERDICT_ACKED && dying(e))
		b->counters.dead_told++;
	else if (v == VERDICT_ACKED)
		acknowledged(b, e, now);
	else if (v == VERDICT_RETRY)
		b->counters.retried++;
	else if (v == VERDICT_MAYBE)
		b->counters.possible_duplicates++;
}

static void verdict_told(struct bridge *b, const struct entry *e, enum topic_news news,
			 const char *reason)
{
	struct note *n;

	if (e->reason && e->death == DEATH_PLAIN)
		note_buried(b, e);
	if (news == NEWS_PARKED) {
		n = note_add(b, NOTE_PARKED, topic_pause(e->topic) / USEC_PER_MSEC,
			     e->death == DEATH_UNTOLD);
		note_text(n, topic_name(e->topic), reason);
	} else if (news == NEWS_UNPARKED) {
		note_text(note_add(b, NOTE_UNPARKED, 0, 0), topic_name(e->topic), NULL);
	} else if (news == NEWS_SUSPECT) {
		note_text(note_add(b, NOTE_SUSPECT, 0, 0), topic_name(e->topic), reason);
	}
}

void bridge_verdict(struct bridge *b, struct entry *e, enum verdict v,
		    const char *reason, usec_t now)
{
	struct batch *batch = e->batch;
	struct bytes dead = bytes_none;
	enum topic_news news;

	verdict_counted(b, e, v, now);
	if (batch->state == BATCH_ABANDONED) {
		topics_let_go(b->topics, e);
		abandoned_check(b, batch);
		return;
	}
	if (b->stage == STAGE_GIVE_UP && v != VERDICT_ACKED) {
		topics_let_go(b->topics, e);
		batch_decided(b, batch);
		return;
	}
	if (v == VERDICT_REFUSED || v == VERDICT_CULPRIT)
		dead = dead_topic(b, e);
	news = topics_verdict(b->topics, e, v, reason, dead.n, now);
	verdict_told(b, e, news, reason);
	if (e->state == ENTRY_QUEUED && e->reason && !dying(e))
		topics_tell(b->topics, e, dead);
	if (news == NEWS_PARKED)
		all_decided(b);		/* what waited for the topic is parked too */
	else
		batch_decided(b, batch);
}

/* Deadline and stop --------------------------------------------------- */

static usec_t ask_deadline(const struct bridge *b, usec_t now)
{
	usec_t at = lease_deadline(&b->lease), t;

	if (b->lease.state != LEASE_HELD)
		return at;
	if (b->ready || (b->reading && !b->read_owed))
		return now;
	if (walks(b) && walk_deadline(&b->walk) < at)
		at = walk_deadline(&b->walk);
	if (scans(b) && scan_deadline(&b->scan) < at)
		at = scan_deadline(&b->scan);
	t = watch_deadline(b->watch, gather_time(b));
	if (b->stage == STAGE_RUN && t < at)
		at = t;
	if (b->stage != STAGE_RUN || b->read_owed)
		return at;
	t = claims_at(&b->claims, &b->clock, b->lease.rank, heard_oldest(b->heard), now);
	if (b->n_orphans)
		t = now;
	/* Without room it is a settle that brings us back. */
	if (b->full && t <= now)
		return at;
	return t < at ? t : at;
}

usec_t bridge_deadline(const struct bridge *b, usec_t now)
{
	usec_t at = topics_deadline(b->topics), t;

	if (!b->up)
		return at <= now ? USEC_NEVER : at;
	if (b->read_owed || b->full || b->stage != STAGE_RUN)
		at = at <= now ? USEC_NEVER : at;
	/* A topic that is to be tried waits for Redis as all else does. */
	if (at <= now && at < b->hold_until)
		at = b->hold_until;
	t = ask_deadline(b, now);
	if (t < b->hold_until)
		t = b->hold_until;
	return t < at ? t : at;
}

void bridge_drain(struct bridge *b)
{
	if (b->stage == STAGE_RUN)
		b->stage = STAGE_DRAIN;
}

void bridge_give_up(struct bridge *b)
{
	b->stage = STAGE_GIVE_UP;
	topics_leave(b->topics);
	all_decided(b);
}

bool bridge_over(const struct bridge *b)
{
	bool held = b->lease.state == LEASE_HELD || b->lease.state == LEASE_LEAVING ||
		    b->lease.state == LEASE_JOINING;

	return b->stage != STAGE_RUN && !held && topics_flying(b->topics) == 0;
}

/* Statistics ---------------------------------------------------------- */

msec_t bridge_redis_ms(const struct bridge *b, usec_t at)
{
	return rclock_redis(&b->clock, at) / USEC_PER_MSEC;
}

struct counters *bridge_counters(struct bridge *b)
{
	return &b->counters;
}

struct hist *bridge_lateness(struct bridge *b)
{
	return &b->lateness;
}

const struct lease *bridge_lease(const struct bridge *b)
{
	return &b->lease;
}

void bridge_gauges(const struct bridge *b, struct bridge_gauges *g)
{
	*g = (struct bridge_gauges){
		.inflight_events = b->events, .inflight_bytes = b->bytes,
		.parked_topics = topics_parked_count(b->topics),
		.with_producer = topics_flying(b->topics),
		.redis_offset_us = b->clock.offset,
	};
	for (const struct batch *batch = b->batches; batch; batch = batch->next)
		g->batches++;
}
