/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/lease.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Look again this long after another's lease should have ended. */
#define PEER_SLACK	(50 * USEC_PER_MSEC)

void lease_init(struct lease *l, usec_t term, const char *seed)
{
	memset(l, 0, sizeof *l);
	l->term = term;
	snprintf(l->seed, sizeof l->seed, "%s", seed);
}

bool lease_wants_join(struct lease *l, usec_t now)
{
	if (l->state != LEASE_OUT || now < l->next)
		return false;
	snprintf(l->nonce, sizeof l->nonce, "%s.%u", l->seed, l->joins);
	l->state = LEASE_JOINING;
	return true;
}

bool lease_wants_renew(struct lease *l, usec_t now)
{
	if (l->state != LEASE_HELD || l->owed || now < l->next)
		return false;
	l->owed = true;
	return true;
}

usec_t lease_deadline(const struct lease *l)
{
	if (l->state == LEASE_OUT || (l->state == LEASE_HELD && !l->owed))
		return l->next;
	return USEC_NEVER;
}

void lease_joined(struct lease *l, unsigned slot, uint64_t epoch, uint64_t seq, usec_t now)
{
	assert(l->state == LEASE_JOINING);
	l->state = LEASE_HELD;
	l->slot = slot;
	l->epoch = epoch;
	l->seq = seq;
	l->rank = 0;
	l->live = 1;
	l->owed = false;
	l->next = now;		/* a renewal tells who else is alive */
}

/* The weight of a slot; the highest acts first (rendezvous hashing). */
static uint64_t weight(unsigned slot)
{
	uint64_t x = slot + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

void lease_renewed(struct lease *l, const unsigned *slots, const usec_t *ends, size_t n,
		   usec_t now)
{
	if (l->state != LEASE_HELD)
		return;
	l->owed = false;
	l->next = now + l->term / 3;
	l->rank = 0;
	l->live = (unsigned)n;
	for (size_t i = 0; i < n; i++) {
		if (slots[i] == l->slot)
			continue;
		if (weight(slots[i]) > weight(l->slot))
			l->rank++;
		if (ends[i] + PEER_SLACK < l->next)
			l->next = ends[i] + PEER_SLACK;
	}
}

void lease_hurry(struct lease *l, usec_t now)
{
	if (l->next > now)
		l->next = now;
}

void lease_lost(struct lease *l, usec_t again)
{
	if (l->state == LEASE_JOINING)
		l->state = LEASE_OUT;	/* same nonce: the same slot again */
	l->owed = false;
	l->next = again;
}

void lease_fenced(struct lease *l, usec_t now)
{
	if (l->state == LEASE_LEFT)
		return;
	l->state = l->state == LEASE_LEAVING ? LEASE_LEFT : LEASE_OUT;
	l->owed = false;
	l->joins++;
	l->next = now;
}
