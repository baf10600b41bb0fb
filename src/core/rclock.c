/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/rclock.h"

/* What clocks may drift apart between two answers. */
#define DRIFT	(100 * USEC_PER_MSEC)

int64_t rclock_sample(struct rclock *c, int64_t redis, usec_t sent, usec_t now)
{
	int64_t least = redis - now, most = redis - sent;
	int64_t back = c->known && most < c->offset - DRIFT ? c->offset - most : 0;

	if (!c->known || c->offset < least)
		c->offset = least;
	else if (c->offset > most)
		c->offset = most;
	c->known = true;
	return back;
}

int64_t rclock_redis(const struct rclock *c, usec_t now)
{
	return c->known ? now + c->offset : 0;
}

usec_t rclock_local(const struct rclock *c, msec_t at, usec_t now)
{
	return c->known ? at * USEC_PER_MSEC - c->offset : now;
}
