/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * walk - goes through a sorted set from its lowest score, with what a hash
 * has for each member.
 *
 * In pages, so that neither side holds more than a page, and by score rather
 * than by rank, so that what comes and goes meanwhile at other scores moves
 * nothing.
 */
#ifndef LAPSED_CLI_WALK_H
#define LAPSED_CLI_WALK_H

#include "cli/link.h"
#include "core/bytes.h"
#include "core/err.h"

struct walk {
	const char *prefix;
	const char *zset;	/* "due": below the prefix */
	const char *hash;
	const char *max;	/* as in ZRANGEBYSCORE: "+inf", "(1764505800000" */
	size_t limit;		/* members to visit at most */

	/*
	 * The score is 0 if it is no time; the value is bytes_none if the hash
	 * has none.  The bytes are borrowed, and the link is busy meanwhile.
	 * False ends the walk.
	 */
	bool (*visit)(void *arg, struct bytes member, msec_t score, struct bytes value);
	void *arg;
};

/* False when Redis refused; what was visited until then stays visited. */
bool walk_run(const struct walk *w, struct link *l, struct err *err) MUST_CHECK;

#endif
