/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * canary - does what Redis publishes reach us?
 *
 * A subscription that is cut off without a word looks like a quiet one.  So
 * every interval one script says a word on the wake channel, looks at a key
 * that ran out since the last time, which makes Redis publish its expiry, and
 * sets that key anew.  Both must be heard by the next interval:
 *
 *	no word			the link is dead, or a proxy swallows it
 *	no expiry, twice	notify-keyspace-events, or the ACL
 *
 * This proves flag, rights, subscription and link at once, and needs neither
 * CONFIG nor PING (which hiredis 0.14 can't do while subscribed).
 */
#ifndef LAPSED_CORE_CANARY_H
#define LAPSED_CORE_CANARY_H

#include <stdbool.h>

struct canary {
	bool keys;		/* expiries are subscribed to */
	bool answered, word;	/* the last call, and its word: either comes first */
	unsigned owed, heard;	/* expiries, since the subscription */
	unsigned missed;	/* intervals in a row without the expiry */
	bool silent;		/* so many that it was told */
};

enum canary_verdict {
	CANARY_FINE,
	CANARY_DEAF,		/* subscribe anew */
	CANARY_SILENT,		/* expiries are not published; told once */
	CANARY_BACK,		/* they are again; told once */
};

/* A new subscription owes nothing.  What was told stays told. */
void canary_subscribed(struct canary *c, bool keys);

/* The script was answered; `looked` at a key that had run out. */
void canary_answered(struct canary *c, bool looked);

void canary_word(struct canary *c);
void canary_expiry(struct canary *c);

/* Once per interval, before the next call. */
enum canary_verdict canary_tick(struct canary *c);

#endif
