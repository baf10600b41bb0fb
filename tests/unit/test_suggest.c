/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/suggest.h"

#include "unit.h"

static const char *const names[] = {
	"pattern", "register", "topic", "key", "value", "inferred", "mode",
	"type", "max_inflight", "max_bytes", "log_level", "log_format",
};

static const struct {
	const char *word;
	const char *meant;	/* NULL: nobody can tell */
} words[] = {
	{ "pattern", "pattern" },
	{ "patern", "pattern" },
	{ "patttern", "pattern" },
	{ "pattren", "pattern" },
	{ "PATTERN", "pattern" },
	{ "keys", "key" },
	{ "kye", "key" },
	{ "vlaue", "value" },
	{ "tpoic", "topic" },
	{ "max-inflight", "max_inflight" },
	{ "maxinflight", "max_inflight" },
	{ "loglevel", "log_level" },
	{ "tpye", "type" },
	{ "xyz", NULL },
	{ "bootstrap.servers", NULL },
	{ "k", NULL },
	{ "", NULL },
};

START_TEST(what_was_meant)
{
	const char *got = suggest_of(words[_i].word, names, COUNT_OF(names));

	if (words[_i].meant)
		ck_assert_pstr_eq(got, words[_i].meant);
	else
		ck_assert_ptr_null(got);
}
END_TEST

START_TEST(the_first_of_equals_is_taken)
{
	const char *const two[] = { "cat", "car" };

	ck_assert_str_eq(suggest_of("caz", two, 2), "cat");
}
END_TEST

START_TEST(names_of_any_length_are_safe)
{
	char lengthy[5000];
	const char *const one[] = { lengthy };

	memset(lengthy, 'a', sizeof lengthy - 1);
	lengthy[sizeof lengthy - 1] = '\0';
	ck_assert_ptr_null(suggest_of("aaaa", one, 1));
	ck_assert_ptr_null(suggest_of(lengthy, names, COUNT_OF(names)));
	lengthy[64] = '\0';
	ck_assert_ptr_nonnull(suggest_of(lengthy, one, 1));
	ck_assert_ptr_null(suggest_of("key", NULL, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("suggest");
	TCase *tc = tcase_create("suggest");

	tcase_add_loop_test(tc, what_was_meant, 0, (int)COUNT_OF(words));
	tcase_add_test(tc, the_first_of_equals_is_taken);
	tcase_add_test(tc, names_of_any_length_are_safe);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
