/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/claims.h"

#include "unit.h"

#define GRACE	(50 * USEC_PER_MSEC)
#define SWEEP	(30 * USEC_PER_SEC)
#define BASE	INT64_C(1000000)	/* Redis' ms at our time 0 */

static struct claims claims;
static struct rclock rclock;

/* The first sweep is over, Redis' clock is known, nothing is due. */
static void setup(void)
{
	rclock = (struct rclock){ 0 };
	rclock_sample(&rclock, BASE * USEC_PER_MSEC, 0, 0);
	claims_init(&claims, true, GRACE, SWEEP, 0);
	claims_ask(&claims, 0);
	claims_answer(&claims, -1, 0, 0);
}

static usec_t at(unsigned rank, usec_t heard)
{
	return claims_at(&claims, &rclock, rank, heard, 0);
}

START_TEST(the_first_sweep_is_at_once)
{
	claims_init(&claims, true, GRACE, SWEEP, 5);
	ck_assert_int_eq(at(0, USEC_NEVER), 5);
	ck_assert_int_eq(claims_ask(&claims, 5), TRIGGER_SWEEP);
}
END_TEST

START_TEST(with_nothing_due_only_the_sweep_comes)
{
	ck_assert_int_eq(at(0, USEC_NEVER), SWEEP);
	ck_assert_int_eq(at(3, USEC_NEVER), SWEEP);
}
END_TEST

START_TEST(the_head_arms_the_timer)
{
	claims_ask(&claims, 0);
	claims_answer(&claims, BASE + 700, 0, 0);
	ck_assert_int_eq(at(0, USEC_NEVER), 700 * USEC_PER_MSEC);
	ck_assert_int_eq(claims_ask(&claims, 700 * USEC_PER_MSEC), TRIGGER_TIMER);
}
END_TEST

START_TEST(each_rank_waits_for_the_ones_before)
{
	claims_ask(&claims, 0);
	claims_answer(&claims, BASE + 700, 0, 0);
	ck_assert_int_eq(at(2, USEC_NEVER), 700 * USEC_PER_MSEC + 2 * GRACE);
}
END_TEST

START_TEST(later_ranks_ask_once_per_grace)
{
	claims_ask(&claims, 0);
	claims_answer(&claims, BASE - 500, 0, 0);	/* overdue, but not theirs */
	ck_assert_int_eq(at(1, USEC_NEVER), GRACE);
	ck_assert_int_lt(at(0, USEC_NEVER), 1);
}
END_TEST

START_TEST(whoever_finds_work_undone_stands_in)
{
	claims_ask(&claims, 0);
	claims_answer(&claims, BASE + 700, 3, 0);
	ck_assert_int_eq(at(2, USEC_NEVER), 700 * USEC_PER_MSEC);
	claims_ask(&claims, 0);
	claims_answer(&claims, BASE + 700, 0, 0);
	ck_assert_int_eq(at(2, USEC_NEVER), 700 * USEC_PER_MSEC + 2 * GRACE);
}
END_TEST

START_TEST(a_sweeper_goes_on_while_it_finds_something)
{
	claims_init(&claims, false, GRACE, SWEEP, 0);
	ck_assert_int_eq(claims_ask(&claims, 0), TRIGGER_SWEEP);
	claims_answer(&claims, BASE + 10, 5, 0);
	ck_assert_int_eq(at(0, 1), 0);
	claims_ask(&claims, 0);
	claims_answer(&claims, BASE + 10, 0, 0);
	ck_assert_int_eq(at(0, 1), SWEEP);
}
END_TEST

START_TEST(a_heard_key_is_asked_for_at_once)
{
	ck_assert_int_eq(at(0, 123), 123);
	ck_assert_int_eq(at(1, 60 * USEC_PER_MSEC), 60 * USEC_PER_MSEC + GRACE);
}
END_TEST

START_TEST(a_wake_brings_the_timer_forward)
{
	claims_ask(&claims, 0);
	claims_answer(&claims, BASE + 700, 0, 0);
	claims_wake(&claims, BASE + 900);
	ck_assert_int_eq(at(0, USEC_NEVER), 700 * USEC_PER_MSEC);
	claims_wake(&claims, BASE + 300);
	ck_assert_int_eq(at(0, USEC_NEVER), 300 * USEC_PER_MSEC);
	ck_assert_int_eq(claims_ask(&claims, 300 * USEC_PER_MSEC), TRIGGER_WAKE);
}
END_TEST

START_TEST(a_wake_during_a_claim_outlives_its_answer)
{
	claims_ask(&claims, 0);
	claims_wake(&claims, BASE + 300);
	claims_answer(&claims, -1, 0, 0);
	ck_assert_int_eq(at(0, USEC_NEVER), 300 * USEC_PER_MSEC);
	claims_ask(&claims, 0);
	claims_wake(&claims, BASE + 300);
	claims_answer(&claims, BASE + 200, 0, 0);
	ck_assert_int_eq(at(0, USEC_NEVER), 200 * USEC_PER_MSEC);
}
END_TEST

START_TEST(a_lost_claim_is_followed_by_a_sweep)
{
	claims_ask(&claims, 0);
	claims_lost(&claims, 77);
	ck_assert_int_eq(at(2, USEC_NEVER), 77);
}
END_TEST

START_TEST(redis_clock_is_never_put_too_high)
{
	rclock_sample(&rclock, BASE * USEC_PER_MSEC + 1000, 900, 1500);	/* slow way back */
	ck_assert_int_eq(rclock_redis(&rclock, 2000), BASE * USEC_PER_MSEC + 2000);
	rclock_sample(&rclock, BASE * USEC_PER_MSEC + 3010, 2900, 3005);	/* it runs fast */
	ck_assert_int_eq(rclock_redis(&rclock, 4000), BASE * USEC_PER_MSEC + 4005);
	rclock_sample(&rclock, BASE * USEC_PER_MSEC + 4900, 4990, 5100);	/* and slow */
	ck_assert_int_eq(rclock_redis(&rclock, 5000), BASE * USEC_PER_MSEC + 4910);
}
END_TEST

START_TEST(a_clock_that_was_set_back_is_noticed)
{
	ck_assert_int_eq(rclock_sample(&rclock, BASE * USEC_PER_MSEC + 5, 5, 6), 0);
	ck_assert_int_gt(rclock_sample(&rclock, (BASE - 86400000) * USEC_PER_MSEC, 7, 7),
			 86399 * (int64_t)USEC_PER_SEC);
	ck_assert_int_eq(rclock_redis(&rclock, 7), (BASE - 86400000) * USEC_PER_MSEC);
}
END_TEST

START_TEST(an_unknown_clock_asks_now)
{
	rclock = (struct rclock){ 0 };
	ck_assert_int_eq(rclock_local(&rclock, BASE + 5000, 42), 42);
	ck_assert_int_eq(rclock_redis(&rclock, 42), 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("claims");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, the_first_sweep_is_at_once);
	tcase_add_test(tests, with_nothing_due_only_the_sweep_comes);
	tcase_add_test(tests, the_head_arms_the_timer);
	tcase_add_test(tests, each_rank_waits_for_the_ones_before);
	tcase_add_test(tests, later_ranks_ask_once_per_grace);
	tcase_add_test(tests, whoever_finds_work_undone_stands_in);
	tcase_add_test(tests, a_sweeper_goes_on_while_it_finds_something);
	tcase_add_test(tests, a_heard_key_is_asked_for_at_once);
	tcase_add_test(tests, a_wake_brings_the_timer_forward);
	tcase_add_test(tests, a_wake_during_a_claim_outlives_its_answer);
	tcase_add_test(tests, a_lost_claim_is_followed_by_a_sweep);
	tcase_add_test(tests, redis_clock_is_never_put_too_high);
	tcase_add_test(tests, a_clock_that_was_set_back_is_noticed);
	tcase_add_test(tests, an_unknown_clock_asks_now);
	return unit_main("claims", tests);
}
