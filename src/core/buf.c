/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/mem.h"

#define BUF_FIRST	128

void buf_clear(struct buf *b)
{
	free(b->p);
	*b = (struct buf){ 0 };
}

void buf_grow(struct buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST;

	if (b->cap - b->n >= more)
		return;
	while (cap - b->n < more) {
		if (cap > SIZE_MAX / 2)
			mem_resize(NULL, SIZE_MAX, 2);	/* ends the process */
		cap *= 2;
	}
	b->p = mem_resize(b->p, cap, 1);
	b->cap = cap;
}

void buf_uint(struct buf *b, uint64_t v)
{
	char digits[BUF_DECIMAL_MAX];
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	buf_add(b, bytes_of(digits + at, sizeof digits - at));
}

void buf_int(struct buf *b, int64_t v)
{
	if (v < 0)
		buf_byte(b, '-');
	buf_uint(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void buf_be16(struct buf *b, uint16_t v)
{
	const char raw[2] = { (char)(v >> 8), (char)v };

	buf_add(b, bytes_of(raw, sizeof raw));
}

void buf_be64(struct buf *b, uint64_t v)
{
	char raw[8];

	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (char)(v >> (56 - 8 * i));
	buf_add(b, bytes_of(raw, sizeof raw));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	buf_reserve(b, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->n += (size_t)n;
}

const char *buf_cstr(struct buf *b)
{
	buf_reserve(b, 1);
	b->p[b->n] = '\0';
	return b->p;
}
