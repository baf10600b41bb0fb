/* SPDX-License-Identifier: BSD-2-Clause */

#include "jobs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "joblog.h"
#include "ledger.h"

#define EVERY	(110 * USEC_PER_MSEC)	/* at most, from one act to the next */
#define ARGS	64
#define BULK	3

/* What a consumer has received. */
struct delivery {
	struct job_life *life;
	unsigned attempt;
};

struct jobs {
	struct world *w;
	struct delivery *deliveries;
	size_t n, cap;
	/* The call that is being made. */
	struct bytes argv[ARGS];
	char room[ARGS][96];
	size_t argc;
};

enum deed { FINISH, TOUCH, FAIL, DEEDS };

/* What a consumer will do. */
struct plan {
	struct jobs *j;
	struct delivery what;
	enum deed deed;
};

static uint64_t chance(struct jobs *j, uint64_t n)
{
	return below(j->w, JOB, n);
}

/* Calls ---------------------------------------------------------------------- */

static void begin(struct jobs *j)
{
	j->argc = 0;
	j->argv[j->argc++] = BYTES(PREFIX);
}

static void arg(struct jobs *j, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void arg(struct jobs *j, const char *fmt, ...)
{
	size_t i = j->argc++;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(j->room[i], sizeof j->room[i], fmt, ap);
	va_end(ap);
	j->argv[i] = bytes_str(j->room[i]);
}

static const char *text(const struct reply *r, size_t i)
{
	return r->kind == REPLY_ARRAY && i < r->n && r->items[i].str.p ? r->items[i].str.p : "";
}

static int64_t number(const struct reply *r, size_t i)
{
	return strtoll(text(r, i), NULL, 10);
}

/* The error, or NULL. */
static const char *refused(const struct reply *r)
{
	return r->kind == REPLY_ERROR ? r->str.p : NULL;
}

static void go(struct jobs *j, const char *script, struct reply *r)
{
	struct world *w = j->w;

	store_set_time(w->store, redis_us(w));
	host_run(w->host, w->store, script, 1, j->argc, j->argv, r);
	trace(w, "job %s %s -> %s %s %s", script, j->argc > 1 ? j->argv[1].p : "",
	      refused(r) ? refused(r) : text(r, 0), text(r, 1), text(r, 2));
}

/* Users ---------------------------------------------------------------------- */

/* The terms, a topic, and whether Kafka will refuse it. */
struct order {
	size_t name, topic;
	struct job terms;
	bool poison;
};

static struct order choose(struct jobs *j)
{
	struct order o = {
		.name = chance(j, JOB_NAMES), .topic = chance(j, TOPICS),
		.terms = {
			.ttr = 200 + (msec_t)chance(j, 2500),
			.attempts = 1 + (unsigned)chance(j, JOB_ATTEMPTS), .factor = 1000,
		},
		.poison = strikes(j->w, FAULT_POISON),
	};

	if (chance(j, 3)) {
		o.terms.first = 20 + (msec_t)chance(j, 400);
		o.terms.factor = 1000 + 500 * (unsigned)chance(j, 5);
		o.terms.most = o.terms.first + (msec_t)chance(j, 1000);
	}
	return o;
}

static void args_order(struct jobs *j, const struct order *o)
{
	arg(j, "j%zu", o->name);
	arg(j, "+%llu", (unsigned long long)(chance(j, 4) * chance(j, 1200)));
	arg(j, "jobs%zu", o->topic);
	arg(j, "%s", "");
	arg(j, "%s", o->poison ? "poison" : "payload");
	arg(j, "ttr");
	arg(j, "%lld", (long long)o->terms.ttr);
	arg(j, "attempts");
	arg(j, "%u", o->terms.attempts);
	if (!o->terms.first)
		return;
	arg(j, "backoff");
	arg(j, "%lld:%u.%03u:%lld", (long long)o->terms.first, o->terms.factor / 1000,
	    o->terms.factor % 1000, (long long)o->terms.most);
}

static void ordered(struct jobs *j, const struct order *o, const struct reply *r)
{
	struct job_life *life;

	if (r->kind != REPLY_ARRAY)
		return;
	life = joblog_begin(j->w->joblog, o->name, text(r, 0), number(r, 1), text(r, 2),
			    &o->terms);
	life->topic = o->topic;
	life->poison = o->poison;
}

static void act_schedule(struct jobs *j)
{
	struct order o = choose(j);
	struct reply r;

	begin(j);
	args_order(j, &o);
	if (chance(j, 8) == 0) {
		arg(j, "nx");
		arg(j, "1");
	} else if (chance(j, 8) == 0) {
		arg(j, "if_due_before");
		arg(j, "+%llu", (unsigned long long)chance(j, 2000));
	}
	go(j, "schedule", &r);
	ordered(j, &o, &r);
	reply_clear(&r);
}

static void act_schedule_bulk(struct jobs *j)
{
	struct order o[BULK];
	struct reply r;

	begin(j);
	for (size_t i = 0; i < BULK; i++) {
		size_t before = j->argc++;

		o[i] = choose(j);
		args_order(j, &o[i]);
		snprintf(j->room[before], sizeof j->room[before], "%zu", j->argc - before - 1);
		j->argv[before] = bytes_str(j->room[before]);
	}
	go(j, "schedule_bulk", &r);
	for (size_t i = 0; r.kind == REPLY_ARRAY && i < r.n; i++)
		ordered(j, &o[i], &r.items[i]);
	reply_clear(&r);
}

static void cancelled(struct jobs *j, size_t name, const struct reply *r)
{
	if (r->kind == REPLY_ARRAY)
		joblog_cancel(j->w->joblog, name, text(r, 0), text(r, 2));
}

static void act_cancel(struct jobs *j)
{
	size_t names[] = { chance(j, JOB_NAMES), chance(j, JOB_NAMES) };
	bool bulk = chance(j, 4) == 0;
	struct reply r;

	begin(j);
	for (size_t i = 0; i < (bulk ? 2 : 1); i++)
		arg(j, "j%zu", names[i]);
	go(j, bulk ? "cancel_bulk" : "cancel", &r);
	if (!bulk)
		cancelled(j, names[0], &r);
	for (size_t i = 0; bulk && i < r.n; i++)
		cancelled(j, names[i], &r.items[i]);
	reply_clear(&r);
}

static void act_reschedule(struct jobs *j)
{
	size_t name = chance(j, JOB_NAMES);
	struct reply r;

	begin(j);
	arg(j, "j%zu", name);
	arg(j, "+%llu", (unsigned long long)chance(j, 2000));
	go(j, "reschedule", &r);
	if (r.kind == REPLY_ARRAY)
		joblog_reschedule(j->w->joblog, name, text(&r, 0), number(&r, 1));
	reply_clear(&r);
}

static void act_purge(struct jobs *j)
{
	size_t topic = chance(j, TOPICS), n = joblog_pending(j->w->joblog, topic), done = 0;
	char cursor[64] = "0";
	struct reply r;

	do {
		bool batches = *cursor == 'b';

		begin(j);
		arg(j, "jobs%zu", topic);
		arg(j, "%s", cursor);
		arg(j, "1000");
		go(j, "purge", &r);
		/* The rest of what is parked has ended before. */
		done += batches ? 0 : (size_t)number(&r, 2);
		snprintf(cursor, sizeof cursor, "%s", text(&r, 0));
		reply_clear(&r);
	} while (*cursor && strcmp(cursor, "0") != 0);
	/* After a failover it may be another life that stands there. */
	if (!*cursor || (done != n && !struck(j->w, FAULT_FAILOVER)))
		complain(j->w, "a purge of %zu cancelled %zu", n, done);
	joblog_purged(j->w->joblog, topic);
}

/* An operator, with some dead letter. */
static void act_dead(struct jobs *j)
{
	char id[96];
	struct job_life *dead = joblog_dead_one(j->w->joblog, chance(j, 1000), id), *life;
	bool drop = chance(j, 4) == 0;
	struct reply r;

	if (!dead)
		return;
	begin(j);
	arg(j, "%s", id);
	go(j, drop ? "dead_drop" : "dead_replay", &r);
	if (r.kind == REPLY_ARRAY) {
		joblog_buried(j->w->joblog, dead, drop ? JOB_DROPPED : JOB_REPLAYED);
		if (!drop) {
			life = joblog_begin(j->w->joblog, dead->name, "scheduled", number(&r, 1),
					    text(&r, 2), &dead->terms);
			life->topic = dead->topic;
			life->poison = dead->poison;
			life->exempt = dead->exempt;
		}
	}
	reply_clear(&r);
}

static void act_look(struct jobs *j)
{
	struct reply r;

	begin(j);
	arg(j, "j%llu", (unsigned long long)chance(j, JOB_NAMES));
	go(j, "show", &r);
	if (refused(&r))
		complain(j->w, "show: %s", refused(&r));
	reply_clear(&r);
}

/* Consumers ------------------------------------------------------------------ */

static void finish(struct jobs *j, const struct delivery *d)
{
	struct reply r;

	go(j, "finish", &r);
	joblog_finished(j->w->joblog, d->life, d->attempt, refused(&r), text(&r, 1));
	reply_clear(&r);
}

static void touch(struct jobs *j, const struct delivery *d)
{
	int64_t ms = redis_ms(j->w), span = d->life->terms.ttr;
	struct reply r;

	if (chance(j, 2)) {
		span = 1 + (int64_t)chance(j, 2500);
		arg(j, "+%lld", (long long)span);
	}
	go(j, "touch", &r);
	if (!refused(&r) && number(&r, 1) != ms + span)
		complain(j->w, "a touch by %lld ms gives %lld", (long long)span,
			 (long long)(number(&r, 1) - ms));
	joblog_touched(j->w->joblog, d->life, d->attempt, refused(&r), number(&r, 1));
	reply_clear(&r);
}

static void fail(struct jobs *j, const struct delivery *d)
{
	int64_t pause = -1;
	struct reply r;

	arg(j, "%s", chance(j, 2) ? "no answer" : "");
	if (chance(j, 3) == 0) {
		pause = (int64_t)chance(j, 1500);
		arg(j, "+%lld", (long long)pause);
	}
	go(j, "fail", &r);
	joblog_failed(j->w->joblog, d->life, d->attempt, refused(&r), text(&r, 0),
		      number(&r, 1), pause, text(&r, 2));
	reply_clear(&r);
}

static void perform(struct jobs *j, const struct delivery *d, enum deed deed)
{
	begin(j);
	arg(j, "%s.%u", d->life->id, d->attempt);
	if (deed == FINISH)
		finish(j, d);
	else if (deed == TOUCH)
		touch(j, d);
	else
		fail(j, d);
}

static void on_plan(struct world *w, void *p)
{
	struct plan *plan = p;

	(void)w;
	perform(plan->j, &plan->what, plan->deed);
	free(plan);
}

static void later(struct jobs *j, const struct delivery *d, enum deed deed, int64_t ms)
{
	struct plan *plan = mem_alloc(1, sizeof *plan);

	*plan = (struct plan){ j, *d, deed };
	at_owned(j->w, j->w->now + 1000 + ms * USEC_PER_MSEC, on_plan, plan, free);
}

/* With a token that was never received, or long ago. */
static void act_lie(struct jobs *j)
{
	struct delivery d = { .attempt = (unsigned)chance(j, 2) };

	if (j->n && chance(j, 4)) {
		d = j->deliveries[chance(j, j->n)];
		d.attempt += chance(j, 5) == 0;
	} else {
		d.life = joblog_current(j->w->joblog, chance(j, JOB_NAMES));
		if (d.life)
			d.attempt += d.life->attempt;
	}
	if (d.life && d.attempt < JOB_ATTEMPTS)
		perform(j, &d, chance(j, DEEDS));
}

/* In the time of faults; `now` is soon enough for all but the shortest times. */
static void treat(struct jobs *j, const struct delivery *d)
{
	int64_t soon = (int64_t)chance(j, 250), ttr = d->life->terms.ttr;
	int64_t around = ttr / 2 + (int64_t)chance(j, (uint64_t)ttr);

	switch (chance(j, 16)) {
	case 0: case 1: case 2: case 3: case 4:
		later(j, d, FINISH, soon);
		break;
	case 5: case 6:			/* slow */
		later(j, d, FINISH, around);
		break;
	case 7: case 8:			/* slow, and knows it */
		later(j, d, TOUCH, soon);
		later(j, d, FINISH, soon + around);
		break;
	case 9: case 10: case 11:
		later(j, d, FAIL, soon);
		break;
	case 12:			/* twice */
		later(j, d, FINISH, soon);
		later(j, d, FINISH, around);
		break;
	case 13:			/* out of order */
		later(j, d, FAIL, soon);
		later(j, d, chance(j, DEEDS), around);
		break;
	default:			/* a crash */
		break;
	}
}

void jobs_arrived(struct jobs *j, struct bytes id)
{
	struct delivery d;

	d.life = joblog_arrived(j->w->joblog, id, &d.attempt);
	if (!d.life)
		return;
	if (j->n == j->cap) {
		j->cap = j->cap ? 2 * j->cap : 64;
		j->deliveries = mem_resize(j->deliveries, j->cap, sizeof *j->deliveries);
	}
	j->deliveries[j->n++] = d;
	if (j->w->now < j->w->faults_end || chance(j, 4) == 0)
		treat(j, &d);
	else
		later(j, &d, FINISH, (int64_t)chance(j, 250));
}

/* The whole ------------------------------------------------------------------ */

static void act(struct world *w, void *p)
{
	struct jobs *j = p;
	uint64_t what = chance(j, 64);

	if (what < 26)
		act_schedule(j);
	else if (what < 29)
		act_schedule_bulk(j);
	else if (what < 37)
		act_cancel(j);
	else if (what < 45)
		act_reschedule(j);
	else if (what < 59)
		act_lie(j);
	else if (what < 62)
		act_dead(j);
	else if (what < 63)
		act_look(j);
	else
		act_purge(j);
	if (w->now < w->app_end)
		at(w, w->now + (usec_t)chance(j, EVERY), act, j);
}

struct jobs *jobs_new(struct world *w)
{
	struct jobs *j = mem_alloc(1, sizeof *j);

	j->w = w;
	at(w, 1500, act, j);
	return j;
}

void jobs_free(struct jobs *j)
{
	free(j->deliveries);
	free(j);
}
