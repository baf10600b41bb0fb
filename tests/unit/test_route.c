/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/route.h"

#include <stdint.h>
#include <time.h>

#include "unit.h"

static struct routes *rs;
static struct err err;

static void setup(void)
{
	rs = routes_new(BYTES("lapse:{"));
	err.text[0] = '\0';
}

static void teardown(void)
{
	routes_free(rs);
}

/* A route of one pattern; the rest of `more` is kept. */
static bool add(const char *name, const char *pattern, struct route more)
{
	const struct bytes p = bytes_str(pattern);

	more.name = bytes_str(name);
	if (!more.patterns) {
		more.patterns = &p;
		more.npatterns = 1;
	}
	if (!more.topic.p)
		more.topic = BYTES("topic");
	return routes_add(rs, &more, &err);
}

static void must_add(const char *name, const char *pattern, struct route more)
{
	ck_assert_msg(add(name, pattern, more), "%s", err.text);
}

static const char *match_in(unsigned db, struct bytes key)
{
	struct bytes captures[GLOB_CAPTURES];
	const struct route *r = routes_match(rs, db, key, captures);

	ck_assert_ptr_eq(r, routes_match(rs, db, key, NULL));
	if (!r)
		for (size_t i = 0; i < GLOB_CAPTURES; i++)
			ck_assert_ptr_null(captures[i].p);
	return r ? r->name.p : NULL;
}

static const char *match(const char *key)
{
	return match_in(0, bytes_str(key));
}

#define PLAIN	((struct route){ 0 })

START_TEST(no_routes_match_nothing)
{
	ck_assert_ptr_null(match("a"));
	ck_assert_ptr_null(match_in(0, bytes_none));
	ck_assert_uint_eq(routes_count(rs), 0);
	ck_assert_ptr_null(routes_at(rs, 0));
	ck_assert_ptr_null(routes_named(rs, BYTES("a")));
	routes_free(NULL);
}
END_TEST

START_TEST(the_first_that_matches_is_taken)
{
	must_add("a", "order:pay:*", PLAIN);
	must_add("b", "order:*", PLAIN);
	must_add("c", "*:pay:*", PLAIN);
	must_add("d", "order:pay:42", PLAIN);
	must_add("e", "*:end", PLAIN);
	ck_assert_str_eq(match("order:pay:42"), "a");
	ck_assert_str_eq(match("order:ship:42"), "b");
	ck_assert_str_eq(match("x:pay:42"), "c");
	ck_assert_str_eq(match("order:end"), "b");
	ck_assert_str_eq(match("x:end"), "e");
	ck_assert_ptr_null(match("orde"));
	ck_assert_ptr_null(match("x"));
	ck_assert_ptr_null(match(""));
}
END_TEST

START_TEST(the_order_counts_in_whatever_part_of_the_index)
{
	must_add("loose", "*x*", PLAIN);
	must_add("start", "ax*", PLAIN);
	must_add("end", "*xb", PLAIN);
	must_add("whole", "axb", PLAIN);
	ck_assert_str_eq(match("axb"), "loose");
	routes_free(rs);
	setup();
	must_add("end", "*xb", PLAIN);
	must_add("start", "ax*", PLAIN);
	must_add("loose", "*x*", PLAIN);
	ck_assert_str_eq(match("axb"), "end");
	ck_assert_str_eq(match("axc"), "start");
	ck_assert_str_eq(match("cxc"), "loose");
}
END_TEST

START_TEST(a_route_may_have_several_patterns)
{
	const struct bytes two[] = { BYTES("cart:*"), BYTES("*:cart:*") };
	struct bytes captures[GLOB_CAPTURES];

	must_add("carts", NULL, (struct route){ .patterns = two, .npatterns = 2 });
	must_add("rest", "*", PLAIN);
	ck_assert_str_eq(match("cart:1"), "carts");
	ck_assert_str_eq(match("eu:cart:1"), "carts");
	ck_assert_str_eq(match("eu:basket:1"), "rest");
	ck_assert_ptr_nonnull(routes_match(rs, 0, BYTES("eu:cart:7"), captures));
	ck_assert_text(captures[0], "eu");
	ck_assert_text(captures[1], "7");
	ck_assert_ptr_null(captures[2].p);
}
END_TEST

START_TEST(keys_of_our_own_never_match)
{
	must_add("all", "*", PLAIN);
	must_add("ours", "lapse:{0}:due", PLAIN);
	ck_assert_ptr_null(match("lapse:{0}:due"));
	ck_assert_ptr_null(match("lapse:{"));
	ck_assert_str_eq(match("lapse:"), "all");
	ck_assert_str_eq(match("lapse:0"), "all");
	ck_assert_str_eq(match("xlapse:{0}"), "all");
	routes_free(rs);
	rs = routes_new(bytes_none);
	must_add("all", "*", PLAIN);
	ck_assert_str_eq(match("lapse:{0}:due"), "all");
}
END_TEST

START_TEST(a_route_may_be_for_some_databases)
{
	static const unsigned three[] = { 3, 7 }, zero[] = { 0 };

	must_add("three", "a*", (struct route){ .dbs = three, .ndbs = 2 });
	must_add("zero", "a*", (struct route){ .dbs = zero, .ndbs = 1 });
	must_add("any", "*", PLAIN);
	ck_assert_str_eq(match_in(3, BYTES("a1")), "three");
	ck_assert_str_eq(match_in(7, BYTES("a1")), "three");
	ck_assert_str_eq(match_in(0, BYTES("a1")), "zero");
	ck_assert_str_eq(match_in(1, BYTES("a1")), "any");
}
END_TEST

START_TEST(what_is_excluded_is_for_others)
{
	const struct bytes excludes[] = { { "a:x*", 4 }, { "a:y", 3 } };

	must_add("most", "a:*", (struct route){ .excludes = excludes, .nexcludes = 2 });
	must_add("x", "a:x?", PLAIN);
	ck_assert_str_eq(match("a:1"), "most");
	ck_assert_str_eq(match("a:yy"), "most");
	ck_assert_str_eq(match("a:x1"), "x");
	ck_assert_ptr_null(match("a:x"));
	ck_assert_ptr_null(match("a:y"));
}
END_TEST

START_TEST(names_may_hold_any_byte)
{
	must_add("x", "a:[^b]*", PLAIN);
	ck_assert_str_eq(match_in(0, BYTES("a:\0\xff")), "x");
	ck_assert_ptr_null(match_in(0, BYTES("a\0:b")));
	ck_assert_ptr_null(match_in(0, BYTES("\0")));
}
END_TEST

START_TEST(all_that_was_given_is_copied)
{
	char text[] = "name a*b topic {1} c/t y";
	struct bytes pattern = bytes_of(text + 5, 3);
	struct route in = {
		.name = bytes_of(text, 4), .patterns = &pattern, .npatterns = 1,
		.registers = ROUTE_APP | ROUTE_SCAN, .topic = bytes_of(text + 9, 5),
		.key = bytes_of(text + 15, 3), .copy = true, .inferred = ROUTE_DROP,
		.mode = ROUTE_RAW, .content_type = bytes_of(text + 19, 3),
		.type = bytes_of(text + 23, 1),
	};
	const struct route *r;
	struct bytes captures[GLOB_CAPTURES];
	struct buf b = { 0 };

	ck_assert(routes_add(rs, &in, &err));
	memset(text, 'x', sizeof text);
	memset(&in, 0x5a, sizeof in);
	r = routes_match(rs, 0, BYTES("a-b"), captures);
	ck_assert_ptr_nonnull(r);
	ck_assert_ptr_eq(r, routes_at(rs, 0));
	ck_assert_ptr_eq(r, routes_named(rs, BYTES("name")));
	ck_assert_text(r->name, "name");
	ck_assert_text(r->patterns[0], "a*b");
	ck_assert_text(r->topic, "topic");
	ck_assert_text(r->content_type, "c/t");
	ck_assert_text(r->type, "y");
	ck_assert_uint_eq(r->registers, ROUTE_APP | ROUTE_SCAN);
	ck_assert(r->copy && r->inferred == ROUTE_DROP && r->mode == ROUTE_RAW);
	template_write(r->templates[ROUTE_KEY],
		       &(struct template_values){ .captures = captures }, &b);
	ck_assert_text(buf_view(&b), "-");
	buf_clear(&b);
}
END_TEST

START_TEST(without_a_template_the_key_is_the_key)
{
	struct buf b = { 0 };

	must_add("a", "a", PLAIN);
	template_write(routes_at(rs, 0)->templates[ROUTE_KEY],
		       &(struct template_values){ .key = BYTES("the key") }, &b);
	ck_assert_text(buf_view(&b), "the key");
	buf_clear(&b);
}
END_TEST

START_TEST(a_bad_route_is_refused)
{
	static const struct {
		const char *name, *pattern, *topic, *key, *error;
	} bad[] = {
		{ "", "a", "t", "", "no name" },
		{ "taken", "a", "t", "", "route taken: there is another" },
		{ "r", "", "t", "", "route r: pattern: the pattern is empty" },
		{ "r", "a[", "t", "", "route r: pattern: the [" },
		{ "r", "a", "", "", "route r: topic: missing" },
		{ "r", "a", "a b", "", "route r: topic: 1 to 249" },
		{ "r", "a", "..", "", "route r: topic: 1 to 249" },
		{ "r", "a*", "t-{2}", "", "route r: topic: {2} is beyond" },
		{ "r", "a*", "t {1}", "", "route r: topic: no key makes a topic of it" },
		{ "r", "a*", "t-{id}", "", "route r: topic: no key makes a topic of it" },
		{ "r", "a*", "{{{1}", "", "route r: topic: no key makes a topic of it" },
		{ "r", "a*", "t-{1}", "", "route r: topic: it depends on the key, so topics" },
		{ "r", "a*", "t", "{2}", "route r: key: {2} is beyond" },
		{ "r", "a", "t", "{1}", "route r: key: {1} is beyond" },
		{ "r", "a", "t", "{kye}", "route r: key: unknown name {kye}" },
	};

	must_add("taken", "x", PLAIN);
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct route r = {
			.topic = bytes_str(bad[i].topic), .key = bytes_str(bad[i].key),
		};

		ck_assert(!add(bad[i].name, bad[i].pattern, r));
		ck_assert_has(err.text, bad[i].error);
	}
	ck_assert_uint_eq(routes_count(rs), 1);
	ck_assert_ptr_null(match("a"));
}
END_TEST

START_TEST(a_template_of_topics_says_which)
{
	const struct bytes topics[] = { BYTES("t-[a-c]*"), BYTES("u") };
	struct route r = { .topic = BYTES("{1}"), .topics = topics, .ntopics = 2 };

	must_add("r", "k:*", r);
	ck_assert(route_allows(routes_at(rs, 0), BYTES("t-a")));
	ck_assert(route_allows(routes_at(rs, 0), BYTES("u")));
	ck_assert(!route_allows(routes_at(rs, 0), BYTES("t-d")));
	ck_assert(!route_allows(routes_at(rs, 0), BYTES("t-a b")));
	ck_assert(!route_allows(routes_at(rs, 0), bytes_none));
	r.topic = BYTES("u");
	ck_assert(!add("s", "k:*", r));
	ck_assert_has(err.text, "topics: it is for a topic with places to fill in");
	r.topic = BYTES("{1}");
	r.topics = &(struct bytes){ "[", 1 };
	r.ntopics = 1;
	ck_assert(!add("s", "k:*", r));
	ck_assert_has(err.text, "topics: the [");
}
END_TEST

START_TEST(the_poorest_pattern_decides_about_wildcards)
{
	const struct bytes two[] = { BYTES("*:*"), BYTES("x:?") };
	struct route r = { .patterns = two, .npatterns = 2, .key = BYTES("{2}") };

	ck_assert(!add("r", NULL, r));
	ck_assert_has(err.text, "which has 1");
	r.key = BYTES("{1}");
	ck_assert(add("r", NULL, r));
	r.npatterns = 0;
	ck_assert(!add("s", NULL, r));
	ck_assert_has(err.text, "no pattern");
}
END_TEST

START_TEST(routes_overlap_or_not)
{
	const struct bytes two[] = { BYTES("x:*"), BYTES("b:*") };
	static const unsigned dbs[] = { 1, 2, 3 };

	must_add("a", "a:*", PLAIN);
	must_add("b", "b:*:1", PLAIN);
	must_add("xb", NULL, (struct route){ .patterns = two, .npatterns = 2 });
	must_add("one", "*:1", (struct route){ .dbs = dbs, .ndbs = 2 });
	must_add("two", "*:1", (struct route){ .dbs = dbs + 2, .ndbs = 1 });
	must_add("both", "*:1", (struct route){ .dbs = dbs + 1, .ndbs = 2 });
	ck_assert(!route_overlaps(routes_at(rs, 0), routes_at(rs, 1)));
	ck_assert(!route_overlaps(routes_at(rs, 0), routes_at(rs, 2)));
	ck_assert(route_overlaps(routes_at(rs, 1), routes_at(rs, 2)));
	ck_assert(route_overlaps(routes_at(rs, 2), routes_at(rs, 1)));
	ck_assert(route_overlaps(routes_at(rs, 0), routes_at(rs, 3)));
	ck_assert(!route_overlaps(routes_at(rs, 3), routes_at(rs, 4)));
	ck_assert(route_overlaps(routes_at(rs, 3), routes_at(rs, 5)));
	ck_assert(route_overlaps(routes_at(rs, 5), routes_at(rs, 4)));
	ck_assert(route_overlaps(routes_at(rs, 3), routes_at(rs, 0)));
}
END_TEST

static unsigned next(uint32_t *seed, unsigned below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % below;
}

static size_t random_text(uint32_t *seed, const char *alphabet, char *room,
			  size_t max)
{
	size_t n = next(seed, (unsigned)max) + 1;

	for (size_t i = 0; i < n; i++)
		room[i] = alphabet[next(seed, (unsigned)strlen(alphabet))];
	room[n] = '\0';
	return n;
}

/* The index against trying every pattern in turn. */
START_TEST(the_index_forgets_no_pattern)
{
	uint32_t seed = (uint32_t)_i + 1;
	char name[16], text[48];
	const unsigned one = 1;

	for (int i = 0; i < 300; i++) {
		const char *alphabet = i % 3 ? "ab:*" : "abc:*?[]\\";

		snprintf(name, sizeof name, "r%d", i);
		random_text(&seed, alphabet, text, i % 7 ? 8 : 45);
		if (!add(name, text, (struct route){ .dbs = &one, .ndbs = i % 5 == 0 }))
			continue;
	}
	for (int i = 0; i < 3000; i++) {
		size_t n = random_text(&seed, "ab:c", text, i % 7 ? 8 : 45);
		unsigned db = next(&seed, 2);
		const struct route *expected = NULL;

		for (size_t k = 0; k < routes_count(rs) && !expected; k++) {
			const struct route *r = routes_at(rs, k);

			if ((!r->ndbs || db == 1) &&
			    glob_match(r->patterns[0], bytes_of(text, n), NULL))
				expected = r;
		}
		ck_assert_ptr_eq(routes_match(rs, db, bytes_of(text, n), NULL), expected);
	}
}
END_TEST

/* Generous, for slow and busy machines: a linear search takes ten times that. */
START_TEST(a_thousand_routes_cost_little)
{
	static const char *const shapes[][2] = {
		{ "svc", ":session:*" }, { "session:*:", "" },
		{ "*:", ":done" }, { "svc", ":*:done" },
	};
	char name[16], pattern[48];
	clock_t start;
	double us;

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "r%d", i);
		snprintf(pattern, sizeof pattern, "%s%d%s", shapes[i % 4][0], i,
			 shapes[i % 4][1]);
		must_add(name, pattern, PLAIN);
	}
	start = clock();
	for (int i = 0; i < 100000; i++)
		ck_assert_ptr_null(routes_match(rs, 0, BYTES("session:7f2c9a50-2d6e-"
			"4a4f-8b1b-2f4be5a2:x"), NULL));
	us = (double)(clock() - start) * 1e6 / CLOCKS_PER_SEC / 100000;
	ck_assert_msg(us < 5, "%.2f us for a foreign key", us);
	ck_assert_str_eq(match("svc996:session:a"), "r996");
	ck_assert_str_eq(match("session:a:997"), "r997");
	ck_assert_str_eq(match("x:998:done"), "r998");
	ck_assert_str_eq(match("svc999:x:done"), "r999");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("route");
	TCase *tc = tcase_create("route");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, no_routes_match_nothing);
	tcase_add_test(tc, the_first_that_matches_is_taken);
	tcase_add_test(tc, the_order_counts_in_whatever_part_of_the_index);
	tcase_add_test(tc, a_route_may_have_several_patterns);
	tcase_add_test(tc, keys_of_our_own_never_match);
	tcase_add_test(tc, a_route_may_be_for_some_databases);
	tcase_add_test(tc, a_template_of_topics_says_which);
	tcase_add_test(tc, what_is_excluded_is_for_others);
	tcase_add_test(tc, names_may_hold_any_byte);
	tcase_add_test(tc, all_that_was_given_is_copied);
	tcase_add_test(tc, without_a_template_the_key_is_the_key);
	tcase_add_test(tc, a_bad_route_is_refused);
	tcase_add_test(tc, the_poorest_pattern_decides_about_wildcards);
	tcase_add_test(tc, routes_overlap_or_not);
	tcase_add_loop_test(tc, the_index_forgets_no_pattern, 0, 8);
	tcase_add_test(tc, a_thousand_routes_cost_little);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
