/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/walk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

/* What is found is looked at again after so many paces. */
#define DOUBT_PACES	(WALK_STEPS / 4)
#define PACE_MIN	(20 * USEC_PER_MSEC)

static const char *const small[] = { "epoch", "batches", "open", "dead", "why", NULL };
static const char *const big[] = { "due", "rec", "wait", NULL };
static const char *const *const parts[] = { small, big };

void walk_configure(struct walk *w, usec_t sweep_interval)
{
	w->pace = sweep_interval / WALK_STEPS;
	if (w->pace < PACE_MIN)
		w->pace = PACE_MIN;
}

static void side_begin(struct walk_side *side, size_t part)
{
	side->at = part;
	snprintf(side->cursor, sizeof side->cursor, "0");
}

void walk_init(struct walk *w, usec_t sweep_interval, usec_t now)
{
	*w = (struct walk){ 0 };
	walk_configure(w, sweep_interval);
	w->next = now + w->pace;
	side_begin(&w->sides[0], 0);
	side_begin(&w->sides[1], 0);
}

static void doubts_drop(struct walk *w)
{
	while (w->n)
		free((char *)w->doubts[--w->n].p);
}

void walk_clear(struct walk *w)
{
	doubts_drop(w);
}

const struct walk_step *walk_next(struct walk *w, usec_t now)
{
	const struct walk_side *side = &w->sides[w->side];

	if (w->owed || now < w->next)
		return NULL;
	w->owed = true;
	w->step = (struct walk_step){
		.part = parts[w->side][side->at], .cursor = side->cursor,
		.repair = w->n > 0, .names = w->doubts, .n = w->n,
	};
	return &w->step;
}

usec_t walk_deadline(const struct walk *w)
{
	return w->owed ? USEC_NEVER : w->next;
}

static void next_part(struct walk *w)
{
	struct walk_side *side = &w->sides[w->side];

	side_begin(side, parts[w->side][side->at + 1] ? side->at + 1 : 0);
}

static void go_on(struct walk *w, struct bytes cursor)
{
	struct walk_side *side = &w->sides[w->side];

	if (cursor.n == 0 || cursor.n >= WALK_CURSOR - 1 || bytes_eq(cursor, BYTES("0")))
		next_part(w);
	else
		snprintf(side->cursor, sizeof side->cursor, "%.*s", (int)cursor.n, cursor.p);
}

/* More than there is room for are found again in the next pass. */
static void doubts_take(struct walk *w, const struct walk_answer *a)
{
	for (size_t i = 0; i < a->n && w->n < WALK_COUNT; i++)
		w->doubts[w->n++] = bytes_of(mem_copy(a->found[i].name), a->found[i].name.n);
	snprintf(w->after, sizeof w->after, "%.*s", (int)a->cursor.n, a->cursor.p);
}

void walk_answer(struct walk *w, const struct walk_answer *a, unsigned rank, usec_t now)
{
	assert(w->owed);
	w->owed = false;
	w->next = now + w->pace * (1 + (usec_t)rank);
	if (w->n == 0 && a->n > 0) {
		doubts_take(w, a);
		w->next += w->pace * (DOUBT_PACES - 1);
		return;
	}
	go_on(w, w->n > 0 ? bytes_str(w->after) : a->cursor);
	doubts_drop(w);
	w->side = !w->side;
}

void walk_lost(struct walk *w, usec_t now)
{
	if (!w->owed)
		return;
	w->owed = false;
	w->next = now + w->pace;
	doubts_drop(w);
	next_part(w);
	w->side = !w->side;
}
