/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * host - runs the scripts of src/lua on a store, as Redis would.
 *
 * Lua 5.1 itself, with redis.call, redis.pcall and redis.error_reply, and of
 * Redis' struct library the formats that our scripts use.
 */
#ifndef LAPSED_TESTS_SIM_HOST_H
#define LAPSED_TESTS_SIM_HOST_H

#include "store.h"

struct host;

/*
 * `version` is REDIS_VERSION_NUM, such as 0x070000; 0: Redis 6.2 has none.
 * `database` is that of the keys below the prefix.
 */
struct host *host_new(unsigned version, int database);
void host_free(struct host *h);		/* accepts NULL */

/*
 * Runs script `name` ("claim"); the first `nkeys` of `argv` are its keys.  The caller
 * owes reply_clear(); an error of Lua itself ends the simulation, since ours
 * have none.
 */
void host_run(struct host *h, struct store *s, const char *name, size_t nkeys,
	      size_t argc, const struct bytes *argv, struct reply *out);

#endif
