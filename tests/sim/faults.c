/* SPDX-License-Identifier: BSD-2-Clause */

/* What goes wrong with servers and instances, ten times a second perhaps. */
#include <stdlib.h>

#include "ledger.h"
#include "lives.h"
#include "world.h"

#define EVERY	(100 * USEC_PER_MSEC)

const char *fault_name(enum fault kind)
{
	static const char *const names[] = {
#define X(name, text, most, meaning)	text,
		FAULTS(X)
#undef X
	};

	return names[kind];
}

/*
 * Whether notifications may be missed by all then.  While Kafka is down they
 * wait, and those of one key that are asked about at once count as one.
 */
bool deafens(enum fault kind)
{
	return kind == FAULT_UNHEARD || kind == FAULT_DEAF || kind == FAULT_CRASH ||
	       kind == FAULT_LEAVE || kind == FAULT_FREEZE || kind == FAULT_FAILOVER ||
	       kind == FAULT_CLOCK || kind == FAULT_DOWN;
}

/* Each run has some kinds of faults, few have all, and some have none. */
void faults_choose(struct world *w)
{
	static const unsigned most[] = {
#define X(name, text, most, meaning)	most,
		FAULTS(X)
#undef X
	};
	uint64_t one_in = 2 + below(w, FAULT, 3);

	bool all_heard = below(w, FAULT, 5) == 0;

	w->calm = below(w, FAULT, 8) == 0;
	for (size_t i = 0; i < FAULT_KINDS; i++) {
		bool on = below(w, FAULT, one_in) == 0 && !w->calm;
		unsigned much = 1 + (unsigned)below(w, FAULT, most[i]);

		if (on && !(w->conf.without & 1u << i) && !(all_heard && deafens(i)))
			w->chances[i] = much;
	}
}

static void take_snapshot(struct world *w, void *arg)
{
	(void)arg;
	store_free(w->snapshot);
	w->snapshot = store_clone(w->store);
	holders_free(w->snapshot_holders);
	w->snapshot_holders = holders_clone(w->holders);
	w->snapshot_at = w->now;
	if (w->now < w->faults_end)
		at(w, w->now + (usec_t)below(w, FAULT, USEC_PER_SEC), take_snapshot, NULL);
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
	holders_free(w->holders);
	w->holders = holders_clone(w->snapshot_holders);
	script_cache_flush(w->scripts);
	ledger_failed_over(w->ledger, w->snapshot_at);
	lives_blur(w->lives);
}

static void memory_again(struct world *w, void *arg)
{
	(void)arg;
	trace(w, "memory again");
	store_set_oom(w->store, false);
}

static void step_clock(struct world *w)
{
	int64_t by = (int64_t)below(w, FAULT, 8 * USEC_PER_SEC) - 4 * USEC_PER_SEC;

	trace(w, "Redis' clock steps by %lld ms", (long long)by / 1000);
	w->clock_step += by;
	lives_blur(w->lives);
}

static void strike_server(struct world *w)
{
	usec_t how_long = (usec_t)below(w, FAULT, 5 * USEC_PER_SEC);

	if (strikes(w, FAULT_FAILOVER))
		fail_over(w);
	if (strikes(w, FAULT_OOM)) {
		trace(w, "out of memory");
		store_set_oom(w->store, true);
		at(w, w->now + how_long / 3, memory_again, NULL);
	}
	if (strikes(w, FAULT_FLUSH)) {
		trace(w, "script flush");
		script_cache_flush(w->scripts);
	}
	if (strikes(w, FAULT_CLOCK))
		step_clock(w);
	if (strikes(w, FAULT_DOWN))
		kafka_fake_down(w->kafka, how_long);
	if (strikes(w, FAULT_TOPIC))
		kafka_fake_miss(w->kafka, how_long);
}

static void strike_instance(struct world *w, struct instance *i)
{
	usec_t how_long = (usec_t)below(w, FAULT, 2 * LEASE);

	if (strikes(w, FAULT_CUT))
		instance_cut(i);
	if (strikes(w, FAULT_DEAF))
		instance_deafen(i);
	if (strikes(w, FAULT_CRASH))
		instance_crash(i);
	if (strikes(w, FAULT_LEAVE))
		instance_stop(i);
	if (strikes(w, FAULT_FREEZE))
		instance_freeze(i, how_long);
	if (strikes(w, FAULT_RELOAD))
		instance_reload(i);
}

static void strike(struct world *w, void *arg)
{
	(void)arg;
	strike_server(w);
	strike_instance(w, w->instances[below(w, FAULT, INSTANCES) % w->ninstances]);
	if (w->now < w->faults_end)
		at(w, w->now + EVERY, strike, NULL);
}

void faults_start(struct world *w)
{
	at(w, 0, take_snapshot, NULL);
	at(w, EVERY, strike, NULL);
}
