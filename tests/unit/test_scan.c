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

static enum scan_news answer(const char *place, usec_t now)
{
	const struct scan_answer a = { .place = bytes_str(place), .looked = 100 };

	return scan_answered(&scan, &a, 3, now);
}

START_TEST(a_pass_goes_step_by_step)
{
	const struct scan_step *step;

	ck_assert_ptr_null(scan_next(&scan, true, 4));
	step = scan_next(&scan, true, 5);
	ck_assert_str_eq(step->place, "");
	ck_assert_ptr_null(scan_next(&scan, true, 6));
	ck_assert_int_eq(scan_deadline(&scan), USEC_NEVER);
	ck_assert_int_eq(answer("1/0:17", 10), SCAN_BEGUN);
	ck_assert_int_eq(scan_deadline(&scan), 10 + 1000);	/* 100 keys at that rate */
	step = scan_next(&scan, true, 1010);
	ck_assert_str_eq(step->place, "=1/0:17");
	ck_assert_int_eq(answer("", 1020), SCAN_DONE);
	ck_assert_uint_eq(scan.looked, 200);
	ck_assert_uint_eq(scan.found, 6);
	ck_assert_int_eq(scan_deadline(&scan), 1020 + 10 * USEC_PER_SEC);
}
END_TEST

START_TEST(a_step_without_an_answer_is_made_again)
{
	(void)scan_next(&scan, true, 5);
	ck_assert_int_eq(answer("1/0:17", 10), SCAN_BEGUN);
	(void)scan_next(&scan, true, 1010);
	scan_lost(&scan, 1020);
	ck_assert_ptr_null(scan_next(&scan, true, 1030));
	ck_assert_str_eq(scan_next(&scan, true, 1020 + USEC_PER_SEC)->place, "=1/0:17");
	scan_lost(&scan, 2 * USEC_PER_SEC);
	scan_lost(&scan, 20 * USEC_PER_SEC);
	ck_assert_int_eq(scan_deadline(&scan), 3 * USEC_PER_SEC);
}
END_TEST

START_TEST(what_is_wanted_meanwhile_comes_behind)
{
	(void)scan_next(&scan, true, 5);
	ck_assert_int_eq(answer("1/0:17", 10), SCAN_BEGUN);
	scan_want(&scan, 20);
	ck_assert_str_eq(scan_next(&scan, true, 1010)->place, "=1/0:17");
	ck_assert_int_eq(answer("", 1020), SCAN_DONE);
	ck_assert_str_eq(scan_next(&scan, true, 1020)->place, "");
	ck_assert_int_eq(answer("", 1030), SCAN_DONE);
	ck_assert_ptr_null(scan_next(&scan, true, 1040));
	scan_want(&scan, 1040);
	ck_assert_ptr_nonnull(scan_next(&scan, true, 1040));
}
END_TEST

START_TEST(without_a_route_there_is_none)
{
	conf.on = false;
	scan_configure(&scan, &conf, 5);
	ck_assert_ptr_null(scan_next(&scan, true, 5));
	ck_assert_int_eq(scan_deadline(&scan), USEC_NEVER);
	conf.on = true;
	conf.rescan = 0;
	scan_configure(&scan, &conf, 50);
	ck_assert_ptr_nonnull(scan_next(&scan, true, 50));
	ck_assert_int_eq(answer("", 60), SCAN_DONE);
	ck_assert_int_eq(scan_deadline(&scan), USEC_NEVER);
}
END_TEST

START_TEST(a_place_that_is_too_long_ends_the_pass)
{
	char place[SCAN_PLACE];

	memset(place, '1', sizeof place);
	place[SCAN_PLACE - 1] = '\0';
	(void)scan_next(&scan, true, 5);
	ck_assert_int_eq(answer(place, 10), SCAN_DONE);
}
END_TEST

START_TEST(what_is_not_registered_yet_is_not_remembered)
{
	(void)scan_next(&scan, true, 5);
	(void)answer("1/0:17", 10);
	ck_assert_str_eq(scan_next(&scan, false, 1010)->place, "1/0:17");
}
END_TEST

START_TEST(the_pass_of_another_is_brought_to_its_end)
{
	scan_want(&scan, 1000);
	scan_inherit(&scan, 61 * USEC_PER_MSEC);
	ck_assert_str_eq(scan_next(&scan, true, 61 * USEC_PER_MSEC)->place, "?60");
	scan_lost(&scan, 70 * USEC_PER_MSEC);
	ck_assert_str_eq(scan_next(&scan, true, 2 * USEC_PER_SEC)->place, "?1999");
	ck_assert_int_eq(answer("1/0:17", 2 * USEC_PER_SEC), SCAN_BEGUN);
	ck_assert_str_eq(scan_next(&scan, true, 3 * USEC_PER_SEC)->place, "=1/0:17");
	ck_assert_int_eq(answer("", 3 * USEC_PER_SEC), SCAN_DONE);
	ck_assert_str_eq(scan_next(&scan, true, 13 * USEC_PER_SEC)->place, "");
}
END_TEST

START_TEST(what_another_has_done_is_done)
{
	scan_inherit(&scan, 10);
	ck_assert_str_eq(scan_next(&scan, true, 10)->place, "?0");
	ck_assert_int_eq(answer("-", 20), SCAN_NOTHING);
	ck_assert_int_eq(scan_deadline(&scan), 20 + 10 * USEC_PER_SEC);
}
END_TEST

START_TEST(after_a_gap_nothing_is_inherited)
{
	scan_inherit(&scan, 10);
	scan_want(&scan, 20);
	ck_assert_str_eq(scan_next(&scan, true, 20)->place, "");
}
END_TEST

/* Others were the first meanwhile, and may have gone further. */
START_TEST(a_pass_that_stood_still_is_taken_up_again)
{
	(void)scan_next(&scan, true, 5);
	(void)answer("1/0:17", 10);
	scan_inherit(&scan, USEC_PER_SEC);
	ck_assert_str_eq(scan_next(&scan, true, USEC_PER_SEC)->place, "?999");
}
END_TEST

START_TEST(progress_is_told_now_and_then)
{
	(void)scan_next(&scan, true, 5);
	ck_assert_int_eq(answer("1/0:17", 10), SCAN_BEGUN);
	(void)scan_next(&scan, true, USEC_PER_SEC);
	ck_assert_int_eq(answer("1/0:18", USEC_PER_SEC), SCAN_NOTHING);
	(void)scan_next(&scan, true, 10 * USEC_PER_SEC);
	ck_assert_int_eq(answer("1/0:19", 11 * USEC_PER_SEC), SCAN_GOES_ON);
	(void)scan_next(&scan, true, 12 * USEC_PER_SEC);
	ck_assert_int_eq(answer("1/0:20", 12 * USEC_PER_SEC), SCAN_NOTHING);
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
	tcase_add_test(tests, what_is_not_registered_yet_is_not_remembered);
	tcase_add_test(tests, the_pass_of_another_is_brought_to_its_end);
	tcase_add_test(tests, what_another_has_done_is_done);
	tcase_add_test(tests, after_a_gap_nothing_is_inherited);
	tcase_add_test(tests, a_pass_that_stood_still_is_taken_up_again);
	tcase_add_test(tests, progress_is_told_now_and_then);
	return unit_main("scan", tests);
}
