/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * rclock - what Redis' clock says, as far as we can tell from here.
 *
 * Every answer of a script carries Redis' TIME, which was read after the call
 * was sent and before the answer arrived.  So each answer bounds the difference
 * of the clocks from both sides; we keep to the lower side, which asks late by
 * the way back and never early.  It only decides when to ask and how lateness
 * is counted; what is due is for the script.
 */
#ifndef LAPSED_CORE_RCLOCK_H
#define LAPSED_CORE_RCLOCK_H

#include <stdbool.h>

#include "core/when.h"

struct rclock {
	int64_t offset;		/* Redis' microseconds minus ours */
	bool known;
};

/*
 * `redis` (us since the epoch) came with the answer to a call that was sent at
 * `sent` and answered at `now`.  Says by how much Redis' clock was set back
 * since the last one, 0: it was not.
 */
int64_t rclock_sample(struct rclock *c, int64_t redis, usec_t sent, usec_t now);

/* Redis' time in microseconds; 0 while nothing is known. */
int64_t rclock_redis(const struct rclock *c, usec_t now);

/* The local time at which Redis' clock reaches `at`; `now` if unknown. */
usec_t rclock_local(const struct rclock *c, msec_t at, usec_t now);

#endif
