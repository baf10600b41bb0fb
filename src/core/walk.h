/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * walk - goes through what stands in Redis, in search of structures that
 * disagree, and has them repaired.
 *
 *	            step            nothing found
 *	   RESTING ------> ASKED ------------------> RESTING, further on
 *	      ^              | found something
 *	      |              v
 *	      +---------- DOUBTING: the same names are looked at again, later;
 *	                  what still disagrees then is repaired
 *
 * One small step at a time, WALK_STEPS of them in a sweep interval, whatever
 * there is.  The small structures and the big ones take turns, each kind with
 * a cursor of its own, so that a million entries don't keep a lost batch
 * waiting.  An instance of rank r goes r + 1 times as slowly: the first does
 * most of it, and none is needed.
 *
 * docs/protocol.md, "When structures disagree", has the rules.
 */
#ifndef LAPSED_CORE_WALK_H
#define LAPSED_CORE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"
#include "core/when.h"

#define WALK_COUNT	100	/* members of a step, about */
#define WALK_STEPS	10
#define WALK_CURSOR	24	/* digits of a cursor, and a NUL */

/* A call of walk.lua; borrowed until its answer. */
struct walk_step {
	const char *part;
	const char *cursor;
	bool repair;
	const struct bytes *names;	/* only these, when there are any */
	size_t n;
};

struct walk_found {
	struct bytes kind, name;
	struct bytes done;	/* empty: nothing */
};

/* Borrowed from the caller. */
struct walk_answer {
	struct bytes cursor;	/* "0": this was the end of the part */
	uint64_t looked;	/* members looked at */
	const struct walk_found *found;
	size_t n;
};

struct walk_side {
	size_t at;		/* which part */
	char cursor[WALK_CURSOR];
};

struct walk {
	usec_t pace;		/* from one step to the next */
	usec_t next;
	bool owed;		/* an answer is */
	unsigned side;		/* 0: the small structures, 1: the big ones */
	struct walk_side sides[2];
	struct bytes doubts[WALK_COUNT];	/* seen once; owned */
	size_t n;
	char after[WALK_CURSOR];	/* where to go on when they are done with */
	struct walk_step step;
};

/* The first step is due after one pace. */
void walk_init(struct walk *w, usec_t sweep_interval, usec_t now);
void walk_clear(struct walk *w);
void walk_configure(struct walk *w, usec_t sweep_interval);

/* NULL before its time; else obliges to walk_answer() or walk_lost(). */
const struct walk_step *walk_next(struct walk *w, usec_t now);

/* When walk_next() may next give a step; USEC_NEVER while an answer is owed. */
usec_t walk_deadline(const struct walk *w);

void walk_answer(struct walk *w, const struct walk_answer *a, unsigned rank, usec_t now);

/* No answer, or a refusal: this part is passed over, the others are not. */
void walk_lost(struct walk *w, usec_t now);

#endif
