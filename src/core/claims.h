/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * claims - when to ask Redis for what is due.
 *
 * Four triggers, one action: the head of the shadow comes due, a wake message
 * told of a new head, a key was heard to expire, the sweep's time has come.
 * Each answer tells the next due time, so nothing polls; a trigger that is
 * lost only means that another one fires.
 *
 * Rank 0 asks at once; rank r first leaves the others r grace periods, and no
 * more than one question per grace period, so that idle hands cost little.
 */
#ifndef LAPSED_CORE_CLAIMS_H
#define LAPSED_CORE_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/event.h"
#include "core/rclock.h"
#include "core/when.h"

struct claims {
	bool listens;		/* false: a sweeper, which comes after the others */
	usec_t grace, sweep_interval;
	msec_t next;		/* when the head is due; -1: no head known */
	bool woken;		/* a wake message told so */
	bool asked;		/* a claim is with Redis */
	msec_t meanwhile;	/* the earliest wake since then; -1: none */
	usec_t sweep_at;
	usec_t last;		/* when the last answer came */
	bool stand_in;		/* the others leave work undone: act as the first */
};

/* The first sweep is due at once. */
void claims_init(struct claims *c, bool listens, usec_t grace, usec_t sweep_interval,
		 usec_t now);

void claims_wake(struct claims *c, msec_t due);
void claims_sweep(struct claims *c, usec_t now);	/* sweep at once */

/* When the next claim is wanted; `heard` is when the oldest heard key came. */
usec_t claims_at(const struct claims *c, const struct rclock *clock, unsigned rank,
		 usec_t heard, usec_t now);

/* A claim is made; what for. */
enum trigger claims_ask(struct claims *c, usec_t now);

/*
 * The answer, with the due time of the new head or -1.  `found` entries after
 * the others had their time means that they don't work, which is long before
 * their lease ends; one empty answer, that they do.
 */
void claims_answer(struct claims *c, msec_t next, size_t found, usec_t now);

/* No answer; the next claim is wanted at once. */
void claims_lost(struct claims *c, usec_t now);

#endif
