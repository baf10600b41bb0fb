/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/glob.h"

#include <stdint.h>
#include <time.h>

#include "glob_cases.h"
#include "unit.h"

struct match_case {
	struct bytes pattern;
	struct bytes name;
	int matches;
};

#define ROW(pattern, name, matches) \
	{ { pattern, sizeof(pattern) - 1 }, { name, sizeof(name) - 1 }, matches },

static const struct match_case cases[] = { GLOB_CASES(ROW) };

/* A copy without a NUL behind it, so that the sanitizers see every overrun. */
static struct bytes tight(struct bytes b)
{
	char *p = malloc(b.n ? b.n : 1);

	ck_assert_ptr_nonnull(p);
	if (b.n)
		memcpy(p, b.p, b.n);
	return bytes_of(p, b.n);
}

START_TEST(matches_as_redis_does)
{
	const struct match_case *c = &cases[_i];
	struct bytes pattern = tight(c->pattern), name = tight(c->name);
	struct bytes captures[GLOB_CAPTURES];

	ck_assert_msg(glob_match(pattern, name, NULL) == (c->matches != 0),
		      "'%s' on '%s': expected %d", unit_show(c->pattern),
		      unit_show(c->name), c->matches);
	ck_assert(glob_match(pattern, name, captures) == (c->matches != 0));
	free((char *)pattern.p);
	free((char *)name.p);
}
END_TEST

START_TEST(no_star_matches_a_name_of_no_bytes)
{
	ck_assert(!glob_match(BYTES("*"), BYTES(""), NULL));
	ck_assert(!glob_match(BYTES("**"), bytes_none, NULL));
	ck_assert(glob_match(bytes_none, bytes_none, NULL));
}
END_TEST

START_TEST(the_edges_of_a_pattern_are_those_of_its_matches)
{
	const struct match_case *c = &cases[_i];
	struct glob_pairs needed, had;
	char edge[8];
	size_t n;

	if (!c->matches)
		return;
	ck_assert_uint_le(glob_min(c->pattern), c->name.n);
	n = glob_prefix(c->pattern, edge, sizeof edge);
	ck_assert(bytes_starts(c->name, bytes_of(edge, n)));
	n = glob_suffix(c->pattern, edge, sizeof edge);
	ck_assert_uint_le(n, c->name.n);
	ck_assert_bytes(bytes_skip(c->name, c->name.n - n), bytes_of(edge, n));
	glob_pairs_needed(c->pattern, &needed);
	glob_pairs_had(c->name, &had);
	ck_assert(glob_pairs_within(&needed, &had));
}
END_TEST

static const struct {
	const char *pattern;
	const char *name;
	const char *captures[GLOB_CAPTURES];	/* NULL: none */
} captured[] = {
	{ "a", "a", { NULL } },
	{ "a*", "a", { "" } },
	{ "a*", "abc", { "bc" } },
	{ "*a", "bca", { "bc" } },
	{ "a:*:*", "a:b:c:d", { "b", "c:d" } },
	{ "*:*:x", "a:b:c:x", { "a", "b:c" } },
	{ "*-*", "--", { "", "-" } },
	{ "**", "ab", { "", "ab" } },
	{ "a**b", "axb", { "", "x" } },
	{ "?", "x", { "x" } },
	{ "?*?", "abcd", { "a", "bc", "d" } },
	{ "*?", "abcd", { "abc", "d" } },
	{ "[a-c][^x]z", "byz", { "b", "y" } },
	{ "\\*\\?*", "*?x", { "x" } },
	{ "k[0-9", "k7", { "7" } },
	{ "*ab?", "aabab1", { "aab", "1" } },
	{ "*[ab]*", "xxayb", { "xx", "a", "yb" } },
	{ "?????????", "123456789", { "1", "2", "3", "4", "5", "6", "7", "8", "9" } },
	{ "??????????*", "123456789abc",
	  { "1", "2", "3", "4", "5", "6", "7", "8", "9" } },
	{ "*:*:*:*:*:*:*:*:*:*", "a:b:c:d:e:f:g:h:i:j:k",
	  { "a", "b", "c", "d", "e", "f", "g", "h", "i" } },
	{ "a*b", "ac", { NULL } },
	{ "*?*z", "abc", { NULL } },
};

START_TEST(wildcards_are_captured)
{
	struct bytes got[GLOB_CAPTURES];

	memset(got, 0x5a, sizeof got);
	glob_match(bytes_str(captured[_i].pattern), bytes_str(captured[_i].name), got);
	for (size_t i = 0; i < GLOB_CAPTURES; i++)
		ck_assert_bytes(got[i], bytes_str(captured[_i].captures[i]));
}
END_TEST

START_TEST(captures_are_places_in_the_name)
{
	const char name[] = "a:\0:c";
	struct bytes got[GLOB_CAPTURES];

	ck_assert(glob_match(BYTES("*:*:*"), BYTES(name), got));
	ck_assert_ptr_eq(got[0].p, name);
	ck_assert_ptr_eq(got[1].p, name + 2);
	ck_assert_uint_eq(got[1].n, 1);
	ck_assert_ptr_eq(got[2].p, name + 4);
}
END_TEST

static const struct {
	struct bytes pattern;
	const char *error;	/* a part of it; NULL: it is good */
} checks[] = {
	{ { "a", 1 }, NULL },
	{ { "*", 1 }, NULL },
	{ { "order:pay:*", 11 }, NULL },
	{ { "[a-z]?[^0-9]*\\*", 15 }, NULL },
	{ { "[z-a]", 5 }, NULL },
	{ { "[\\]]", 4 }, NULL },
	{ { "[a\0]", 4 }, NULL },
	{ { "a]", 2 }, NULL },
	{ { "[\xc0-\xff]", 5 }, NULL },
	{ { "\\\\", 2 }, NULL },
	{ { "", 0 }, "empty" },
	{ { NULL, 0 }, "empty" },
	{ { "a[", 2 }, "the [ at byte 2 is never closed" },
	{ { "[a", 2 }, "never closed" },
	{ { "[a-]", 4 }, "never closed" },
	{ { "[^", 2 }, "never closed" },
	{ { "[\\]", 3 }, "never closed" },
	{ { "x[a][b", 6 }, "the [ at byte 5 is never closed" },
	{ { "[]", 2 }, "empty" },
	{ { "[]a]", 4 }, "empty" },
	{ { "[^]", 3 }, "empty" },
	{ { "a\\", 2 }, "backslash" },
	{ { "\\", 1 }, "backslash" },
	{ { "\\\\\\", 3 }, "backslash" },
	{ { "[a-\xff]", 5 }, "range" },
	{ { "[\x80-z]", 5 }, "range" },
};

START_TEST(a_configured_pattern_is_checked)
{
	struct err err = { "" };
	bool ok = glob_check(checks[_i].pattern, &err);

	ck_assert_msg(ok == !checks[_i].error, "'%s': %s",
		      unit_show(checks[_i].pattern), err.text);
	if (!ok)
		ck_assert_has(err.text, checks[_i].error);
}
END_TEST

START_TEST(a_pattern_has_a_longest)
{
	char lengthy[GLOB_MAX + 1];
	struct err err;

	memset(lengthy, 'x', sizeof lengthy);
	ck_assert(glob_check(bytes_of(lengthy, GLOB_MAX), &err));
	ck_assert(!glob_check(bytes_of(lengthy, GLOB_MAX + 1), &err));
	ck_assert(glob_overlap(bytes_of(lengthy, GLOB_MAX), BYTES("x*")));
	ck_assert(glob_overlap(bytes_of(lengthy, GLOB_MAX + 1), BYTES("y")));
}
END_TEST

static const struct {
	const char *pattern;
	size_t wildcards;
	size_t min;
	const char *prefix;
	const char *suffix;
} shapes[] = {
	{ "", 0, 0, "", "" },
	{ "abc", 0, 3, "abc", "abc" },
	{ "abcdefghij", 0, 10, "abcdefgh", "cdefghij" },
	{ "a*", 1, 1, "a", "" },
	{ "*a", 1, 1, "", "a" },
	{ "a*b?c[x]d", 3, 6, "a", "d" },
	{ "\\*\\[a*b\\?", 1, 5, "*[a", "b?" },
	{ "**", 2, 0, "", "" },
	{ "?x?", 2, 3, "", "" },
	{ "a\\", 0, 2, "a\\", "a\\" },
	{ "a[b", 1, 2, "a", "" },
	{ "*\\a\\b\\c\\d\\e\\f\\g\\h\\i", 1, 9, "", "bcdefghi" },
};

START_TEST(a_pattern_has_a_shape)
{
	struct bytes pattern = bytes_str(shapes[_i].pattern);
	char edge[8];

	ck_assert_uint_eq(glob_wildcards(pattern), shapes[_i].wildcards);
	ck_assert_uint_eq(glob_min(pattern), shapes[_i].min);
	ck_assert_bytes(bytes_of(edge, glob_prefix(pattern, edge, 8)),
			bytes_str(shapes[_i].prefix));
	ck_assert_bytes(bytes_of(edge, glob_suffix(pattern, edge, 8)),
			bytes_str(shapes[_i].suffix));
}
END_TEST

static const struct {
	const char *a;
	const char *b;
	bool overlap;
} overlaps[] = {
	{ "a", "a", true },
	{ "a", "b", false },
	{ "a", "aa", false },
	{ "*", "a", true },
	{ "*", "*", true },
	{ "a*", "*b", true },
	{ "a*", "b*", false },
	{ "*a", "*b", false },
	{ "a*b", "a*c", false },
	{ "a*b", "*c*", true },
	{ "a*b", "ab", true },
	{ "a*b", "a", false },
	{ "?", "*", true },
	{ "?", "??", false },
	{ "??*", "?", false },
	{ "[a-c]", "[c-e]", true },
	{ "[a-c]", "[d-e]", false },
	{ "[a-c]", "[^a-c]", false },
	{ "[^a]", "[^b]", true },
	{ "[^a]", "a", false },
	{ "x[ab]", "x[bc]*", true },
	{ "order:*", "order:pay:*", true },
	{ "order:*:a", "order:pay:*", true },
	{ "order:*:a", "order:*:b", false },
	{ "*:a:*", "*:b:*", true },
	{ "\\*", "*", true },
	{ "\\*", "a", false },
	{ "a*a*a*a*b", "a*a*a*a*c", false },
	{ "*aab", "*ab", true },
	{ "ab*", "*ba", true },
};

START_TEST(two_patterns_overlap_or_not)
{
	struct bytes a = bytes_str(overlaps[_i].a), b = bytes_str(overlaps[_i].b);

	ck_assert(glob_overlap(a, b) == overlaps[_i].overlap);
	ck_assert(glob_overlap(b, a) == overlaps[_i].overlap);
}
END_TEST

/* Small numbers that look random. */
static unsigned next(uint32_t *seed, unsigned below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % below;
}

static struct bytes random_text(uint32_t *seed, const char *alphabet, char *room,
				size_t max)
{
	size_t n = next(seed, (unsigned)max) + 1;

	for (size_t i = 0; i < n; i++)
		room[i] = alphabet[next(seed, (unsigned)strlen(alphabet))];
	return bytes_of(room, n);
}

/* What one name matches overlaps; names tried in vain do not prove the rest. */
START_TEST(overlap_agrees_with_matching)
{
	uint32_t seed = 7;
	char ra[8], rb[8], rn[8];
	struct err err;

	for (int i = 0; i < 20000; i++) {
		struct bytes a = random_text(&seed, "ab*?[]^-", ra, 6);
		struct bytes b = random_text(&seed, "ab*?[]^-", rb, 6);
		bool found = false;

		if (!glob_check(a, &err) || !glob_check(b, &err))
			continue;
		for (int j = 0; j < 60 && !found; j++) {
			struct bytes name = random_text(&seed, "abc-", rn, 6);

			found = glob_match(a, name, NULL) && glob_match(b, name, NULL);
		}
		if (found)
			ck_assert_msg(glob_overlap(a, b), "'%s' and '%s'",
				      unit_show(a), unit_show(b));
	}
}
END_TEST

static double cpu_seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

START_TEST(many_stars_are_no_trouble)
{
	char pattern[GLOB_MAX], name[1024];
	struct bytes captures[GLOB_CAPTURES];
	struct bytes p = bytes_of(pattern, sizeof pattern);
	struct bytes n = bytes_of(name, sizeof name);
	double start = cpu_seconds();

	memset(name, 'a', sizeof name);
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[sizeof pattern - 1] = 'b';
	ck_assert(!glob_match(p, n, captures));
	memset(pattern, 'a', sizeof pattern);
	pattern[0] = '*';
	pattern[512] = 'b';
	ck_assert(!glob_match(bytes_of(pattern, 513), n, captures));
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = i % 2 ? '?' : '*';
	ck_assert(glob_overlap(p, p));
	ck_assert(cpu_seconds() - start < 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("glob");
	TCase *tc = tcase_create("match");
	TCase *conf = tcase_create("configuration");

	tcase_add_loop_test(tc, matches_as_redis_does, 0, (int)COUNT_OF(cases));
	tcase_add_loop_test(tc, the_edges_of_a_pattern_are_those_of_its_matches, 0,
			    (int)COUNT_OF(cases));
	tcase_add_test(tc, no_star_matches_a_name_of_no_bytes);
	tcase_add_loop_test(tc, wildcards_are_captured, 0, (int)COUNT_OF(captured));
	tcase_add_test(tc, captures_are_places_in_the_name);
	tcase_add_test(tc, many_stars_are_no_trouble);
	tcase_add_loop_test(conf, a_configured_pattern_is_checked, 0,
			    (int)COUNT_OF(checks));
	tcase_add_test(conf, a_pattern_has_a_longest);
	tcase_add_loop_test(conf, a_pattern_has_a_shape, 0, (int)COUNT_OF(shapes));
	tcase_add_loop_test(conf, two_patterns_overlap_or_not, 0,
			    (int)COUNT_OF(overlaps));
	tcase_add_test(conf, overlap_agrees_with_matching);
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, conf);
	return unit_run(suite);
}
