/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/batch.h"

#include <assert.h>
#include <stdlib.h>

#include "core/mem.h"

struct batch *batch_new(uint64_t seq, enum batch_source source)
{
	struct batch *b = mem_alloc(1, sizeof *b);

	b->seq = seq;
	b->source = source;
	b->state = BATCH_ASKED;
	return b;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	assert(b->flying == 0);
	for (size_t i = 0; i < b->n; i++)
		free(b->entries[i].reason);
	free(b->entries);
	free(b->block);
	free(b);
}

static struct bytes put(char **at, struct bytes from)
{
	struct bytes copy = bytes_of(*at, from.n);

	if (from.n)
		memcpy(*at, from.p, from.n);
	*at += from.n;
	return copy;
}

void batch_fill(struct batch *b, const struct bytes *members,
		const struct bytes *envelopes, size_t n)
{
	char *at;

	assert(b->state == BATCH_ASKED && b->n == 0);
	for (size_t i = 0; i < n; i++)
		b->bytes += members[i].n + envelopes[i].n;
	at = b->block = mem_alloc(b->bytes, 1);
	b->entries = mem_alloc(n, sizeof *b->entries);
	b->n = b->undecided = n;
	for (size_t i = 0; i < n; i++) {
		b->entries[i].batch = b;
		b->entries[i].member = put(&at, members[i]);
		b->entries[i].envelope = put(&at, envelopes[i]);
	}
	batch_move(b, BATCH_OPEN);
}

void batch_move(struct batch *b, enum batch_state to)
{
	static const unsigned legal[] = {
		[BATCH_ASKED] = 1u << BATCH_OPEN | 1u << BATCH_ABANDONED,
		[BATCH_OPEN] = 1u << BATCH_READY | 1u << BATCH_ABANDONED,
		[BATCH_READY] = 1u << BATCH_SETTLING | 1u << BATCH_ABANDONED,
		[BATCH_SETTLING] = 1u << BATCH_READY | 1u << BATCH_LOST | 1u << BATCH_ABANDONED,
		[BATCH_LOST] = 1u << BATCH_FORGETTING | 1u << BATCH_ABANDONED,
		[BATCH_FORGETTING] = 1u << BATCH_LOST | 1u << BATCH_ABANDONED,
		[BATCH_ABANDONED] = 0,
	};

	assert(legal[b->state] & 1u << to);
	b->state = to;
}

void entry_move(struct entry *e, enum entry_state to)
{
	static const unsigned legal[] = {
		[ENTRY_QUEUED] = 1u << ENTRY_FLYING | 1u << ENTRY_PARKED | 1u << ENTRY_BURIED |
				 1u << ENTRY_DONE | 1u << ENTRY_LEFT,
		[ENTRY_FLYING] = 1u << ENTRY_QUEUED | 1u << ENTRY_LATER | 1u << ENTRY_DONE |
				 1u << ENTRY_BURIED | 1u << ENTRY_PARKED | 1u << ENTRY_LEFT,
		[ENTRY_LATER] = 1u << ENTRY_QUEUED | 1u << ENTRY_PARKED | 1u << ENTRY_LEFT,
	};
	bool was_over = entry_over(e);

	assert(!was_over && legal[e->state] & 1u << to);
	if (e->state == ENTRY_FLYING)
		e->batch->flying--;
	if (to == ENTRY_FLYING)
		e->batch->flying++;
	e->state = to;
	if (entry_over(e))
		e->batch->undecided--;
}
