/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * buf - a run of bytes that grows.
 *
 * A zeroed struct is an empty buffer.  Reset it and fill it again, and after
 * a few rounds nothing is allocated any more.  What was taken from it with
 * buf_view() is valid until the next call that adds; buf_reserve() first keeps
 * views valid for as long as what is added stays within what was reserved.
 */
#ifndef LAPSED_CORE_BUF_H
#define LAPSED_CORE_BUF_H

#include <stdint.h>

#include "core/bytes.h"

struct buf {
	char *p;	/* NULL until something was reserved */
	size_t n;
	size_t cap;
};

/* The longest decimal number, with its sign. */
#define BUF_DECIMAL_MAX	20

void buf_clear(struct buf *b);	/* frees; the buffer is empty and usable */

/* Makes room for `more` bytes behind those that are there. */
void buf_grow(struct buf *b, size_t more);

static inline void buf_reset(struct buf *b)
{
	b->n = 0;
}

static inline void buf_reserve(struct buf *b, size_t more)
{
	if (b->cap - b->n < more)
		buf_grow(b, more);
}

static inline void buf_byte(struct buf *b, char c)
{
	buf_reserve(b, 1);
	b->p[b->n++] = c;
}

static inline void buf_add(struct buf *b, struct bytes more)
{
	buf_reserve(b, more.n);
	if (more.n)
		memcpy(b->p + b->n, more.p, more.n);
	b->n += more.n;
}

static inline void buf_str(struct buf *b, const char *s)
{
	buf_add(b, bytes_str(s));
}

/* In plain decimals. */
void buf_uint(struct buf *b, uint64_t v);
void buf_int(struct buf *b, int64_t v);

/* Big-endian, as Redis' struct library writes them. */
void buf_be16(struct buf *b, uint16_t v);
void buf_be64(struct buf *b, uint64_t v);

void buf_printf(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* All of it; never NULL once anything was reserved. */
static inline struct bytes buf_view(const struct buf *b)
{
	return bytes_of(b->p, b->n);
}

/* What was added since the buffer held `from` bytes. */
static inline struct bytes buf_since(const struct buf *b, size_t from)
{
	return bytes_of(b->p + from, b->n - from);
}

/* As a C string: puts a NUL behind the bytes, which does not count. */
const char *buf_cstr(struct buf *b);

#endif
