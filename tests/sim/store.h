/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * store - as much of Redis as the scripts of src/lua use, in memory and under
 * a clock that is set by hand.
 *
 * Not a model of the scripts: the simulation runs the real ones on it (host.h).
 * tests/sim/compare plays the same calls to this and to a real server and
 * compares every answer and all keys, so that the two can't drift apart.
 *
 * Expiry is as in Redis: a key exists through its last millisecond; looking at
 * it afterwards deletes it and publishes `expired`; store_expire() is the
 * active cycle, called when the simulation feels like it.  What the commands
 * used here tell of keys is published as with notify-keyspace-events AKE.
 */
#ifndef LAPSED_TESTS_SIM_STORE_H
#define LAPSED_TESTS_SIM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/bytes.h"

#define STORE_DBS	4

struct store;

enum reply_kind { REPLY_NIL, REPLY_INT, REPLY_STR, REPLY_STATUS, REPLY_ERROR, REPLY_ARRAY };

struct reply {
	enum reply_kind kind;
	int64_t integer;
	struct bytes str;		/* owned */
	struct reply *items;		/* owned */
	size_t n;
};

/* What is published, keyspace events included. */
typedef void store_publish(void *arg, struct bytes channel, struct bytes message);

struct store *store_new(store_publish *publish, void *arg);
void store_free(struct store *s);	/* accepts NULL */

/* The same content, for a server that comes back as it once was. */
struct store *store_clone(const struct store *s);

/* The clock, microseconds since the epoch; it may go back. */
void store_set_time(struct store *s, int64_t us);
int64_t store_time(const struct store *s);

/* While set, writes that need memory are refused until one has been done. */
void store_set_oom(struct store *s, bool oom);
/* Brackets a script: the database is 0 again, and nothing written yet. */
void store_begin(struct store *s);

/* One command.  The caller owes reply_clear(). */
void store_call(struct store *s, size_t argc, const struct bytes *argv, struct reply *out);

/* Deletes up to `n` overdue keys. */
void store_expire(struct store *s, size_t n);

/* Evicts it; false when it is not there. */
bool store_evict(struct store *s, unsigned db, struct bytes key);

/* Every key that is overdue and was not looked at since. */
typedef void store_overdue(void *arg, unsigned db, struct bytes key);
void store_each_overdue(const struct store *s, store_overdue *f, void *arg);

/*
 * All keys with their content, in a fixed order, for comparing; not those that
 * are overdue.
 */
void store_dump(struct store *s, struct buf *out);
/* How many keys there are in all databases. */
size_t store_keys(const struct store *s);

void reply_clear(struct reply *r);

#endif
