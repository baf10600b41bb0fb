/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/hist.h"

#include <stddef.h>
#include <string.h>

#define STEP_BITS	5	/* log2 of HIST_STEPS */

/*
 * The first two groups of HIST_STEPS cells are one wide; every further group
 * covers one more doubling with cells twice as wide.
 */
static size_t cell_of(uint64_t v)
{
	unsigned shift;

	if (v < HIST_STEPS)
		return v;
	shift = 63 - (unsigned)__builtin_clzll(v) - STEP_BITS;
	return HIST_STEPS * shift + (v >> shift);
}

/* The greatest value that the cell counts. */
static int64_t cell_top(size_t cell)
{
	size_t shift = cell < HIST_STEPS ? 0 : cell / HIST_STEPS - 1;

	return ((int64_t)(cell - HIST_STEPS * shift + 1) << shift) - 1;
}

void hist_reset(struct hist *h)
{
	memset(h, 0, sizeof *h);
}

void hist_add(struct hist *h, int64_t us)
{
	if (us < 0) {
		h->early++;
		us = 0;
	}
	h->count++;
	h->sum += (uint64_t)us;
	if (us > h->max)
		h->max = us;
	h->cells[cell_of((uint64_t)(us > HIST_TOP ? HIST_TOP : us))]++;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	into->count += from->count;
	into->early += from->early;
	into->sum += from->sum;
	if (from->max > into->max)
		into->max = from->max;
	for (size_t i = 0; i < HIST_CELLS; i++)
		into->cells[i] += from->cells[i];
}

/* How many values, in order, `q` takes in: at least one, at most all. */
static uint64_t rank_of(double q, uint64_t count)
{
	double exact = q * (double)count;
	uint64_t rank;

	if (!(exact > 1))
		return 1;
	if (exact >= (double)count)
		return count;
	rank = (uint64_t)exact;
	return (double)rank < exact ? rank + 1 : rank;
}

int64_t hist_quantile(const struct hist *h, double q)
{
	uint64_t rank, seen = 0;

	if (!h->count)
		return 0;
	rank = rank_of(q, h->count);
	for (size_t i = 0; i < HIST_CELLS; i++) {
		seen += h->cells[i];
		if (seen >= rank)
			return cell_top(i) < h->max ? cell_top(i) : h->max;
	}
	return h->max;
}
