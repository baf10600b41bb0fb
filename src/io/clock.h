/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * clock - the local monotonic clock, which the pure core is told.
 */
#ifndef LAPSED_IO_CLOCK_H
#define LAPSED_IO_CLOCK_H

#include <time.h>

#include "core/when.h"

static inline usec_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (usec_t)t.tv_sec * USEC_PER_SEC + t.tv_nsec / 1000;
}

#endif
