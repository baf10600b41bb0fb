/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * watch - keys whose life may have changed, until a script has looked at them.
 *
 *	 set, expire, del ...      so many us later            answered
 *	--------------------> GATHERED ------------> ASKED ------------> forgotten
 *	                         ^  | only `expired`   |
 *	                         |  v                  | refused, no answer
 *	                         |  forgotten          |
 *	                         +---------------------+
 *
 * What Redis tells is a hint: the script looks at the key itself, so a hint
 * that is lost, doubled or out of order does no harm.  Hints of one key are
 * gathered for a few milliseconds, since most come in twos (`set`, `expire`).
 * Of their order only that is kept which the key itself can't tell any more:
 * when a life of it last expired, and what was the last thing that ended one.
 *
 * An instance of rank r gathers r x `grace` longer: by then the first has done
 * the work, and all that is left for the others is to see that it is done.
 *
 * Bounded: past its limits a hint is dropped and counted, and watch_lossy()
 * says so, for a scan to find what was missed.
 */
#ifndef LAPSED_CORE_WATCH_H
#define LAPSED_CORE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"
#include "core/when.h"

/* What an event of Redis means for the life of its key. */
enum watch_sign {
	WATCH_NOTHING,		/* it has not changed */
	WATCH_TTL,		/* there may be another TTL, or none */
	WATCH_SET,		/* there is another value, and maybe another TTL */
	WATCH_WRITTEN,		/* its value was written to; the TTL stays */
	WATCH_EXPIRED,
	WATCH_DELETED,		/* or renamed, or moved: here it is no more */
	WATCH_EVICTED,
	WATCH_FOUND,		/* not an event: a script came across another end */
};

/* The sign of `event`; `written`: events that only change a value count. */
enum watch_sign watch_sign(struct bytes event, bool written);

/*
 * The i-th event (of `__keyevent@<db>__:<event>`) with a sign other than
 * WATCH_WRITTEN and WATCH_EXPIRED; bytes_none past the last.
 */
struct bytes watch_event(size_t i);

struct watch_key {
	struct watch_key *next;		/* in the queue */
	struct watch_key *chain;	/* of its hash */
	usec_t at;			/* when it was first heard of */
	usec_t expired_at;		/* when it was last heard to; USEC_NEVER: it was not */
	enum watch_sign last;		/* that ended a life, or WATCH_NOTHING */
	bool look;			/* something is to be asked at all */
	bool found;			/* a scan came across it */
	bool set;			/* the value may be another, */
	usec_t set_at;			/* as was last heard then */
	struct bytes member;		/* k:<db>:<key>; its bytes follow */
};

struct watch;

struct watch *watch_new(size_t max_keys, size_t max_bytes);
void watch_free(struct watch *w);	/* accepts NULL */

/* False when there was no room. */
bool watch_hear(struct watch *w, struct bytes member, enum watch_sign sign, usec_t now);

/*
 * The keys to ask about now, at most `limit`, or NULL: those heard of `gather`
 * ago or longer.  Obliges to watch_done() or watch_lost(), until which it
 * gives NULL.
 */
const struct watch_key *watch_next(struct watch *w, usec_t gather, size_t limit, usec_t now);
void watch_done(struct watch *w);
/* They are asked about again, after a pause that grows. */
void watch_lost(struct watch *w, usec_t now);

/* When watch_next() may next give something; USEC_NEVER: it is asked, or empty. */
usec_t watch_deadline(const struct watch *w, usec_t gather);

/* Whether hints were dropped since this was last asked. */
bool watch_lossy(struct watch *w);

size_t watch_waiting(const struct watch *w);
/* Those of them that a scan came across. */
size_t watch_found(const struct watch *w);

#endif
