/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * register - what is asked of register.lua about keys that may have changed.
 *
 * The watch knows what was heard of a key, its route what is wanted of it;
 * src/lua/register.lua has the meaning of the signs.
 */
#ifndef LAPSED_CORE_REGISTER_H
#define LAPSED_CORE_REGISTER_H

#include "core/heard.h"
#include "core/route.h"
#include "core/watch.h"

/* Keys of one call; bounds the run time of the script. */
#define REGISTER_KEYS	200

struct register_key {
	struct bytes member;
	char signs[5];
	bool copy;
	size_t max_value;	/* of what is copied */
	usec_t expired_at;	/* as was last heard; USEC_NEVER: it was not */
	usec_t set_at;		/* when its value was last heard to change, or so */
};

struct register_ask {
	size_t n;
	struct register_key keys[REGISTER_KEYS];
};

/* How many keys ... */
struct register_answer {
	uint64_t registered, moved, unregistered, cancelled;
	uint64_t aside;		/* had expired and were there again */
	uint64_t evicted;	/* of which an event was made, */
	uint64_t dropped;	/* and of which not */
	uint64_t bare;		/* are without their value */
};

/* `keys` is a list, at most REGISTER_KEYS long, from which `ask` borrows; what
 * waits in `heard` has expired, and no claim has been told of it. */
void register_fill(struct register_ask *ask, const struct routes *routes,
		   const struct watch_key *keys, const struct heard *heard);

#endif
