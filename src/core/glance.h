/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * glance - what an instance tells and asks now and then (glance.lua).
 *
 * How sure its events were is added to what all instances have counted, once,
 * however often the call has to be made.  And some watched keys are looked at:
 * when those of a database are all gone though nobody told, in two looks one
 * after the other, somebody has flushed it.
 */
#ifndef LAPSED_CORE_GLANCE_H
#define LAPSED_CORE_GLANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GLANCE_DATABASES	16	/* that are kept in mind */

struct glance_counts {
	uint64_t heard, found, inferred;
};

struct glance_set {
	unsigned db[GLANCE_DATABASES];
	size_t n;
};

/* All zero at first. */
struct glance {
	struct glance_counts told;	/* that Redis has */
	struct glance_counts asked;	/* that it will have, once it answers */
	uint64_t serial;		/* of the call */
	bool owed;			/* it was made, and not answered yet */
	struct glance_set doubted;	/* gone at the last look */
	struct glance_set gone;		/* and at the one before, as was told */
};

/* What to add by the call; false when there is nothing to tell. */
bool glance_next(struct glance *g, const struct glance_counts *now, struct glance_counts *add);
void glance_answered(struct glance *g);

enum glance_news {
	GLANCE_NOTHING,
	GLANCE_GONE,		/* the keys of that database; told once */
	GLANCE_BACK,		/* there are some again; told once */
};

/* A row of the answer. */
enum glance_news glance_row(struct glance *g, unsigned db, uint64_t looked, uint64_t gone);

#endif
