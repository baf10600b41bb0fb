/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * batch - entries claimed together, from the claim to the settle.
 *
 *	         answer            last outcome          sent
 *	ASKED ----------> OPEN ------------------> READY -----> SETTLING --> gone
 *	  ^ |no answer     |                        ^ |            |  settled
 *	  +-+              |                        | | no answer  |
 *	                   |                        +--------------+
 *	                   |                        `gone` |
 *	                   |                               v
 *	                   |                     LOST --> FORGETTING --> gone
 *	                   v  the slot was lost
 *	               ABANDONED --> gone with the last report
 *
 * An entry is queued for its topic, with the producer, or its outcome is
 * known:
 *
 *	          produced            acknowledged
 *	QUEUED ------------> FLYING ---------------> DONE
 *	  ^ |                 |  |   refused alone
 *	  | |                 |  +-----------------> BURIED
 *	  | |  may pass later |
 *	  +-|---- LATER <-----+   topic refuses
 *	    +-----------------+--------------------> PARKED
 *
 * Where there is a topic for dead letters, an entry that is to be BURIED is
 * QUEUED once more, for that topic, as DEATH_DYING.  Whatever becomes of it
 * there but a resend, it is BURIED then.
 *
 * The batch owns its bytes: members and envelopes lie in one block, and the
 * producer reads payloads from there, so a batch is freed only when none of
 * its entries is FLYING.
 */
#ifndef LAPSED_CORE_BATCH_H
#define LAPSED_CORE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"
#include "core/event.h"
#include "core/when.h"

enum batch_state {
	BATCH_ASKED,		/* its number is used, its content unknown */
	BATCH_OPEN,		/* some outcome is not known yet */
	BATCH_READY,		/* every outcome is known */
	BATCH_SETTLING,		/* settle is with Redis */
	BATCH_LOST,		/* settle found nothing; its lives are to be forgotten */
	BATCH_FORGETTING,	/* that is with Redis */
	BATCH_ABANDONED,	/* somebody else's now; waits for reports only */
};

enum batch_source { BATCH_CLAIMED, BATCH_ADOPTED, BATCH_FETCHED };

enum entry_state {
	ENTRY_QUEUED,
	ENTRY_FLYING,
	ENTRY_LATER,
	ENTRY_DONE,		/* acknowledged, or dropped as its route asks */
	ENTRY_BURIED,
	ENTRY_PARKED,
	ENTRY_LEFT,		/* stays open for whoever adopts it (stop) */
};

/* What an entry that is given up has to do with a topic for dead letters. */
enum entry_death {
	DEATH_PLAIN,		/* nothing, or it lives */
	DEATH_DYING,		/* it goes there, and is BURIED then */
	DEATH_TOLD,		/* BURIED, and the topic has it */
	DEATH_UNTOLD,		/* BURIED; the topic did not take it */
};

struct entry {
	struct batch *batch;
	struct topic *topic;	/* NULL until it is queued */
	struct entry *next;	/* in whichever queue it is */
	struct bytes member;
	struct bytes envelope;
	msec_t due;
	enum entry_state state;
	enum entry_death death;
	bool job;		/* delivered, it waits for its finish */
	bool suspect;		/* was in a refused lot; goes alone */
	uint64_t park_seq;	/* the parked batch it moves to, 0: none yet */
	bool park_first;	/* the first of its batch that moves there */
	char *reason;		/* of a burial; owned */
};

struct batch {
	struct batch *next, **link;	/* in the bridge's list */
	struct batch *ready_next;	/* among those that owe Redis a call */
	enum batch_state state;
	enum batch_source source;
	uint64_t seq;
	enum trigger trigger;
	unsigned from_slot;	/* of an adopted one */
	uint64_t from_seq;
	unsigned adopted;	/* how often it has been */
	size_t reserved;	/* credits held while ASKED */
	size_t bytes;		/* of members and envelopes */
	size_t n;
	size_t undecided;	/* entries without an outcome */
	size_t flying;		/* entries with the producer */
	size_t untold;		/* entries that are DEATH_UNTOLD */
	bool called;		/* a call about it is with Redis */
	bool resent;		/* it was asked for more than once */
	bool resettled;		/* so was its settle */
	unsigned refusals;	/* of an adoption or a fetch, by Redis */
	size_t heard;		/* heard keys that its claim took along */
	struct topic *topic;	/* that a fetched one was parked for */
	struct entry *entries;
	char *block;
};

struct batch *batch_new(uint64_t seq, enum batch_source source);
void batch_free(struct batch *b);	/* accepts NULL; none may be FLYING */

/* Copies the content in.  The batch is OPEN, or READY when there is none. */
void batch_fill(struct batch *b, const struct bytes *members,
		const struct bytes *envelopes, size_t n);

/* The one place where either moves; asserts that the move is legal. */
void batch_move(struct batch *b, enum batch_state to);
void entry_move(struct entry *e, enum entry_state to);

static inline bool entry_over(const struct entry *e)
{
	return e->state >= ENTRY_DONE;
}

#endif
