/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/glance.h"

static bool differ(const struct glance_counts *a, const struct glance_counts *b)
{
	return a->heard != b->heard || a->found != b->found || a->inferred != b->inferred;
}

bool glance_next(struct glance *g, const struct glance_counts *now, struct glance_counts *add)
{
	/* Without an answer it may have been heeded: the same call again. */
	if (!g->owed) {
		g->asked = *now;
		g->serial++;
	}
	g->owed = true;
	*add = (struct glance_counts){
		g->asked.heard - g->told.heard, g->asked.found - g->told.found,
		g->asked.inferred - g->told.inferred,
	};
	return differ(&g->asked, &g->told);
}

void glance_answered(struct glance *g)
{
	g->told = g->asked;
	g->owed = false;
}

static size_t place_of(const struct glance_set *s, unsigned db)
{
	size_t i = 0;

	while (i < s->n && s->db[i] != db)
		i++;
	return i;
}

/* Whether it was there. */
static bool set_remove(struct glance_set *s, unsigned db)
{
	size_t i = place_of(s, db);

	if (i == s->n)
		return false;
	s->db[i] = s->db[--s->n];
	return true;
}

/* Whether it is new. */
static bool set_add(struct glance_set *s, unsigned db)
{
	if (place_of(s, db) < s->n || s->n == GLANCE_DATABASES)
		return false;
	s->db[s->n++] = db;
	return true;
}

enum glance_news glance_row(struct glance *g, unsigned db, uint64_t looked, uint64_t gone)
{
	if (looked == 0)
		return GLANCE_NOTHING;
	if (gone < looked) {
		set_remove(&g->doubted, db);
		return set_remove(&g->gone, db) ? GLANCE_BACK : GLANCE_NOTHING;
	}
	if (set_add(&g->doubted, db))
		return GLANCE_NOTHING;
	return set_add(&g->gone, db) ? GLANCE_GONE : GLANCE_NOTHING;
}
