/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * lease - the slot that this instance holds, and who else is alive.
 *
 *	          join asked            answer
 *	   OUT ---------------> JOINING --------> HELD --+ renew, three times
 *	    ^                     |                |  ^--+ in each lease
 *	    |     no answer       |                |
 *	    +---------------------+     leave asked|
 *	    ^        fenced                        v
 *	    +------------------- HELD           LEAVING ------> LEFT
 *
 * A slot is a small number; each stay in it has an epoch and a nonce, and
 * every script checks both.  Whoever finds its epoch gone is OUT and joins
 * anew.  The others alive give the rank: 0 acts at once, r waits r times the
 * grace period (rendezvous hashing, so that the loss of one moves only its
 * share).
 */
#ifndef LAPSED_CORE_LEASE_H
#define LAPSED_CORE_LEASE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/when.h"

#define LEASE_NONCE_LEN	32
#define LEASE_PEERS	64	/* beyond these, instances rank last */

enum lease_state { LEASE_OUT, LEASE_JOINING, LEASE_HELD, LEASE_LEAVING, LEASE_LEFT };

struct lease {
	enum lease_state state;
	usec_t term;			/* how long a lease lasts */
	char seed[LEASE_NONCE_LEN];	/* unique to this process */
	unsigned joins;

	/* While HELD: */
	char nonce[LEASE_NONCE_LEN + 12];
	unsigned slot;
	uint64_t epoch;
	uint64_t seq;			/* the highest used */
	unsigned rank;
	unsigned live;			/* instances alive, this one included */

	usec_t next;			/* when to join or renew */
	bool owed;			/* a renewal is being answered */
};

/* `seed` is random and unique to the process, without a colon. */
void lease_init(struct lease *l, usec_t term, const char *seed);

/* What the lease wants now; each true obliges to the answer or lease_lost. */
bool lease_wants_join(struct lease *l, usec_t now);
bool lease_wants_renew(struct lease *l, usec_t now);

/* When one of them may next say true. */
usec_t lease_deadline(const struct lease *l);

/* The answers.  `slots` of the live holders, `ends` when each lease ends. */
void lease_joined(struct lease *l, unsigned slot, uint64_t epoch, uint64_t seq, usec_t now);
void lease_renewed(struct lease *l, const unsigned *slots, const usec_t *ends, size_t n,
		   usec_t now);

/* Renew at the next turn: somebody left, or the connection is new. */
void lease_hurry(struct lease *l, usec_t now);

/* No answer came; ask again, `now` if the connection is back, else later. */
void lease_lost(struct lease *l, usec_t again);

/* The epoch is gone: join anew. */
void lease_fenced(struct lease *l, usec_t now);

#endif
