/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * when - the two kinds of time.
 *
 * `msec_t` is a point on Redis' clock, milliseconds since the epoch: due
 * times, deadlines, what users see.  `usec_t` is a point on the local
 * monotonic clock, microseconds since some start: it decides when to ask and
 * how long a thing took, never what is due.
 */
#ifndef LAPSED_CORE_WHEN_H
#define LAPSED_CORE_WHEN_H

#include <stdint.h>

typedef int64_t msec_t;
typedef int64_t usec_t;

#define USEC_NEVER	INT64_MAX
#define USEC_PER_MSEC	1000
#define USEC_PER_SEC	1000000

#endif
