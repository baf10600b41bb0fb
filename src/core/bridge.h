/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bridge - from "something is due" to "Redis has forgotten it".
 *
 *	 expired event --+
 *	 wake message  --+--> claim --> batch --> producer --> reports --> settle
 *	 due timer     --+      ^         |                                  |
 *	 sweep tick    --+      +-- next due time            credits <-------+
 *
 * Pure: it is told what happened and the time, and says what is to be done.
 * Everything it wants is pulled from it, in this order, once per turn of the
 * loop: bridge_ask() until NULL (calls to Redis), bridge_next() until NULL
 * (entries for the producer), bridge_note() until false (what to log), and
 * bridge_deadline() for the one timer.
 *
 * A batch keeps its number until it is settled and every call may be made
 * again, so an answer that is lost costs a round trip and no more.
 */
#ifndef LAPSED_CORE_BRIDGE_H
#define LAPSED_CORE_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/batch.h"
#include "core/counters.h"
#include "core/heard.h"
#include "core/hist.h"
#include "core/lease.h"
#include "core/register.h"
#include "core/route.h"
#include "core/scan.h"
#include "core/topics.h"
#include "core/walk.h"
#include "core/when.h"

struct bridge_conf {
	size_t max_events;	/* between claim and settle */
	size_t max_bytes;	/* the same, of members and records */
	size_t claim_limit;	/* entries of one claim */
	bool listens;		/* acts on what is announced and what comes due */
	bool sweeps;		/* finds what was left over, and adopts */
	usec_t lease;
	usec_t grace;		/* how long each rank waits for the one before */
	usec_t sweep_interval;
	usec_t park_min, park_max;
	struct bytes dead_topic;	/* of routes without one; empty: none */
	size_t max_dead;	/* dead letters before we warn; 0: a default */
	unsigned scan_rate;	/* keys a second */
	usec_t rescan;		/* 0: only when something may have been missed */
	const unsigned *dbs;	/* to be scanned; borrowed like the routes */
	size_t n_dbs;		/* 0: all there are */
	bool drop_dead;		/* beyond that the oldest are dropped */
};

/* Calls to Redis ------------------------------------------------------ */

enum ask_kind {
	ASK_JOIN, ASK_RENEW, ASK_LEAVE,		/* the lease */
	ASK_CLAIM, ASK_ADOPT, ASK_FETCH,	/* bring a batch */
	ASK_SETTLE, ASK_FORGET,			/* end a batch */
	ASK_WALK,				/* look for what disagrees */
	ASK_SCAN,				/* find keys that nothing was heard of */
	ASK_REGISTER,				/* look at keys that may have changed */
};

struct ask {
	enum ask_kind kind;
	unsigned life;		/* which stay in a slot it is part of */
	bool deaf;		/* of a renewal: our subscription hears no expiry */
	bool own;		/* of a renewal: tell our own open batches too */
	struct batch *batch;	/* of those that bring or end one */
	const struct walk_step *walk;	/* of a walk; until it is answered */
	const struct scan_step *scan;	/* of a scan; until it is answered */
	const struct register_ask *keys;	/* of a register; until it is answered */
	size_t keep;		/* of a settle: so many dead letters; 0: all */
	size_t limit, bytes;	/* of a claim */
	msec_t hush, window;	/* of a claim: see claim.lua */
	const struct heard_key *heard;	/* of a claim; until it is answered */
	size_t nheard;
	bool more;		/* were heard than go with this claim */
};

/* What a claim, adoption or fetch brought; borrowed from the caller. */
struct batch_answer {
	int64_t redis;		/* Redis' TIME, us */
	msec_t next;		/* due time of the next entry, -1: none */
	uint64_t absorbed;
	const struct bytes *followed;	/* whose key turned out to have a later end */
	size_t n_followed;
	unsigned adopted;	/* how often the batch was taken over */
	struct bytes topic;	/* it is parked for; empty: it is not */
	msec_t retry;		/* when that topic is tried again */
	const struct bytes *members, *envelopes;
	size_t n;
};

struct batch_name {
	unsigned slot;
	uint64_t seq;
};

enum refusal {
	REFUSAL_LOST,		/* no answer: it may have happened */
	REFUSAL_FENCED,		/* the epoch is gone */
	REFUSAL_LATER,		/* Redis can't or won't just now; nothing happened */
};

/* What to log --------------------------------------------------------- */

enum note_kind {
	NOTE_JOINED,		/* a: slot, b: epoch */
	NOTE_FENCED,		/* a: batches dropped, b: entries in them */
	NOTE_LEFT,		/* a: slot, b: entries left open */
	NOTE_ADOPTED,		/* a: entries, b: times adopted; text: <slot>:<seq> */
	NOTE_GONE,		/* a: entries of the batch, b: lives forgotten */
	NOTE_BURIED,		/* text: ce_id or member; why: reason */
	NOTE_UNTOLD,		/* a: dead letters; text: topic that did not take them */
	NOTE_DEAD_MANY,		/* a: dead letters, b: max_dead */
	NOTE_DEAD_DROPPED,	/* a: how many, b: are left; text: ce_id of the first */
	NOTE_PARKED,		/* a: retry in ms, b: 1 if it was for a dead letter;
				   text: topic; why: error */
	NOTE_UNPARKED,		/* text: topic */
	NOTE_SUSPECT,		/* text: topic; why: error */
	NOTE_FULL,		/* a: events, b: bytes in flight */
	NOTE_FREE,
	NOTE_CLOCK,		/* a: Redis' clock went back by so many ms */
	NOTE_SWEPT,		/* a: entries found by the first claim after a gap */
	NOTE_SCAN_BEGIN,	/* a: keys a second */
	NOTE_SCAN_GOES_ON,	/* a: keys looked at, b: found so far; ms: since it began */
	NOTE_SCAN_DONE,		/* a: keys looked at, b: found; ms: how long it took */
	NOTE_EVICTED,		/* a: watched keys that were evicted, and dropped */
	NOTE_REPAIRED,		/* a: how many; text: name of the first; why: what it was */
};

struct note {
	enum note_kind kind;
	int64_t a, b;
	int64_t ms;
	char text[256];
	char why[160];
};

/* The bridge ---------------------------------------------------------- */

struct bridge;

/*
 * `routes` and `conf->dead_topic` are borrowed until the next
 * bridge_configure(); `seed` is random, unique to the process, without a colon.
 */
struct bridge *bridge_new(const struct bridge_conf *conf, const struct routes *routes,
			  const char *seed, usec_t now);
/* None of its entries may be with the producer any more. */
void bridge_free(struct bridge *b);
/* At a reload; everything but the lease may change. */
void bridge_configure(struct bridge *b, const struct bridge_conf *conf,
		      const struct routes *routes);

/* What happened. */
void bridge_link(struct bridge *b, bool up, usec_t now);	/* to Redis */
void bridge_subscribed(struct bridge *b, usec_t now);	/* anew: sweep at once */
/*
 * What is heard from now on was published after `since`; another instance may have claimed it since then.
 */
void bridge_heard_since(struct bridge *b, usec_t since);
void bridge_heard(struct bridge *b, struct bytes member, enum heard_how how, usec_t now);
/* Something was heard of a key that is registered by what is heard. */
void bridge_hint(struct bridge *b, struct bytes member, enum watch_sign sign, usec_t now);
void bridge_wake(struct bridge *b, msec_t due, usec_t now);
void bridge_deaf(struct bridge *b, bool deaf);	/* told to the others */
void bridge_peer_left(struct bridge *b, usec_t now);

/*
 * The next call to make, or NULL; valid until the next bridge_ask().  Each
 * obliges to the answer that fits its kind, or to bridge_refused(); `life` is
 * that of the ask, since an answer may come when the slot is lost already.
 */
const struct ask *bridge_ask(struct bridge *b, usec_t now);

void bridge_joined(struct bridge *b, unsigned life, int64_t redis, unsigned slot, uint64_t epoch,
		   uint64_t seq, const struct batch_name *open, size_t n, usec_t now);
/*
 * `left` is what remains of each live holder's lease, us.  Among the orphans may
 * be batches of our own slot; those that we know are passed over.
 */
void bridge_renewed(struct bridge *b, unsigned life, int64_t redis, const unsigned *slots,
		    const usec_t *left, size_t n, const struct batch_name *orphans,
		    size_t n_orphans, usec_t now);
void bridge_left(struct bridge *b, unsigned life);
void bridge_brought(struct bridge *b, struct batch *batch,
		    const struct batch_answer *answer, usec_t now);
void bridge_settled(struct bridge *b, struct batch *batch, bool gone, usec_t now);
/*
 * Beside it, when the batch had burials: so many dead letters there are now,
 * and so many of the oldest, from `first` on, were dropped.
 */
void bridge_dead(struct bridge *b, size_t dead, size_t dropped, struct bytes first);
void bridge_forgot(struct bridge *b, struct batch *batch, uint64_t lives, usec_t now);
void bridge_walked(struct bridge *b, unsigned life, const struct walk_answer *answer,
		   usec_t now);
void bridge_registered(struct bridge *b, unsigned life, const struct register_answer *answer,
		       usec_t now);
void bridge_scanned(struct bridge *b, unsigned life, const struct scan_answer *answer,
		    usec_t now);
void bridge_refused(struct bridge *b, enum ask_kind kind, unsigned life,
		    struct batch *batch, enum refusal why, usec_t now);

/*
 * The next entry for the producer, or NULL.  Each obliges to a verdict, or to
 * bridge_back() when the producer has no room; the entry's bytes stay until
 * then.  bridge_bury() is for an entry of which no message can be made.
 */
struct entry *bridge_next(struct bridge *b, usec_t now);
void bridge_back(struct bridge *b, struct entry *e);
void bridge_verdict(struct bridge *b, struct entry *e, enum verdict v,
		    const char *reason, usec_t now);

bool bridge_note(struct bridge *b, struct note *n);

/* When to come back if nothing happens; USEC_NEVER: not at all. */
usec_t bridge_deadline(const struct bridge *b, usec_t now);

/*
 * The stop.  bridge_drain(): no more is claimed, what is open goes on.
 * bridge_give_up(): nothing is produced any more; what Kafka acknowledged is
 * settled and the rest left for adoption.  bridge_over(): the slot is left and
 * nothing is with the producer.
 */
void bridge_drain(struct bridge *b);
void bridge_give_up(struct bridge *b);
bool bridge_over(const struct bridge *b);

/* A local time on Redis' clock, ms. */
msec_t bridge_redis_ms(const struct bridge *b, usec_t at);

/* For the statistics. */
struct counters *bridge_counters(struct bridge *b);
struct hist *bridge_lateness(struct bridge *b);
const struct lease *bridge_lease(const struct bridge *b);
struct bridge_gauges {
	size_t inflight_events, inflight_bytes;
	size_t batches;
	size_t parked_topics;
	size_t with_producer;
	int64_t redis_offset_us;
};
void bridge_gauges(const struct bridge *b, struct bridge_gauges *g);

#endif
