/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/claims.h"

void claims_init(struct claims *c, bool listens, usec_t grace, usec_t sweep_interval,
		 usec_t now)
{
	*c = (struct claims){
		.listens = listens, .grace = grace, .sweep_interval = sweep_interval,
		.next = -1, .meanwhile = -1, .sweep_at = now, .last = now,
	};
}

static msec_t sooner(msec_t a, msec_t b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

void claims_wake(struct claims *c, msec_t due)
{
	if (c->asked)
		c->meanwhile = sooner(c->meanwhile, due);
	else if (c->next < 0 || due < c->next) {
		c->next = due;
		c->woken = true;
	}
}

void claims_sweep(struct claims *c, usec_t now)
{
	c->sweep_at = now;
}

static usec_t after_the_others(const struct claims *c, unsigned rank, usec_t at)
{
	if (rank == 0 || c->stand_in)
		return at;
	at += rank * c->grace;
	return at > c->last + c->grace ? at : c->last + c->grace;
}

usec_t claims_at(const struct claims *c, const struct rclock *clock, unsigned rank,
		 usec_t heard, usec_t now)
{
	usec_t at = c->sweep_at;

	/* A sweeper goes on while it finds something, and then rests. */
	if (!c->listens)
		return c->stand_in ? c->last : at;
	if (c->next >= 0) {
		usec_t t = after_the_others(c, rank, rclock_local(clock, c->next, now));

		at = t < at ? t : at;
	}
	if (heard != USEC_NEVER) {
		usec_t t = after_the_others(c, rank, heard);

		at = t < at ? t : at;
	}
	return at;
}

enum trigger claims_ask(struct claims *c, usec_t now)
{
	enum trigger t = c->woken ? TRIGGER_WAKE : TRIGGER_TIMER;

	c->asked = true;
	c->meanwhile = -1;
	if (now < c->sweep_at)
		return t;
	c->sweep_at = now + c->sweep_interval;
	return TRIGGER_SWEEP;
}

void claims_answer(struct claims *c, msec_t next, size_t found, usec_t now)
{
	c->stand_in = found > 0;
	c->asked = false;
	c->woken = c->meanwhile >= 0 && sooner(next, c->meanwhile) == c->meanwhile;
	c->next = sooner(next, c->meanwhile);
	c->last = now;
}

void claims_lost(struct claims *c, usec_t now)
{
	c->asked = false;
	claims_sweep(c, now);
}
