/* SPDX-License-Identifier: BSD-2-Clause */

#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "joblog.h"
#include "jobs.h"
#include "ledger.h"
#include "lives.h"

#define APP_MS		12000
#define FAULTS_MORE	(3 * USEC_PER_SEC)	/* than the application */
#define REST		(78 * USEC_PER_SEC)	/* after the faults */
#define IDLE		(10 * USEC_PER_SEC)	/* at the end of it */
#define STEPS		3000000			/* more is a loop without end */

/* The wires: a heap of what will happen, earliest first. */
struct wire {
	usec_t when;
	uint64_t order;
	happening *f;
	void *arg;
	void (*drop)(void *);
};

struct wire_queue {
	struct wire *heap;
	size_t n, cap;
};

static bool sooner(const struct wire *a, const struct wire *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

void at_owned(struct world *w, usec_t when, happening *f, void *arg, void (*drop)(void *))
{
	struct wire_queue *q = w->queue;
	struct wire wire = { when, w->order++, f, arg, drop };
	size_t i = q->n++;

	if (q->n > q->cap) {
		q->cap = q->cap ? 2 * q->cap : 64;
		q->heap = mem_resize(q->heap, q->cap, sizeof *q->heap);
	}
	for (; i && sooner(&wire, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = wire;
}

void at(struct world *w, usec_t when, happening *f, void *arg)
{
	at_owned(w, when, f, arg, NULL);
}

/* The first before `end`. */
static bool next(struct wire_queue *q, usec_t end, struct wire *out)
{
	struct wire last;
	size_t i = 0;

	if (q->n == 0 || q->heap[0].when >= end)
		return false;
	*out = q->heap[0];
	last = q->heap[--q->n];
	while (2 * i + 1 < q->n) {
		size_t child = 2 * i + 1;

		if (child + 1 < q->n && sooner(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!sooner(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return true;
}

/* Chance ------------------------------------------------------------------ */

uint64_t below(struct world *w, enum stream s, uint64_t n)
{
	uint64_t x = w->streams[s] += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	x ^= x >> 31;
	return n ? x % n : 0;
}

bool strikes(struct world *w, enum fault kind)
{
	bool hit = w->now < w->faults_end && below(w, FAULT, 1000) < w->chances[kind];

	if (hit)
		w->struck |= 1u << kind;
	return hit;
}

bool struck(const struct world *w, enum fault kind)
{
	return w->struck & 1u << kind;
}

void trace(const struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->conf.trace)
		return;
	printf("%10.6f  ", (double)w->now / USEC_PER_SEC);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void complain(struct world *w, const char *fmt, ...)
{
	va_list ap;

	w->broken = true;
	if (w->conf.quiet)
		return;
	printf("%10.6f  BROKEN: ", (double)w->now / USEC_PER_SEC);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* Redis ---------------------------------------------------------------------- */

int64_t redis_us(struct world *w)
{
	int64_t us = EPOCH + w->now + w->clock_step;

	if (us > w->latest)
		w->latest = us;
	return us;
}

int64_t redis_ms(struct world *w)
{
	return redis_us(w) / 1000;
}

void command(struct world *w, unsigned db, size_t argc, const struct bytes *argv,
	     struct reply *r)
{
	char number[16];
	const struct bytes select[] = { BYTES("SELECT"), bytes_str(number) };

	snprintf(number, sizeof number, "%u", db);
	store_set_time(w->store, redis_us(w));
	store_begin(w->store);
	store_call(w->store, 2, (struct bytes[]){ select[0], bytes_str(number) }, r);
	reply_clear(r);
	store_call(w->store, argc, argv, r);
}

static void on_publish(void *arg, struct bytes channel, struct bytes message)
{
	struct world *w = arg;
	bool event = bytes_starts(channel, BYTES("__keyevent@"));
	bool expired = event && bytes_eq(bytes_skip(channel, sizeof "__keyevent@0__:" - 1),
					 BYTES("expired"));
	bool foreign = event && lives_key(w->lives, message);

	/* Nobody listens to all of it. */
	if (event && !expired && !foreign)
		return;
	if (foreign && expired)
		lives_expired(w->lives, message);
	else if (expired && channel.p[sizeof "__keyevent@" - 1] == '0')
		ledger_expired(w->ledger, message);
	for (size_t i = 0; i < w->ninstances; i++)
		(foreign ? instance_tell : instance_publish)(w->instances[i], channel, message);
}

static void active_expiry(struct world *w, void *arg)
{
	(void)arg;
	store_set_time(w->store, redis_us(w));
	store_expire(w->store, (size_t)below(w, WIRE, 5));
	at(w, w->now + 100 * USEC_PER_MSEC, active_expiry, NULL);
}

static void application(struct world *w, void *arg)
{
	(void)arg;
	app_act(w->app);
	if (w->now < w->app_end)
		at(w, w->now + (usec_t)below(w, APP, (w->calm ? 15 : 50) * USEC_PER_MSEC),
		   application, NULL);
}

static void foreign(struct world *w, void *arg)
{
	(void)arg;
	foreign_act(w->foreign);
	if (w->now < w->app_end)
		at(w, w->now + 1 + (usec_t)below(w, FOREIGN, 80 * USEC_PER_MSEC), foreign, NULL);
}

/* The world ------------------------------------------------------------------ */

/* Its scripts are compiled once for many runs. */
static struct host *choose_host(struct world *w)
{
	unsigned version = below(w, APP, 4) ? 0x070000 : 0;
	struct host **kept = NULL;

	if (w->conf.hosts)
		kept = &w->conf.hosts[(w->database ? 2 : 0) + (version ? 1 : 0)];
	if (kept && *kept)
		return *kept;
	w->host = host_new(version, (int)w->database);
	if (kept)
		*kept = w->host;
	return w->host;
}

struct world *world_new(const struct world_conf *conf)
{
	struct world *w = mem_alloc(1, sizeof *w);
	size_t by_chance;

	w->conf = *conf;
	for (size_t i = 0; i < STREAMS; i++)
		w->streams[i] = conf->seed * STREAMS + i;
	for (size_t i = 0; i < STREAMS; i++)	/* far apart, whatever the seed */
		w->streams[i] = below(w, i, 0) + w->streams[i] * UINT64_C(0xd1342543de82ef95);
	w->app_end = (conf->app_ms ? conf->app_ms : APP_MS) * USEC_PER_MSEC;
	w->faults_end = w->app_end + FAULTS_MORE;
	w->queue = mem_alloc(1, sizeof *w->queue);
	w->database = below(w, APP, 2) ? 2 : 0;
	w->store = store_new(on_publish, w);
	store_set_time(w->store, redis_us(w));
	w->host = choose_host(w);
	w->kafka = kafka_fake_new(w);
	w->ledger = ledger_new(w);
	w->app = app_new(w);
	w->joblog = joblog_new(w);
	w->dead_topic = below(w, JOB, 3);
	w->foreign = foreign_new(w);
	w->lives = lives_new(w);
	w->holders = holders_new();
	w->scripts = script_cache_new();
	faults_choose(w);
	by_chance = 1 + below(w, APP, INSTANCES);
	w->ninstances = conf->instances ? conf->instances : by_chance;
	for (unsigned i = 0; i < w->ninstances; i++)
		w->instances[i] = instance_new(w, i);
	at(w, 1000, application, NULL);
	w->jobs = jobs_new(w);
	at(w, 1000, foreign, NULL);
	at(w, 100 * USEC_PER_MSEC, active_expiry, NULL);
	faults_start(w);
	return w;
}

void world_free(struct world *w)
{
	for (size_t i = 0; i < w->ninstances; i++)
		instance_free(w->instances[i]);
	store_free(w->store);
	store_free(w->snapshot);
	if (!w->conf.hosts)
		host_free(w->host);
	kafka_fake_free(w->kafka);
	ledger_free(w->ledger);
	app_free(w->app);
	jobs_free(w->jobs);
	joblog_free(w->joblog);
	foreign_free(w->foreign);
	lives_free(w->lives);
	holders_free(w->holders);
	holders_free(w->snapshot_holders);
	script_cache_free(w->scripts);
	for (size_t i = 0; i < w->queue->n; i++)
		if (w->queue->heap[i].drop)
			w->queue->heap[i].drop(w->queue->heap[i].arg);
	free(w->queue->heap);
	free(w->queue);
	free(w);
}

static void mark(struct world *w, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < w->ninstances; i++)
		instance_mark(w->instances[i]);
}

bool world_run(struct world *w)
{
	usec_t end = w->faults_end + REST;
	size_t steps = 0;
	struct wire wire;

	at(w, end - IDLE, mark, NULL);
	while (!w->broken && next(w->queue, end, &wire)) {
		w->now = wire.when;
		wire.f(w, wire.arg);
		for (size_t i = 0; i < w->ninstances; i++)
			instance_check(w->instances[i]);
		if (++steps == STEPS)
			complain(w, "there is no end to what happens");
	}
	if (w->broken)
		return false;
	w->now = end;
	store_set_time(w->store, redis_us(w));
	for (size_t i = 0; i < w->ninstances; i++)
		instance_check_rest(w->instances[i]);
	ledger_check(w->ledger);
	lives_check(w->lives);
	return !w->broken;
}
