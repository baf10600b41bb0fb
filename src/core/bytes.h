/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bytes - a run of bytes that carries its length.
 *
 * Keys, ids and payloads may hold any byte, NUL included, so nothing that
 * comes from Redis is ever treated as a C string.  A `struct bytes` borrows:
 * it is valid for as long as the memory it was taken from.  `p` may be NULL
 * only when `n` is 0; an absent value and an empty one are told apart by the
 * NULL (see bytes_none).
 */
#ifndef LAPSED_CORE_BYTES_H
#define LAPSED_CORE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct bytes {
	const char *p;
	size_t n;
};

#define BYTES(literal)	((struct bytes){ (literal), sizeof(literal) - 1 })

static const struct bytes bytes_none = { NULL, 0 };

static inline struct bytes bytes_of(const char *p, size_t n)
{
	return (struct bytes){ p, n };
}

/* NULL gives bytes_none. */
static inline struct bytes bytes_str(const char *s)
{
	return s ? bytes_of(s, strlen(s)) : bytes_none;
}

static inline bool bytes_eq(struct bytes a, struct bytes b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool bytes_starts(struct bytes b, struct bytes prefix)
{
	return b.n >= prefix.n && (prefix.n == 0 || memcmp(b.p, prefix.p, prefix.n) == 0);
}

/* What is left of `b` after its first `n` bytes; `n` is at most b.n. */
static inline struct bytes bytes_skip(struct bytes b, size_t n)
{
	return bytes_of(b.p + n, b.n - n);
}

#endif
