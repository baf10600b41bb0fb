/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/rclock.h"

/* A sample this far off means that a clock was set, not that a way was long. */
#define STEP	(2 * USEC_PER_SEC)

int64_t rclock_sample(struct rclock *c, int64_t redis, usec_t now)
{
	int64_t offset = redis - now;
	int64_t back = c->known && offset < c->offset - STEP ? c->offset - offset : 0;

	if (!c->known || offset > c->offset || offset < c->offset - STEP)
		c->offset = offset;
	else
		c->offset -= (c->offset - offset) / 256;	/* clocks drift */
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
