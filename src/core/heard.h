/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * heard - watched keys that Redis said have expired, until a claim asks.
 *
 * Bounded: past its limits a notification is dropped and counted, since the
 * subscription must be read whatever happens; what is in the shadow is then
 * found by timer and sweep.
 *
 * Our own look at a due key makes Redis publish its expiry to everybody, us
 * included.  Such an echo is expected (heard_expect) and swallowed, rather
 * than asked about.
 */
#ifndef LAPSED_CORE_HEARD_H
#define LAPSED_CORE_HEARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"
#include "core/when.h"

/* What a notification is worth. */
enum heard_how {
	HEARD_LISTED,		/* the key is claimed if it is in the shadow, */
	HEARD_ANYWAY,		/* or even if not, */
	HEARD_SURE,		/* or even if it is there again: the shadow follows
				   whatever is heard, so it was that life */
};

struct heard_key {
	struct bytes member;	/* k:<db>:<key>, owned by the list */
	enum heard_how anyway;
	usec_t at;
	usec_t since;		/* it was published between then and `at` */
	uint64_t chain;		/* the one before of the same hash: its number + 1, or 0 */
};

struct heard;

struct heard *heard_new(size_t max_keys, size_t max_bytes);
void heard_free(struct heard *h);	/* accepts NULL */

enum heard_result { HEARD_KEPT, HEARD_ECHO, HEARD_DROPPED };

enum heard_result heard_add(struct heard *h, struct bytes member, enum heard_how how,
			    usec_t now);

/*
 * What is added from now on was published after `since`: it may have waited on
 * its way to us, or we did not run.  Unless told, it is fresh.
 */
void heard_since(struct heard *h, usec_t since);

/* The next notification of `member` is the echo of our own look. */
void heard_expect(struct heard *h, struct bytes member, usec_t now);

/* Nothing was heard for a while: none of the echoes that are expected will come. */
void heard_gap(struct heard *h);

/*
 * The oldest `*n` keys at most, `*n` set to how many; valid until the next
 * call of any other function.  They stay until heard_done().
 */
const struct heard_key *heard_peek(struct heard *h, size_t *n, usec_t now);
void heard_done(struct heard *h, size_t n);
bool heard_all(const struct heard *h, size_t n);	/* whether these were all */

/* When `member` was last heard, of those that wait; USEC_NEVER: it is none of them. */
usec_t heard_waits(const struct heard *h, struct bytes member);

/* When the oldest was heard; USEC_NEVER when there is none. */
usec_t heard_oldest(const struct heard *h);

#endif
