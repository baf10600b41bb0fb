/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * glob - patterns of key names, as in Redis' KEYS.
 *
 *   *        any bytes, also none
 *   ?        one byte
 *   [abc]    one of these bytes; [a-z] a range, also when reversed
 *   [^abc]   one byte that is none of these
 *   \x       the byte x, inside brackets too
 *
 * Matches exactly what stringmatchlen() of Redis 7.0.15 matches (case
 * counts), oddities included: a bracket that is not closed ends with the
 * pattern, a backslash at the end stands for itself, `[]` matches nothing,
 * `[a-]` is a range up to `]`, and no `*` matches a name of no bytes.
 * glob_check() refuses what is odd, so that it is not met by accident.
 *
 * The work is at most |pattern| x |name| steps, however many `*` there are,
 * and nothing recurses.
 */
#ifndef LAPSED_CORE_GLOB_H
#define LAPSED_CORE_GLOB_H

#include <stdint.h>

#include "core/bytes.h"
#include "core/err.h"

/* A longer pattern is refused: no name that we watch is longer. */
#define GLOB_MAX	1024

/* How many wildcards are captured. */
#define GLOB_CAPTURES	9

/*
 * Whether `name` matches.  `captures`, unless NULL, gets what the 1st to 9th
 * wildcard matched, borrowed from `name`; each `*`, `?` and `[...]` counts.
 * Each `*` takes as few bytes as it can, from left to right: `a:*:*` finds
 * "b" and "c:d" in a:b:c:d.  What the pattern does not have is bytes_none,
 * and so is everything when there is no match.
 */
bool glob_match(struct bytes pattern, struct bytes name,
		struct bytes captures[GLOB_CAPTURES]);

/*
 * Whether `pattern` may stand in a configuration: 1 to GLOB_MAX bytes, no
 * open bracket, no empty one, no backslash at the end, no range from an ASCII
 * byte to another (what it matches depends on the machine that Redis was
 * compiled for).
 */
bool glob_check(struct bytes pattern, struct err *err) MUST_CHECK;

/* How many wildcards `pattern` has. */
size_t glob_wildcards(struct bytes pattern);

/* The least number of bytes of a name that matches. */
size_t glob_min(struct bytes pattern);

/*
 * The bytes that every match starts (ends) with, at most `cap` of them; how
 * many were written to `out`.  The ending is the last of those bytes.
 */
size_t glob_prefix(struct bytes pattern, char *out, size_t cap);
size_t glob_suffix(struct bytes pattern, char *out, size_t cap);

/*
 * A set of pairs of adjacent bytes, hashed to bits.  A name can match only if
 * it has every pair that stands literally in the pattern, which rules out most
 * of many patterns at the price of a few instructions each.
 */
struct glob_pairs {
	uint64_t bits[4];
};

void glob_pairs_needed(struct bytes pattern, struct glob_pairs *out);
void glob_pairs_had(struct bytes name, struct glob_pairs *out);

static inline bool glob_pairs_within(const struct glob_pairs *needed,
				     const struct glob_pairs *had)
{
	return !((needed->bits[0] & ~had->bits[0]) |
		 (needed->bits[1] & ~had->bits[1]) |
		 (needed->bits[2] & ~had->bits[2]) |
		 (needed->bits[3] & ~had->bits[3]));
}

/*
 * Whether some name matches both.  Exact for patterns that glob_check()
 * takes; true when one is longer than GLOB_MAX.  At most |a| x |b| steps.
 */
bool glob_overlap(struct bytes a, struct bytes b);

#endif
