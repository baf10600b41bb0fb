/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/heard.h"

#include <stdio.h>

#include "unit.h"

static struct heard *heard;

static void setup(void)
{
	heard = heard_new(3, 64);
}

static void teardown(void)
{
	heard_free(heard);
}

static size_t waiting(usec_t now)
{
	size_t n = 100;

	(void)heard_peek(heard, &n, now);
	return n;
}

START_TEST(keys_wait_in_order)
{
	const struct heard_key *keys;
	size_t n = 2;

	ck_assert_int_eq(heard_oldest(heard), USEC_NEVER);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:a"), true, 10), HEARD_KEPT);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:\0b"), false, 11), HEARD_KEPT);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:c"), true, 12), HEARD_KEPT);
	ck_assert_int_eq(heard_oldest(heard), 10);
	keys = heard_peek(heard, &n, 12);
	ck_assert_uint_eq(n, 2);
	ck_assert(bytes_eq(keys[1].member, BYTES("k:0:\0b")));
	ck_assert(!keys[1].anyway);
	heard_done(heard, 2);
	ck_assert_int_eq(heard_oldest(heard), 12);
	ck_assert_uint_eq(waiting(12), 1);
}
END_TEST

START_TEST(what_waits_is_known_by_name)
{
	heard_add(heard, BYTES("k:0:a"), true, 10);
	heard_add(heard, BYTES("k:0:b"), true, 11);
	heard_add(heard, BYTES("k:0:a"), true, 12);
	ck_assert_int_eq(heard_waits(heard, BYTES("k:0:a")), 12);
	ck_assert_int_eq(heard_waits(heard, BYTES("k:0:b")), 11);
	ck_assert_int_eq(heard_waits(heard, BYTES("k:0:c")), USEC_NEVER);
	ck_assert(!heard_all(heard, 2));
	heard_done(heard, 2);
	ck_assert_int_eq(heard_waits(heard, BYTES("k:0:a")), 12);
	ck_assert_int_eq(heard_waits(heard, BYTES("k:0:b")), USEC_NEVER);
	ck_assert(heard_all(heard, 1));
}
END_TEST

START_TEST(after_a_gap_no_echo_is_expected)
{
	heard_expect(heard, BYTES("k:0:a"), 10);
	heard_gap(heard);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:a"), true, 20), HEARD_KEPT);
}
END_TEST

START_TEST(past_its_limits_keys_are_dropped)
{
	char big[65] = { 0 };

	ck_assert_int_eq(heard_add(heard, bytes_of(big, sizeof big), true, 1), HEARD_DROPPED);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(heard_add(heard, BYTES("k"), true, 1), HEARD_KEPT);
	ck_assert_int_eq(heard_add(heard, BYTES("k"), true, 1), HEARD_DROPPED);
	heard_done(heard, 1);
	ck_assert_int_eq(heard_add(heard, BYTES("k"), true, 1), HEARD_KEPT);
}
END_TEST

START_TEST(an_expected_echo_is_swallowed_once)
{
	heard_expect(heard, BYTES("k:0:a"), 5);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:b"), true, 6), HEARD_KEPT);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:a"), true, 6), HEARD_ECHO);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:a"), true, 7), HEARD_KEPT);
}
END_TEST

START_TEST(an_echo_may_come_before_it_is_expected)
{
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:a"), true, 5), HEARD_KEPT);
	heard_expect(heard, BYTES("k:0:a"), 6);
	ck_assert_uint_eq(waiting(7), 0);
}
END_TEST

START_TEST(an_echo_that_did_not_come_hides_nothing_later)
{
	heard_expect(heard, BYTES("k:0:a"), 5);
	ck_assert_int_eq(heard_add(heard, BYTES("k:0:a"), true, 5 + 3 * USEC_PER_SEC),
			 HEARD_KEPT);
}
END_TEST

START_TEST(the_queue_goes_round)
{
	char name[16];

	for (int i = 0; i < 1000; i++) {
		size_t n = 1;
		const struct heard_key *keys;

		snprintf(name, sizeof name, "k:0:%d", i);
		ck_assert_int_eq(heard_add(heard, bytes_str(name), true, i), HEARD_KEPT);
		keys = heard_peek(heard, &n, i);
		ck_assert(bytes_eq(keys[0].member, bytes_str(name)));
		heard_done(heard, 1);
	}
	ck_assert_uint_eq(waiting(0), 0);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("heard");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, keys_wait_in_order);
	tcase_add_test(tests, what_waits_is_known_by_name);
	tcase_add_test(tests, after_a_gap_no_echo_is_expected);
	tcase_add_test(tests, past_its_limits_keys_are_dropped);
	tcase_add_test(tests, an_expected_echo_is_swallowed_once);
	tcase_add_test(tests, an_echo_may_come_before_it_is_expected);
	tcase_add_test(tests, an_echo_that_did_not_come_hides_nothing_later);
	tcase_add_test(tests, the_queue_goes_round);
	return unit_main("heard", tests);
}
