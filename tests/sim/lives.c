/* SPDX-License-Identifier: BSD-2-Clause */

#include "lives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/record.h"
#include "core/watch.h"

#define DUES		8	/* of one life, the latest */
/* Without faults a life as long as this is registered. */
#define REGISTERED_IN	(400 * USEC_PER_MSEC)
/* What a claim saw keeps quiet those who hear of it afterwards (claim.lua). */
/* An expiry that is told so late may be taken for that of the next life, if it is
 * over by then, until what was registered for it has been claimed. */
#define OLD_NEWS	(20 * USEC_PER_MSEC)
#define NEWS_FOR	(10 * USEC_PER_SEC)
#define ABSORBED_IN	(5500 * USEC_PER_MSEC)

const struct kind kinds[KINDS] = {
	{ .class = { .letter = 'A', .watched = true }, .events = true, .copy = true },
	{ .class = { .letter = 'B', .watched = true }, .events = true, .scan = true,
	  .copy = true, .refresh = true },
	{ .class = { .letter = 'C', .watched = true, .db = 3 }, .events = true, .drop = true,
	  .emit_evicted = true },
	{ .class = { .letter = 'D', .watched = true }, .scan = true, .copy = true },
	{ .class = { .letter = 'E', .watched = true, .db = 3 }, .events = true, .scan = true,
	  .copy = true, .drop = true },
};

enum how { ALIVE, EXPIRED, DELETED, REPLACED, PERSISTED, EVICTED };

/* From a TTL on, until the key is gone, without one, or set again. */
struct key_life {
	struct key_life *next;		/* the one before */
	enum how how;
	usec_t begun, ended;
	int64_t dues[DUES];
	size_t ndues;
	size_t write_min;	/* the write that was known, counted from 1; 0: none */
	uint64_t heard[INSTANCES];	/* w->order when each was told of its end; 0: not */
	bool told[INSTANCES];	/* the same, even if it came too late to count */
	bool told_once;
	bool registered;	/* a script looked at it while it lived, */
	size_t dues_seen;	/* when it had had so many ends */
	bool reported;
	bool cancelled;		/* a script knew that it had not expired */
	bool excused;		/* a script could not know that it had */
	bool exempt;
};

struct lives {
	struct world *w;
	struct key keys[KINDS * KEYS];
	bool blurred;
	uint64_t reported, heard, found;
};

struct lives *lives_new(struct world *w)
{
	struct lives *l = mem_alloc(1, sizeof *l);

	l->w = w;
	for (size_t i = 0; i < KINDS * KEYS; i++) {
		struct key *k = &l->keys[i];
		int n = snprintf(k->room, sizeof k->room, "%c%zu",
				 kinds[i / KEYS].class.letter, i % KEYS);

		k->kind = &kinds[i / KEYS];
		k->name = bytes_of(k->room, (size_t)n);
		k->excluded = i % KEYS == EXCLUDED;
	}
	return l;
}

void lives_free(struct lives *l)
{
	for (size_t i = 0; i < KINDS * KEYS; i++)
		for (struct key_life *life = l->keys[i].lives, *next; life; life = next) {
			next = life->next;
			free(life);
		}
	free(l);
}

struct key *lives_key_at(struct lives *l, size_t kind, size_t i)
{
	return &l->keys[kind * KEYS + i];
}

struct key *lives_key(struct lives *l, struct bytes name)
{
	if (name.n != 2 || name.p[0] < 'A' || name.p[0] >= 'A' + KINDS || name.p[1] < '0' ||
	    name.p[1] >= '0' + KEYS)
		return NULL;
	return lives_key_at(l, (size_t)(name.p[0] - 'A'), (size_t)(name.p[1] - '0'));
}

bool lives_alive(const struct key *k)
{
	return k->lives && k->lives->how == ALIVE;
}

static void blame(struct lives *l, const struct key *k, const struct key_life *life,
		  const char *what)
{
	static const char *const hows[] = {
		"alive", "expired", "deleted", "replaced", "persisted", "evicted",
	};

	complain(l->w, "key %s %s (%s; begun %.6f, ended %.6f, due in %lld ms)", k->room, what,
		 life ? hows[life->how] : "no life",
		 life ? (double)life->begun / USEC_PER_SEC : 0,
		 life ? (double)life->ended / USEC_PER_SEC : 0,
		 life && life->ndues ? (long long)(life->dues[(life->ndues - 1) % DUES] -
						   redis_ms(l->w)) : 0);
}

/* What the application did ---------------------------------------------------- */

static void wrote(struct lives *l, struct key *k, usec_t value)
{
	k->there = true;
	k->writes[k->nwrites++ % WRITES] = (struct write){ l->w->now, value };
}

/* The number of the last write by then, counted from 1; 0: there is none. */
static size_t write_at(const struct key *k, usec_t when)
{
	size_t n = k->nwrites;

	while (n && n + WRITES > k->nwrites && k->writes[(n - 1) % WRITES].at > when)
		n--;
	return n;
}

static void end(struct lives *l, struct key *k, enum how how)
{
	if (!lives_alive(k))
		return;
	k->lives->how = how;
	k->lives->ended = l->w->now;
}

static void due_at(struct key_life *life, int64_t due)
{
	life->dues[life->ndues++ % DUES] = due;
}

static void begin(struct lives *l, struct key *k, int64_t due)
{
	struct key_life *life = mem_alloc(1, sizeof *life);

	life->next = k->lives;
	life->begun = l->w->now;
	life->exempt = l->blurred;
	due_at(life, due);
	k->lives = life;
}

void lives_set(struct lives *l, struct key *k, int64_t due)
{
	end(l, k, REPLACED);
	wrote(l, k, l->w->now);
	if (due)
		begin(l, k, due);
}

void lives_written(struct lives *l, struct key *k)
{
	wrote(l, k, l->w->now);
}

void lives_expire(struct lives *l, struct key *k, int64_t due)
{
	if (lives_alive(k))
		due_at(k->lives, due);
	else
		begin(l, k, due);
}

void lives_persist(struct lives *l, struct key *k)
{
	end(l, k, PERSISTED);
}

void lives_delete(struct lives *l, struct key *k)
{
	end(l, k, DELETED);
	k->there = false;
}

void lives_rename(struct lives *l, struct key *from, struct key *to)
{
	const struct key_life *life = from->lives;
	bool lives_on = lives_alive(from);

	end(l, to, REPLACED);
	wrote(l, to, from->nwrites ? from->writes[(from->nwrites - 1) % WRITES].value : 0);
	if (lives_on)
		begin(l, to, life->dues[(life->ndues - 1) % DUES]);
	lives_delete(l, from);
}

void lives_evicted(struct lives *l, struct key *k)
{
	end(l, k, EVICTED);
	k->there = false;
}

void lives_expired(struct lives *l, struct bytes name)
{
	struct key *k = lives_key(l, name);

	if (!k)
		return;
	trace(l->w, "expired %s", k->room);
	if (!lives_alive(k) && !l->blurred)
		blame(l, k, k->lives, "expired without a life");
	end(l, k, EXPIRED);
	k->there = false;
}

/* Who was told ---------------------------------------------------------------- */

/* Whether this tells of its end. */
static bool is_told(const struct key_life *life, enum watch_sign sign, usec_t published)
{
	return life->how != ALIVE && life->ended == published &&
	       (life->how == EXPIRED) == (sign == WATCH_EXPIRED);
}

void lives_heard(struct lives *l, const struct instance *i, struct bytes event,
		 struct bytes name, usec_t published, bool late)
{
	struct key *k = lives_key(l, name);
	enum watch_sign sign = watch_sign(event, true);
	unsigned n = instance_number(i);

	if (!k)
		return;
	for (struct key_life *life = k->lives; life; life = life->next)
		if (is_told(life, sign, published))
			life->told[n] = life->told_once = true;
	/* How old it is, who hears it can't tell. */
	if (sign == WATCH_EXPIRED && (late || l->w->now - published > OLD_NEWS))
		k->old_news = l->w->now;
	if (late)
		return;
	if (sign == WATCH_SET || (sign == WATCH_WRITTEN && k->kind->refresh))
		k->write_heard[n] = write_at(k, published);
	for (struct key_life *life = k->lives; life; life = life->next)
		if (is_told(life, sign, published) && !life->heard[n])
			life->heard[n] = l->w->order;
}

void lives_forget(struct lives *l, const struct instance *i)
{
	unsigned n = instance_number(i);

	for (size_t j = 0; j < KINDS * KEYS; j++) {
		l->keys[j].write_heard[n] = 0;
		for (struct key_life *life = l->keys[j].lives; life; life = life->next)
			life->heard[n] = life->told[n] = 0;
	}
}

/* Whether the caller knew of its end when it sent this. */
static bool knew(const struct key_life *life, const struct look *look)
{
	uint64_t heard = look->caller ? life->heard[instance_number(look->caller)] : 0;

	return heard && heard <= look->sent;
}

/* Who looked ------------------------------------------------------------------- */

/*
 * A script has seen that the key is there again, or is told that it was deleted:
 * that is the end of earlier lives of which it does not know that they expired,
 * or not that they were to expire so early.
 */
static void settle_earlier(struct key *k, const struct look *look, bool cancels)
{
	struct key_life *life = k->lives;

	if (lives_alive(k))
		life = life->next;
	for (; life; life = life->next) {
		if (life->how == EXPIRED && !(k->kind->events && knew(life, look) &&
					      life->dues_seen == life->ndues))
			life->excused = true;
		if (life->how != EXPIRED && life->how != EVICTED && cancels)
			life->cancelled = true;
	}
}

static struct key *key_of(struct lives *l, struct bytes member, struct member *m)
{
	return member_parse(member, m, NULL) && m->kind != MEMBER_SCHEDULED ?
		lives_key(l, m->name) : NULL;
}

static void registered(struct lives *l, const struct look *look, const struct bytes *five)
{
	struct member m;
	struct key *k = key_of(l, five[0], &m);
	size_t write;

	if (!k)
		return;
	if (k->excluded)
		blame(l, k, k->lives, "is registered, though it is excluded");
	if (k->there || memchr(five[1].p, 'd', five[1].n))
		settle_earlier(k, look, true);
	if (!lives_alive(k))
		return;
	k->lives->registered = true;
	k->lives->dues_seen = k->lives->ndues;
	if (bytes_eq(five[4], BYTES("-")) || !look->caller)
		return;
	write = k->write_heard[instance_number(look->caller)];
	if (write > k->lives->write_min)
		k->lives->write_min = write;
}

/* The value that it gives is from here on known to who scans. */
static void scanned(struct lives *l, const struct look *look, const struct reply *r)
{
	for (size_t i = 2; look->caller && i < r->n; i++) {
		struct member m;
		struct key *k = key_of(l, r->items[i].str, &m);

		if (k && k->kind->scan)
			k->write_heard[instance_number(look->caller)] = k->nwrites;
	}
}

/* What is claimed --------------------------------------------------------------- */

static bool has_due(const struct key_life *life, int64_t due)
{
	for (size_t i = 0; i < DUES && i < life->ndues; i++)
		if (llabs(life->dues[i] - due) <= 0)
			return true;
	return false;
}

static bool any_has_due(const struct key *k, int64_t due)
{
	for (const struct key_life *life = k->lives; life; life = life->next)
		if (has_due(life, due))
			return true;
	return false;
}

/*
 * It ended when nobody expected it, right behind another that was claimed, and
 * the word of it may have been taken for that of the other: it is reported at
 * the time that was known, or not at all.
 */
static bool may_be_absorbed(const struct key *k, const struct key_life *life)
{
	for (const struct key_life *o = k->lives; o; o = o->next)
		if (o != life && o->how == EXPIRED && life->dues_seen != life->ndues &&
		    llabs(o->ended - life->ended) < ABSORBED_IN)
			return true;
	return false;
}

/* As itself, as a life that was put aside, as io.lapsed.evicted. */
enum claimed_as { AS_ITSELF, ASIDE, AS_EVICTED };

/* Whether the end of this life or a later one was told. */
static bool told_since(const struct key *k, const struct key_life *life,
		       const struct instance *who)
{
	for (const struct key_life *o = k->lives; o; o = o->next) {
		if (o->how == EXPIRED && (who ? o->told[instance_number(who)] : o->told_once))
			return true;
		if (o == life)
			break;
	}
	return false;
}

/*
 * Whether this life may be the one that is claimed so.  Whoever missed that it was
 * deleted takes the next eviction for its end.  What is found is the
 * key, and one that came and went unseen stands for the life before.
 */
static bool fits(const struct lives *l, const struct key *k, const struct key_life *life,
		 const struct look *look, enum certainty c, enum claimed_as how)
{
	if (life->how == ALIVE || life->reported || life->cancelled)
		return false;
	if (how == AS_EVICTED)
		return c == CERTAINTY_HEARD && k->kind->emit_evicted && life->how != EXPIRED;
	if (how == ASIDE)
		return c == CERTAINTY_HEARD && life->how == EXPIRED;
	switch (c) {
	case CERTAINTY_FOUND:
		return life->how == EXPIRED && k->lives->how == EXPIRED &&
		       k->lives->ended == l->w->now;
	case CERTAINTY_HEARD:
		return life->how == EXPIRED && told_since(k, life, look->caller);
	default:
		return true;
	}
}

static struct key_life *match(const struct lives *l, const struct key *k,
			      const struct look *look, const struct envelope *env,
			      enum claimed_as how)
{
	struct key_life *best = NULL;
	int best_score = 0;

	for (struct key_life *life = k->lives; life; life = life->next) {
		int score = 1 + (life->how == EXPIRED || life->how == EVICTED) * 2 +
			    has_due(life, env->due) * 4;

		if (!fits(l, k, life, look, env->certainty, how) || score <= best_score)
			continue;
		best = life;
		best_score = score;
	}
	for (struct key_life *life = k->lives; best && best->how != EXPIRED && life != best;
	     life = life->next)
		if (fits(l, k, life, look, env->certainty, how) && life->how == EXPIRED &&
		    may_be_absorbed(k, life))
			return life;
	return best;
}

/* The time behind the last `v` of a value. */
static usec_t value_of(struct bytes payload)
{
	for (size_t i = payload.n; i; i--)
		if (payload.p[i - 1] == 'v')
			return strtoll(payload.p + i, NULL, 10);
	return 0;
}

static void check_value(struct lives *l, const struct key *k, const struct key_life *life,
			struct bytes payload)
{
	size_t last = write_at(k, life->ended), n = last;
	usec_t value = value_of(payload);

	if (!k->kind->copy) {
		if (payload.n)
			blame(l, k, life, "is reported with a value");
		return;
	}
	while (n && n + WRITES > k->nwrites && k->writes[(n - 1) % WRITES].value != value)
		n--;
	if (life->write_min && !life->excused && life->write_min + WRITES > k->nwrites && n < life->write_min)
		blame(l, k, life, "is not reported with its value");
}

static bool is_evicted(const struct record *rec)
{
	return bytes_eq(rec->type, BYTES("io.lapsed.evicted"));
}

static void check_claim(struct lives *l, struct key *k, struct key_life *life,
			const struct envelope *env, const struct record *rec)
{
	bool evicted = is_evicted(rec);

	if (k->excluded)
		blame(l, k, life, "is claimed, though it is excluded");
	if (!evicted && life->how == EVICTED && env->certainty != CERTAINTY_INFERRED)
		blame(l, k, life, "was evicted, and is reported as expired");
	if (env->due > redis_ms(l->w))
		blame(l, k, life, "is claimed early");
	if (!evicted && env->certainty != CERTAINTY_HEARD && env->due != redis_ms(l->w) &&
	    !any_has_due(k, env->due))
		blame(l, k, life, "is reported under a time that it never had");
	if (l->w->calm && k->kind->events && life->how != EXPIRED && life->how != EVICTED)
		blame(l, k, life, "is reported, though all was heard");
	check_value(l, k, life, rec->payload);
}

static void claimed(struct lives *l, const struct look *look, struct bytes member,
		    struct bytes envelope)
{
	struct member m;
	struct key *k = key_of(l, member, &m);
	struct envelope env;
	struct record rec;
	struct key_life *life;
	bool dropped;

	if (!k || !envelope_unpack(envelope, &env, NULL) ||
	    !record_unpack(env.record, &rec, NULL))
		return;
	dropped = k->kind->drop && env.certainty == CERTAINTY_INFERRED;
	if (!ledger_expect(l->w->ledger, &m, rec.birth, env.due, &k->kind->class, dropped))
		return;
	life = match(l, k, look, &env, is_evicted(&rec) ? AS_EVICTED :
		     m.kind == MEMBER_EXPIRED ? ASIDE : AS_ITSELF);
	trace(l->w, "claimed %.*s as %c with %.*s, life of %.6f", (int)member.n, member.p,
	      (char)env.certainty, (int)rec.payload.n, rec.payload.p ? rec.payload.p : "",
	      life ? (double)life->begun / USEC_PER_SEC : 0);
	l->reported++;
	l->heard += env.certainty == CERTAINTY_HEARD;
	l->found += env.certainty == CERTAINTY_FOUND;
	if (life)
		life->reported = true;
	if (l->blurred || (life && life->exempt))
		return;
	if (m.kind == MEMBER_WATCHED && lives_alive(k) && env.certainty != CERTAINTY_HEARD)
		blame(l, k, k->lives, "is claimed while it lives");
	else if (!life && !(k->old_news && l->w->now - k->old_news < NEWS_FOR))
		blame(l, k, k->lives, "is claimed, and there is nothing to tell");
	else if (life)
		check_claim(l, k, life, &env, &rec);
}

void lives_looked(struct lives *l, const struct look *look, const struct reply *r)
{
	if (r->kind != REPLY_ARRAY)
		return;
	if (strcmp(look->script, "register") == 0) {
		for (size_t i = 0; i + 4 < look->argc; i += 5)
			registered(l, look, look->argv + i);
	} else if (strcmp(look->script, "scan") == 0) {
		scanned(l, look, r);
	} else if (strcmp(look->script, "claim") == 0) {
		for (size_t i = 7; i + 1 < r->n; i += 2)
			claimed(l, look, r->items[i].str, r->items[i + 1].str);
		for (size_t i = 0; i < KINDS * KEYS; i++)
			if (l->keys[i].there)
				settle_earlier(&l->keys[i], look, false);
	}
}

/* A server that is as it was a moment ago, or has another time. */
static void blur_key(struct lives *l, struct key *k)
{
	struct bytes argv[] = { BYTES("PEXPIRETIME"), k->name };
	struct reply r;

	for (struct key_life *life = k->lives; life; life = life->next)
		life->exempt = true;
	command(l->w, k->kind->class.db, 2, argv, &r);
	end(l, k, DELETED);
	k->there = r.integer != -2;
	if (r.integer >= 0)
		begin(l, k, r.integer);
	reply_clear(&r);
}

void lives_blur(struct lives *l)
{
	l->blurred = true;
	for (size_t i = 0; i < KINDS * KEYS; i++)
		blur_key(l, &l->keys[i]);
}

/* The verdict -------------------------------------------------------------------- */

static void check_life(struct lives *l, const struct key *k, const struct key_life *life)
{
	usec_t length = (life->ended ? life->ended : l->w->now) - life->begun;
	usec_t quiet = life->ended - (life->begun > l->w->faults_end ? life->begun :
				      l->w->faults_end);

	if (life->exempt || k->excluded)
		return;
	if (l->w->calm && k->kind->events && length > REGISTERED_IN && !life->registered &&
	    life->begun > USEC_PER_SEC)
		blame(l, k, life, "was not registered, and there was no reason");
	if (k->kind->scan && quiet > 2 * RESCAN + USEC_PER_SEC && !life->registered)
		blame(l, k, life, "was not found by a scan");
	if (life->how != EXPIRED || life->reported || life->excused)
		return;
	if (may_be_absorbed(k, life))
		return;
	if (life->registered)
		blame(l, k, life, "was lost");
	else if (l->w->calm && k->kind->events && life->begun > USEC_PER_SEC)
		blame(l, k, life, "was lost before it was registered");
}

void lives_check(struct lives *l)
{
	for (size_t i = 0; i < KINDS * KEYS; i++)
		for (struct key_life *life = l->keys[i].lives; life; life = life->next)
			if (!l->blurred)
				check_life(l, &l->keys[i], life);
}

void lives_count(const struct lives *l, uint64_t counts[3])
{
	counts[0] += l->reported;
	counts[1] += l->heard;
	counts[2] += l->found;
}
