/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/canary.h"

#include "unit.h"

static struct canary canary;

static void setup(void)
{
	canary = (struct canary){ 0 };
	canary_subscribed(&canary, true);
	ck_assert_int_eq(canary_tick(&canary), CANARY_FINE);
	canary_answered(&canary, false);
	canary_word(&canary);
}

/* One interval in which the word is heard, and perhaps the expiry. */
static enum canary_verdict interval(bool expiry)
{
	enum canary_verdict v = canary_tick(&canary);

	canary_answered(&canary, true);
	canary_word(&canary);
	if (expiry)
		canary_expiry(&canary);
	return v;
}

START_TEST(all_is_well_while_both_are_heard)
{
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(interval(true), CANARY_FINE);
}
END_TEST

START_TEST(a_word_that_is_not_heard_means_a_dead_link)
{
	ck_assert_int_eq(canary_tick(&canary), CANARY_FINE);
	canary_answered(&canary, true);
	canary_expiry(&canary);
	ck_assert_int_eq(canary_tick(&canary), CANARY_DEAF);
	canary_subscribed(&canary, true);
	ck_assert_int_eq(canary_tick(&canary), CANARY_FINE);
}
END_TEST

START_TEST(a_call_without_an_answer_proves_nothing)
{
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(canary_tick(&canary), CANARY_FINE);
}
END_TEST

START_TEST(two_expiries_missed_are_told_once)
{
	ck_assert_int_eq(interval(false), CANARY_FINE);
	ck_assert_int_eq(interval(false), CANARY_FINE);
	ck_assert_int_eq(interval(false), CANARY_SILENT);
	ck_assert_int_eq(interval(false), CANARY_FINE);
	ck_assert_int_eq(interval(true), CANARY_FINE);
	ck_assert_int_eq(interval(true), CANARY_BACK);
	ck_assert_int_eq(interval(true), CANARY_FINE);
}
END_TEST

START_TEST(one_missed_is_forgiven)
{
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(interval(i % 2), CANARY_FINE);
}
END_TEST

START_TEST(an_expiry_may_come_before_our_look)
{
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(canary_tick(&canary), CANARY_FINE);
		canary_expiry(&canary);
		canary_answered(&canary, true);
		canary_word(&canary);
	}
}
END_TEST

START_TEST(the_word_may_come_before_the_answer)
{
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(canary_tick(&canary), CANARY_FINE);
		canary_word(&canary);
		canary_answered(&canary, false);
	}
	ck_assert_int_eq(canary_tick(&canary), CANARY_FINE);
	canary_answered(&canary, false);
	ck_assert_int_eq(canary_tick(&canary), CANARY_DEAF);
}
END_TEST

START_TEST(without_routes_the_word_alone_counts)
{
	canary_subscribed(&canary, false);
	for (int i = 0; i < 10; i++)
		ck_assert_int_eq(interval(false), CANARY_FINE);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("canary");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, all_is_well_while_both_are_heard);
	tcase_add_test(tests, a_word_that_is_not_heard_means_a_dead_link);
	tcase_add_test(tests, a_call_without_an_answer_proves_nothing);
	tcase_add_test(tests, two_expiries_missed_are_told_once);
	tcase_add_test(tests, one_missed_is_forgiven);
	tcase_add_test(tests, an_expiry_may_come_before_our_look);
	tcase_add_test(tests, the_word_may_come_before_the_answer);
	tcase_add_test(tests, without_routes_the_word_alone_counts);
	return unit_main("canary", tests);
}
