/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/scan.h"

#include "unit.h"

static struct scan scan;
static struct scan_conf conf;

static void setup(void)
{
	conf = (struct scan_conf){ .on = true, .rate = 100000, .rescan = 10 * USEC_PER_SEC };
	scan_init(&scan, &conf, 5);
}

static bool answer(const char *place, usec_t now)
{
	const struct scan_answer a = { .place = bytes_str(place), .looked = 100 };

	return scan_answered(&scan, &a, 3, now);
}

START_TEST(a_pass_goes_step_by_step)
{
	const struct scan_step *step;

	ck_assert_ptr_null(scan_next(&scan, 4));
	step = scan_next(&scan, 5);
	ck_assert_str_eq(step->place, "");
	ck_assert_ptr_null(scan_next(&scan, 6));
	ck_assert_int_eq(scan_deadline(&scan), USEC_NEVER);
	ck_assert(!answer("0:17", 10));
	ck_assert_int_eq(scan_deadline(&scan), 10 + 1000);	/* 100 keys at that rate */
	step = scan_next(&scan, 1010);
	ck_assert_str_eq(step->place, "0:17");
	ck_assert(answer("", 1020));
	ck_assert_uint_eq(scan.looked, 200);
	ck_assert_uint_eq(scan.found, 6);
	ck_assert_int_eq(scan_deadline(&scan), 1020 + 10 * USEC_PER_SEC);
}
END_TEST

START_TEST(a_step_without_an_answer_is_made_again)
{
	(void)scan_next(&scan, 5);
	ck_assert(!answer("0:17", 10));
	(void)scan_next(&scan, 1010);
	scan_lost(&scan, 1020);
	ck_assert_ptr_null(scan_next(&scan, 1030));
	ck_assert_str_eq(scan_next(&scan, 1020 + USEC_PER_SEC)->place, "0:17");
	scan_lost(&scan, 2 * USEC_PER_SEC);
	scan_lost(&scan, 20 * USEC_PER_SEC);
	ck_assert_int_eq(scan_deadline(&scan), 3 * USEC_PER_SEC);
}
END_TEST

START_TEST(what_is_wanted_meanwhile_comes_behind)
{
	(void)scan_next(&scan, 5);
	ck_assert(!answer("0:17", 10));
	scan_want(&scan, 20);
	ck_assert_str_eq(scan_next(&scan, 1010)->place, "0:17");
	ck_assert(answer("", 1020));
	ck_assert_str_eq(scan_next(&scan, 1020)->place, "");
	ck_assert(answer("", 1030));
	ck_assert_ptr_null(scan_next(&scan, 1040));
	scan_want(&scan, 1040);
	ck_assert_ptr_nonnull(scan_next(&scan, 1040));
}
END_TEST

START_TEST(without_a_route_there_is_none)
{
	conf.on = false;
	scan_configure(&scan, &conf, 5);
	ck_assert_ptr_null(scan_next(&scan, 5));
	ck_assert_int_eq(scan_deadline(&scan), USEC_NEVER);
	conf.on = true;
	conf.rescan = 0;
	scan_configure(&scan, &conf, 50);
	ck_assert_ptr_nonnull(scan_next(&scan, 50));
	ck_assert(answer("", 60));
	ck_assert_int_eq(scan_deadline(&scan), USEC_NEVER);
}
END_TEST

START_TEST(a_place_that_is_too_long_ends_the_pass)
{
	(void)scan_next(&scan, 5);
	ck_assert(answer("123456789012345678901234567890123456789012345678", 10));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("scan");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, a_pass_goes_step_by_step);
	tcase_add_test(tests, a_step_without_an_answer_is_made_again);
	tcase_add_test(tests, what_is_wanted_meanwhile_comes_behind);
	tcase_add_test(tests, without_a_route_there_is_none);
	tcase_add_test(tests, a_place_that_is_too_long_ends_the_pass);
	return unit_main("scan", tests);
}
