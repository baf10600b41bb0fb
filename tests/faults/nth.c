/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * nth - a library to be loaded before all others: the allocation whose number
 * FAIL_ALLOCATION names fails.  No part of lapsed; compiled by test_machine.py.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static atomic_long count;
static long fatal = -1;

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAIL_ALLOCATION");

	fatal = text ? atol(text) : 0;
	count = 0;
}

static bool fails(void)
{
	if (fatal <= 0 || atomic_fetch_add(&count, 1) + 1 != fatal)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}
