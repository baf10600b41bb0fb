/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/register.h"

#include <assert.h>

#include "core/record.h"

static const struct route *route_of(const struct routes *routes, struct bytes member)
{
	struct member m;

	return member_parse(member, &m, NULL) ? routes_match(routes, m.db, m.name, NULL) : NULL;
}

static void signs_write(char *to, const struct watch_key *k, const struct route *route)
{
	if (k->last == WATCH_DELETED)
		*to++ = 'd';
	if (k->last == WATCH_EVICTED)
		*to++ = 'v';
	if (route && route->evicted == ROUTE_EVICTED_EMIT)
		*to++ = 'e';
	*to = '\0';
}

static void key_fill(struct register_key *to, const struct watch_key *k,
		     const struct route *route, usec_t waits)
{
	to->member = k->member;
	signs_write(to->signs, k, route);
	to->copy = route && route->copy;
	to->max_value = route ? route->max_value : 0;
	to->set_at = k->set ? k->set_at : USEC_NEVER;
	to->expired_at = k->expired_at;
	if (waits != USEC_NEVER && (k->expired_at == USEC_NEVER || waits > k->expired_at))
		to->expired_at = waits;
}

/* A reload may have taken a key's route away: it is none of ours then. */
void register_fill(struct register_ask *ask, const struct routes *routes,
		   const struct watch_key *keys, const struct heard *heard)
{
	ask->n = 0;
	for (const struct watch_key *k = keys; k; k = k->next) {
		const struct route *route = route_of(routes, k->member);

		assert(ask->n < REGISTER_KEYS);
		if (route)
			key_fill(&ask->keys[ask->n++], k, route,
				 heard_waits(heard, k->member));
	}
}
