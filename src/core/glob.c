/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/glob.h"

/* One thing in a pattern that stands for bytes of a name. */
enum item_kind {
	ITEM_BYTE,	/* itself, escaped or not */
	ITEM_ANY,	/* ? */
	ITEM_CLASS,	/* [...] */
	ITEM_STAR,	/* * */
};

struct item {
	enum item_kind kind;
	char byte;	/* of ITEM_BYTE */
	size_t at;	/* of ITEM_CLASS: behind its bracket */
};

/* One thing in a class; `first` and `last` are the same but for a range. */
struct element {
	char first;
	char last;
	bool closes;	/* none: the class ended with its bracket */
	bool open;	/* none: the class ended with the pattern */
};

/* Reads the element at `at` and returns where the next one is. */
static inline size_t element_read(struct bytes p, size_t at, struct element *e)
{
	size_t left = p.n - at;

	e->closes = false;
	e->open = left == 0;
	if (left == 0)
		return at;
	e->first = e->last = p.p[at];
	if (left >= 2 && p.p[at] == '\\') {
		e->first = e->last = p.p[at + 1];
		return at + 2;
	}
	if (p.p[at] == ']') {
		e->closes = true;
		return at + 1;
	}
	if (left >= 3 && p.p[at + 1] == '-') {
		e->last = p.p[at + 2];
		return at + 3;
	}
	return at + 1;
}

/* Plain char on purpose: signed where Redis' is. */
static inline bool element_has(const struct element *e, char c)
{
	if (e->first <= e->last)
		return c >= e->first && c <= e->last;
	return c >= e->last && c <= e->first;
}

static inline bool class_negated(struct bytes p, size_t at)
{
	return at < p.n && p.p[at] == '^';
}

/* Whether the class at `at`, behind its bracket, has `c`; *end is behind it. */
static bool class_has(struct bytes p, size_t at, char c, size_t *end)
{
	bool negated = class_negated(p, at);
	bool found = false;
	struct element e;

	at += negated;
	for (;;) {
		at = element_read(p, at, &e);
		if (e.closes || e.open)
			break;
		found = found || element_has(&e, c);
	}
	*end = at;
	return found != negated;
}

/* Reads the item at `at`, which is less than p.n; returns where the next is. */
static inline size_t item_read(struct bytes p, size_t at, struct item *it)
{
	size_t end;

	it->byte = p.p[at];
	it->at = at + 1;
	switch (p.p[at]) {
	case '*':
		it->kind = ITEM_STAR;
		return at + 1;
	case '?':
		it->kind = ITEM_ANY;
		return at + 1;
	case '[':
		it->kind = ITEM_CLASS;
		class_has(p, at + 1, 0, &end);
		return end;
	case '\\':
		it->kind = ITEM_BYTE;
		if (at + 1 == p.n)
			return at + 1;
		it->byte = p.p[at + 1];
		return at + 2;
	default:
		it->kind = ITEM_BYTE;
		return at + 1;
	}
}

/* Whether an item other than a star takes the byte. */
static bool item_takes(struct bytes p, const struct item *it, char c)
{
	size_t end;

	switch (it->kind) {
	case ITEM_BYTE:
		return it->byte == c;
	case ITEM_CLASS:
		return class_has(p, it->at, c, &end);
	default:
		return true;
	}
}

/*
 * Whether the item at *at, no star, takes the byte; *at moves behind it then.
 * `wild` says whether the byte is to be captured.
 */
static inline bool step(struct bytes p, size_t *at, char c, bool *wild)
{
	size_t end = *at + 1;
	bool ok;

	*wild = false;
	switch (p.p[*at]) {
	case '?':
		*wild = ok = true;
		break;
	case '[':
		*wild = true;
		ok = class_has(p, end, c, &end);
		break;
	case '\\':
		if (end < p.n) {
			ok = p.p[end++] == c;
			break;
		}
		/* fall through */
	default:
		ok = p.p[*at] == c;
	}
	if (ok)
		*at = end;
	return ok;
}

struct captures {
	struct bytes *v;	/* NULL: nobody wants them */
	size_t n;
};

static inline void capture(struct captures *c, const char *p, size_t n)
{
	if (c->v && c->n < GLOB_CAPTURES)
		c->v[c->n] = bytes_of(p, n);
	c->n++;
}

/* The last star passed, to come back to with one byte more. */
struct retry {
	size_t p;	/* behind the star; 0: none yet */
	size_t from;	/* what the star takes: from here ... */
	size_t to;	/* ... to here */
	size_t ncaptures;
};

/*
 * Only the last star is ever tried again: if what stands between two stars is
 * found at its first place, every later place leaves less to the rest.
 */
static bool match(struct bytes p, struct bytes s, struct captures *got)
{
	struct retry star = { 0 };
	size_t pi = 0, si = 0;
	bool wild;

	for (;;) {
		if (pi < p.n && p.p[pi] == '*') {
			star = (struct retry){ ++pi, si, si, got->n };
			if (pi == p.n) {
				capture(got, s.p + si, s.n - si);
				return true;
			}
			capture(got, s.p + si, 0);
		} else if (si == s.n) {
			return pi == p.n;
		} else if (pi < p.n && step(p, &pi, s.p[si], &wild)) {
			if (wild)
				capture(got, s.p + si, 1);
			si++;
		} else if (star.p) {
			pi = star.p;
			si = ++star.to;
			got->n = star.ncaptures;
			capture(got, s.p + star.from, star.to - star.from);
		} else {
			return false;
		}
	}
}

static void captures_none(struct bytes captures[GLOB_CAPTURES])
{
	for (size_t i = 0; captures && i < GLOB_CAPTURES; i++)
		captures[i] = bytes_none;
}

bool glob_match(struct bytes pattern, struct bytes name,
		struct bytes captures[GLOB_CAPTURES])
{
	struct captures got = { captures, 0 };

	captures_none(captures);
	if (!name.n)
		return !pattern.n;
	if (match(pattern, name, &got))
		return true;
	captures_none(captures);
	return false;
}

static bool is_ascii(char c)
{
	return (unsigned char)c < 0x80;
}

/* Checks the class at `at`, behind its bracket. */
static bool class_check(struct bytes p, size_t at, struct err *err)
{
	size_t bracket = at - 1;
	struct element e;

	at += class_negated(p, at);
	for (bool first = true;; first = false) {
		at = element_read(p, at, &e);
		if (e.open)
			return err_set(err, "the [ at byte %zu is never closed"
				       " (write \\[ for a bracket)", bracket + 1);
		if (e.closes && first)
			return err_set(err, "the [] at byte %zu is empty"
				       " (write [\\]...] for a ])", bracket + 1);
		if (e.closes)
			return true;
		if (is_ascii(e.first) != is_ascii(e.last))
			return err_set(err, "the [ at byte %zu has a range from"
				       " an ASCII byte to another", bracket + 1);
	}
}

bool glob_check(struct bytes pattern, struct err *err)
{
	struct item it;

	if (!pattern.n)
		return err_set(err, "the pattern is empty");
	if (pattern.n > GLOB_MAX)
		return err_set(err, "the pattern has %zu bytes, %d are allowed",
			       pattern.n, GLOB_MAX);
	for (size_t at = 0, next; at < pattern.n; at = next) {
		next = item_read(pattern, at, &it);
		if (pattern.p[at] == '\\' && next == at + 1)
			return err_set(err, "the pattern ends with a backslash"
				       " (write \\\\ for one)");
		if (it.kind == ITEM_CLASS && !class_check(pattern, it.at, err))
			return false;
	}
	return true;
}

size_t glob_wildcards(struct bytes pattern)
{
	struct item it;
	size_t n = 0;

	for (size_t at = 0; at < pattern.n; n += it.kind != ITEM_BYTE)
		at = item_read(pattern, at, &it);
	return n;
}

size_t glob_min(struct bytes pattern)
{
	struct item it;
	size_t n = 0;

	for (size_t at = 0; at < pattern.n; n += it.kind != ITEM_STAR)
		at = item_read(pattern, at, &it);
	return n;
}

/* Copies bytes from the pattern up to its first wildcard. */
static size_t literal(struct bytes pattern, char *out, size_t cap)
{
	struct item it;
	size_t n = 0;

	for (size_t at = 0; at < pattern.n && n < cap; n++) {
		at = item_read(pattern, at, &it);
		if (it.kind != ITEM_BYTE)
			break;
		out[n] = it.byte;
	}
	return n;
}

size_t glob_prefix(struct bytes pattern, char *out, size_t cap)
{
	return literal(pattern, out, cap);
}

size_t glob_suffix(struct bytes pattern, char *out, size_t cap)
{
	struct bytes tail = pattern;
	struct item it;
	size_t n = 0;

	for (size_t at = 0; at < pattern.n; n++) {
		at = item_read(pattern, at, &it);
		if (it.kind != ITEM_BYTE) {
			tail = bytes_skip(pattern, at);
			n = (size_t)-1;
		}
	}
	for (; n > cap; n--)
		tail = bytes_skip(tail, item_read(tail, 0, &it));
	return literal(tail, out, cap);
}

static void pair_add(struct glob_pairs *out, char first, char second)
{
	unsigned h = (unsigned char)first * 31u + (unsigned char)second * 7u;

	out->bits[h / 64 % 4] |= UINT64_C(1) << h % 64;
}

void glob_pairs_needed(struct bytes pattern, struct glob_pairs *out)
{
	struct item it = { .kind = ITEM_STAR }, last;

	*out = (struct glob_pairs){ { 0 } };
	for (size_t at = 0; at < pattern.n; ) {
		last = it;
		at = item_read(pattern, at, &it);
		if (last.kind == ITEM_BYTE && it.kind == ITEM_BYTE)
			pair_add(out, last.byte, it.byte);
	}
}

void glob_pairs_had(struct bytes name, struct glob_pairs *out)
{
	*out = (struct glob_pairs){ { 0 } };
	for (size_t i = 1; i < name.n; i++)
		pair_add(out, name.p[i - 1], name.p[i]);
}

/* Whether some byte is taken by both; neither is a star. */
static bool items_meet(struct bytes pa, const struct item *a,
		       struct bytes pb, const struct item *b)
{
	if (a->kind == ITEM_BYTE)
		return item_takes(pb, b, a->byte);
	if (b->kind == ITEM_BYTE)
		return item_takes(pa, a, b->byte);
	for (int c = 0; c < 256; c++)
		if (item_takes(pa, a, (char)c) && item_takes(pb, b, (char)c))
			return true;
	return false;
}

static size_t items_read(struct bytes p, struct item items[GLOB_MAX])
{
	size_t n = 0;

	for (size_t at = 0; at < p.n; n++)
		at = item_read(p, at, &items[n]);
	return n;
}

/*
 * Both patterns read one name at a time, side by side.  row[j] says whether
 * there are bytes that bring `a` to its item i and `b` to its item j; a star
 * takes a byte and stays, or is left without one.
 */
bool glob_overlap(struct bytes a, struct bytes b)
{
	struct item as[GLOB_MAX], bs[GLOB_MAX];
	bool rows[2][GLOB_MAX + 1] = { { true } };
	size_t na, nb;

	if (a.n > GLOB_MAX || b.n > GLOB_MAX)
		return true;
	if (!a.n || !b.n)
		return a.n == b.n;
	na = items_read(a, as);
	nb = items_read(b, bs);
	for (size_t i = 0; i <= na; i++) {
		bool *row = rows[i % 2], *next = rows[(i + 1) % 2];
		bool a_star = i < na && as[i].kind == ITEM_STAR;

		memset(next, 0, nb + 1);
		for (size_t j = 0; j <= nb; j++) {
			bool b_star = j < nb && bs[j].kind == ITEM_STAR;

			if (!row[j])
				continue;
			if (j < nb && (a_star || b_star))
				row[j + 1] = true;
			if (i < na && (a_star || b_star))
				next[j] = true;
			if (i < na && j < nb && !a_star && !b_star &&
			    items_meet(a, &as[i], b, &bs[j]))
				next[j + 1] = true;
		}
	}
	return rows[na % 2][nb];
}
