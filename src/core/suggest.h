/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * suggest - the name that was probably meant.
 *
 * Start with the word that nobody knows, offer every name there is, and ask
 * for the best: the one with the fewest letters added, left out, changed or
 * swapped with the next (case does not count), provided it is near enough to
 * be worth mentioning.
 *
 *	struct suggest s = suggest_for("patern");
 *	for (...)
 *		suggest_offer(&s, table[i].name);
 *	if (s.best)
 *		... "did you mean %s?"
 */
#ifndef LAPSED_CORE_SUGGEST_H
#define LAPSED_CORE_SUGGEST_H

#include <stddef.h>

struct suggest {
	const char *word;
	const char *best;	/* borrowed from what was offered; NULL: none */
	size_t distance;	/* of a name that would be better: less than this */
};

struct suggest suggest_for(const char *word);
void suggest_offer(struct suggest *s, const char *name);

/* For a plain list; NULL when none is near. */
const char *suggest_of(const char *word, const char *const names[], size_t n);

#endif
