/* SPDX-License-Identifier: BSD-2-Clause */

#include "dict.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/mem.h"

static struct bytes keep(struct bytes b)
{
	return bytes_of(mem_copy(b), b.n);
}

static size_t bucket(const struct dict *d, struct bytes key)
{
	uint64_t x = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < key.n; i++)
		x = (x ^ (unsigned char)key.p[i]) * UINT64_C(0x100000001b3);
	return (x ^ x >> 32) & (d->nbuckets - 1);
}

struct item *dict_get(const struct dict *d, struct bytes key)
{
	struct item *it;

	if (!d->nbuckets)
		return NULL;
	for (it = d->buckets[bucket(d, key)]; it; it = it->chain)
		if (bytes_eq(it->key, key))
			return it;
	return NULL;
}

static void grow(struct dict *d)
{
	if (d->n < d->nbuckets)
		return;
	free(d->buckets);
	d->nbuckets = d->nbuckets ? 2 * d->nbuckets : 8;
	d->buckets = mem_alloc(d->nbuckets, sizeof *d->buckets);
	for (struct item *it = d->first; it; it = it->next) {
		struct item **at = &d->buckets[bucket(d, it->key)];

		it->chain = *at;
		*at = it;
	}
}

struct item *dict_put(struct dict *d, struct bytes key, bool *fresh)
{
	struct item *it = dict_get(d, key), **at;

	*fresh = !it;
	if (it)
		return it;
	grow(d);
	it = mem_alloc(1, sizeof *it);
	it->key = keep(key);
	at = &d->buckets[bucket(d, key)];
	it->chain = *at;
	*at = it;
	it->prev = d->last;
	if (d->last)
		d->last->next = it;
	else
		d->first = it;
	d->last = it;
	d->n++;
	return it;
}

bool dict_remove(struct dict *d, struct bytes key)
{
	struct item *it = dict_get(d, key), **at;

	if (!it)
		return false;
	at = &d->buckets[bucket(d, key)];
	while (*at != it)
		at = &(*at)->chain;
	*at = it->chain;
	*(it->prev ? &it->prev->next : &d->first) = it->next;
	*(it->next ? &it->next->prev : &d->last) = it->prev;
	d->n--;
	free((char *)it->key.p);
	free((char *)it->value.p);
	free(it);
	return true;
}

void dict_clear(struct dict *d)
{
	while (d->first)
		dict_remove(d, d->first->key);
	free(d->buckets);
	*d = (struct dict){ 0 };
}

void item_set_value(struct item *it, struct bytes value)
{
	struct bytes copy = keep(value);

	free((char *)it->value.p);
	it->value = copy;
}
