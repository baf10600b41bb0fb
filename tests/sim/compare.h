/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * compare - the store of the simulation against a real redis-server, and who
 * plays to them: calls with arguments from small sets, so that they meet.
 */
#ifndef LAPSED_TESTS_SIM_COMPARE_H
#define LAPSED_TESTS_SIM_COMPARE_H

#include <stdbool.h>

#include "core/bytes.h"
#include "host.h"
#include "store.h"

#define DATABASE	2	/* of the keys below the prefix */
#define PREFIX		"lapse:{0}"
#define CALL_ARGS	60

/* A script when it has keys (argv[0] is its name), else a plain command. */
struct call_text {
	unsigned db;
	size_t nkeys, argc;
	bool unordered;		/* what is behind the first two items of the answer */
	struct bytes argv[CALL_ARGS];
};

struct sides;
struct player;

/* compare.c: the answer is the same on both sides, or it does not return. */
const struct reply *both(struct sides *s, const struct call_text *call);
int64_t sides_ms(const struct sides *s);
void sides_oom(struct sides *s, bool oom);

/* player.c */
struct player *player_new(struct sides *s, uint64_t seed);
void player_free(struct player *p);
void player_reset(struct player *p);		/* all keys are gone */
int64_t player_pause(struct player *p);		/* until the next call, us */
void player_act(struct player *p);
uint64_t player_accepted(const struct player *p);

/* The same, for others: a call is begun, gets its arguments, and goes. */
uint64_t player_below(struct player *p, uint64_t n);
void player_begin(struct player *p, const char *name, size_t nkeys, unsigned db);
void player_arg(struct player *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const struct reply *player_go(struct player *p, bool unordered);

/* player_keys.c */
void player_keys_act(struct player *p, const struct sides *s);

#endif
