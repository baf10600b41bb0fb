/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * clock - the local monotonic clock, which the pure core is told.
 *
 * A function of its own file, so that the simulation can bring another.
 */
#ifndef LAPSED_IO_CLOCK_H
#define LAPSED_IO_CLOCK_H

#include "core/when.h"

usec_t clock_now(void);

#endif
