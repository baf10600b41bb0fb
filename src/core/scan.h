/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * scan - goes through the keyspace for keys that nothing was heard of.
 *
 *	             a pass is due             steps, one after the other
 *	   RESTING ----------------> GOING ---------------------------------+
 *	      ^                       ^ |  ^                                |
 *	      |        asked for anew | |  +-- more keys -------------------+
 *	      +------------- the end -+-+                                   |
 *	      +-------------------------------------------------------------+
 *
 * A pass is due at the start, after a time without a subscription, when hints
 * were dropped, and every `rescan`.  One that is asked for while another is on
 * its way comes behind it: what that one has passed by would be missed.
 *
 * A step looks at SCAN_COUNT keys, about, and steps are so far apart that
 * `rate` keys a second are looked at.  A step without an answer is made again.
 *
 * Redis remembers how far a pass is.  Who becomes the first of the instances
 * brings the pass of the one before to its end, as long as it has itself heard
 * everything since that pass began; if not, a pass begins: keys that were set
 * unheard may be anywhere.
 */
#ifndef LAPSED_CORE_SCAN_H
#define LAPSED_CORE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"
#include "core/when.h"

#define SCAN_COUNT	100
#define SCAN_PLACE	64	/* of a place in the keyspace, with its NUL */

struct scan_conf {
	bool on;		/* some route asks for it */
	unsigned rate;		/* keys a second */
	usec_t rescan;		/* 0: never again by itself */
	const unsigned *dbs;	/* borrowed */
	size_t n_dbs;		/* 0: all there are */
	struct bytes pattern;	/* that all keys match; empty: several; borrowed */
};

/* A call of scan.lua; borrowed until its answer. */
struct scan_step {
	const char *place;	/* see scan.lua */
	bool begins;		/* it is the first of a pass */
	struct bytes pattern;
	const unsigned *dbs;
	size_t n_dbs;
};

/* Borrowed from the caller. */
struct scan_answer {
	struct bytes place;	/* empty: this was the end; `-`: there was nothing to do */
	uint64_t looked;
	const struct bytes *members;	/* with a TTL that the shadow does not have */
	size_t n;
};

struct scan {
	struct scan_conf conf;
	usec_t next;		/* step, or pass; USEC_NEVER: none by itself */
	usec_t begun;		/* the pass */
	usec_t since;		/* everything was heard */
	bool going, again, owed;
	bool inherits;		/* the pass is one that another may have begun */
	usec_t told;		/* when there was news of the pass */
	uint64_t looked, found;	/* in this pass */
	char place[SCAN_PLACE];
	char asked[SCAN_PLACE];	/* the same, as it is asked for */
	struct scan_step step;
};

/* The first pass is due at once. */
void scan_init(struct scan *s, const struct scan_conf *conf, usec_t now);
/* A scan that is asked for now begins a pass. */
void scan_configure(struct scan *s, const struct scan_conf *conf, usec_t now);

/* Something may have been missed up to now. */
void scan_want(struct scan *s, usec_t now);

/* What another instance may have begun is to be brought to its end. */
void scan_inherit(struct scan *s, usec_t now);

/*
 * NULL before its time; else obliges to scan_answered() or scan_lost().
 * `registered`: what was found up to now is.
 */
const struct scan_step *scan_next(struct scan *s, bool registered, usec_t now);
usec_t scan_deadline(const struct scan *s);

enum scan_news {
	SCAN_NOTHING,
	SCAN_BEGUN,
	SCAN_GOES_ON,		/* for SCAN_TOLD_EVERY since there was news */
	SCAN_DONE,		/* `looked`, `found` and `begun` are of that pass */
};

#define SCAN_TOLD_EVERY	(10 * USEC_PER_SEC)

/* A pass that begins and ends in one step is SCAN_DONE. */
enum scan_news scan_answered(struct scan *s, const struct scan_answer *a, size_t found, usec_t now);
void scan_lost(struct scan *s, usec_t now);

#endif
