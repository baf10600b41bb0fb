/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/template.h"

#include "unit.h"

static const struct bytes captures[GLOB_CAPTURES] = {
	{ "one", 3 }, { "", 0 }, { "\0\xff", 2 }, { "{key}", 5 },
};

static const struct template_values values = {
	.key = { "order:42", 8 },
	.id = { "k:3:order:42@1.0", 16 },
	.db = 3,
	.captures = captures,
};

static const struct {
	const char *text;
	struct bytes expanded;
} good[] = {
	{ "", { "", 0 } },
	{ "plain", { "plain", 5 } },
	{ "{key}", { "order:42", 8 } },
	{ "{id}", { "k:3:order:42@1.0", 16 } },
	{ "{db}", { "3", 1 } },
	{ "{1}", { "one", 3 } },
	{ "{2}", { "", 0 } },
	{ "{3}", { "\0\xff", 2 } },
	{ "{4}", { "{key}", 5 } },
	{ "{9}", { "", 0 } },
	{ "{1}{1}-{db}", { "oneone-3", 8 } },
	{ "a{1}b{db}c", { "aoneb3c", 7 } },
	{ "{{", { "{", 1 } },
	{ "}}", { "}", 1 } },
	{ "{{key}}", { "{key}", 5 } },
	{ "{{{key}}}", { "{order:42}", 10 } },
	{ "{{{{", { "{{", 2 } },
	{ "lapse:{{{db}}}:x", { "lapse:{3}:x", 11 } },
};

START_TEST(places_are_filled_in)
{
	struct bytes expected = good[_i].expanded;
	struct buf b = { 0 };
	struct err err = { "" };
	struct template *t = template_new(bytes_str(good[_i].text), 9, &err);

	ck_assert_msg(t != NULL, "%s", err.text);
	buf_str(&b, ">");
	template_write(t, &values, &b);
	ck_assert_bytes(buf_since(&b, 1), expected);
	ck_assert_uint_ge(template_bound(t, &values), expected.n);
	template_free(t);
	buf_clear(&b);
}
END_TEST

static const struct {
	const char *text;
	const char *error;
} bad[] = {
	{ "{", "never closed" },
	{ "a{key", "never closed" },
	{ "}", "closes nothing" },
	{ "{key}}", "closes nothing" },
	{ "{}", "unknown name {}" },
	{ "{kye}", "unknown name {kye}" },
	{ "{Key}", "unknown name" },
	{ "{key }", "unknown name" },
	{ "{0}", "unknown name" },
	{ "{10}", "unknown name" },
	{ "{topic}", "unknown name" },
	{ "{a{b}", "unknown name {a{b}" },
	{ "{3}", "beyond the last wildcard" },
	{ "{1}{9}", "{9} is beyond the last wildcard of the pattern, which has 2" },
};

START_TEST(anything_else_is_refused)
{
	struct err err = { "" };

	ck_assert_ptr_null(template_new(bytes_str(bad[_i].text), 2, &err));
	ck_assert_has(err.text, bad[_i].error);
}
END_TEST

START_TEST(the_text_is_copied)
{
	char text[] = "a{1}b";
	struct buf b = { 0 };
	struct err err;
	struct template *t = template_new(BYTES(text), 1, &err);

	memset(text, 'x', sizeof text);
	template_write(t, &values, &b);
	ck_assert_text(buf_view(&b), "aoneb");
	template_free(t);
	template_free(NULL);
	buf_clear(&b);
}
END_TEST

START_TEST(without_captures_they_are_empty)
{
	const struct template_values bare = { .key = { "k", 1 }, .db = 4294967295u };
	struct buf b = { 0 };
	struct err err;
	struct template *t = template_new(BYTES("{1}{key}{db}"), 1, &err);

	template_write(t, &bare, &b);
	ck_assert_text(buf_view(&b), "k4294967295");
	ck_assert_uint_ge(template_bound(t, &bare), b.n);
	template_free(t);
	buf_clear(&b);
}
END_TEST

START_TEST(a_literal_may_hold_any_byte)
{
	struct buf b = { 0 };
	struct err err;
	struct template *t = template_new(BYTES("\0\xff{{\0}}"), 0, &err);

	ck_assert_ptr_nonnull(t);
	template_write(t, &values, &b);
	ck_assert_text(buf_view(&b), "\0\xff{\0}");
	template_free(t);
	buf_clear(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("template");
	TCase *tc = tcase_create("template");

	tcase_add_loop_test(tc, places_are_filled_in, 0, (int)COUNT_OF(good));
	tcase_add_loop_test(tc, anything_else_is_refused, 0, (int)COUNT_OF(bad));
	tcase_add_test(tc, the_text_is_copied);
	tcase_add_test(tc, without_captures_they_are_empty);
	tcase_add_test(tc, a_literal_may_hold_any_byte);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
