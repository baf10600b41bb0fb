/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * world - several instances of lapsed, one Redis and one Kafka in virtual
 * time, with faults drawn from a seed.
 *
 *	app --> store (the real scripts) <--> wires <--> instances --> topics
 *	  \                                                            /
 *	   +--------------------> ledger (the judge) <----------------+
 *
 * What runs here is real: the scripts, the core, and the code that turns asks
 * into calls.  What is played is the servers' storage, the wires and time.
 * Everything that happens is an event with a time; nothing else makes time go
 * on, so a seed gives the same run everywhere.
 */
#ifndef LAPSED_TESTS_SIM_WORLD_H
#define LAPSED_TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bridge.h"
#include "host.h"
#include "store.h"

#define EPOCH		INT64_C(1800000000000000)	/* Redis' us at time 0 */
#define INSTANCES	4
#define TOPICS		4

struct world;
struct instance;

typedef void happening(struct world *w, void *arg);

/* What may go wrong, each as a chance in a thousand where it may. */
struct faults {
	unsigned cut;		/* a connection breaks */
	unsigned deaf;		/* a subscription breaks */
	unsigned unheard;	/* a published message is lost */
	unsigned crash;		/* kill -9, and a new start */
	unsigned freeze;	/* stopped for longer than a lease, perhaps */
	unsigned leave;		/* a clean stop, and a new start */
	unsigned failover;	/* Redis comes back as it was up to a second ago */
	unsigned oom;		/* Redis refuses to grow for a while */
	unsigned refuse;	/* a script is refused: loading, busy */
	unsigned kafka_down;	/* nothing is acknowledged for a while */
	unsigned retry;		/* not persisted */
	unsigned maybe;		/* possibly persisted */
	unsigned no_topic;	/* a topic is missing for a while */
	unsigned poison;	/* an event that Kafka refuses for good */
};

struct world {
	uint64_t seed;
	bool trace;
	usec_t now, faults_end;
	struct faults faults;
	struct store *store, *snapshot;
	usec_t snapshot_at;
	struct host *host;
	struct instance *instances[INSTANCES];
	size_t ninstances;
	struct wire_queue *queue;
	struct kafka_fake *kafka;
	struct ledger *ledger;
	struct instance *acting;	/* whose clock clock_now() tells */
	uint64_t order;
};

/* world.c */
struct world *world_new(uint64_t seed, bool trace);
void world_free(struct world *w);
/* Runs to the end of time; false when an invariant is broken. */
bool world_run(struct world *w);

void at(struct world *w, usec_t when, happening *f, void *arg);
/* The same with what frees `arg` if the world ends before. */
void at_owned(struct world *w, usec_t when, happening *f, void *arg, void (*drop)(void *));
int64_t redis_us(const struct world *w);
void trace(const struct world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Chance. */
uint64_t rnd(struct world *w);
uint64_t below(struct world *w, uint64_t n);
bool chance(struct world *w, unsigned in_thousand);	/* never after faults_end */

/* instance.c */
struct instance *instance_new(struct world *w, unsigned number);
void instance_free(struct instance *i);
void instance_crash(struct instance *i);	/* and comes back */
void instance_freeze(struct instance *i, usec_t how_long);
void instance_stop(struct instance *i);		/* cleanly, and comes back */
void instance_cut(struct instance *i);		/* its worker connection */
void instance_deafen(struct instance *i);	/* its subscription */
void instance_publish(struct instance *i, struct bytes channel, struct bytes message);
void instance_report(struct instance *i, unsigned life, struct entry *e, enum verdict v);
unsigned instance_life(const struct instance *i);	/* changes with each start */
void instance_sum(const struct instance *i, struct counters *sum);
/* False, with a complaint, when it holds more than it may or is not at rest. */
bool instance_check(struct instance *i, bool at_rest);
struct instance *instance_of(void *bridge);

/* kafka_fake.c */
struct kafka_fake *kafka_fake_new(struct world *w);
void kafka_fake_free(struct kafka_fake *k);
void kafka_fake_produce(struct kafka_fake *k, struct instance *i, struct entry *e,
			struct bytes topic, struct bytes id, bool poison);
void kafka_fake_down(struct kafka_fake *k, usec_t how_long);
void kafka_fake_miss(struct kafka_fake *k, usec_t how_long);	/* a topic */

/* ledger.c */
struct ledger *ledger_new(struct world *w);
void ledger_free(struct ledger *l);
void ledger_act(struct ledger *l);		/* the application does something */
void ledger_arrived(struct ledger *l, struct bytes id);
void ledger_failed_over(struct ledger *l, int64_t since_us);
bool ledger_check(struct ledger *l);
size_t ledger_duplicates(const struct ledger *l);

#endif
