/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The application, and the judge: it knows every life it has begun, how each
 * ended by its own doing, and what arrived in Kafka.
 *
 *	a pending life that came due has arrived, or is dead if it is poison
 *	none arrives before it is due
 *	none arrives that was cancelled, replaced or persisted in time
 *	every arrival carries the id that the answer had told
 *	an answer "not found" means that it had arrived
 *	no duplicate without a counted reason
 *	after the drain the shadow, the records and the batches are empty
 *
 * What a failover may have undone is exempt, and nothing else.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "world.h"

#define NAMES	30

enum fate { PENDING, ENDED };	/* ENDED: must not arrive from here on */

struct life {
	char id[96];
	int64_t due, touched_us;
	enum fate fate;
	bool poison, exempt;
	unsigned came;
};

struct ledger {
	struct world *w;
	struct life *lives;
	size_t n, cap;
	struct life_index { int64_t last; } current[2 * NAMES];	/* by name; -1: none */
	size_t duplicates;
	unsigned failovers;
	bool broken;
};

struct ledger *ledger_new(struct world *w)
{
	struct ledger *l = mem_alloc(1, sizeof *l);

	l->w = w;
	for (size_t i = 0; i < 2 * NAMES; i++)
		l->current[i].last = -1;
	return l;
}

void ledger_free(struct ledger *l)
{
	free(l->lives);
	free(l);
}

static void broken(struct ledger *l, const struct life *life, const char *what)
{
	l->broken = true;
	printf("%.6f %s: %s (due %+lld ms)\n", (double)l->w->now / USEC_PER_SEC, life->id, what,
	       (long long)(life->due - redis_us(l->w) / 1000));
}

size_t ledger_duplicates(const struct ledger *l)
{
	return l->duplicates;
}

/* Arrivals --------------------------------------------------------------- */

void ledger_arrived(struct ledger *l, struct bytes id)
{
	struct life *life = NULL;

	for (size_t i = l->n; i-- > 0 && !life;)
		if (bytes_eq(bytes_str(l->lives[i].id), id))
			life = &l->lives[i];
	trace(l->w, "arrived %.*s", (int)id.n, id.p);
	if (!life) {
		printf("%.6f %.*s: arrived, and nobody knows it\n",
		       (double)l->w->now / USEC_PER_SEC, (int)id.n, id.p);
		l->broken = true;
		return;
	}
	if (life->came++)
		l->duplicates++;
	if (life->exempt)
		return;
	if (life->fate == ENDED && life->came == 1)
		broken(l, life, "arrived though it was ended");
	if (redis_us(l->w) / 1000 < life->due)
		broken(l, life, "arrived early");
}

static bool same_name(const struct life *a, const struct life *b)
{
	size_t n = strcspn(a->id, "@");

	return n == strcspn(b->id, "@") && memcmp(a->id, b->id, n) == 0;
}

/*
 * What came back may be gone or undone, and an earlier life of the same name
 * may stand there again, to be found by what the application does next.
 */
void ledger_failed_over(struct ledger *l, int64_t since_us)
{
	l->failovers++;
	for (size_t i = 0; i < l->n; i++)
		for (size_t j = 0; l->lives[i].touched_us >= since_us && j < l->n; j++)
			if (same_name(&l->lives[i], &l->lives[j]))
				l->lives[j].exempt = true;
}

/* The application ----------------------------------------------------------- */

static const char *text(const struct reply *r, size_t i)
{
	return r->kind == REPLY_ARRAY && i < r->n ? r->items[i].str.p : "";
}

static bool run(struct ledger *l, const char *script, size_t nkeys, struct reply *r,
		size_t argc, ...)
{
	struct bytes argv[12];
	va_list ap;

	argv[0] = BYTES("lapse:{0}");
	va_start(ap, argc);
	for (size_t i = 1; i <= argc; i++)
		argv[i] = bytes_str(va_arg(ap, const char *));
	va_end(ap);
	store_set_time(l->w->store, redis_us(l->w));
	host_run(l->w->host, l->w->store, script, nkeys, argc + 1, argv, r);
	trace(l->w, "app %s %s -> %s %s", script, argc ? argv[1].p : "",
	      r->kind == REPLY_ERROR ? r->str.p : text(r, 0), text(r, 2));
	return r->kind == REPLY_ARRAY;
}

static struct life *life_of(struct ledger *l, size_t name)
{
	return l->current[name].last < 0 ? NULL : &l->lives[l->current[name].last];
}

static void touched(struct ledger *l, struct life *life)
{
	life->touched_us = redis_us(l->w);
}

static void begin(struct ledger *l, size_t name, const struct reply *r, bool poison)
{
	struct life *old = life_of(l, name);

	if (old && strcmp(text(r, 0), "replaced") == 0 && old->fate == PENDING) {
		old->fate = ENDED;
		touched(l, old);
		if (old->came && !old->exempt && !l->failovers)
			broken(l, old, "was replaced after it had arrived");
	}
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->lives = mem_resize(l->lives, l->cap, sizeof *l->lives);
	}
	l->current[name].last = (int64_t)l->n;
	l->lives[l->n] = (struct life){ .due = strtoll(text(r, 1), NULL, 10),
					.fate = PENDING, .poison = poison };
	snprintf(l->lives[l->n].id, sizeof l->lives[l->n].id, "%s", text(r, 2));
	touched(l, &l->lives[l->n]);
	l->n++;
}

static void name_of(size_t name, char room[16])
{
	snprintf(room, 16, "%c%zu", name < NAMES ? 'e' : 'w', name % NAMES);
}

static void act_schedule(struct ledger *l, size_t name)
{
	struct world *w = l->w;
	bool poison = chance(w, w->faults.poison);
	char id[16], when[32], topic[16];
	struct reply r;

	name_of(name, id);
	snprintf(when, sizeof when, "+%llu", (unsigned long long)below(w, 4) *
		 (unsigned long long)below(w, 1500));
	snprintf(topic, sizeof topic, "topic%llu", (unsigned long long)below(w, TOPICS));
	if (run(l, "schedule", 1, &r, 5, id, when, topic, "", poison ? "poison" : "payload"))
		begin(l, name, &r, poison);
	reply_clear(&r);
}

static void act_setex(struct ledger *l, size_t name)
{
	char key[16], ttl[32];
	struct reply r;

	name_of(name, key);
	snprintf(ttl, sizeof ttl, "%llu", 1 + (unsigned long long)below(l->w, 3000));
	if (run(l, "setex", 2, &r, 3, key, ttl, "value"))
		begin(l, name, &r, false);
	reply_clear(&r);
}

static void ended(struct ledger *l, struct life *life, const char *status)
{
	if (!life)
		return;
	if (strcmp(status, "cancelled") == 0) {
		life->fate = ENDED;
		touched(l, life);
		if (life->came && !life->exempt && !l->failovers)
			broken(l, life, "was cancelled after it had arrived");
	} else if (strcmp(status, "not-found") == 0 && life->fate == PENDING &&
		   !life->came && !life->poison && !life->exempt) {
		broken(l, life, "is not found and has not arrived");
	}
}

static void act_end(struct ledger *l, size_t name)
{
	bool watched = name >= NAMES;
	char id[16];
	struct reply r;

	name_of(name, id);
	if (run(l, watched ? "del" : "cancel", watched ? 2 : 1, &r, 1, id))
		ended(l, life_of(l, name), text(&r, 0));
	reply_clear(&r);
}

static void act_reschedule(struct ledger *l, size_t name)
{
	struct life *life = life_of(l, name);
	char id[16], when[32];
	struct reply r;

	name_of(name, id);
	snprintf(when, sizeof when, "+%llu", (unsigned long long)below(l->w, 3000));
	if (run(l, "reschedule", 1, &r, 2, id, when) && life &&
	    strcmp(text(&r, 0), "rescheduled") == 0) {
		life->due = strtoll(text(&r, 1), NULL, 10);
		touched(l, life);
	}
	reply_clear(&r);
}

/* The application changes the key behind lapsed's back. */
static void act_behind(struct ledger *l, size_t name)
{
	struct life *life = life_of(l, name);
	char key[16], at_ms[32];
	int64_t later = redis_us(l->w) / 1000 + 1 + (int64_t)below(l->w, 3000);
	bool persist = below(l->w, 4) == 0;
	struct bytes argv[3];
	struct reply r;

	if (!life)
		return;
	name_of(name, key);
	snprintf(at_ms, sizeof at_ms, "%lld", (long long)later);
	argv[0] = persist ? BYTES("PERSIST") : BYTES("PEXPIREAT");
	argv[1] = bytes_str(key);
	argv[2] = bytes_str(at_ms);
	store_set_time(l->w->store, redis_us(l->w));
	store_begin(l->w->store);
	store_call(l->w->store, persist ? 2 : 3, argv, &r);
	trace(l->w, "app %s %s %s -> %lld", argv[0].p, key, persist ? "" : at_ms,
	      (long long)r.integer);
	/* A TTL again after PERSIST: whether it was looked at in between decides. */
	if (r.integer == 1 && life->fate == ENDED)
		life->exempt = true;
	if (r.integer == 1 && life->fate == PENDING) {
		touched(l, life);
		if (persist)
			life->fate = ENDED;
		else
			life->due = later;
	}
	reply_clear(&r);
}

void ledger_act(struct ledger *l)
{
	size_t name = below(l->w, 2 * NAMES);
	uint64_t what = below(l->w, 10);

	if (what < 6)
		(name < NAMES ? act_schedule : act_setex)(l, name);
	else if (what < 8)
		act_end(l, name);
	else if (name < NAMES)
		act_reschedule(l, name);
	else
		act_behind(l, name);
}

/* The verdict --------------------------------------------------------------- */

static bool is_dead(struct ledger *l, const char *id)
{
	struct bytes argv[] = { BYTES("ZSCORE"), BYTES("lapse:{0}:dead"), bytes_str(id) };
	struct reply r;
	bool dead;

	store_begin(l->w->store);
	store_call(l->w->store, 3, argv, &r);
	dead = r.kind == REPLY_STR;
	reply_clear(&r);
	return dead;
}

static void check_life(struct ledger *l, const struct life *life)
{
	bool dead = is_dead(l, life->id);

	if (dead && !life->poison)
		broken(l, life, "is dead for no fault of its own");
	if (life->exempt || life->fate == ENDED)
		return;
	if (life->poison && !dead)
		broken(l, life, "is poison and not buried");
	if (!life->poison && !life->came)
		broken(l, life, "was lost");
}

static int64_t length(struct ledger *l, const char *command, const char *key)
{
	struct bytes argv[] = { bytes_str(command), bytes_str(key) };
	struct reply r;
	int64_t n;

	store_begin(l->w->store);
	store_call(l->w->store, 2, argv, &r);
	n = r.integer;
	reply_clear(&r);
	return n;
}

static void check_empty(struct ledger *l)
{
	int64_t due = length(l, "ZCARD", "lapse:{0}:due"), rec = length(l, "HLEN", "lapse:{0}:rec");
	int64_t open = length(l, "HLEN", "lapse:{0}:open");
	struct buf dump = { 0 };
	bool batch;

	store_dump(l->w->store, &dump);
	batch = strstr(buf_cstr(&dump), "lapse:{0}:b:") != NULL;
	if (due || rec || open || batch) {
		l->broken = true;
		printf("after the drain: %lld due, %lld records, %lld open%s\n", (long long)due,
		       (long long)rec, (long long)open, batch ? ", a batch" : "");
		if (l->w->trace)
			printf("%s", buf_cstr(&dump));
	}
	buf_clear(&dump);
}

/* Each adoption and each doubtful outcome is a reason for one more arrival. */
static void check_duplicates(struct ledger *l)
{
	struct counters sum = { 0 };

	for (size_t i = 0; i < l->w->ninstances; i++)
		instance_sum(l->w->instances[i], &sum);
	if (!l->failovers && l->duplicates > sum.possible_duplicates + sum.adopted_entries) {
		l->broken = true;
		printf("%zu duplicates, but %llu doubtful and %llu adopted\n", l->duplicates,
		       (unsigned long long)sum.possible_duplicates,
		       (unsigned long long)sum.adopted_entries);
	}
}

bool ledger_check(struct ledger *l)
{
	for (size_t i = 0; i < l->n; i++)
		check_life(l, &l->lives[i]);
	check_empty(l);
	check_duplicates(l);
	return !l->broken;
}
