/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/lease.h"

#include <string.h>

#include "unit.h"

#define TERM	(10 * USEC_PER_SEC)

static struct lease lease;

static void setup(void)
{
	lease_init(&lease, TERM, "seed");
}

static void join(unsigned slot, usec_t now)
{
	ck_assert(lease_wants_join(&lease, now));
	lease_joined(&lease, slot, 7, 40, now);
}

START_TEST(it_joins_at_once_and_asks_once)
{
	ck_assert_int_eq(lease_deadline(&lease), 0);
	ck_assert(lease_wants_join(&lease, 5));
	ck_assert(!lease_wants_join(&lease, 5));
	ck_assert_int_eq(lease_deadline(&lease), USEC_NEVER);
	lease_joined(&lease, 3, 7, 40, 5);
	ck_assert_uint_eq(lease.slot, 3);
	ck_assert_uint_eq(lease.epoch, 7);
	ck_assert_uint_eq(lease.seq, 40);
}
END_TEST

START_TEST(a_lost_join_is_asked_again_under_the_same_nonce)
{
	char nonce[sizeof lease.nonce];

	ck_assert(lease_wants_join(&lease, 0));
	memcpy(nonce, lease.nonce, sizeof nonce);
	lease_lost(&lease, 100);
	ck_assert(!lease_wants_join(&lease, 99));
	ck_assert(lease_wants_join(&lease, 100));
	ck_assert_str_eq(lease.nonce, nonce);
}
END_TEST

START_TEST(it_renews_three_times_in_a_lease)
{
	const unsigned slots[] = { 0 };
	const usec_t ends[] = { TERM };

	join(0, 0);
	ck_assert(lease_wants_renew(&lease, 0));
	ck_assert(!lease_wants_renew(&lease, 0));
	lease_renewed(&lease, slots, ends, 1, 0);
	ck_assert(!lease_wants_renew(&lease, TERM / 3 - 1));
	ck_assert_int_eq(lease_deadline(&lease), TERM / 3);
	ck_assert(lease_wants_renew(&lease, TERM / 3));
}
END_TEST

START_TEST(it_looks_again_when_the_lease_of_another_should_have_ended)
{
	const unsigned slots[] = { 0, 1 };
	const usec_t ends[] = { TERM, 1000 };

	join(0, 0);
	ck_assert(lease_wants_renew(&lease, 0));
	lease_renewed(&lease, slots, ends, 2, 0);
	ck_assert_int_ge(lease_deadline(&lease), 1000);
	ck_assert_int_lt(lease_deadline(&lease), USEC_PER_SEC);
}
END_TEST

START_TEST(every_instance_has_another_rank)
{
	const unsigned slots[] = { 0, 1, 2, 5 };
	const usec_t ends[] = { TERM, TERM, TERM, TERM };
	unsigned seen = 0;

	for (size_t i = 0; i < 4; i++) {
		lease_init(&lease, TERM, "seed");
		join(slots[i], 0);
		ck_assert(lease_wants_renew(&lease, 0));
		lease_renewed(&lease, slots, ends, 4, 0);
		ck_assert_uint_eq(lease.live, 4);
		seen |= 1u << lease.rank;
	}
	ck_assert_uint_eq(seen, 0xf);
}
END_TEST

START_TEST(alone_it_ranks_first)
{
	const unsigned slots[] = { 9 };
	const usec_t ends[] = { TERM };

	join(9, 0);
	ck_assert(lease_wants_renew(&lease, 0));
	lease_renewed(&lease, slots, ends, 1, 0);
	ck_assert_uint_eq(lease.rank, 0);
}
END_TEST

START_TEST(fenced_it_joins_anew_under_another_nonce)
{
	char nonce[sizeof lease.nonce];

	join(0, 0);
	memcpy(nonce, lease.nonce, sizeof nonce);
	lease_fenced(&lease, 50);
	ck_assert(!lease_wants_renew(&lease, 50));
	ck_assert(lease_wants_join(&lease, 50));
	ck_assert_str_ne(lease.nonce, nonce);
}
END_TEST

START_TEST(fenced_while_leaving_it_has_left)
{
	join(0, 0);
	lease.state = LEASE_LEAVING;
	lease_fenced(&lease, 50);
	ck_assert_int_eq(lease.state, LEASE_LEFT);
	ck_assert(!lease_wants_join(&lease, 60));
}
END_TEST

START_TEST(hurry_renews_at_the_next_turn)
{
	const unsigned slots[] = { 0 };
	const usec_t ends[] = { TERM };

	join(0, 0);
	ck_assert(lease_wants_renew(&lease, 0));
	lease_renewed(&lease, slots, ends, 1, 0);
	lease_hurry(&lease, 10);
	ck_assert(lease_wants_renew(&lease, 10));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("lease");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, it_joins_at_once_and_asks_once);
	tcase_add_test(tests, a_lost_join_is_asked_again_under_the_same_nonce);
	tcase_add_test(tests, it_renews_three_times_in_a_lease);
	tcase_add_test(tests, it_looks_again_when_the_lease_of_another_should_have_ended);
	tcase_add_test(tests, every_instance_has_another_rank);
	tcase_add_test(tests, alone_it_ranks_first);
	tcase_add_test(tests, fenced_it_joins_anew_under_another_nonce);
	tcase_add_test(tests, fenced_while_leaving_it_has_left);
	tcase_add_test(tests, hurry_renews_at_the_next_turn);
	return unit_main("lease", tests);
}
