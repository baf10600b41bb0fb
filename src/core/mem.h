/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * mem - allocation that does not fail.
 *
 * Without memory the process ends: every event it holds is still in Redis and
 * is adopted, so dying is safe, and bounded queues make it rare.
 */
#ifndef LAPSED_CORE_MEM_H
#define LAPSED_CORE_MEM_H

#include <stddef.h>

#include "core/bytes.h"

/* Zeroed memory for `n` things of `size` bytes; aborts on overflow too. */
void *mem_alloc(size_t n, size_t size);

/* `p` (or NULL) grown or shrunk to `n` things; what is new is not zeroed. */
void *mem_resize(void *p, size_t n, size_t size);

/* A copy of `b` with a NUL behind it, to be freed by the caller. */
char *mem_copy(struct bytes b);

#endif
