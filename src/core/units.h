/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * units - durations, sizes and plain numbers as people write them.
 *
 *   durations   250ms 10s 30m 2h 7d, and 0       in milliseconds
 *   sizes       512 64k 1m 2g                    in bytes; k is 1024
 *   numbers     0 1 42                           plain decimals
 *
 * One number, one unit: no sign, no spaces, no fraction, no leading zeros, no
 * capitals.  What overflows or is out of range is refused.  Errors quote the
 * text; the caller puts the name of the option in front.
 */
#ifndef LAPSED_CORE_UNITS_H
#define LAPSED_CORE_UNITS_H

#include <stdint.h>

#include "core/bytes.h"
#include "core/err.h"

/* Room for any formatted duration or size, with its NUL. */
#define UNITS_TEXT	24

/* Milliseconds, 0 to INT64_MAX. */
bool units_duration(struct bytes text, int64_t *ms, struct err *err) MUST_CHECK;

/* Bytes, 0 to INT64_MAX. */
bool units_size(struct bytes text, int64_t *bytes, struct err *err) MUST_CHECK;

/* A decimal from `min` to `max`. */
bool units_number(struct bytes text, uint64_t min, uint64_t max, uint64_t *v,
		  struct err *err) MUST_CHECK;

/*
 * In the largest unit that loses nothing, so that units_duration() and
 * units_size() read it back; negative values are written as 0.  Return `out`.
 */
const char *units_duration_text(int64_t ms, char out[UNITS_TEXT]);
const char *units_size_text(int64_t bytes, char out[UNITS_TEXT]);

#endif
