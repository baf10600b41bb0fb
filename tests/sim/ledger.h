/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ledger - the judge: it knows every life that the application has begun, how
 * each ended by the application's doing, and what arrived in Kafka.
 *
 *	a pending life that came due has arrived, or is dead if it is poison
 *	or its record was corrupted
 *	none arrives before it is due; without faults, none late
 *	none arrives that was cancelled, replaced or persisted in time
 *	every arrival carries the id that the answer had told
 *	an answer "not found" means that it had arrived
 *	a dead letter was told to the topic for them, if there is one, with its
 *	reason, or counted as untold; nothing else is told there
 *	no second arrival of a life without a reason of its own
 *	of a key that nobody announced, no more arrives than has expired, and
 *	where nothing could be missed, no less
 *	after the drain all keys of ours are empty, and a walk finds nothing
 *
 * What a failover may have undone is exempt, and nothing else.
 */
#ifndef LAPSED_TESTS_SIM_LEDGER_H
#define LAPSED_TESTS_SIM_LEDGER_H

#include "core/record.h"
#include "world.h"

#define NAMES	24	/* of each class */

/* What the application works with. */
struct class {
	char letter;		/* names are e0, e1 ... */
	bool watched;		/* a key, and not an id */
	unsigned db;		/* of the key */
	bool may_drop;		/* its route drops what is inferred */
	bool unannounced;	/* a plain SET; its route has `register = none` */
};
#define CLASSES	5
extern const struct class classes[CLASSES];

enum fate { PENDING, ENDED };	/* ENDED: must not arrive from here on */

struct life {
	char id[96];
	const struct class *class;
	int64_t due;			/* ms; 0: unannounced */
	usec_t touched, came_at;
	enum fate fate;
	bool poison, corrupt, exempt, replayed;
	bool undone;			/* a failover may have undone its claim */
	bool hurried;			/* its key got an earlier end: Redis tells when it looks */
	unsigned came, reasons;
	unsigned told;			/* to a topic for dead letters */
};

struct ledger *ledger_new(struct world *w);
void ledger_free(struct ledger *l);

/* The application's doings. */
void ledger_begin(struct ledger *l, size_t name, const char *status, int64_t due,
		  const char *id, bool poison);
void ledger_replayed(struct ledger *l, struct life *dead, int64_t due, const char *id);
struct life *ledger_life(struct ledger *l, size_t name);	/* the current one, or NULL */
/* Any that is dead, or NULL. */
struct life *ledger_dead_one(struct ledger *l, size_t from);
void ledger_end(struct ledger *l, struct life *life, const char *status);
void ledger_touch(struct ledger *l, struct life *life);

/*
 * The application knows nothing of it, and it was claimed: it will arrive, or
 * it was dropped and won't.  False when it was known already.
 */
bool ledger_expect(struct ledger *l, const struct member *m, uint64_t birth, int64_t due,
		   const struct class *class, bool dropped);

/* What happens. */
void ledger_arrived(struct ledger *l, struct bytes id);
/* It may arrive once more; `counted` by the daemon. */
void ledger_reason(struct ledger *l, struct bytes id, bool counted);
/* A dead letter arrived in its topic. */
void ledger_told(struct ledger *l, struct bytes id, struct bytes reason);
void ledger_expired(struct ledger *l, struct bytes key);
/* A claim told of it long after it was sent, so it may be claimed once more. */
void ledger_heard_late(struct ledger *l, struct bytes member);
void ledger_failed_over(struct ledger *l, usec_t since);

/* The verdict; ledger_check() complains. */
void ledger_check(struct ledger *l);
size_t ledger_duplicates(const struct ledger *l);
int64_t ledger_latest_ms(const struct ledger *l);	/* the worst lateness of a calm run */

/* app.c */
struct app *app_new(struct world *w);
void app_free(struct app *a);
void app_act(struct app *a);

#endif
