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

enum route_template { ROUTE_TOPIC, ROUTE_KEY, ROUTE_TYPE, ROUTE_SUBJECT, ROUTE_TEMPLATES };

/* A zeroed route is one that says nothing: every default is 0 or NULL. */
struct route {
	struct bytes name;
	const struct bytes *patterns;
	size_t npatterns;	/* at least 1 */
	const struct bytes *excludes;	/* keys that match one of them are not its */
	size_t nexcludes;
	unsigned registers;	/* of enum route_register */
	const unsigned *dbs;	/* only keys of these databases */
	size_t ndbs;		/* 0: of any */
	struct bytes topic;	/* a template, as are key, type and subject */
	const struct bytes *topics;	/* patterns of those that may come of it */
	size_t ntopics;
	struct bytes dead_topic;	/* for what Kafka refuses; empty: the default */
	struct bytes key;		/* the Kafka key; empty: {key} */
	bool copy;		/* the value is copied */
	size_t max_value;	/* unless it is larger (events, scan) */
	bool refresh;		/* and again whenever it is written to */
	enum route_evicted evicted;
	enum route_inferred inferred;
	enum route_mode mode;
	struct bytes content_type;	/* empty: the default */
	struct bytes type;		/* ce_type; empty: the default */
	struct bytes subject;		/* ce_subject; empty: {key} */
	/* Set by routes_add(); NULL: the text is taken as it is, or there is none.
	 * That of the key is always there. */
	const struct template *templates[ROUTE_TEMPLATES];
};

struct routes;

/* Keys that start with `own` (the namespace, "lapse:{") never match. */
struct routes *routes_new(struct bytes own);
void routes_free(struct routes *rs);	/* accepts NULL */

/*
 * Adds a copy of `route`, behind those that are there.  Refused: a missing
 * name, a name taken, no pattern, a bad one among patterns, excludes or topics,
 * a bad topic, a bad template or one that names a wildcard which one of the
 * patterns lacks, and a topic with places to fill in but no `topics`.
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

/* Whether `topic` is one that may come of the route's template. */
bool route_allows(const struct route *r, struct bytes topic);

/* The template of `part` as it is written, and what the configuration calls it. */
struct bytes route_template_text(const struct route *r, enum route_template part);
const char *route_template_name(enum route_template part);

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
