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
 *
 * Chance comes in five streams, so that a run with a kind of fault less has
 * the same application and about the same story.
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
#define PREFIX		"lapse:{0}"
#define INSTANCES	4
#define HOSTS		4
#define TOPICS		4
#define MAX_EVENTS	60	/* in flight in one instance */
#define MAX_BYTES	(128 << 10)
#define BIG		(60 << 10)	/* a payload */
#define CLAIM_LIMIT	10
#define LEASE		(3 * USEC_PER_SEC)

/*
 * What may go wrong: name, the highest chance in a thousand where it may
 * happen, meaning.
 */
#define FAULTS(X) \
	X(CUT, "cut", 60, "a connection breaks") \
	X(DEAF, "deaf", 60, "a subscription breaks") \
	X(UNHEARD, "unheard", 500, "a published message is lost") \
	X(CRASH, "crash", 30, "kill -9, and a new start") \
	X(FREEZE, "freeze", 25, "stopped, for longer than a lease perhaps") \
	X(LEAVE, "leave", 20, "a clean stop, and a new start") \
	X(FAILOVER, "failover", 15, "Redis is again as it was a moment ago") \
	X(OOM, "oom", 20, "Redis refuses to grow for a while") \
	X(REFUSE, "refuse", 50, "a script is refused: loading, busy, a replica") \
	X(FLUSH, "flush", 20, "Redis forgets its scripts") \
	X(SLOW, "slow", 10, "an answer takes long") \
	X(CLOCK, "clock", 15, "Redis' clock steps back or forward") \
	X(DOWN, "down", 20, "Kafka acknowledges nothing for a while") \
	X(RETRY, "retry", 50, "not persisted") \
	X(MAYBE, "maybe", 50, "possibly persisted") \
	X(FULL, "full", 50, "the producer has no room") \
	X(TOPIC, "topic", 20, "a topic is missing for a while") \
	X(POISON, "poison", 30, "an event that Kafka refuses for good") \
	X(CORRUPT, "corrupt", 15, "a record is overwritten with something else") \
	X(BIG, "big", 200, "a payload is large") \
	X(RELOAD, "reload", 20, "new routes and limits") \
	X(DOUBLED, "doubled", 200, "a keyspace event comes twice") \
	X(REORDER, "reorder", 200, "a keyspace event comes behind later ones")

enum fault {
#define X(name, text, most, meaning)	FAULT_##name,
	FAULTS(X)
#undef X
	FAULT_KINDS
};

enum stream { WIRE, FAULT, APP, JOB, FOREIGN, STREAMS };

struct world;
struct instance;

typedef void happening(struct world *w, void *arg);

struct world_conf {
	uint64_t seed;
	bool trace;		/* tell what happens */
	bool quiet;		/* don't even tell what is broken */
	unsigned without;	/* kinds of faults that do not happen, as bits */
	unsigned app_ms;	/* how long the application acts; 0: as usual */
	unsigned instances;	/* 0: by chance */
	struct host **hosts;	/* HOSTS of them, made as needed, for many runs; or NULL */
};

struct world {
	struct world_conf conf;
	uint64_t streams[STREAMS];
	usec_t now, app_end, faults_end;
	bool calm;			/* no faults at all: it has to be on time */
	bool broken;
	bool dead_topic;		/* dead letters are told to a topic */
	unsigned chances[FAULT_KINDS];	/* in a thousand */
	unsigned struck;		/* kinds that did happen, as bits */
	unsigned database;		/* of the keys below the prefix */
	int64_t clock_step, latest;	/* of Redis' clock; its highest us so far */
	struct store *store, *snapshot;
	usec_t snapshot_at;
	struct host *host;
	struct instance *instances[INSTANCES];
	size_t ninstances;
	struct wire_queue *queue;
	struct kafka_fake *kafka;
	struct ledger *ledger;
	struct app *app;
	struct jobs *jobs;
	struct joblog *joblog;
	struct foreign *foreign;
	struct lives *lives;
	struct holders *holders, *snapshot_holders;
	struct script_cache *scripts;
	struct instance *acting;	/* whose clock clock_now() tells */
	uint64_t order;
};

/* world.c */
struct world *world_new(const struct world_conf *conf);
void world_free(struct world *w);
/* Runs to the end of time; false when an invariant is broken. */
bool world_run(struct world *w);

void at(struct world *w, usec_t when, happening *f, void *arg);
/* The same with what frees `arg` if the world ends before. */
void at_owned(struct world *w, usec_t when, happening *f, void *arg, void (*drop)(void *));
int64_t redis_us(struct world *w);
int64_t redis_ms(struct world *w);
/* One command on the store, in `db`.  The caller owes reply_clear(). */
void command(struct world *w, unsigned db, size_t argc, const struct bytes *argv,
	     struct reply *r);
void trace(const struct world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* An invariant is broken. */
void complain(struct world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

uint64_t below(struct world *w, enum stream s, uint64_t n);
/* Whether it happens here; never after the end of faults. */
bool strikes(struct world *w, enum fault kind);
bool struck(const struct world *w, enum fault kind);	/* in this run so far */

/* faults.c */
const char *fault_name(enum fault kind);
bool deafens(enum fault kind);	/* an expiry may be heard by nobody */
void faults_choose(struct world *w);
void faults_start(struct world *w);

/* wire.c: what a struct redis of src/io is to the daemon. */
struct redis *wire_new(struct instance *i);
void wire_free(struct redis *r);	/* ends calls as wire_down() does */
void wire_up(struct redis *r);
void wire_down(struct redis *r);	/* pending calls end without an answer */
bool wire_is_up(const struct redis *r);
bool wire_dropped(const struct redis *r);	/* the daemon gave it up */
struct script_cache *script_cache_new(void);
void script_cache_flush(struct script_cache *c);
void script_cache_free(struct script_cache *c);
uint64_t wire_calls(const struct redis *r);	/* how many scripts were called */

/* instance.c */
struct instance *instance_new(struct world *w, unsigned number);
void instance_free(struct instance *i);
void instance_crash(struct instance *i);	/* and comes back */
void instance_freeze(struct instance *i, usec_t how_long);
void instance_stop(struct instance *i);		/* cleanly, and comes back */
void instance_cut(struct instance *i);		/* its worker connection */
void instance_deafen(struct instance *i);	/* its subscription */
void instance_reload(struct instance *i);
void instance_publish(struct instance *i, struct bytes channel, struct bytes message);
/* What Redis tells of a key of which the application says nothing. */
void instance_tell(struct instance *i, struct bytes channel, struct bytes key);
void instance_report(struct instance *i, unsigned life, struct entry *e, enum verdict v);
unsigned instance_life(const struct instance *i);	/* changes with each start */
unsigned instance_number(const struct instance *i);
struct world *instance_world(const struct instance *i);
usec_t instance_frozen_until(const struct instance *i);
/* Its clock is the one that counts from here on; after `turn` effects follow. */
void instance_enter(struct instance *i);
void instance_turn(struct instance *i);
void instance_sum(const struct instance *i, struct counters *sum);
void instance_check(struct instance *i);	/* it holds no more than it may */
void instance_mark(struct instance *i);		/* from here on it should idle */
void instance_check_rest(struct instance *i);	/* it did */

/* kafka_fake.c */
struct produced {
	struct bytes topic, id;		/* copied */
	struct bytes reason;		/* copied; of a dead letter, else bytes_none */
	bool poison;			/* it will be refused */
};

struct kafka_fake *kafka_fake_new(struct world *w);
void kafka_fake_free(struct kafka_fake *k);
void kafka_fake_produce(struct kafka_fake *k, struct instance *i, struct entry *e,
			const struct produced *p);
void kafka_fake_down(struct kafka_fake *k, usec_t how_long);
void kafka_fake_miss(struct kafka_fake *k, usec_t how_long);	/* a topic */

/*
 * holders.c: no script of a daemon succeeds but for who holds the slot.  Its
 * arguments are those behind the prefix.  True when it adopted a batch.
 */
struct holders *holders_new(void);
struct holders *holders_clone(const struct holders *h);
void holders_free(struct holders *h);
bool holders_has(const struct holders *h, const char *nonce);
bool holders_saw(struct world *w, const char *script, const struct bytes *argv, size_t argc,
		 const struct reply *r);

#endif
