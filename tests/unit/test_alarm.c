/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/alarm.h"

#include "io/clock.h"
#include "unit.h"

static struct ev_loop *loop;
static struct alarm *alarm_;
static ev_timer limit;
static bool late;

static void on_limit(struct ev_loop *l, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	late = true;
	ev_break(l, EVBREAK_ALL);
}

static void set_up(void)
{
	loop = ev_loop_new(EVFLAG_AUTO);
	alarm_ = alarm_new(loop);
	ck_assert_ptr_nonnull(alarm_);
	late = false;
	ev_timer_init(&limit, on_limit, 5., 0.);
	ev_timer_start(loop, &limit);
}

static void tear_down(void)
{
	alarm_free(alarm_);
	ev_loop_destroy(loop);
}

START_TEST(ends_the_sleep_and_never_before_its_time)
{
	for (int i = 0; i < 5; i++) {
		usec_t now = clock_now();

		alarm_set(alarm_, now + 2300, now);
		ev_run(loop, EVRUN_ONCE);
		ck_assert_int_ge(clock_now(), now + 2300);
		ck_assert(!late);
	}
}
END_TEST

START_TEST(what_is_due_does_not_let_it_sleep)
{
	usec_t now = clock_now();

	alarm_set(alarm_, now, now);
	ev_run(loop, EVRUN_ONCE);
	ev_run(loop, EVRUN_ONCE);	/* until it is set to something else */
	ck_assert(!late);
}
END_TEST

START_TEST(the_last_setting_counts)
{
	usec_t now = clock_now();

	alarm_set(alarm_, now, now);
	alarm_set(alarm_, now + 60 * USEC_PER_SEC, now);
	alarm_set(alarm_, now + 20000, now);
	ev_run(loop, EVRUN_ONCE);
	ck_assert_int_ge(clock_now(), now + 20000);
	ck_assert(!late);
}
END_TEST

START_TEST(may_be_set_to_the_same_time_again_after_it_rang)
{
	usec_t now = clock_now();

	alarm_set(alarm_, now + 1000, now);
	ev_run(loop, EVRUN_ONCE);
	/* as if the clock of the caller stood still */
	alarm_set(alarm_, now + 1000, now);
	ev_run(loop, EVRUN_ONCE);
	ck_assert(!late);
}
END_TEST

START_TEST(off_it_does_not_ring)
{
	usec_t now = clock_now();

	alarm_set(alarm_, now + 1000, now);
	alarm_set(alarm_, USEC_NEVER, now);
	ev_timer_stop(loop, &limit);
	ev_timer_set(&limit, 0.05, 0.);
	ev_timer_start(loop, &limit);
	ev_run(loop, EVRUN_ONCE);
	ck_assert(late);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("alarm");
	TCase *tc = tcase_create("alarm");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, ends_the_sleep_and_never_before_its_time);
	tcase_add_test(tc, what_is_due_does_not_let_it_sleep);
	tcase_add_test(tc, the_last_setting_counts);
	tcase_add_test(tc, may_be_set_to_the_same_time_again_after_it_rang);
	tcase_add_test(tc, off_it_does_not_ring);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
