/* SPDX-License-Identifier: BSD-2-Clause */

/* Patterns match what a plain recursive matcher says that Redis matches. */

#include "core/glob.h"

#include "core/buf.h"
#include "fuzz.h"

/* Beyond these the reference takes for ever. */
#define PATTERN_MAX	24
#define NAME_MAX	24

/* Reads a class, `p` behind its bracket; what is left behind it. */
static struct bytes class(struct bytes p, char c, bool *has)
{
	bool negated = p.n && p.p[0] == '^', found = false;

	if (negated)
		p = bytes_skip(p, 1);
	while (p.n) {
		if (p.n >= 2 && p.p[0] == '\\') {
			found |= p.p[1] == c;
			p = bytes_skip(p, 2);
		} else if (p.p[0] == ']') {
			p = bytes_skip(p, 1);
			break;
		} else if (p.n >= 3 && p.p[1] == '-') {
			char low = p.p[0] < p.p[2] ? p.p[0] : p.p[2];
			char high = p.p[0] < p.p[2] ? p.p[2] : p.p[0];

			found |= low <= c && c <= high;
			p = bytes_skip(p, 3);
		} else {
			found |= p.p[0] == c;
			p = bytes_skip(p, 1);
		}
	}
	*has = found != negated;
	return p;
}

/* What is left of pattern and name where no match was found before. */
struct failures {
	bool at[PATTERN_MAX + 1][NAME_MAX + 1];
};

static bool reference_from(struct bytes p, struct bytes s, struct failures *f);

static bool reference_step(struct bytes p, struct bytes s, struct failures *f)
{
	bool has;

	if (!p.n)
		return !s.n;
	if (p.p[0] == '*')
		return reference_from(bytes_skip(p, 1), s, f) ||
			(s.n && reference_from(p, bytes_skip(s, 1), f));
	if (!s.n)
		return false;
	if (p.p[0] == '[') {
		p = class(bytes_skip(p, 1), s.p[0], &has);
		return has && reference_from(p, bytes_skip(s, 1), f);
	}
	if (p.p[0] != '?') {
		if (p.p[0] == '\\' && p.n >= 2)
			p = bytes_skip(p, 1);
		if (p.p[0] != s.p[0])
			return false;
	}
	return reference_from(bytes_skip(p, 1), bytes_skip(s, 1), f);
}

static bool reference_from(struct bytes p, struct bytes s, struct failures *f)
{
	if (f->at[p.n][s.n])
		return false;
	f->at[p.n][s.n] = !reference_step(p, s, f);
	return !f->at[p.n][s.n];
}

static bool reference(struct bytes p, struct bytes s)
{
	struct failures f = { 0 };

	return reference_from(p, s, &f);
}

/* Captures stand in the name, one behind the other. */
static void captures(struct bytes pattern, struct bytes name, bool matches)
{
	struct bytes got[GLOB_CAPTURES];
	size_t wildcards = glob_wildcards(pattern);
	const char *at = name.p;

	FUZZ_CHECK(glob_match(pattern, name, got) == matches);
	for (size_t i = 0; i < GLOB_CAPTURES; i++) {
		if (!matches || i >= wildcards) {
			FUZZ_CHECK(!got[i].p && !got[i].n);
			continue;
		}
		FUZZ_CHECK(got[i].p >= at && got[i].p + got[i].n <= name.p + name.n);
		at = got[i].p + got[i].n;
	}
}

static void edges(struct bytes pattern, struct bytes name)
{
	struct glob_pairs needed, had;
	char edge[8];
	size_t n = glob_prefix(pattern, edge, sizeof edge);

	FUZZ_CHECK(bytes_starts(name, bytes_of(edge, n)));
	n = glob_suffix(pattern, edge, sizeof edge);
	FUZZ_CHECK(n <= name.n);
	FUZZ_CHECK(memcmp(name.p + name.n - n, edge, n) == 0);
	FUZZ_CHECK(glob_min(pattern) <= name.n);
	glob_pairs_needed(pattern, &needed);
	glob_pairs_had(name, &had);
	FUZZ_CHECK(glob_pairs_within(&needed, &had));
}

/* A name, escaped, is a pattern that overlaps just with what matches it. */
static void overlap(struct bytes pattern, struct bytes name, bool matches)
{
	struct buf escaped = { 0 };
	struct err err;

	for (size_t i = 0; i < name.n; i++) {
		buf_byte(&escaped, '\\');
		buf_byte(&escaped, name.p[i]);
	}
	FUZZ_CHECK(glob_match(buf_view(&escaped), name, NULL));
	if (glob_check(pattern, &err))
		FUZZ_CHECK(glob_overlap(pattern, buf_view(&escaped)) == matches);
	buf_clear(&escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes name = bytes_of((const char *)data, size);
	struct bytes pattern = fuzz_take(&name);
	bool matches;

	/* the whole of it at least ends well */
	glob_match(pattern, name, NULL);
	glob_overlap(pattern, name);
	if (name.n > NAME_MAX)
		name.n = NAME_MAX;
	if (pattern.n > PATTERN_MAX)
		pattern.n = PATTERN_MAX;
	if (!name.n)
		return 0;
	matches = reference(pattern, name);
	FUZZ_CHECK(glob_match(pattern, name, NULL) == matches);
	captures(pattern, name, matches);
	overlap(pattern, name, matches);
	if (matches)
		edges(pattern, name);
	return 0;
}
