/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/hist.h"

#include "unit.h"

static struct hist h;

static void setup(void)
{
	hist_reset(&h);
}

START_TEST(without_values_everything_is_zero)
{
	ck_assert_uint_eq(h.count, 0);
	ck_assert_int_eq(h.max, 0);
	ck_assert_int_eq(hist_quantile(&h, 0.5), 0);
	ck_assert_int_eq(hist_quantile(&h, 1), 0);
}
END_TEST

START_TEST(small_values_are_exact)
{
	for (int i = 0; i < 64; i++)
		hist_add(&h, i);
	for (int i = 0; i < 64; i++)
		ck_assert_int_eq(hist_quantile(&h, (i + 1) / 64.0), i);
	ck_assert_uint_eq(h.sum, 63 * 32);
}
END_TEST

START_TEST(a_quantile_is_never_below_and_little_above)
{
	for (int64_t v = 1; v < HIST_TOP / 3; v = v * 5 / 4 + 1) {
		int64_t got;

		hist_reset(&h);
		hist_add(&h, v);
		hist_add(&h, v);
		hist_add(&h, HIST_TOP);	/* so that `max` does not help */
		got = hist_quantile(&h, 0.5);
		ck_assert_int_ge(got, v);
		ck_assert_int_le(got, v + v / 32);
	}
}
END_TEST

START_TEST(a_known_distribution_has_known_quantiles)
{
	for (int i = 1; i <= 100000; i++)
		hist_add(&h, i);
	ck_assert_int_ge(hist_quantile(&h, 0.5), 50000);
	ck_assert_int_le(hist_quantile(&h, 0.5), 51600);
	ck_assert_int_ge(hist_quantile(&h, 0.99), 99000);
	ck_assert_int_le(hist_quantile(&h, 0.99), 100000);
	ck_assert_int_eq(hist_quantile(&h, 1), 100000);
	ck_assert_int_eq(hist_quantile(&h, 0), 1);
}
END_TEST

START_TEST(nothing_exceeds_the_maximum)
{
	hist_add(&h, 1000001);
	ck_assert_int_eq(h.max, 1000001);
	ck_assert_int_eq(hist_quantile(&h, 0.5), 1000001);
}
END_TEST

START_TEST(negative_values_count_as_zero_and_are_counted)
{
	hist_add(&h, -1);
	hist_add(&h, INT64_MIN);
	hist_add(&h, 0);
	ck_assert_uint_eq(h.early, 2);
	ck_assert_uint_eq(h.count, 3);
	ck_assert_uint_eq(h.sum, 0);
	ck_assert_int_eq(hist_quantile(&h, 1), 0);
}
END_TEST

START_TEST(values_beyond_the_top_count_there)
{
	hist_add(&h, HIST_TOP);
	hist_add(&h, HIST_TOP + 1);
	hist_add(&h, INT64_MAX);
	ck_assert_int_eq(h.max, INT64_MAX);
	ck_assert_int_eq(hist_quantile(&h, 1), HIST_TOP);
}
END_TEST

START_TEST(shares_out_of_range_are_the_nearest)
{
	hist_add(&h, 1);
	hist_add(&h, 2);
	ck_assert_int_eq(hist_quantile(&h, -1), 1);
	ck_assert_int_eq(hist_quantile(&h, 7), 2);
	ck_assert_int_eq(hist_quantile(&h, 0.0 / 0.0), 1);
}
END_TEST

START_TEST(a_merge_is_both)
{
	struct hist other = { 0 };

	hist_add(&h, 10);
	hist_add(&other, -5);
	hist_add(&other, 20);
	hist_merge(&h, &other);
	ck_assert_uint_eq(h.count, 3);
	ck_assert_uint_eq(h.early, 1);
	ck_assert_uint_eq(h.sum, 30);
	ck_assert_int_eq(h.max, 20);
	ck_assert_int_eq(hist_quantile(&h, 0.5), 10);
	hist_reset(&h);
	ck_assert_uint_eq(h.count, 0);
	ck_assert_int_eq(hist_quantile(&h, 1), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hist");
	TCase *tc = tcase_create("hist");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, without_values_everything_is_zero);
	tcase_add_test(tc, small_values_are_exact);
	tcase_add_test(tc, a_quantile_is_never_below_and_little_above);
	tcase_add_test(tc, a_known_distribution_has_known_quantiles);
	tcase_add_test(tc, nothing_exceeds_the_maximum);
	tcase_add_test(tc, negative_values_count_as_zero_and_are_counted);
	tcase_add_test(tc, values_beyond_the_top_count_there);
	tcase_add_test(tc, shares_out_of_range_are_the_nearest);
	tcase_add_test(tc, a_merge_is_both);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
