/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * fuzz - what the fuzz targets have in common.
 *
 * A target takes any bytes and crashes when a promise is broken.
 */
#ifndef LAPSED_TESTS_FUZZ_H
#define LAPSED_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(promise) do { \
	if (!(promise)) { \
		fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #promise); \
		abort(); \
	} \
} while (0)

/* Equal, and none where the other is none. */
static inline bool fuzz_same(struct bytes a, struct bytes b)
{
	return bytes_eq(a, b) && !a.p == !b.p;
}

/*
 * Takes a piece from the start of the input: the first byte says how long it
 * is.  What is short is taken as it is.
 */
static inline struct bytes fuzz_take(struct bytes *rest)
{
	struct bytes piece;
	size_t n;

	if (!rest->n)
		return bytes_of("", 0);
	n = (uint8_t)rest->p[0];
	*rest = bytes_skip(*rest, 1);
	piece = bytes_of(rest->p, n < rest->n ? n : rest->n);
	*rest = bytes_skip(*rest, piece.n);
	return piece;
}

#endif
