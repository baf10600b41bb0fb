/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * err - what went wrong, in words that an operator will read.
 *
 * A function that can fail for more than one reason takes a `struct err *`
 * last and returns false after filling it.  The text names what, where and,
 * where that is not obvious, what to do; no trailing full stop or newline.
 */
#ifndef LAPSED_CORE_ERR_H
#define LAPSED_CORE_ERR_H

#include <stdbool.h>

#define MUST_CHECK	__attribute__((warn_unused_result))

struct err {
	char text[512];
};

/* Fills `e` (NULL is allowed) and returns false, to be returned in turn. */
bool err_set(struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
