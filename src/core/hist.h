/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * hist - how microseconds are distributed, in a fixed 10 kB.
 *
 * Log-linear: exact below 32, then 32 steps for each doubling, so that what
 * a quantile tells is at most 1/32 above the truth and never below it.  Beyond
 * HIST_TOP everything counts as HIST_TOP, but for `max`.
 */
#ifndef LAPSED_CORE_HIST_H
#define LAPSED_CORE_HIST_H

#include <stdint.h>

#define HIST_STEPS	32		/* for each doubling */
#define HIST_DOUBLINGS	36
#define HIST_CELLS	(HIST_STEPS * (HIST_DOUBLINGS + 1))
#define HIST_TOP	((INT64_C(1) << 41) - 1)	/* 25 days */

/* A zeroed struct is empty.  The first four are for the caller to read. */
struct hist {
	uint64_t count;
	uint64_t early;		/* how many were negative; they count as 0 */
	uint64_t sum;
	int64_t max;
	uint64_t cells[HIST_CELLS];
};

void hist_reset(struct hist *h);
void hist_add(struct hist *h, int64_t us);
void hist_merge(struct hist *into, const struct hist *from);

/*
 * The value that a share `q` (0 to 1) of all values do not exceed; q = 0.5 is
 * the median.  0 when there are none.
 */
int64_t hist_quantile(const struct hist *h, double q);

#endif
