/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Nobody means a longer name. */
#define NAME_MAX_LEN	64

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/*
 * Edit distance with swaps of neighbours ("optimal string alignment"); row[k]
 * of the last three rows is the distance between the first letters of both.
 */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][NAME_MAX_LEN + 1];

	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= na; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];
		const size_t *second = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			row[j] = above[j - 1] + !same(a[i - 1], b[j - 1]);
			row[j] = min2(row[j], min2(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) &&
			    same(a[i - 2], b[j - 1]))
				row[j] = min2(row[j], second[j - 2] + 1);
		}
	}
	return rows[na % 3][nb];
}

/* A third of the letters may be wrong, one always, but never all of them. */
struct suggest suggest_for(const char *word)
{
	size_t n = strlen(word);
	size_t near = n / 3 > 1 ? n / 3 : 1;

	return (struct suggest){ word, NULL, n > near ? near + 1 : n };
}

void suggest_offer(struct suggest *s, const char *name)
{
	size_t nw = strlen(s->word);
	size_t nn = strlen(name);
	size_t d;

	if (nw > NAME_MAX_LEN || nn > NAME_MAX_LEN)
		return;
	d = distance(s->word, nw, name, nn);
	if (d < s->distance) {
		s->distance = d;
		s->best = name;
	}
}

const char *suggest_of(const char *word, const char *const names[], size_t n)
{
	struct suggest s = suggest_for(word);

	for (size_t i = 0; i < n; i++)
		suggest_offer(&s, names[i]);
	return s.best;
}
