/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * route - which watched keys become events, and what kind of events.
 *
 * A set of routes is filled once from the configuration and then only asked,
 * once for each name that Redis tells of, most of which are nobody's.  So the
 * patterns are indexed by the bytes that their matches start or end with: the
 * price of a foreign name hardly depends on the number of routes.
 */
#ifndef LAPSED_CORE_ROUTE_H
#define LAPSED_CORE_ROUTE_H

#include "core/bytes.h"
#include "core/err.h"
#include "core/glob.h"
#include "core/heard.h"
#include "core/template.h"

/* How a key gets into the shadow; a set of bits. */
enum route_register {
	ROUTE_NOTICE = 1 << 0,	/* not at all: its expiry is enough (`none`) */
	ROUTE_APP = 1 << 1,	/* the application says so */
	ROUTE_EVENTS = 1 << 2,	/* the daemon hears of the TTL */
	ROUTE_SCAN = 1 << 3,	/* the daemon finds it by SCAN */
};

enum route_inferred {	/* a key that is gone and that nobody told of */
	ROUTE_EMIT,
	ROUTE_DROP,
};

enum route_evicted {	/* a key that Redis evicted, when that is heard */
	ROUTE_EVICTED_DROP,
	ROUTE_EVICTED_EMIT,
};

enum route_mode {
	ROUTE_BINARY,		/* CloudEvents attributes as headers */
	ROUTE_STRUCTURED,	/* one JSON value */
	ROUTE_RAW,		/* the payload and its own headers */
};

/* A zeroed route is one that says nothing: every default is 0 or NULL. */
struct route {
	struct bytes name;
	const struct bytes *patterns;
	size_t npatterns;	/* at least 1 */
	const struct bytes *excludes;	/* keys that match one of them are not its */
	size_t nexcludes;
	unsigned registers;	/* of enum route_register */
	bool one_db;		/* only keys of database `db`; else of any */
	unsigned db;
	struct bytes topic;
	struct bytes dead_topic;	/* for what Kafka refuses; empty: the default */
	struct bytes key;	/* template of the Kafka key; empty: {key} */
	bool copy;		/* the value is copied */
	size_t max_value;	/* unless it is larger (events, scan) */
	bool refresh;		/* and again whenever it is written to */
	enum route_evicted evicted;
	enum route_inferred inferred;
	enum route_mode mode;
	struct bytes content_type;	/* empty: the default */
	struct bytes type;		/* ce_type; empty: the default */
	const struct template *key_template;	/* set by routes_add() */
};

struct routes;

/* Keys that start with `own` (the namespace, "lapse:{") never match. */
struct routes *routes_new(struct bytes own);
void routes_free(struct routes *rs);	/* accepts NULL */

/*
 * Adds a copy of `route`, behind those that are there.  Refused: a missing
 * name, a name taken, no pattern, a bad one among patterns or excludes, a bad topic, a bad template or
 * one that names a wildcard which one of the patterns lacks.
 */
bool routes_add(struct routes *rs, const struct route *route,
		struct err *err) MUST_CHECK;

/*
 * The first route, in the order they were added, that matches; NULL when there
 * is none.  `captures`, unless NULL, is GLOB_CAPTURES long and filled as by
 * glob_match().
 */
const struct route *routes_match(const struct routes *rs, unsigned db,
				 struct bytes key, struct bytes *captures);

/* What a notification of its expiry is worth. */
enum heard_how route_heard(const struct route *r);

/* All that any route has of enum route_register. */
unsigned routes_registers(const struct routes *rs);

/* The one pattern of all routes that ask for a scan; empty: there are several. */
struct bytes routes_scan_pattern(const struct routes *rs);

/* Whether some route copies values again. */
bool routes_refresh(const struct routes *rs);

size_t routes_count(const struct routes *rs);
const struct route *routes_at(const struct routes *rs, size_t i);
const struct route *routes_named(const struct routes *rs, struct bytes name);

/*
 * Whether some key matches both, so that the later of the two never sees it.
 * Exact but for the own prefix and for excludes, which are not looked at.
 */
bool route_overlaps(const struct route *a, const struct route *b);

#endif
