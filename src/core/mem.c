/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *checked(void *p)
{
	if (p)
		return p;
	fputs("out of memory\n", stderr);
	abort();
}

void *mem_alloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *mem_resize(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		return checked(NULL);
	return checked(realloc(p, n && size ? n * size : 1));
}

char *mem_copy(struct bytes b)
{
	char *copy = mem_alloc(b.n + 1, 1);

	if (b.n)
		memcpy(copy, b.p, b.n);
	return copy;
}
