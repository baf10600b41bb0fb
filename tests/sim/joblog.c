/* SPDX-License-Identifier: BSD-2-Clause */

#include "joblog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ledger.h"

/* Without faults: hush, ranks and the way through. */
#define LATE_MS		400

struct joblog {
	struct world *w;
	struct job_life **lives;
	size_t n, cap;
	struct job_life *current[JOB_NAMES];
	size_t duplicates;
	struct job_sums sums;
};

struct joblog *joblog_new(struct world *w)
{
	struct joblog *l = mem_alloc(1, sizeof *l);

	l->w = w;
	return l;
}

void joblog_free(struct joblog *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->lives[i]);
	free(l->lives);
	free(l);
}

size_t joblog_duplicates(const struct joblog *l)
{
	return l->duplicates;
}

static void broken(struct joblog *l, const struct job_life *life, unsigned attempt,
		   const char *what)
{
	complain(l->w, "%s.%u %s (attempt %u counts, due %+lld ms, deadline %+lld ms)", life->id,
		 attempt, what, life->attempt, (long long)(life->due - redis_ms(l->w)),
		 life->deadline ? (long long)(life->deadline - redis_ms(l->w)) : 0);
}

/* Lives ---------------------------------------------------------------------- */

/* What may have been undone proves nothing by its state. */
static bool unsure(const struct job_life *life)
{
	return life->undone || life->exempt;
}

static bool runs(const struct job_life *life)
{
	return life->end == JOB_LIVES;
}

static bool gone(const struct job_life *life)
{
	return life->end >= JOB_FINISHED;
}

static bool is_last(const struct job_life *life, unsigned attempt)
{
	return attempt + 1 >= life->terms.attempts;
}

/* Of the pause behind an attempt, up to a quarter is left to chance. */
static int64_t pause_most(const struct job_life *life, unsigned attempt)
{
	double pause = (double)life->terms.first;

	for (unsigned i = 0; i < attempt; i++)
		pause *= life->terms.factor / 1000.0;
	return pause < (double)life->terms.most ? (int64_t)pause : life->terms.most;
}

static int64_t pause_least(const struct job_life *life, unsigned attempt)
{
	return pause_most(life, attempt) * 3 / 4 - 1;
}

/* Whether the attempt that we know of may be out of time. */
static bool may_have_ended(struct joblog *l, const struct job_life *life)
{
	return unsure(life) || (life->deadline && (life->deadline <= redis_ms(l->w) ||
						   struck(l->w, FAULT_CLOCK)));
}

static bool may_be_dead(struct joblog *l, const struct job_life *life)
{
	return unsure(life) || life->poison || life->end == JOB_DYING ||
	       (is_last(life, life->attempt) && may_have_ended(l, life)) ||
	       (life->attempt + 2 == life->terms.attempts && life->attempts[life->attempt + 1].came);
}

static void touch(struct joblog *l, struct job_life *life)
{
	life->touched = l->w->now;
}

/* From here on it must not be sent, but for what was on its way. */
static void end(struct joblog *l, struct job_life *life, enum job_end how, bool was_scheduled)
{
	bool ended = runs(life) && may_have_ended(l, life) && !is_last(life, life->attempt);

	life->upto = life->attempt + ended;
	life->never_flew = was_scheduled && !ended && !life->attempts[life->attempt].came;
	life->end = how;
	touch(l, life);
}

/* The attempt that counts has ended: the next one is due. */
static void advance(struct joblog *l, struct job_life *life, char how, int64_t due, bool exact)
{
	life->attempts[life->attempt].how = how;
	life->attempt++;
	life->due = due;
	life->exact = exact;
	life->deadline = 0;
	touch(l, life);
}

static void out_of_time(struct joblog *l, struct job_life *life)
{
	advance(l, life, 't', life->deadline + pause_least(life, life->attempt), false);
}

/* Brought up to an attempt that a failover, or what we do not see, has made count. */
static void catch_up(struct joblog *l, struct job_life *life, unsigned attempt)
{
	while (life->attempt < attempt)
		out_of_time(l, life);
}

struct job_life *joblog_current(struct joblog *l, size_t name)
{
	return l->current[name];
}

static struct job_life *find(struct joblog *l, struct bytes id, unsigned *attempt)
{
	const char *dot = memchr(id.p, '.', id.n);
	size_t n = dot ? (size_t)(dot - id.p) : id.n;

	*attempt = 0;
	for (size_t i = n + 1; i < id.n; i++)
		*attempt = 10 * *attempt + (unsigned)(id.p[i] - '0');
	for (size_t i = l->n; i-- && *attempt < JOB_ATTEMPTS; )
		if (bytes_eq(bytes_str(l->lives[i]->id), bytes_of(id.p, n)))
			return l->lives[i];
	return NULL;
}

static void out_of_the_way(struct joblog *l, struct job_life *old, bool replaced)
{
	if (replaced && gone(old) && !unsure(old))
		broken(l, old, old->attempt, "was replaced, and had ended");
	if (replaced && !gone(old))
		end(l, old, JOB_REPLACED, false);
	if (replaced || gone(old))
		return;
	if (!may_be_dead(l, old))
		broken(l, old, old->attempt, "lives, and its id was free");
	old->end = JOB_DYING;
	touch(l, old);
}

struct job_life *joblog_begin(struct joblog *l, size_t name, const char *status, int64_t due,
			      const char *id, const struct job *terms)
{
	struct job_life *life = mem_alloc(1, sizeof *life), *old = l->current[name], *twin;
	unsigned attempt;

	snprintf(life->id, sizeof life->id, "%.*s", (int)strcspn(id, "."), id);
	life->name = name;
	life->terms = *terms;
	life->due = due;
	life->exact = true;
	touch(l, life);
	/* A clock that stepped back, and a failover, and it is not told from another. */
	twin = find(l, bytes_str(id), &attempt);
	if (twin && struck(l->w, FAULT_FAILOVER) && struck(l->w, FAULT_CLOCK))
		life->exempt = twin->exempt = true;
	if (old)
		out_of_the_way(l, old, strcmp(status, "replaced") == 0);
	else if (strcmp(status, "scheduled") != 0)
		broken(l, life, 0, "replaced what nobody knows");
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->lives = mem_resize(l->lives, l->cap, sizeof *l->lives);
	}
	l->sums.lives++;
	return l->current[name] = l->lives[l->n++] = life;
}

void joblog_cancel(struct joblog *l, size_t name, const char *status, const char *where)
{
	struct job_life *life = l->current[name];

	if (!life)
		return;
	if (strcmp(status, "cancelled") == 0) {
		if (gone(life) && !unsure(life))
			broken(l, life, life->attempt, "was cancelled, and had ended");
		if (!gone(life))
			end(l, life, JOB_CANCELLED, strcmp(where, "scheduled") == 0);
	} else if (!gone(life)) {
		if (!may_be_dead(l, life))
			broken(l, life, life->attempt, "lives, and was not cancelled");
		life->end = JOB_DYING;
	}
}

/* What is due again may be the next attempt. */
void joblog_reschedule(struct joblog *l, size_t name, const char *status, int64_t due)
{
	struct job_life *life = l->current[name];

	if (!life || strcmp(status, "rescheduled") != 0)
		return;
	if (gone(life) && !unsure(life))
		broken(l, life, life->attempt, "was rescheduled, and had ended");
	if (life->end == JOB_DYING && !unsure(life))
		broken(l, life, life->attempt, "was rescheduled, and is about to die");
	if (!runs(life))
		return;
	if (life->deadline && !may_have_ended(l, life))
		broken(l, life, life->attempt, "was rescheduled, and waits");
	if (life->deadline && is_last(life, life->attempt) && !unsure(life))
		broken(l, life, life->attempt, "was rescheduled, and has no attempt left");
	if (life->deadline && !is_last(life, life->attempt))
		out_of_time(l, life);
	life->due = due;
	life->exact = true;
	touch(l, life);
}

static bool is_there(struct joblog *l, const char *command_, const char *key, const char *field)
{
	struct bytes argv[] = { bytes_str(command_), bytes_str(key), bytes_str(field) };
	struct reply r;
	bool there;

	command(l->w, l->w->database, 3, argv, &r);
	there = r.kind == REPLY_STR || (r.kind == REPLY_INT && r.integer);
	reply_clear(&r);
	return there;
}

static bool is_pending(struct joblog *l, const struct job_life *life, size_t topic)
{
	char member[32];

	if (life->topic != topic)
		return false;
	snprintf(member, sizeof member, "%.*s", (int)strcspn(life->id, "@"), life->id);
	return is_there(l, "HEXISTS", PREFIX ":rec", member);
}

size_t joblog_pending(struct joblog *l, size_t topic)
{
	size_t n = 0;

	for (size_t i = 0; i < JOB_NAMES; i++) {
		struct job_life *life = l->current[i];

		if (life)
			n += life->pending = is_pending(l, life, topic);
	}
	return n;
}

void joblog_purged(struct joblog *l, size_t topic)
{
	for (size_t i = 0; i < JOB_NAMES; i++) {
		struct job_life *life = l->current[i];

		if (life && life->topic == topic)
			joblog_cancel(l, i, life->pending ? "cancelled" : "not-found", "");
	}
}

/* Consumers ------------------------------------------------------------------ */

/* Whether that attempt may be the one that counts, and be due. */
static bool may_count(struct joblog *l, const struct job_life *life, unsigned attempt)
{
	int64_t ms = redis_ms(l->w);
	bool any_time = struck(l->w, FAULT_CLOCK);

	if (unsure(life))
		return true;
	if (!runs(life))
		return false;
	if (attempt == life->attempt)
		return life->attempts[attempt].came || life->due <= ms || any_time;
	return attempt == life->attempt + 1 && !is_last(life, life->attempt) &&
	       may_have_ended(l, life) &&
	       (life->deadline + pause_least(life, life->attempt) <= ms || any_time);
}

/* Whether it must be. */
static bool must_count(struct joblog *l, const struct job_life *life, unsigned attempt)
{
	int64_t ms = redis_ms(l->w);

	if (unsure(life) || !runs(life) || attempt != life->attempt || life->poison ||
	    struck(l->w, FAULT_CLOCK))
		return false;
	return (life->attempts[attempt].came || (life->exact && life->due <= ms)) &&
	       (!life->deadline || life->deadline > ms);
}

/* True when it was done, and was right to be. */
static bool accepted(struct joblog *l, struct job_life *life, unsigned attempt,
		     const char *error, const char *what)
{
	if (error) {
		bool stale = strncmp(error, "LAPSE_STALE", 11) == 0;

		l->sums.stale += stale;
		if (stale && must_count(l, life, attempt))
			broken(l, life, attempt, "was refused, and it counts");
		if (!stale && strncmp(error, "OOM", 3) != 0)
			broken(l, life, attempt, error);
		return false;
	}
	if (!may_count(l, life, attempt))
		broken(l, life, attempt, what);
	catch_up(l, life, attempt);
	if (unsure(life))
		life->attempt = attempt;
	touch(l, life);
	return !l->w->broken;
}

void joblog_finished(struct joblog *l, struct job_life *life, unsigned attempt,
		     const char *error, const char *where)
{
	if (accepted(l, life, attempt, error, "was finished, and does not count"))
		end(l, life, JOB_FINISHED, strcmp(where, "scheduled") == 0);
	if (life->end == JOB_FINISHED)
		life->upto = life->attempt;
}

void joblog_touched(struct joblog *l, struct job_life *life, unsigned attempt,
		    const char *error, int64_t deadline)
{
	if (!accepted(l, life, attempt, error, "was touched, and does not count"))
		return;
	life->deadline = life->out = deadline;
}

void joblog_failed(struct joblog *l, struct job_life *life, unsigned attempt,
		   const char *error, const char *status, int64_t due, int64_t pause,
		   const char *id)
{
	int64_t ms = redis_ms(l->w);
	int64_t least = pause < 0 ? pause_least(life, attempt) : pause;
	int64_t most = pause < 0 ? pause_most(life, attempt) : pause;
	char next[96];

	if (!accepted(l, life, attempt, error, "has failed, and does not count"))
		return;
	if (is_last(life, attempt) != (strcmp(status, "dead") == 0))
		broken(l, life, attempt, "is dead after a wrong number of attempts");
	if (is_last(life, attempt)) {
		life->attempts[attempt].how = 'f';
		life->end = JOB_DYING;
		life->upto = attempt;
		return;
	}
	snprintf(next, sizeof next, "%s.%u", life->id, attempt + 1);
	if (due < ms + least || due > ms + most + 1)
		broken(l, life, attempt, "is to come again at a wrong time");
	if (strcmp(next, id) != 0)
		broken(l, life, attempt, "is followed by a wrong one");
	advance(l, life, 'f', due, true);
}

/* Arrivals ------------------------------------------------------------------- */

void joblog_reason(struct joblog *l, struct bytes id)
{
	unsigned attempt;
	struct job_life *life = find(l, id, &attempt);

	if (life)
		life->attempts[attempt].reasons++;
}

/* How late it may be without faults; `out` is when its attempt is over. */
static void check_late(struct joblog *l, struct job_life *life, unsigned attempt,
		       int64_t latest)
{
	int64_t ms = redis_ms(l->w);

	if (l->w->calm && l->w->now > USEC_PER_SEC && ms > latest + LATE_MS)
		broken(l, life, attempt, "arrived late, and there was no reason");
}

static void arrived_running(struct joblog *l, struct job_life *life, unsigned attempt)
{
	if (attempt > life->attempt + 1)
		broken(l, life, attempt, "arrived, and one was left out");
	if (attempt == life->attempt + 1) {
		int64_t latest = life->out + pause_most(life, life->attempt);

		if (is_last(life, life->attempt) || !may_count(l, life, attempt))
			broken(l, life, attempt, "arrived before the one before had ended");
		out_of_time(l, life);
		check_late(l, life, attempt, latest);
	} else if (attempt == life->attempt && life->attempts[attempt].came == 1) {
		if (l->w->latest / 1000 < life->due)
			broken(l, life, attempt, "arrived early");
		if (life->exact)
			check_late(l, life, attempt, life->due);
	}
}

/* Its time to run counts from the settle, which comes after. */
static void begins(struct joblog *l, struct job_life *life)
{
	life->deadline = redis_ms(l->w) + life->terms.ttr;
	life->out = life->deadline + LATE_MS;
	touch(l, life);
}

static void arrived_ended(struct joblog *l, struct job_life *life, unsigned attempt)
{
	unsigned upto = life->end == JOB_DYING ? life->terms.attempts - 1 : life->upto;

	if (attempt > upto || (attempt == life->attempt && life->never_flew &&
				     life->attempts[attempt].came == 1))
		broken(l, life, attempt, "arrived, and its job had ended");
}

struct job_life *joblog_arrived(struct joblog *l, struct bytes id, unsigned *attempt)
{
	struct job_life *life = find(l, id, attempt);
	struct job_attempt *a;

	if (!life || *attempt >= life->terms.attempts) {
		complain(l->w, "%.*s arrived, and nobody knows it", (int)id.n, id.p);
		return NULL;
	}
	a = &life->attempts[*attempt];
	a->came_at = l->w->now;
	l->sums.deliveries++;
	if (a->came++)
		l->duplicates++;
	if (a->came > 1 + a->reasons)
		broken(l, life, *attempt, "arrived again without a reason");
	if (life->poison)
		broken(l, life, *attempt, "arrived, though it is poison");
	if (unsure(life))
		catch_up(l, life, *attempt);
	else if (runs(life))
		arrived_running(l, life, *attempt);
	else
		arrived_ended(l, life, *attempt);
	if (runs(life) && *attempt == life->attempt && !life->deadline)
		begins(l, life);
	return life;
}

/* Why it is dead, as bridge.c says it. */
static bool reason_fits(const struct job_life *life, unsigned attempt, struct bytes reason)
{
	const struct job_attempt *a = &life->attempts[attempt];
	char text[64];

	if (life->poison && bytes_eq(reason, BYTES("refused")))
		return true;
	snprintf(text, sizeof text, "attempt %u of %u %s", attempt + 1, life->terms.attempts,
		 a->how == 'f' ? "failed" : "was not finished within ");
	return is_last(life, attempt) &&
	       (bytes_starts(reason, bytes_str(text)) || unsure(life));
}

void joblog_told(struct joblog *l, struct bytes id, struct bytes reason)
{
	unsigned attempt;
	struct job_life *life = find(l, id, &attempt);
	struct job_attempt *a;

	if (!life) {
		complain(l->w, "%.*s is told to be dead, and nobody knows it", (int)id.n, id.p);
		return;
	}
	a = &life->attempts[attempt];
	/* Poison may be refused while it dies of a failure. */
	if (++a->told > 1 + a->reasons + life->poison && !unsure(life))
		broken(l, life, attempt, "is told to be dead once more without a reason");
	if (!reason_fits(life, attempt, reason))
		broken(l, life, attempt, "is told to be dead for a wrong reason");
	if (life->poison || unsure(life))
		return;
	if (gone(life) || !may_be_dead(l, life))
		broken(l, life, attempt, "is told to be dead, and is not");
	life->end = JOB_DYING;
}

/*
 * What came back may be gone or undone, lives of the same id with it; what was
 * claimed or settled meanwhile is where it was before.
 */
void joblog_failed_over(struct joblog *l, usec_t since)
{
	bool names[JOB_NAMES] = { false };

	for (size_t i = 0; i < l->n; i++)
		names[l->lives[i]->name] |= l->lives[i]->touched >= since;
	for (size_t i = 0; i < l->n; i++) {
		struct job_life *life = l->lives[i];

		life->exempt |= names[life->name];
		/* One that came was due, wherever a clock stands that stepped since. */
		life->undone |= !gone(life) && (life->due <= redis_ms(l->w) ||
						life->attempts[life->attempt].came);
		for (unsigned k = 0; k < JOB_ATTEMPTS; k++) {
			struct job_attempt *a = &life->attempts[k];

			if (!a->came || a->came_at >= since)
				a->reasons += 2;	/* of who claimed before, and after */
		}
	}
}

/* The verdict --------------------------------------------------------------- */

static bool history_fits(const struct job_life *life, const struct record *r)
{
	for (unsigned k = 0; k < r->nhistory; k++) {
		const struct attempt *a = &r->history[k];
		char how = k < JOB_ATTEMPTS ? life->attempts[k].how : 0;

		if (a->number != k || (how && a->failed != (how == 'f') && !unsure(life)))
			return false;
	}
	return r->nhistory == r->attempt + r->job.spent;
}

static void check_obituary(struct joblog *l, const struct job_life *life, unsigned attempt,
			   struct bytes text)
{
	struct obituary o;
	struct envelope env;
	struct record r;

	if (!obituary_unpack(text, &o, NULL) || !envelope_unpack(o.envelope, &env, NULL) ||
	    !record_unpack(env.record, &r, NULL))
		broken(l, life, attempt, "is dead, and its obituary can't be read");
	else if (r.attempt != attempt || (!r.job.spent && !life->poison) || !history_fits(life, &r))
		broken(l, life, attempt, "is dead with another history than it had");
	else if (!reason_fits(life, attempt, o.reason))
		broken(l, life, attempt, "is dead for a wrong reason");
}

static void check_dead(struct joblog *l, struct job_life *life, unsigned attempt)
{
	char id[96];
	struct bytes argv[] = { BYTES("HGET"), BYTES(PREFIX ":why"), bytes_none };
	struct reply r;

	if (life->exempt)
		return;
	if (gone(life))
		broken(l, life, attempt, "is dead, and had ended");
	else if (!may_be_dead(l, life))
		broken(l, life, attempt, "is dead for no fault of its own");
	snprintf(id, sizeof id, "%s.%u", life->id, attempt);
	argv[2] = bytes_str(id);
	command(l->w, l->w->database, 3, argv, &r);
	check_obituary(l, life, attempt, r.str);
	reply_clear(&r);
}

struct job_life *joblog_dead_one(struct joblog *l, size_t from, char id[96])
{
	for (size_t i = 0; i < l->n; i++) {
		struct job_life *life = l->lives[(from + i) % l->n];

		if (gone(life))
			continue;
		for (unsigned k = 0; k < life->terms.attempts; k++) {
			snprintf(id, 96, "%s.%u", life->id, k);
			if (is_there(l, "ZSCORE", PREFIX ":dead", id)) {
				check_dead(l, life, k);
				return life;
			}
		}
	}
	return NULL;
}

void joblog_buried(struct joblog *l, struct job_life *life, enum job_end how)
{
	life->end = how;
	life->upto = life->terms.attempts - 1;
	touch(l, life);
}

/* Each dead letter is one of ours, and each of ours has one at most. */
static void check_letter(struct joblog *l, struct bytes id, uint64_t *untold)
{
	unsigned attempt;
	struct job_life *life = find(l, id, &attempt);

	if (!life) {
		complain(l->w, "%.*s is dead, and nobody knows it", (int)id.n, id.p);
		return;
	}
	check_dead(l, life, attempt);
	if (!gone(life))
		life->end = JOB_DEAD;
	if (!l->w->dead_topic || life->attempts[attempt].told || unsure(life))
		return;
	if (*untold)
		--*untold;
	else
		broken(l, life, attempt, "is dead, and nobody was told");
}

void joblog_check(struct joblog *l, uint64_t *untold)
{
	struct bytes argv[] = { BYTES("ZRANGE"), BYTES(PREFIX ":dead"), BYTES("0"), BYTES("-1") };
	struct reply r;

	command(l->w, l->w->database, 4, argv, &r);
	for (size_t i = 0; i < r.n; i++)
		if (bytes_starts(r.items[i].str, BYTES("s:j")))
			check_letter(l, r.items[i].str, untold);
	reply_clear(&r);
	for (size_t i = 0; i < l->n; i++)
		if (!gone(l->lives[i]) && !l->lives[i]->exempt)
			broken(l, l->lives[i], l->lives[i]->attempt, "was not finished, and is not dead");
}

void joblog_sum(const struct joblog *l, struct job_sums *s)
{
	s->lives += l->sums.lives;
	s->stale += l->sums.stale;
	s->deliveries += l->sums.deliveries;
	for (size_t i = 0; i < l->n; i++)
		s->ends[l->lives[i]->end]++;
}
