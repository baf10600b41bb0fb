/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/route.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/mem.h"
#include "core/record.h"

/*
 * The index.  A pattern is filed under its edge, the literal bytes that its
 * matches start with, or under those that they end with, whichever it shares
 * with fewer patterns; one without either is tried for every key.  A key is
 * hashed byte by byte from both of its sides, and where edges of that length
 * exist, those with the same hash are looked at.
 */
#define EDGE_MAX	32
#define HASH_START	UINT32_C(2166136261)
#define NOWHERE		UINT32_MAX

enum side { SIDE_START, SIDE_END, SIDES };

struct edge {
	char p[EDGE_MAX];
	uint8_t n;
	uint32_t hash;
};

struct pattern {
	struct bytes text;	/* borrowed from its route */
	uint32_t route;
	size_t min;		/* bytes of the shortest match */
	struct edge edges[SIDES];
	struct glob_pairs pairs;	/* that a match has */
	uint32_t next;		/* in its chain, by falling precedence */
};

struct index {
	uint32_t *heads;	/* by hash */
	uint32_t *counts;	/* how many patterns have an edge of that hash */
	uint32_t lengths;	/* bit n - 1: there are edges of n bytes */
};

struct routes {
	char *own;
	size_t own_n;
	struct route **v;
	size_t n;
	struct pattern *patterns;
	size_t npatterns;
	struct index sides[SIDES];
	uint32_t mask;		/* of the tables of both sides */
	uint32_t loose;		/* the patterns without an edge */
};

static uint32_t hash_add(uint32_t h, char c)
{
	return (h ^ (unsigned char)c) * UINT32_C(16777619);
}

/* Multiplication leaves the low bits poor. */
static uint32_t slot_of(const struct routes *rs, uint32_t h)
{
	return (h ^ h >> 15) & rs->mask;
}

/* The `i`th byte, counted from one side or the other. */
static char byte_at(struct bytes b, enum side side, size_t i)
{
	return b.p[side == SIDE_START ? i : b.n - 1 - i];
}

static void edge_hash(struct edge *e, enum side side)
{
	e->hash = HASH_START;
	for (size_t i = 0; i < e->n; i++)
		e->hash = hash_add(e->hash, byte_at(bytes_of(e->p, e->n), side, i));
}

struct routes *routes_new(struct bytes own)
{
	struct routes *rs = mem_alloc(1, sizeof *rs);

	rs->own = mem_copy(own);
	rs->own_n = own.n;
	rs->loose = NOWHERE;
	return rs;
}

static void list_free(const struct bytes *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((char *)list[i].p);
	free((struct bytes *)list);
}

static void route_free(struct route *r)
{
	list_free(r->patterns, r->npatterns);
	list_free(r->excludes, r->nexcludes);
	list_free(r->topics, r->ntopics);
	free((unsigned *)r->dbs);
	free((char *)r->name.p);
	free((char *)r->topic.p);
	free((char *)r->dead_topic.p);
	free((char *)r->key.p);
	free((char *)r->content_type.p);
	free((char *)r->type.p);
	free((char *)r->subject.p);
	for (size_t i = 0; i < ROUTE_TEMPLATES; i++)
		template_free((struct template *)r->templates[i]);
	free(r);
}

void routes_free(struct routes *rs)
{
	if (!rs)
		return;
	for (size_t i = 0; i < rs->n; i++)
		route_free(rs->v[i]);
	for (int side = 0; side < SIDES; side++) {
		free(rs->sides[side].heads);
		free(rs->sides[side].counts);
	}
	free(rs->v);
	free(rs->patterns);
	free(rs->own);
	free(rs);
}

static struct bytes copy(struct bytes b)
{
	return b.p ? bytes_of(mem_copy(b), b.n) : bytes_none;
}

static struct bytes *copies(const struct bytes *from, size_t n)
{
	struct bytes *to = mem_alloc(n, sizeof *to);

	for (size_t i = 0; i < n; i++)
		to[i] = copy(from[i]);
	return to;
}

static struct route *route_copy(const struct route *from)
{
	struct route *r = mem_alloc(1, sizeof *r);

	*r = *from;
	memset(r->templates, 0, sizeof r->templates);
	r->patterns = copies(from->patterns, from->npatterns);
	r->excludes = copies(from->excludes, from->nexcludes);
	r->topics = copies(from->topics, from->ntopics);
	r->dbs = (unsigned *)mem_copy(bytes_of((const char *)from->dbs,
					       from->ndbs * sizeof *from->dbs));
	r->name = copy(from->name);
	r->topic = copy(from->topic);
	r->dead_topic = copy(from->dead_topic);
	r->key = copy(from->key);
	r->content_type = copy(from->content_type);
	r->type = copy(from->type);
	r->subject = copy(from->subject);
	return r;
}

/* The patterns are good; *wildcards is what the poorest of them has. */
static bool patterns_check(const struct route *r, size_t *wildcards,
			   struct err *err)
{
	struct err why;

	if (!r->npatterns)
		return err_set(err, "it has no pattern");
	*wildcards = SIZE_MAX;
	for (size_t i = 0; i < r->npatterns; i++) {
		size_t n = glob_wildcards(r->patterns[i]);

		if (!glob_check(r->patterns[i], &why))
			return err_set(err, "pattern: %s", why.text);
		if (n < *wildcards)
			*wildcards = n;
	}
	for (size_t i = 0; i < r->nexcludes; i++)
		if (!glob_check(r->excludes[i], &why))
			return err_set(err, "exclude: %s", why.text);
	return true;
}

struct bytes route_template_text(const struct route *r, enum route_template part)
{
	switch (part) {
	case ROUTE_TOPIC:
		return r->topic;
	case ROUTE_KEY:
		return r->key.n ? r->key : BYTES("{key}");
	case ROUTE_TYPE:
		return r->type;
	case ROUTE_SUBJECT:
	case ROUTE_TEMPLATES:
		break;
	}
	return r->subject;
}

const char *route_template_name(enum route_template part)
{
	static const char *const names[] = {
		[ROUTE_TOPIC] = "topic", [ROUTE_KEY] = "key", [ROUTE_TYPE] = "type",
		[ROUTE_SUBJECT] = "subject",
	};

	return names[part];
}

/* It may be legal, if the places are filled in with harmless bytes. */
static bool topic_may_be(const struct template *t)
{
	static const struct bytes harmless[GLOB_CAPTURES] = {
		{ "x", 1 }, { "x", 1 }, { "x", 1 }, { "x", 1 }, { "x", 1 },
		{ "x", 1 }, { "x", 1 }, { "x", 1 }, { "x", 1 },
	};
	/* Every ce_id has a colon. */
	const struct template_values v = { BYTES("x"), BYTES("k:0:x@1.0"), 0, harmless };
	struct buf b = { 0 };
	bool may;

	template_write(t, &v, &b);
	may = topic_valid(buf_view(&b));
	buf_clear(&b);
	return may;
}

static bool topic_check(const struct route *r, struct err *err)
{
	const struct template *t = r->templates[ROUTE_TOPIC];
	struct err why;

	for (size_t i = 0; i < r->ntopics; i++)
		if (!glob_check(r->topics[i], &why))
			return err_set(err, "topics: %s", why.text);
	if (!r->topic.n)
		return err_set(err, "topic: missing");
	if (t ? !topic_may_be(t) : !topic_valid(r->topic))
		return err_set(err, "topic: %s1 to 249 of A-Za-z0-9._- are allowed",
			       t ? "no key makes a topic of it: " : "");
	if (t && !r->ntopics)
		return err_set(err, "topic: it depends on the key, so topics has to say which may"
			       " come of it, such as orders-*");
	if (!t && r->ntopics)
		return err_set(err, "topics: it is for a topic with places to fill in, such as"
			       " orders-{1}");
	if (r->dead_topic.n && !topic_valid(r->dead_topic))
		return err_set(err, "dead-letter topic: "
			       "1 to 249 of A-Za-z0-9._- are allowed");
	return true;
}

/* Parses the templates into r->templates; on failure some are there. */
static bool templates_parse(struct route *r, size_t wildcards, struct err *err)
{
	struct err why;

	for (int part = 0; part < ROUTE_TEMPLATES; part++) {
		struct bytes text = route_template_text(r, (enum route_template)part);

		if (part != ROUTE_KEY && !memchr(text.p ? text.p : "", '{', text.n) &&
		    !memchr(text.p ? text.p : "", '}', text.n))
			continue;
		r->templates[part] = template_new(text, wildcards, &why);
		if (!r->templates[part])
			return err_set(err, "%s: %s",
				       route_template_name((enum route_template)part), why.text);
	}
	return true;
}

/* Fills in the templates of `r`, which is a copy and nobody's yet. */
static bool route_check(const struct routes *rs, struct route *r, struct err *err)
{
	size_t wildcards = 0;

	if (routes_named(rs, r->name))
		return err_set(err, "there is another one of that name");
	return patterns_check(r, &wildcards, err) && templates_parse(r, wildcards, err) &&
		topic_check(r, err);
}

static void patterns_append(struct routes *rs, const struct route *r)
{
	rs->patterns = mem_resize(rs->patterns, rs->npatterns + r->npatterns,
				  sizeof *rs->patterns);
	for (size_t i = 0; i < r->npatterns; i++) {
		struct pattern *p = &rs->patterns[rs->npatterns++];
		struct edge *start = &p->edges[SIDE_START];
		struct edge *end = &p->edges[SIDE_END];

		p->text = r->patterns[i];
		p->route = (uint32_t)(rs->n - 1);
		p->min = glob_min(p->text);
		glob_pairs_needed(p->text, &p->pairs);
		start->n = (uint8_t)glob_prefix(p->text, start->p, EDGE_MAX);
		end->n = (uint8_t)glob_suffix(p->text, end->p, EDGE_MAX);
		edge_hash(start, SIDE_START);
		edge_hash(end, SIDE_END);
	}
}

static void index_reset(struct routes *rs)
{
	uint32_t size = 16;

	while (size < 2 * rs->npatterns)
		size *= 2;
	rs->mask = size - 1;
	rs->loose = NOWHERE;
	for (int side = 0; side < SIDES; side++) {
		struct index *ix = &rs->sides[side];

		ix->lengths = 0;
		ix->heads = mem_resize(ix->heads, size, sizeof *ix->heads);
		ix->counts = mem_resize(ix->counts, size, sizeof *ix->counts);
		for (uint32_t i = 0; i < size; i++) {
			ix->heads[i] = NOWHERE;
			ix->counts[i] = 0;
		}
	}
}

/* How many patterns share (about) this edge; none share no edge. */
static uint32_t shared_by(const struct routes *rs, const struct pattern *p,
			  enum side side)
{
	const struct edge *e = &p->edges[side];

	return e->n ? rs->sides[side].counts[slot_of(rs, e->hash)] : NOWHERE;
}

/* Puts pattern `i` in front of its chain. */
static void index_file(struct routes *rs, uint32_t i)
{
	struct pattern *p = &rs->patterns[i];
	enum side side = shared_by(rs, p, SIDE_START) <= shared_by(rs, p, SIDE_END) ?
		SIDE_START : SIDE_END;
	const struct edge *e = &p->edges[side];
	uint32_t *head = &rs->loose;

	if (e->n) {
		head = &rs->sides[side].heads[slot_of(rs, e->hash)];
		rs->sides[side].lengths |= UINT32_C(1) << (e->n - 1);
	}
	p->next = *head;
	*head = i;
}

static void index_build(struct routes *rs)
{
	index_reset(rs);
	for (size_t i = 0; i < rs->npatterns; i++)
		for (int side = 0; side < SIDES; side++)
			rs->sides[side].counts[slot_of(rs,
				rs->patterns[i].edges[side].hash)]++;
	for (size_t i = rs->npatterns; i > 0; i--)
		index_file(rs, (uint32_t)(i - 1));
}

bool routes_add(struct routes *rs, const struct route *route, struct err *err)
{
	struct route *r;
	struct err why;

	if (!route->name.n)
		return err_set(err, "a route has no name");
	r = route_copy(route);
	if (!route_check(rs, r, &why)) {
		route_free(r);
		return err_set(err, "route %.*s: %s",
			       route->name.n > 64 ? 64 : (int)route->name.n,
			       route->name.p, why.text);
	}
	rs->v = mem_resize(rs->v, rs->n + 1, sizeof *rs->v);
	rs->v[rs->n++] = r;
	patterns_append(rs, r);
	index_build(rs);
	return true;
}

/* One question to the routes, and the best answer so far. */
struct search {
	const struct routes *rs;
	unsigned db;
	struct bytes key;
	uint32_t route;			/* NOWHERE: none yet */
	const struct pattern *pattern;
	unsigned tried;
	struct glob_pairs pairs;	/* all, until it pays to know better */
};

/* After so many patterns tried in vain, the key's pairs are worth their price. */
#define PATIENCE	8

static bool edges_fit(const struct pattern *p, struct bytes key)
{
	const struct edge *start = &p->edges[SIDE_START];
	const struct edge *end = &p->edges[SIDE_END];

	return key.n >= p->min && memcmp(key.p, start->p, start->n) == 0 &&
		memcmp(key.p + key.n - end->n, end->p, end->n) == 0;
}

static bool is_excluded(const struct route *r, struct bytes key)
{
	for (size_t i = 0; i < r->nexcludes; i++)
		if (glob_match(r->excludes[i], key, NULL))
			return true;
	return false;
}

static bool is_of_db(const struct route *r, unsigned db)
{
	for (size_t i = 0; i < r->ndbs; i++)
		if (r->dbs[i] == db)
			return true;
	return !r->ndbs;
}

static bool pattern_fits(struct search *s, const struct pattern *p)
{
	const struct route *r = s->rs->v[p->route];

	if (++s->tried == PATIENCE)
		glob_pairs_had(s->key, &s->pairs);
	return glob_pairs_within(&p->pairs, &s->pairs) &&
		edges_fit(p, s->key) && is_of_db(r, s->db) &&
		glob_match(p->text, s->key, NULL) && !is_excluded(r, s->key);
}

/* The chain is in order: its first match is its best, and few are tried. */
static void search_chain(struct search *s, uint32_t head)
{
	for (uint32_t i = head; i != NOWHERE; ) {
		const struct pattern *p = &s->rs->patterns[i];

		if (p->route >= s->route)
			return;
		if (pattern_fits(s, p)) {
			s->route = p->route;
			s->pattern = p;
			return;
		}
		i = p->next;
	}
}

static void search_side(struct search *s, enum side side)
{
	const struct index *ix = &s->rs->sides[side];
	uint32_t lengths = ix->lengths;
	uint32_t h = HASH_START;

	for (size_t i = 0; lengths && i < s->key.n; i++, lengths >>= 1) {
		h = hash_add(h, byte_at(s->key, side, i));
		if (lengths & 1)
			search_chain(s, ix->heads[slot_of(s->rs, h)]);
	}
}

static bool is_own(const struct routes *rs, struct bytes key)
{
	return rs->own_n && bytes_starts(key, bytes_of(rs->own, rs->own_n));
}

const struct route *routes_match(const struct routes *rs, unsigned db,
				 struct bytes key,
				 struct bytes *captures)
{
	struct search s = { rs, db, key, NOWHERE, NULL, 0, { { 0 } } };

	memset(&s.pairs, 0xff, sizeof s.pairs);
	if (key.n && !is_own(rs, key)) {
		search_side(&s, SIDE_START);
		search_side(&s, SIDE_END);
		search_chain(&s, rs->loose);
	}
	if (!s.pattern) {
		for (size_t i = 0; captures && i < GLOB_CAPTURES; i++)
			captures[i] = bytes_none;
		return NULL;
	}
	if (captures)
		glob_match(s.pattern->text, key, captures);
	return rs->v[s.route];
}

bool route_allows(const struct route *r, struct bytes topic)
{
	if (!topic_valid(topic))
		return false;
	for (size_t i = 0; i < r->ntopics; i++)
		if (glob_match(r->topics[i], topic, NULL))
			return true;
	return !r->ntopics;
}

enum heard_how route_heard(const struct route *r)
{
	if (r->registers & ROUTE_EVENTS)
		return HEARD_SURE;
	return r->registers & ROUTE_NOTICE ? HEARD_ANYWAY : HEARD_LISTED;
}

unsigned routes_registers(const struct routes *rs)
{
	unsigned all = 0;

	for (size_t i = 0; i < rs->n; i++)
		all |= rs->v[i]->registers;
	return all;
}

struct bytes routes_scan_pattern(const struct routes *rs)
{
	struct bytes only = bytes_none;

	for (size_t i = 0; i < rs->n; i++) {
		if (!(rs->v[i]->registers & ROUTE_SCAN))
			continue;
		if (only.n || rs->v[i]->npatterns > 1)
			return bytes_none;
		only = rs->v[i]->patterns[0];
	}
	return only;
}

bool routes_refresh(const struct routes *rs)
{
	for (size_t i = 0; i < rs->n; i++)
		if (rs->v[i]->refresh && rs->v[i]->registers & ROUTE_EVENTS)
			return true;
	return false;
}

size_t routes_count(const struct routes *rs)
{
	return rs->n;
}

const struct route *routes_at(const struct routes *rs, size_t i)
{
	return i < rs->n ? rs->v[i] : NULL;
}

const struct route *routes_named(const struct routes *rs, struct bytes name)
{
	for (size_t i = 0; i < rs->n; i++)
		if (bytes_eq(rs->v[i]->name, name))
			return rs->v[i];
	return NULL;
}

/* Whether the literal starts (ends) of both can be those of one name. */
static bool edges_agree(struct bytes a, struct bytes b)
{
	char pa[EDGE_MAX], pb[EDGE_MAX];
	size_t na = glob_prefix(a, pa, EDGE_MAX);
	size_t nb = glob_prefix(b, pb, EDGE_MAX);
	size_t n = na < nb ? na : nb;

	if (memcmp(pa, pb, n) != 0)
		return false;
	na = glob_suffix(a, pa, EDGE_MAX);
	nb = glob_suffix(b, pb, EDGE_MAX);
	n = na < nb ? na : nb;
	return memcmp(pa + na - n, pb + nb - n, n) == 0;
}

static bool databases_meet(const struct route *a, const struct route *b)
{
	for (size_t i = 0; i < a->ndbs; i++)
		if (is_of_db(b, a->dbs[i]))
			return true;
	return !a->ndbs;
}

bool route_overlaps(const struct route *a, const struct route *b)
{
	if (!databases_meet(a, b))
		return false;
	for (size_t i = 0; i < a->npatterns; i++)
		for (size_t j = 0; j < b->npatterns; j++)
			if (edges_agree(a->patterns[i], b->patterns[j]) &&
			    glob_overlap(a->patterns[i], b->patterns[j]))
				return true;
	return false;
}
