/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * value - arguments and the values of options, from text.
 *
 * Errors quote the text and say what would do; the caller puts in front what
 * it is that the text was given for.
 */
#ifndef LAPSED_CLI_VALUE_H
#define LAPSED_CLI_VALUE_H

#include <stdint.h>

#include "core/buf.h"
#include "core/bytes.h"
#include "core/err.h"
#include "core/when.h"

/* As much as a payload or a value may be; the scripts have the last word. */
#define VALUE_PAYLOAD_MAX	1000000

/*
 * An id or key, 1 to 1,024 bytes.  With `encoded`, %XX stands for a byte; the
 * name is then in `room`.
 */
bool value_name(const char *text, bool encoded, struct buf *room, struct bytes *name,
		struct err *err) MUST_CHECK;

/* A duration that ends before the year 10000. */
bool value_duration(const char *text, int64_t *ms, struct err *err) MUST_CHECK;

/*
 * A time: RFC 3339 (2026-11-30T12:30:00Z, any offset, a fraction of which
 * milliseconds count) or milliseconds since 1970.  A number that can only be
 * meant as seconds is refused rather than taken for 1970.
 */
bool value_time(const char *text, msec_t *t, struct err *err) MUST_CHECK;

/* All of a file, or of standard input for "-"; at most VALUE_PAYLOAD_MAX bytes. */
bool value_read(const char *path, struct buf *to, struct err *err) MUST_CHECK;

#endif
