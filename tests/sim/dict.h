/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * dict - byte strings to items, for the store of the simulation.
 *
 * Walks in the order of insertion, so that a run depends on its seed alone.
 */
#ifndef LAPSED_TESTS_SIM_DICT_H
#define LAPSED_TESTS_SIM_DICT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/bytes.h"

struct item {
	struct item *chain;		/* in its bucket */
	struct item *prev, *next;	/* in order of insertion */
	struct bytes key;		/* owned */
	struct bytes value;		/* owned; of a hash */
	double score;			/* of a sorted set */
	void *object;			/* of a database; not owned */
};

struct dict {
	struct item **buckets;
	size_t nbuckets, n;
	struct item *first, *last;
};

struct item *dict_get(const struct dict *d, struct bytes key);
/* The item of `key`, made if it is not there (*fresh tells). */
struct item *dict_put(struct dict *d, struct bytes key, bool *fresh);
bool dict_remove(struct dict *d, struct bytes key);
void dict_clear(struct dict *d);

void item_set_value(struct item *it, struct bytes value);

#endif
