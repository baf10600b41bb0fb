/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/canary.h"

#define PATIENCE	2	/* intervals */

void canary_subscribed(struct canary *c, bool keys)
{
	*c = (struct canary){ .keys = keys, .silent = c->silent };
}

void canary_answered(struct canary *c, bool looked)
{
	c->answered = true;
	c->owed += looked && c->keys;
}

void canary_word(struct canary *c)
{
	c->word = true;
}

void canary_expiry(struct canary *c)
{
	c->heard++;
}

enum canary_verdict canary_tick(struct canary *c)
{
	bool complete = c->heard >= c->owed, any = c->owed > 0;
	bool deaf = c->answered && !c->word;

	c->answered = c->word = false;
	if (deaf)
		return CANARY_DEAF;
	c->owed = c->heard = 0;
	c->missed = complete ? 0 : c->missed + 1;
	if (!c->silent && c->missed >= PATIENCE) {
		c->silent = true;
		return CANARY_SILENT;
	}
	if (c->silent && complete && any) {
		c->silent = false;
		return CANARY_BACK;
	}
	return CANARY_FINE;
}
