/* SPDX-License-Identifier: BSD-2-Clause */

#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define APP_END		(15 * USEC_PER_SEC)
#define FAULTS_END	(18 * USEC_PER_SEC)
#define REST		(60 * USEC_PER_SEC)
#define FAULT_EVERY	(100 * USEC_PER_MSEC)

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

static bool next(struct wire_queue *q, struct wire *out)
{
	struct wire last;
	size_t i = 0;

	if (q->n == 0)
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

uint64_t rnd(struct world *w)
{
	uint64_t x = w->seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t below(struct world *w, uint64_t n)
{
	return n ? rnd(w) % n : 0;
}

bool chance(struct world *w, unsigned in_thousand)
{
	return w->now < w->faults_end && in_thousand && below(w, 1000) < in_thousand;
}

void trace(const struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (!w->trace)
		return;
	printf("%10.6f  ", (double)w->now / USEC_PER_SEC);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

int64_t redis_us(const struct world *w)
{
	return EPOCH + w->now;
}

/* The servers ------------------------------------------------------------- */

static void on_publish(void *arg, struct bytes channel, struct bytes message)
{
	struct world *w = arg;

	for (size_t i = 0; i < w->ninstances; i++)
		instance_publish(w->instances[i], channel, message);
}

static void active_expiry(struct world *w, void *arg)
{
	(void)arg;
	store_set_time(w->store, redis_us(w));
	store_expire(w->store, (size_t)below(w, 5));
	if (w->now < REST)
		at(w, w->now + 100 * USEC_PER_MSEC, active_expiry, NULL);
}

static void take_snapshot(struct world *w, void *arg)
{
	(void)arg;
	store_free(w->snapshot);
	w->snapshot = store_clone(w->store);
	w->snapshot_at = w->now;
	if (w->now < w->faults_end)
		at(w, w->now + (usec_t)below(w, USEC_PER_SEC), take_snapshot, NULL);
}

static void fail_over(struct world *w)
{
	trace(w, "failover: back to %.6f", (double)w->snapshot_at / USEC_PER_SEC);
	for (size_t i = 0; i < w->ninstances; i++) {
		instance_cut(w->instances[i]);
		instance_deafen(w->instances[i]);
	}
	store_free(w->store);
	w->store = store_clone(w->snapshot);
	store_set_time(w->store, redis_us(w));
	ledger_failed_over(w->ledger, EPOCH + w->snapshot_at);
}

static void memory_again(struct world *w, void *arg)
{
	(void)arg;
	trace(w, "memory again");
	store_set_oom(w->store, false);
}

static void strike(struct world *w, void *arg)
{
	struct instance *i = w->instances[below(w, w->ninstances)];
	const struct faults *f = &w->faults;

	(void)arg;
	if (chance(w, f->cut))
		instance_cut(i);
	if (chance(w, f->deaf))
		instance_deafen(i);
	if (chance(w, f->crash))
		instance_crash(i);
	if (chance(w, f->leave))
		instance_stop(i);
	if (chance(w, f->freeze))
		instance_freeze(i, (usec_t)below(w, 6 * USEC_PER_SEC));
	if (chance(w, f->failover))
		fail_over(w);
	if (chance(w, f->oom)) {
		trace(w, "out of memory");
		store_set_oom(w->store, true);
		at(w, w->now + (usec_t)below(w, 2 * USEC_PER_SEC), memory_again, NULL);
	}
	if (chance(w, f->kafka_down))
		kafka_fake_down(w->kafka, (usec_t)below(w, 5 * USEC_PER_SEC));
	if (chance(w, f->no_topic))
		kafka_fake_miss(w->kafka, (usec_t)below(w, 5 * USEC_PER_SEC));
	if (w->now < w->faults_end)
		at(w, w->now + FAULT_EVERY, strike, NULL);
}

static void application(struct world *w, void *arg)
{
	(void)arg;
	ledger_act(w->ledger);
	if (w->now < APP_END)
		at(w, w->now + (usec_t)below(w, 60 * USEC_PER_MSEC), application, NULL);
}

/* Each run has some kinds of faults, and few have all. */
static void choose_faults(struct world *w)
{
	unsigned *f = (unsigned *)&w->faults;
	static const struct faults most = {
		.cut = 60, .deaf = 60, .unheard = 500, .crash = 30, .freeze = 20, .leave = 20,
		.failover = 15, .oom = 20, .refuse = 50, .kafka_down = 20, .retry = 50,
		.maybe = 50, .no_topic = 20, .poison = 30,
	};

	for (size_t i = 0; i < sizeof most / sizeof(unsigned); i++)
		if (below(w, 3) == 0)
			f[i] = (unsigned)below(w, 1 + ((const unsigned *)&most)[i]);
}

struct world *world_new(uint64_t seed, bool tracing)
{
	struct world *w = mem_alloc(1, sizeof *w);

	w->seed = seed;
	w->trace = tracing;
	w->faults_end = FAULTS_END;
	w->queue = mem_alloc(1, sizeof *w->queue);
	w->store = store_new(on_publish, w);
	store_set_time(w->store, redis_us(w));
	w->host = host_new(below(w, 4) ? 0x070000 : 0);
	w->kafka = kafka_fake_new(w);
	w->ledger = ledger_new(w);
	choose_faults(w);
	w->ninstances = 1 + below(w, INSTANCES);
	for (unsigned i = 0; i < w->ninstances; i++)
		w->instances[i] = instance_new(w, i);
	at(w, 1000, application, NULL);
	at(w, 0, take_snapshot, NULL);
	at(w, FAULT_EVERY, strike, NULL);
	at(w, FAULT_EVERY, active_expiry, NULL);
	return w;
}

void world_free(struct world *w)
{
	for (size_t i = 0; i < w->ninstances; i++)
		instance_free(w->instances[i]);
	store_free(w->store);
	store_free(w->snapshot);
	host_free(w->host);
	kafka_fake_free(w->kafka);
	ledger_free(w->ledger);
	for (size_t i = 0; i < w->queue->n; i++)
		if (w->queue->heap[i].drop)
			w->queue->heap[i].drop(w->queue->heap[i].arg);
	free(w->queue->heap);
	free(w->queue);
	free(w);
}

static bool instances_fine(struct world *w, bool at_rest)
{
	bool fine = true;

	for (size_t i = 0; i < w->ninstances; i++)
		fine = instance_check(w->instances[i], at_rest) && fine;
	return fine;
}

static void the_end(struct world *w, void *arg)
{
	(void)arg;
	trace(w, "the end");
}

bool world_run(struct world *w)
{
	struct wire wire;
	bool fine = true;

	at(w, REST, the_end, NULL);
	while (fine && w->now < REST && next(w->queue, &wire)) {
		w->now = wire.when;
		wire.f(w, wire.arg);
		fine = instances_fine(w, false);
	}
	store_set_time(w->store, redis_us(w));
	return instances_fine(w, true) && fine && ledger_check(w->ledger);
}
