/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * topics - the way of an entry to its topic and back.
 *
 * Each topic has its own queue, so that one that refuses does not hold up the
 * others:
 *
 *	          refuses                  its time has come
 *	FLOWS ---------------> PARKED --------------------------> TRIAL
 *	  ^                      ^                                  |
 *	  |                      +---------- refuses again ---------+
 *	  +------------------------------------ acknowledged -------+
 *
 * While a topic is not FLOWS, its entries are PARKED: they go back to Redis,
 * into batches of the topic that cost neither credits nor memory, and one of
 * those is read again for a trial after a pause that doubles up to a limit.
 *
 * A refused lot names no culprit, so all of its entries become suspects.  The
 * topic then stands still but for one suspect at a time; whoever is refused
 * while flying alone is buried, and its neighbours go on.
 *
 * A topic for dead letters is one like others, but nothing waits for it: what
 * it refuses, or would have to be parked for, is buried at once.
 *
 * Entries are borrowed; the outcome is in the entry's state.
 */
#ifndef LAPSED_CORE_TOPICS_H
#define LAPSED_CORE_TOPICS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/batch.h"
#include "core/bytes.h"
#include "core/when.h"

enum topic_state { TOPIC_FLOWS, TOPIC_PARKED, TOPIC_TRIAL };

/* What the producer says of an entry. */
enum verdict {
	VERDICT_ACKED,
	VERDICT_RETRY,		/* not persisted: produced again, no duplicate */
	VERDICT_MAYBE,		/* possibly persisted: may be doubled */
	VERDICT_REFUSED,	/* the lot it was in is refused for good */
	VERDICT_CULPRIT,	/* it is refused itself */
	VERDICT_NO_TOPIC,	/* unknown or not authorised: park */
};

struct topics_conf {
	usec_t retry_pause;	/* before an entry is produced again */
	usec_t park_min, park_max;
	size_t batch_limit;	/* entries of a parked batch */
};

/* What a verdict or the clock has done to a topic, for log and counters. */
enum topic_news { NEWS_NONE, NEWS_PARKED, NEWS_UNPARKED, NEWS_SUSPECT };

struct topics;
struct topic;

struct topics *topics_new(const struct topics_conf *conf);
void topics_free(struct topics *ts);
void topics_configure(struct topics *ts, const struct topics_conf *conf);

/* Queues the entry for `name`, or parks it at once. */
void topics_enter(struct topics *ts, struct entry *e, struct bytes name);

/*
 * The next entry for the producer, now FLYING; NULL when nothing may go.
 * Each obliges to topics_verdict() or, when there was no room,
 * topics_back().
 */
struct entry *topics_next(struct topics *ts);
void topics_back(struct topics *ts, struct entry *e);

/*
 * `reason` is for a burial.  With `tell` an entry that is to be buried has its
 * reason but is QUEUED and in no queue, which obliges to topics_tell().
 */
enum topic_news topics_verdict(struct topics *ts, struct entry *e, enum verdict v,
			       const char *reason, bool tell, usec_t now);

/*
 * Queues an entry that has a reason to be buried for `name`, a topic for dead
 * letters, as DEATH_DYING; or buries it at once.
 */
void topics_tell(struct topics *ts, struct entry *e, struct bytes name);

/*
 * Queues what has waited long enough; when to call it again.  True when there
 * was an outcome, since a topic refuses meanwhile.
 */
bool topics_tick(struct topics *ts, usec_t now);
usec_t topics_deadline(const struct topics *ts);

/*
 * Parked batches.  topics_parked() tells of one that was adopted, with
 * its retry time; topics_place() gives the number under which `n` more entries
 * of `t` are to be parked: one with room, or `fresh` (then *used is set);
 * it is not read again before topics_placed() tells that the settle is done.
 * topics_trial() gives a batch to read again, when a topic's time has come or
 * it flows and has batches left; each obliges to topics_fetched() once its
 * entries have entered, or to topics_untried().
 */
void topics_parked(struct topics *ts, struct bytes name, uint64_t seq, usec_t retry);
uint64_t topics_place(struct topics *ts, struct topic *t, size_t n, uint64_t fresh,
		      bool *used);
void topics_placed(struct topics *ts, struct topic *t, uint64_t seq);
bool topics_trial(struct topics *ts, usec_t now, uint64_t *seq, struct topic **t);
void topics_fetched(struct topics *ts, struct topic *t);
/* Whether the parked batch `seq` is known. */
bool topics_has(const struct topics *ts, uint64_t seq);
/* The batch could not be asked for; it stays where it was. */
void topics_untried(struct topics *ts, struct topic *t, uint64_t seq);

/* Parked batches are somebody else's now. */
void topics_unpark(struct topics *ts);

/* The queues let go of every entry of `b`. */
void topics_drop(struct topics *ts, const struct batch *b);

/* A report came for an entry that is not ours to produce again: LEFT. */
void topics_let_go(struct topics *ts, struct entry *e);

/* All that is queued or waiting, without an outcome, is LEFT (stop). */
void topics_leave(struct topics *ts);

struct bytes topic_name(const struct topic *t);
enum topic_state topic_state(const struct topic *t);
usec_t topic_retry_at(const struct topic *t);
usec_t topic_pause(const struct topic *t);
size_t topics_flying(const struct topics *ts);
size_t topics_parked_count(const struct topics *ts);	/* topics not FLOWS */
size_t topics_count(const struct topics *ts);		/* topics known */

#endif
