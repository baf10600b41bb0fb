/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * lives - the judge of keys that lapsed knows only by what Redis tells of them:
 * every life that the application gave a key, how it ended, who was told, and
 * who looked.
 *
 *	SET, EXPIRE, RENAME ...                 claim
 *	----------------------> ALIVE --> over ------> reported, once
 *
 *	a life that expired is reported once: if a script looked at it while it
 *	lived, or (without faults) if its end was heard
 *	one that was deleted, replaced, persisted, renamed is not, unless
 *	nobody who looked had heard of that; then as `inferred`
 *	`found` expired by the very look, `heard` was heard by who claims it
 *	its value is the last that was known when a script looked
 *
 * What a life may be excused from is told from what was lost in this run:
 * messages that reached nobody, or not the one whose script looked next.
 * After a failover or a step of the clock nothing is asked of keys any more
 * but that what was claimed arrives (ledger.h).
 */
#ifndef LAPSED_TESTS_SIM_LIVES_H
#define LAPSED_TESTS_SIM_LIVES_H

#include "ledger.h"

#define KEYS		7	/* of each kind, */
#define EXCLUDED	6	/* and the number of the one that the route excludes */
#define RESCAN		(3 * USEC_PER_SEC)

/* Keys of one route; their names are A0, A1 ... */
struct kind {
	struct class class;
	bool events, scan, copy, refresh, drop, emit_evicted;
};
#define KINDS	5
extern const struct kind kinds[KINDS];

/* A value, which is the time when it was first written. */
struct write {
	usec_t at, value;
};
#define WRITES	32

struct key {
	const struct kind *kind;
	struct bytes name;
	char room[8];
	bool excluded;			/* by the route */
	bool there;
	struct write writes[WRITES];	/* the latest */
	size_t nwrites;
	size_t write_heard[INSTANCES];	/* the latest that each was told of; 0: none */
	usec_t old_news;		/* when an expiry was last told of too late */
	struct key_life *lives;		/* the newest first; may be alive */
};

struct lives;

struct lives *lives_new(struct world *w);
void lives_free(struct lives *l);
/* NULL when it is none of these. */
struct key *lives_key(struct lives *l, struct bytes name);
struct key *lives_key_at(struct lives *l, size_t kind, size_t i);
bool lives_alive(const struct key *k);

/* What the application did, and Redis said yes to. */
void lives_set(struct lives *l, struct key *k, int64_t due);	/* 0: no TTL */
void lives_written(struct lives *l, struct key *k);
void lives_expire(struct lives *l, struct key *k, int64_t due);
void lives_persist(struct lives *l, struct key *k);
void lives_delete(struct lives *l, struct key *k);	/* in any way */
void lives_rename(struct lives *l, struct key *from, struct key *to);
void lives_evicted(struct lives *l, struct key *k);

/* What Redis published, and who got it; `late`: behind what came after it. */
void lives_expired(struct lives *l, struct bytes name);
void lives_heard(struct lives *l, const struct instance *i, struct bytes event,
		 struct bytes name, usec_t published, bool late);
void lives_forget(struct lives *l, const struct instance *i);	/* it is over */

/* A script that was run. */
struct look {
	const struct instance *caller;	/* NULL: it is gone by now */
	uint64_t sent;			/* w->order of then */
	const char *script;
	const struct bytes *argv;	/* behind the prefix */
	size_t argc;
};
void lives_looked(struct lives *l, const struct look *look, const struct reply *r);
/* From here on what is known of keys is not what there is. */
void lives_blur(struct lives *l);
void lives_check(struct lives *l);
/* Adds how many were reported, of these as heard, as found. */
void lives_count(const struct lives *l, uint64_t counts[3]);

/* foreign.c: the application that knows nothing of lapsed. */
struct foreign *foreign_new(struct world *w);
void foreign_free(struct foreign *f);
void foreign_act(struct foreign *f);
bool foreign_routes(struct routes *rs);

#endif
