/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/walk.h"
#include "unit.h"

#define SWEEP	(10 * USEC_PER_SEC)
#define PACE	(SWEEP / WALK_STEPS)

static struct walk w;
static usec_t now;

static void setup(void)
{
	now = 5;
	walk_init(&w, SWEEP, now);
}

static void teardown(void)
{
	walk_clear(&w);
}

/* The step that is due now. */
static const struct walk_step *step(const char *part, const char *cursor)
{
	const struct walk_step *s;

	ck_assert_int_ne(walk_deadline(&w), USEC_NEVER);
	now = walk_deadline(&w);
	ck_assert_ptr_null(walk_next(&w, now - 1));
	s = walk_next(&w, now);
	ck_assert_ptr_nonnull(s);
	ck_assert_str_eq(s->part, part);
	ck_assert_str_eq(s->cursor, cursor);
	return s;
}

static void answer(const char *cursor, const struct walk_found *found, size_t n)
{
	const struct walk_answer a = { .cursor = bytes_str(cursor), .found = found, .n = n };

	walk_answer(&w, &a, 0, now);
}

START_TEST(small_and_big_structures_take_turns)
{
	static const char *const parts[] = {
		"epoch", "due", "batches", "rec", "open", "wait", "dead", "due", "why", "rec",
		"epoch", "wait",
	};

	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		ck_assert(!step(parts[i], "0")->repair);
		answer("0", NULL, 0);
	}
}
END_TEST

START_TEST(each_side_goes_on_at_its_cursor)
{
	step("epoch", "0");
	answer("0", NULL, 0);
	step("due", "0");
	answer("18446744073709551615", NULL, 0);
	step("batches", "0");
	answer("3", NULL, 0);
	step("due", "18446744073709551615");
	answer("12", NULL, 0);
	step("batches", "3");
	answer("0", NULL, 0);
	step("due", "12");
	answer("0", NULL, 0);
	step("open", "0");
	answer("0", NULL, 0);
	step("rec", "0");
}
END_TEST

START_TEST(one_step_at_a_time_and_one_for_each_pace)
{
	ck_assert_int_eq(walk_deadline(&w), now + PACE);
	step("epoch", "0");
	ck_assert_int_eq(walk_deadline(&w), USEC_NEVER);
	ck_assert_ptr_null(walk_next(&w, now + SWEEP));
	answer("0", NULL, 0);
	ck_assert_int_eq(walk_deadline(&w), now + PACE);
}
END_TEST

START_TEST(later_ranks_go_more_slowly)
{
	const struct walk_answer a = { .cursor = BYTES("0") };

	step("epoch", "0");
	walk_answer(&w, &a, 2, now);
	ck_assert_int_eq(walk_deadline(&w), now + 3 * PACE);
}
END_TEST

START_TEST(what_is_found_is_looked_at_again_before_it_is_repaired)
{
	const struct walk_found found[] = {
		{ BYTES("epoch-behind"), BYTES("a\0b"), bytes_none },
		{ BYTES("epoch-behind"), BYTES("c"), bytes_none },
	};
	const struct walk_found done[] = { { found[1].kind, found[1].name, BYTES("raised") } };
	const struct walk_step *s;
	usec_t seen;

	step("epoch", "0");
	seen = now;
	answer("7", found, 2);
	s = step("epoch", "0");
	ck_assert_int_gt(now - seen, PACE);
	ck_assert(s->repair);
	ck_assert_uint_eq(s->n, 2);
	ck_assert_text(s->names[0], "a\0b");
	ck_assert_text(s->names[1], "c");
	/* Only one is as it was; the walk goes on behind both. */
	answer("0", done, 1);
	ck_assert(!step("due", "0")->repair);
	answer("0", NULL, 0);
	ck_assert_uint_eq(step("epoch", "7")->n, 0);
}
END_TEST

START_TEST(what_cant_be_repaired_stops_nothing)
{
	const struct walk_found found[] = { { BYTES("name-unreadable"), BYTES("x"), bytes_none } };

	step("epoch", "0");
	answer("0", found, 1);
	step("epoch", "0");
	answer("0", found, 1);
	step("due", "0");
	answer("0", NULL, 0);
	step("batches", "0");
}
END_TEST

START_TEST(doubts_are_bounded)
{
	struct walk_found found[3 * WALK_COUNT];

	for (size_t i = 0; i < COUNT_OF(found); i++)
		found[i] = (struct walk_found){ BYTES("epoch-behind"), BYTES("x"), bytes_none };
	step("epoch", "0");
	answer("0", found, COUNT_OF(found));
	ck_assert_uint_eq(step("epoch", "0")->n, WALK_COUNT);
}
END_TEST

START_TEST(a_part_that_is_refused_is_passed_over)
{
	const struct walk_found found[] = { { BYTES("epoch-behind"), BYTES("x"), bytes_none } };

	step("epoch", "0");
	walk_lost(&w, now);
	step("due", "0");
	answer("0", NULL, 0);
	step("batches", "0");
	answer("9", found, 1);
	step("batches", "0");
	walk_lost(&w, now);
	step("rec", "0");
	answer("0", NULL, 0);
	ck_assert_uint_eq(step("open", "0")->n, 0);
	/* With no answer owed there is nothing to lose. */
	answer("0", NULL, 0);
	walk_lost(&w, now + SWEEP);
	ck_assert_int_eq(walk_deadline(&w), now + PACE);
}
END_TEST

START_TEST(a_cursor_that_is_none_ends_the_part)
{
	step("epoch", "0");
	answer("", NULL, 0);
	step("due", "0");
	answer("123456789012345678901234567890", NULL, 0);
	step("batches", "0");
	answer("0", NULL, 0);
	step("rec", "0");
}
END_TEST

START_TEST(the_pace_follows_the_configuration)
{
	walk_configure(&w, 3600 * (usec_t)USEC_PER_SEC);
	step("epoch", "0");
	answer("0", NULL, 0);
	ck_assert_int_eq(walk_deadline(&w), now + 360 * (usec_t)USEC_PER_SEC);
	walk_configure(&w, 1);
	step("due", "0");
	answer("0", NULL, 0);
	ck_assert_int_ge(walk_deadline(&w), now + 10 * USEC_PER_MSEC);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("walk");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, small_and_big_structures_take_turns);
	tcase_add_test(tests, each_side_goes_on_at_its_cursor);
	tcase_add_test(tests, one_step_at_a_time_and_one_for_each_pace);
	tcase_add_test(tests, later_ranks_go_more_slowly);
	tcase_add_test(tests, what_is_found_is_looked_at_again_before_it_is_repaired);
	tcase_add_test(tests, what_cant_be_repaired_stops_nothing);
	tcase_add_test(tests, doubts_are_bounded);
	tcase_add_test(tests, a_part_that_is_refused_is_passed_over);
	tcase_add_test(tests, a_cursor_that_is_none_ends_the_part);
	tcase_add_test(tests, the_pace_follows_the_configuration);
	return unit_main("walk", tests);
}
