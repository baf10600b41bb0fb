/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * alarm - ends the loop's sleep in time, to some 50 us.
 *
 * libev sleeps in whole milliseconds, rounded up, so that a timer of its own
 * would make every event late by half a millisecond.  Calls nobody: the loop
 * makes its turn.
 */
#ifndef LAPSED_IO_ALARM_H
#define LAPSED_IO_ALARM_H

#include <ev.h>

#include "core/when.h"

struct alarm;

/* NULL, and errno says why, when there is no file descriptor to be had. */
struct alarm *alarm_new(struct ev_loop *loop);
void alarm_free(struct alarm *a);	/* accepts NULL */

/*
 * In place of what was set before.  `at` is a time of clock_now(): not after
 * `now`, the loop does not sleep; USEC_NEVER, the alarm is off.
 */
void alarm_set(struct alarm *a, usec_t at, usec_t now);

#endif
