/* SPDX-License-Identifier: BSD-2-Clause */

#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "joblog.h"
#include "jobs.h"

/* Without faults: hush, ranks and the way through. */
#define LATE_MS		400
/* Two notifications of one key further apart than this are two expiries. */
#define APART		(5 * USEC_PER_SEC)
#define BUCKETS		1024

const struct class classes[CLASSES] = {
	{ .letter = 'e' },
	{ .letter = 'w', .watched = true },
	{ .letter = 'x', .watched = true, .db = 1 },
	{ .letter = 'd', .watched = true, .may_drop = true },
	{ .letter = 'n', .watched = true, .unannounced = true },
};

struct unannounced {
	unsigned expired, apart;	/* in all; not right after another */
	unsigned came, late;
	usec_t last;
};

struct ledger {
	struct world *w;
	struct life **lives;
	size_t n, cap;
	struct life *current[CLASSES * NAMES];
	struct unannounced unannounced[NAMES];
	struct life_link { struct life_link *next; struct life *life; } *by_id[BUCKETS];
	size_t duplicates, uncounted;
	unsigned failovers;
	int64_t latest;
};

struct ledger *ledger_new(struct world *w)
{
	struct ledger *l = mem_alloc(1, sizeof *l);

	l->w = w;
	return l;
}

void ledger_free(struct ledger *l)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct life_link *k = l->by_id[i], *next; k; k = next) {
			next = k->next;
			free(k);
		}
	for (size_t i = 0; i < l->n; i++)
		free(l->lives[i]);
	free(l->lives);
	free(l);
}

static void broken(struct ledger *l, const struct life *life, const char *what)
{
	complain(l->w, "%s %s (due %+lld ms)", life->id, what,
		 (long long)(life->due - redis_ms(l->w)));
}

size_t ledger_duplicates(const struct ledger *l)
{
	return l->duplicates + joblog_duplicates(l->w->joblog);
}

int64_t ledger_latest_ms(const struct ledger *l)
{
	return l->latest;
}

/* Lives ---------------------------------------------------------------------- */

static struct life_link **bucket(struct ledger *l, struct bytes id)
{
	unsigned x = 2166136261u;

	for (size_t i = 0; i < id.n; i++)
		x = (x ^ (unsigned char)id.p[i]) * 16777619u;
	return &l->by_id[(x ^ x >> 15) % BUCKETS];
}

static struct life *find(struct ledger *l, struct bytes id)
{
	for (struct life_link *k = *bucket(l, id); k; k = k->next)
		if (bytes_eq(bytes_str(k->life->id), id))
			return k->life;
	return NULL;
}

static struct life *add(struct ledger *l, struct bytes id, const struct class *class, int64_t due)
{
	struct life *life = mem_alloc(1, sizeof *life);
	struct life_link *k = mem_alloc(1, sizeof *k), **at_;

	snprintf(life->id, sizeof life->id, "%.*s", (int)id.n, id.p);
	life->class = class;
	life->due = due;
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->lives = mem_resize(l->lives, l->cap, sizeof *l->lives);
	}
	l->lives[l->n++] = life;
	at_ = bucket(l, id);
	*k = (struct life_link){ *at_, life };
	*at_ = k;
	ledger_touch(l, life);
	return life;
}

struct life *ledger_life(struct ledger *l, size_t name)
{
	return l->current[name];
}

void ledger_touch(struct ledger *l, struct life *life)
{
	life->touched = l->w->now;
}

static bool same_name(const struct life *a, const struct life *b)
{
	size_t n = strcspn(a->id, "@");

	return n == strcspn(b->id, "@") && memcmp(a->id, b->id, n) == 0;
}

/*
 * What came back may be gone or undone, and an earlier life of the same name
 * may stand there again, to be found by what the application does next.  What
 * was acknowledged meanwhile may stand there and come once more, and what was
 * claimed meanwhile may be ended there, and come all the same.
 */
void ledger_failed_over(struct ledger *l, usec_t since)
{
	l->failovers++;
	joblog_failed_over(l->w->joblog, since);
	for (size_t i = 0; i < l->n; i++) {
		struct life *life = l->lives[i];

		if (!life->came || life->came_at >= since)
			life->reasons += 2;	/* of who claimed before, and after */
		if (!life->came && life->due <= redis_ms(l->w))
			life->undone = true;
		for (size_t j = 0; life->touched >= since && j < l->n; j++)
			if (same_name(life, l->lives[j]))
				l->lives[j]->exempt = true;
	}
}

void ledger_begin(struct ledger *l, size_t name, const char *status, int64_t due,
		  const char *id, bool poison)
{
	struct life *old = l->current[name];

	if (old && strcmp(status, "replaced") == 0 && old->fate == PENDING) {
		old->fate = ENDED;
		ledger_touch(l, old);
		if (old->came && !old->exempt && !l->failovers)
			broken(l, old, "was replaced after it had arrived");
		if (old->class->watched && !old->exempt && !old->hurried &&
		    old->due < redis_ms(l->w) && !struck(l->w, FAULT_CLOCK))
			broken(l, old, "was replaced after its key had run out");
	}
	l->current[name] = add(l, bytes_str(id), &classes[name / NAMES], due);
	l->current[name]->poison = poison;
}

void ledger_replayed(struct ledger *l, struct life *dead, int64_t due, const char *id)
{
	struct life *life = add(l, bytes_str(id), dead->class, due);

	dead->replayed = true;
	life->poison = dead->poison;
	l->current[strtoul(dead->id + sizeof "s:e" - 1, NULL, 10)] = life;
	if (dead->exempt)
		life->exempt = true;
}

bool ledger_expect(struct ledger *l, const struct member *m, uint64_t birth, int64_t due,
		   const struct class *class, bool dropped)
{
	struct buf id = { 0 };
	bool fresh;

	ce_id_write(m, birth, 0, &id);
	fresh = !find(l, buf_view(&id));
	if (fresh && dropped)
		add(l, buf_view(&id), class, due)->fate = ENDED;
	else if (fresh)
		add(l, buf_view(&id), class, due);
	buf_clear(&id);
	return fresh;
}

static bool is_dead(struct ledger *l, const char *id)
{
	struct bytes argv[] = { BYTES("ZSCORE"), BYTES(PREFIX ":dead"), bytes_str(id) };
	struct reply r;
	bool dead;

	command(l->w, l->w->database, 3, argv, &r);
	dead = r.kind == REPLY_STR;
	reply_clear(&r);
	return dead;
}

struct life *ledger_dead_one(struct ledger *l, size_t from)
{
	for (size_t i = 0; i < l->n; i++) {
		struct life *life = l->lives[(from + i) % l->n];

		if (life->poison && !life->class->watched && is_dead(l, life->id))
			return life;
	}
	return NULL;
}

void ledger_end(struct ledger *l, struct life *life, const char *status)
{
	if (!life)
		return;
	if (strcmp(status, "cancelled") == 0) {
		life->fate = ENDED;
		ledger_touch(l, life);
		if (life->came && !life->exempt && !l->failovers)
			broken(l, life, "was cancelled after it had arrived");
	} else if (strcmp(status, "not-found") == 0 && life->fate == PENDING &&
		   !life->came && !life->poison && !life->corrupt && !life->exempt &&
		   !life->class->may_drop) {
		broken(l, life, "is not found and has not arrived");
	}
}

/* Arrivals ---------------------------------------------------------------- */

static struct unannounced *unannounced(struct ledger *l, struct bytes key)
{
	return key.n > 1 && key.p[0] == 'n' ?
		&l->unannounced[strtoul(key.p + 1, NULL, 10) % NAMES] : NULL;
}

void ledger_expired(struct ledger *l, struct bytes key)
{
	struct unannounced *u = unannounced(l, key);

	if (!u)
		return;
	u->apart += !u->expired || l->w->now - u->last > APART;
	u->expired++;
	u->last = l->w->now;
	trace(l->w, "expired %.*s", (int)key.n, key.p);
}

void ledger_heard_late(struct ledger *l, struct bytes member)
{
	struct unannounced *u = NULL;

	if (bytes_starts(member, BYTES("k:0:")))
		u = unannounced(l, bytes_skip(member, sizeof "k:0:" - 1));
	if (u)
		u->late++;
}

/* What is remembered of claims may be gone, or be dated by another clock. */
static bool may_come_twice(const struct ledger *l)
{
	return l->failovers || struck(l->w, FAULT_CLOCK);
}

static bool is_job(struct bytes id)
{
	return bytes_starts(id, BYTES("s:j"));
}

/* Only what nobody announced may be unknown. */
static struct life *get(struct ledger *l, struct bytes id)
{
	struct life *life = find(l, id);
	struct bytes start = BYTES("k:0:n");

	if (!life && bytes_starts(id, start))
		life = add(l, id, &classes[CLASSES - 1], 0);
	return life;
}

/* No more arrives than has expired. */
static void arrived_unannounced(struct ledger *l, const struct life *life)
{
	struct unannounced *u = NULL;

	u = unannounced(l, bytes_skip(bytes_str(life->id), sizeof "k:0:" - 1));

	if (++u->came > u->expired + u->late && !may_come_twice(l))
		complain(l->w, "%s: %u arrivals of %u expiries", life->id, u->came, u->expired);
}

void ledger_reason(struct ledger *l, struct bytes id, bool counted)
{
	struct life *life;

	l->uncounted += !counted;
	trace(l->w, "reason for %.*s", (int)id.n, id.p);
	if (is_job(id)) {
		joblog_reason(l->w->joblog, id);
		return;
	}
	life = get(l, id);
	if (life)
		life->reasons++;
}

void ledger_arrived(struct ledger *l, struct bytes id)
{
	struct life *life;
	int64_t late;

	trace(l->w, "arrived %.*s", (int)id.n, id.p);
	if (is_job(id)) {
		jobs_arrived(l->w->jobs, id);
		return;
	}
	life = get(l, id);
	if (!life) {
		complain(l->w, "%.*s arrived, and nobody knows it", (int)id.n, id.p);
		return;
	}
	if (life->class->unannounced && !life->came)
		arrived_unannounced(l, life);
	life->came_at = l->w->now;
	if (life->came++)
		l->duplicates++;
	if (life->came > 1 + life->reasons)
		broken(l, life, "arrived again without a reason");
	if (life->exempt)
		return;
	if ((life->fate == ENDED || life->corrupt) && life->came == 1 && !life->undone)
		broken(l, life, "arrived though it was ended");
	redis_us(l->w);
	if (l->w->latest / 1000 < life->due && !life->undone)
		broken(l, life, "arrived early");
	if (!l->w->calm || !life->due || life->hurried || l->w->now < USEC_PER_SEC)
		return;
	late = redis_ms(l->w) - life->due;
	l->latest = late > l->latest ? late : l->latest;
	if (late > LATE_MS)
		broken(l, life, "arrived late, and there was no reason");
}

/* What can't be read has lost its token, and goes by its name. */
static void told_by_name(struct ledger *l, struct bytes id)
{
	bool known = false;

	for (size_t i = 0; i < l->n; i++) {
		size_t n = strcspn(l->lives[i]->id, "@") + 1;

		if (l->lives[i]->corrupt && bytes_starts(id, bytes_of(l->lives[i]->id, n))) {
			l->lives[i]->told++;
			known = true;
		}
	}
	if (!known && !l->failovers)
		complain(l->w, "%.*s is told to be dead, and nobody knows it", (int)id.n, id.p);
}

void ledger_told(struct ledger *l, struct bytes id, struct bytes reason)
{
	struct life *life;

	trace(l->w, "told dead %.*s: %.*s", (int)id.n, id.p, (int)reason.n, reason.p);
	if (!reason.n)
		complain(l->w, "%.*s is told to be dead without a reason", (int)id.n, id.p);
	if (is_job(id)) {
		joblog_told(l->w->joblog, id, reason);
		return;
	}
	life = find(l, id);
	if (!life || life->corrupt) {
		told_by_name(l, id);
		return;
	}
	if (!life->poison || !bytes_eq(reason, BYTES("refused")))
		broken(l, life, "is told to be dead, and is not");
	if (++life->told > 1 + life->reasons && !life->exempt && !life->undone)
		broken(l, life, "is told to be dead once more without a reason");
}

/* The verdict --------------------------------------------------------------- */

/*
 * What is left of a corrupt record is buried under the time when it was due,
 * to the millisecond, since it has lost its birth.
 */
static bool is_dead_by_name(struct ledger *l, const struct life *life)
{
	struct bytes argv[] = { BYTES("ZRANGE"), BYTES(PREFIX ":dead"), BYTES("0"), BYTES("-1") };
	size_t n = strcspn(life->id, "@") + 1;
	struct reply r;
	bool dead = false;

	command(l->w, l->w->database, 4, argv, &r);
	for (size_t i = 0; i < r.n; i++) {
		struct bytes id = r.items[i].str;

		dead = dead || (bytes_starts(id, bytes_of(life->id, n)) && id.n > 5 &&
				memcmp(id.p + id.n - 3, "0.0", 3) == 0);
	}
	reply_clear(&r);
	return dead;
}

/* Of each dead letter its topic was told, unless it was counted as untold. */
static void check_told(struct ledger *l, const struct life *life, uint64_t *untold)
{
	if (!l->w->dead_topic || life->told || life->exempt || l->failovers)
		return;
	if (*untold)
		--*untold;
	else
		broken(l, life, "is dead, and nobody was told");
}

static void check_life(struct ledger *l, const struct life *life, uint64_t *may_miss,
		       uint64_t *untold)
{
	bool dead = is_dead(l, life->id);

	if (dead && !life->poison && !life->corrupt)
		broken(l, life, "is dead for no fault of its own");
	if (dead)
		check_told(l, life, untold);
	if (life->exempt || life->fate == ENDED || life->replayed)
		return;
	if (life->corrupt && !is_dead_by_name(l, life))
		broken(l, life, "is corrupt and not buried");
	if (life->poison && !dead && !life->corrupt)
		broken(l, life, "is poison and not buried");
	if (life->poison || life->corrupt || life->came || life->class->unannounced)
		return;
	if (life->class->may_drop && *may_miss)
		--*may_miss;
	else
		broken(l, life, "was lost");
}

static int64_t length(struct ledger *l, const char *cmd, const char *key)
{
	struct bytes argv[] = { bytes_str(cmd), bytes_str(key) };
	struct reply r;
	int64_t n;

	command(l->w, l->w->database, 2, argv, &r);
	n = r.integer;
	reply_clear(&r);
	return n;
}

static void check_empty(struct ledger *l)
{
	static const char *const keys[][2] = {
		{ "ZCARD", PREFIX ":due" }, { "HLEN", PREFIX ":rec" },
		{ "HLEN", PREFIX ":open" }, { "ZCARD", PREFIX ":seen" },
		{ "ZCARD", PREFIX ":wait" },
	};
	struct buf dump = { 0 };

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		int64_t n = length(l, keys[i][0], keys[i][1]);

		/* `seen` forgets by a clock that may have been ahead. */
		if (n && (i != 3 || !struck(l->w, FAULT_CLOCK)))
			complain(l->w, "after the drain %s holds %lld", keys[i][1], (long long)n);
	}
	store_dump(l->w->store, &dump);
	if (strstr(buf_cstr(&dump), PREFIX ":b:"))
		complain(l->w, "after the drain there is a batch");
	if (l->w->broken && l->w->conf.trace)
		printf("%s", buf_cstr(&dump));
	buf_clear(&dump);
}

/* Nothing disagrees, neither what is left. */
static void check_walk(struct ledger *l, const char *part)
{
	struct bytes argv[] = {
		BYTES(PREFIX), bytes_str(part), BYTES("0"), BYTES("10000"), BYTES("0"),
	};
	struct reply r;

	store_set_time(l->w->store, redis_us(l->w));
	host_run(l->w->host, l->w->store, "walk", 1, 5, argv, &r);
	if (r.kind != REPLY_ARRAY || r.n < 2)
		complain(l->w, "walk through %s: %s", part, r.str.p ? r.str.p : "no answer");
	else if (r.n > 2)
		complain(l->w, "%s has %s %s", part, r.items[2].str.p, r.items[3].str.p);
	reply_clear(&r);
}

static bool all_heard(const struct ledger *l)
{
	for (unsigned i = 0; i < FAULT_KINDS; i++)
		if (struck(l->w, i) && deafens(i))
			return false;
	return true;
}

static void check_unannounced(struct ledger *l)
{
	for (size_t i = 0; i < NAMES; i++) {
		const struct unannounced *u = &l->unannounced[i];

		if (all_heard(l) && u->came < u->apart)
			complain(l->w, "k:0:n%zu expired %u times, and arrived %u times", i,
				 u->apart, u->came);
	}
}

/* Each adoption and each doubtful outcome is a reason for one more arrival. */
static void check_duplicates(struct ledger *l, const struct counters *sum)
{
	size_t n = ledger_duplicates(l);

	if (!l->failovers && n > sum->possible_duplicates + sum->adopted_entries +
	    l->uncounted)
		complain(l->w, "%zu duplicates, but %llu doubtful and %llu adopted",
			 n, (unsigned long long)sum->possible_duplicates,
			 (unsigned long long)sum->adopted_entries);
}

void ledger_check(struct ledger *l)
{
	static const char *const parts[] = {
		"due", "rec", "open", "batches", "epoch", "dead", "why",
	};
	struct counters sum = { 0 };
	uint64_t may_miss, untold;

	for (size_t i = 0; i < l->w->ninstances; i++)
		instance_sum(l->w->instances[i], &sum);
	may_miss = sum.inferred_dropped;
	untold = sum.dead_untold;
	for (size_t i = 0; i < l->n; i++)
		check_life(l, l->lives[i], &may_miss, &untold);
	joblog_check(l->w->joblog, &untold);
	check_unannounced(l);
	check_duplicates(l, &sum);
	check_empty(l);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		check_walk(l, parts[i]);
	if (sum.early && !struck(l->w, FAULT_CLOCK))
		complain(l->w, "%llu early", (unsigned long long)sum.early);
}
