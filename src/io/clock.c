/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/clock.h"

#include <time.h>

usec_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (usec_t)t.tv_sec * USEC_PER_SEC + t.tv_nsec / 1000;
}
