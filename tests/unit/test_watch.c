/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/watch.h"

#include <stdio.h>

#include "unit.h"

#define GATHER	100

static struct watch *watch;

static void setup(void)
{
	watch = watch_new(4, 64);
}

static void teardown(void)
{
	watch_free(watch);
}

static void hear(const char *member, enum watch_sign sign, usec_t now)
{
	ck_assert(watch_hear(watch, bytes_str(member), sign, now));
}

static const struct watch_key *next(usec_t now)
{
	return watch_next(watch, GATHER, 10, now);
}

START_TEST(a_key_waits_until_all_is_heard_of_it)
{
	const struct watch_key *k;

	ck_assert_int_eq(watch_deadline(watch, GATHER), USEC_NEVER);
	hear("k:0:a", WATCH_SET, 10);
	hear("k:0:a", WATCH_TTL, 11);
	hear("k:0:b", WATCH_TTL, 12);
	ck_assert_int_eq(watch_deadline(watch, GATHER), 110);
	ck_assert_ptr_null(next(109));
	k = next(111);
	ck_assert(bytes_eq(k->member, BYTES("k:0:a")) && k->set && !k->next);
	ck_assert_ptr_null(next(1000));
	ck_assert_int_eq(watch_deadline(watch, GATHER), USEC_NEVER);
	watch_done(watch);
	k = next(112);
	ck_assert(bytes_eq(k->member, BYTES("k:0:b")) && !k->set);
	watch_done(watch);
	ck_assert_uint_eq(watch_waiting(watch), 0);
}
END_TEST

START_TEST(an_expiry_alone_is_not_asked_about)
{
	hear("k:0:a", WATCH_EXPIRED, 10);
	ck_assert_ptr_null(next(1000));
	ck_assert_uint_eq(watch_waiting(watch), 0);
}
END_TEST

START_TEST(the_last_end_and_the_last_expiry_are_kept)
{
	const struct watch_key *k;

	hear("k:0:a", WATCH_TTL, 10);
	hear("k:0:a", WATCH_SET, 15);
	hear("k:0:a", WATCH_EXPIRED, 20);
	hear("k:0:a", WATCH_SET, 30);
	hear("k:0:a", WATCH_TTL, 31);
	hear("k:0:a", WATCH_DELETED, 40);
	k = next(1000);
	ck_assert_int_eq(k->expired_at, 20);
	ck_assert_int_eq(k->last, WATCH_DELETED);
	ck_assert(k->set);
	ck_assert_int_eq(k->set_at, 40);
}
END_TEST

START_TEST(what_was_not_answered_is_asked_again)
{
	const struct watch_key *k;

	hear("k:0:a", WATCH_EXPIRED, 10);
	hear("k:0:a", WATCH_SET, 10);
	hear("k:0:b", WATCH_TTL, 10);
	ck_assert_ptr_nonnull(next(1000));
	hear("k:0:a", WATCH_DELETED, 1001);
	hear("k:0:c", WATCH_TTL, 1001);
	watch_lost(watch, 1002);
	ck_assert_uint_eq(watch_waiting(watch), 3);
	ck_assert_ptr_null(next(1500));		/* a pause */
	ck_assert_int_gt(watch_deadline(watch, GATHER), 1500);
	k = next(1002 + USEC_PER_SEC);
	ck_assert(bytes_eq(k->member, BYTES("k:0:b")));
	k = k->next;
	ck_assert(bytes_eq(k->member, BYTES("k:0:a")));
	ck_assert(k->expired_at == 10 && k->last == WATCH_DELETED && k->set);
	k = k->next;
	ck_assert(bytes_eq(k->member, BYTES("k:0:c")) && !k->next);
	watch_done(watch);
	ck_assert_uint_eq(watch_waiting(watch), 0);
	watch_lost(watch, 2000);		/* nothing is owed: nothing happens */
	hear("k:0:d", WATCH_TTL, 2000);
	ck_assert_ptr_nonnull(next(2100));
}
END_TEST

START_TEST(all_that_was_asked_is_asked_again)
{
	const struct watch_key *k;

	hear("k:0:a", WATCH_TTL, 10);
	hear("k:0:b", WATCH_TTL, 10);
	ck_assert_ptr_nonnull(next(1000));
	watch_lost(watch, 1000);
	hear("k:0:c", WATCH_TTL, 1001);
	hear("k:0:a", WATCH_SET, 1001);
	ck_assert_uint_eq(watch_waiting(watch), 3);
	k = next(USEC_PER_SEC);
	ck_assert(bytes_eq(k->member, BYTES("k:0:a")) && k->set);
	ck_assert(bytes_eq(k->next->member, BYTES("k:0:b")));
	ck_assert(bytes_eq(k->next->next->member, BYTES("k:0:c")));
}
END_TEST

START_TEST(past_its_limits_hints_are_dropped)
{
	char big[65] = { 0 };

	ck_assert(!watch_lossy(watch));
	ck_assert(!watch_hear(watch, bytes_of(big, sizeof big), WATCH_TTL, 1));
	ck_assert(watch_lossy(watch) && !watch_lossy(watch));
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "k:0:%d", i);
		hear(name, WATCH_TTL, 1);
	}
	ck_assert(!watch_hear(watch, BYTES("k:0:x"), WATCH_TTL, 1));
	hear("k:0:2", WATCH_SET, 2);	/* it is there already */
	ck_assert(watch_lossy(watch));
	ck_assert_ptr_nonnull(watch_next(watch, 0, 2, 3));
	watch_done(watch);
	hear("k:0:x", WATCH_TTL, 4);
}
END_TEST

START_TEST(what_each_event_means)
{
	static const struct {
		const char *event;
		enum watch_sign sign;
	} cases[] = {
		{ "expired", WATCH_EXPIRED }, { "expire", WATCH_TTL }, { "persist", WATCH_TTL },
		{ "set", WATCH_SET }, { "rename_to", WATCH_SET }, { "restore", WATCH_SET },
		{ "del", WATCH_DELETED }, { "rename_from", WATCH_DELETED },
		{ "move_from", WATCH_DELETED }, { "evicted", WATCH_EVICTED },
		{ "hexpired", WATCH_NOTHING }, { "hexpire", WATCH_NOTHING },
		{ "keymiss", WATCH_NOTHING }, { "hset", WATCH_WRITTEN }, { "append", WATCH_WRITTEN },
	};
	size_t n = 0;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		enum watch_sign plain = cases[i].sign == WATCH_WRITTEN ? WATCH_NOTHING : cases[i].sign;

		ck_assert_int_eq(watch_sign(bytes_str(cases[i].event), true), cases[i].sign);
		ck_assert_int_eq(watch_sign(bytes_str(cases[i].event), false), plain);
	}
	while (watch_event(n).n) {
		enum watch_sign sign = watch_sign(watch_event(n++), false);

		ck_assert(sign != WATCH_NOTHING && sign != WATCH_EXPIRED);
	}
	ck_assert_uint_eq(n, 11);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("watch");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, a_key_waits_until_all_is_heard_of_it);
	tcase_add_test(tests, an_expiry_alone_is_not_asked_about);
	tcase_add_test(tests, the_last_end_and_the_last_expiry_are_kept);
	tcase_add_test(tests, what_was_not_answered_is_asked_again);
	tcase_add_test(tests, all_that_was_asked_is_asked_again);
	tcase_add_test(tests, past_its_limits_hints_are_dropped);
	tcase_add_test(tests, what_each_event_means);
	return unit_main("watch", tests);
}
