/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/heard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

/* An echo that has not come by then will not be told from a new expiry. */
#define ECHO_US		(2 * USEC_PER_SEC)
#define ECHO_SLOTS	8192	/* a power of two */
#define BUCKETS		8192	/* the same */

struct echo {
	uint64_t hash;
	usec_t at;
};

/* A queue in an array: keys[first] is the oldest. */
struct heard {
	size_t max_keys, max_bytes;
	size_t bytes;
	usec_t since;		/* 0: not told */
	struct heard_key *keys;
	size_t first, n, cap;
	uint64_t done;		/* keys that are gone: the number of keys[first] */
	uint64_t buckets[BUCKETS];	/* of a hash, the number of the latest + 1; 0: none */
	struct echo echoes[ECHO_SLOTS];
};

struct heard *heard_new(size_t max_keys, size_t max_bytes)
{
	struct heard *h = mem_alloc(1, sizeof *h);

	h->max_keys = max_keys;
	h->max_bytes = max_bytes;
	return h;
}

void heard_free(struct heard *h)
{
	if (!h)
		return;
	heard_done(h, h->n);
	free(h->keys);
	free(h);
}

/* FNV-1a with a final mix; a collision costs one question to Redis at most
 * for the key that is overwritten, and hides one echo-like notification. */
static uint64_t hash_of(struct bytes b)
{
	uint64_t x = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < b.n; i++)
		x = (x ^ (unsigned char)b.p[i]) * UINT64_C(0x100000001b3);
	return x ^ x >> 29;
}

static struct echo *echo_slot(struct heard *h, uint64_t hash)
{
	return &h->echoes[hash & (ECHO_SLOTS - 1)];
}

void heard_expect(struct heard *h, struct bytes member, usec_t now)
{
	uint64_t hash = hash_of(member);

	*echo_slot(h, hash) = (struct echo){ hash, now };
}

void heard_gap(struct heard *h)
{
	memset(h->echoes, 0, sizeof h->echoes);
}

/* True once for each expectation. */
static bool is_echo(struct heard *h, struct bytes member, usec_t now)
{
	uint64_t hash = hash_of(member);
	struct echo *e = echo_slot(h, hash);

	if (e->hash != hash || e->at == 0 || now - e->at > ECHO_US)
		return false;
	e->at = 0;
	return true;
}

void heard_since(struct heard *h, usec_t since)
{
	h->since = since;
}

static uint64_t *bucket_of(struct heard *h, struct bytes member)
{
	return &h->buckets[hash_of(member) & (BUCKETS - 1)];
}

usec_t heard_waits(const struct heard *h, struct bytes member)
{
	uint64_t next = h->buckets[hash_of(member) & (BUCKETS - 1)];

	while (next > h->done) {
		const struct heard_key *k = &h->keys[h->first + (size_t)(next - 1 - h->done)];

		if (bytes_eq(k->member, member))
			return k->at;
		next = k->chain;
	}
	return USEC_NEVER;
}

static void make_room(struct heard *h)
{
	if (h->first + h->n < h->cap)
		return;
	if (h->first > h->cap / 2) {
		memmove(h->keys, h->keys + h->first, h->n * sizeof *h->keys);
	} else {
		size_t cap = h->cap ? 2 * h->cap : 64;
		struct heard_key *keys = mem_alloc(cap, sizeof *keys);

		if (h->n)
			memcpy(keys, h->keys + h->first, h->n * sizeof *keys);
		free(h->keys);
		h->keys = keys;
		h->cap = cap;
	}
	h->first = 0;
}

enum heard_result heard_add(struct heard *h, struct bytes member, enum heard_how how,
			    usec_t now)
{
	uint64_t *bucket = bucket_of(h, member);

	if (is_echo(h, member, now))
		return HEARD_ECHO;
	if (h->n >= h->max_keys || h->bytes + member.n > h->max_bytes)
		return HEARD_DROPPED;
	make_room(h);
	h->keys[h->first + h->n++] = (struct heard_key){
		bytes_of(mem_copy(member), member.n), how, now, h->since ? h->since : now,
		*bucket
	};
	*bucket = h->done + h->n;
	h->bytes += member.n;
	return HEARD_KEPT;
}

void heard_done(struct heard *h, size_t n)
{
	assert(n <= h->n);
	for (size_t i = 0; i < n; i++) {
		struct bytes member = h->keys[h->first + i].member;

		h->bytes -= member.n;
		free((char *)member.p);
	}
	h->first += n;
	h->n -= n;
	h->done += n;
}

bool heard_all(const struct heard *h, size_t n)
{
	return n == h->n;
}

/* Echoes may have arrived before the answer that announced them. */
const struct heard_key *heard_peek(struct heard *h, size_t *n, usec_t now)
{
	while (h->n && is_echo(h, h->keys[h->first].member, now))
		heard_done(h, 1);
	if (*n > h->n)
		*n = h->n;
	return h->keys ? h->keys + h->first : NULL;
}

usec_t heard_oldest(const struct heard *h)
{
	return h->n ? h->keys[h->first].at : USEC_NEVER;
}
