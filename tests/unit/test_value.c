/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/value.h"

#include "unit.h"

/* Results are from another implementation of the calendar. */
static const struct {
	const char *text;
	msec_t t;
} times[] = {
	{ "0", 0 },
	{ "1796074451937", 1796074451937 },
	{ "946684799", 946684799 },
	{ "10000000000", 10000000000 },
	{ "253402300799999", 253402300799999 },
	{ "1970-01-01T00:00:00Z", 0 },
	{ "2026-11-30T12:30:00Z", 1796041800000 },
	{ "2026-11-30t12:30:00z", 1796041800000 },
	{ "2026-11-30 12:30:00Z", 1796041800000 },
	{ "2026-11-30T12:30:00.5Z", 1796041800500 },
	{ "2026-11-30T12:30:00.123Z", 1796041800123 },
	{ "2026-11-30T12:30:00.1239999Z", 1796041800123 },
	{ "2026-11-30T12:30:00+02:00", 1796034600000 },
	{ "2026-11-30T12:30:00-05:30", 1796061600000 },
	{ "2026-11-30T23:59:60Z", 1796083200000 },
	{ "2024-02-29T00:00:00Z", 1709164800000 },
	{ "2000-02-29T00:00:00Z", 951782400000 },
	{ "2100-03-01T00:00:00Z", 4107542400000 },
	{ "9999-12-31T23:59:59.999Z", 253402300799999 },
	{ "1969-07-20T20:17:40Z", 0 },
	{ "0000-01-01T00:00:00Z", 0 },
};

START_TEST(a_time_is_read)
{
	struct err err = { "" };
	msec_t t;

	ck_assert_msg(value_time(times[_i].text, &t, &err), "%s", err.text);
	ck_assert_msg(t == times[_i].t, "%s: %lld", times[_i].text, (long long)t);
}
END_TEST

static const struct {
	const char *text;
	const char *why;
} bad_times[] = {
	{ "", "neither" },
	{ "tomorrow", "neither" },
	{ "-1", "neither" },
	{ "+1", "neither" },
	{ "1e9", "neither" },
	{ "12.5", "neither" },
	{ " 1", "neither" },
	{ "007", "plain number" },
	{ "2026-11-30", "neither" },
	{ "2026-11-30T12:30:00", "neither" },
	{ "2026-11-30T12:30Z", "neither" },
	{ "2026-11-30T12:30:00Zx", "neither" },
	{ "2026-11-30T12:30:00.Z", "neither" },
	{ "2026-11-30T24:00:00Z", "neither" },
	{ "2026-11-30T12:60:00Z", "neither" },
	{ "2026-11-30T12:30:61Z", "neither" },
	{ "2026-11-30T12:30:00+24:00", "neither" },
	{ "2026-11-30T12:30:00+02", "neither" },
	{ "2026-11-30T12:30:00+02:60", "neither" },
	{ "2026-11-31T12:30:00Z", "neither" },
	{ "2026-13-01T12:30:00Z", "neither" },
	{ "2026-00-01T12:30:00Z", "neither" },
	{ "2026-01-00T12:30:00Z", "neither" },
	{ "2100-02-29T00:00:00Z", "neither" },
	{ "2023-02-29T00:00:00Z", "neither" },
	{ "12026-11-30T12:30:00Z", "neither" },
	{ "9999-12-31T23:59:59-01:00", "beyond the year 9999" },
	{ "253402300800000", "beyond the year 9999" },
	{ "99999999999999999999999", "beyond the year 9999" },
	{ "946684800", "looks like seconds" },
	{ "1796041800", "write 1796041800000" },
	{ "9999999999", "looks like seconds" },
};

START_TEST(what_is_no_time_is_refused)
{
	struct err err = { "" };
	msec_t t;

	ck_assert_msg(!value_time(bad_times[_i].text, &t, &err), "%s", bad_times[_i].text);
	ck_assert_has(err.text, bad_times[_i].why);
}
END_TEST

START_TEST(a_duration_ends_before_the_year_10000)
{
	struct err err;
	int64_t ms;

	ck_assert(value_duration("0", &ms, &err));
	ck_assert_int_eq(ms, 0);
	ck_assert(value_duration("30m", &ms, &err));
	ck_assert_int_eq(ms, 1800000);
	ck_assert(value_duration("2932896d", &ms, &err));
	ck_assert(!value_duration("2932897d", &ms, &err));
	ck_assert_has(err.text, "beyond the year 9999");
	ck_assert(!value_duration("-5m", &ms, &err));
	ck_assert_has(err.text, "negative");
	ck_assert(!value_duration("5 minutes", &ms, &err));
	ck_assert(!value_duration("", &ms, &err));
}
END_TEST

START_TEST(a_name_is_taken_as_it_stands)
{
	struct bytes name;
	struct err err;

	ck_assert(value_name("a%20b", false, NULL, &name, &err));
	ck_assert_text(name, "a%20b");
}
END_TEST

START_TEST(an_encoded_name_may_hold_any_byte)
{
	struct buf room = { .n = 0 };
	struct bytes name;
	struct err err;

	ck_assert(value_name("a%20b%00%fF%25", true, &room, &name, &err));
	ck_assert_text(name, "a b\0\xff%");
	buf_clear(&room);
}
END_TEST

static const char *const bad_codes[] = { "%", "a%2", "%zz", "%2x", "%%20", "a%" };

START_TEST(a_broken_code_is_refused)
{
	struct buf room = { .n = 0 };
	struct bytes name;
	struct err err;

	ck_assert(!value_name(bad_codes[_i], true, &room, &name, &err));
	ck_assert_has(err.text, "two hexadecimal digits");
	buf_clear(&room);
}
END_TEST

START_TEST(a_name_has_1_to_1024_bytes)
{
	struct buf room = { .n = 0 };
	struct bytes name;
	struct err err;
	char text[1026];

	memset(text, 'x', sizeof(text));
	text[1025] = '\0';
	ck_assert(!value_name(text, false, &room, &name, &err));
	ck_assert_has(err.text, "1025 bytes");
	text[1024] = '\0';
	ck_assert(value_name(text, false, &room, &name, &err));
	ck_assert(!value_name("", false, &room, &name, &err));
	ck_assert_has(err.text, "empty");
	ck_assert(!value_name("", true, &room, &name, &err));
	buf_clear(&room);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("value");
	TCase *tc = tcase_create("value");

	tcase_add_loop_test(tc, a_time_is_read, 0, (int)COUNT_OF(times));
	tcase_add_loop_test(tc, what_is_no_time_is_refused, 0, (int)COUNT_OF(bad_times));
	tcase_add_test(tc, a_duration_ends_before_the_year_10000);
	tcase_add_test(tc, a_name_is_taken_as_it_stands);
	tcase_add_test(tc, an_encoded_name_may_hold_any_byte);
	tcase_add_loop_test(tc, a_broken_code_is_refused, 0, (int)COUNT_OF(bad_codes));
	tcase_add_test(tc, a_name_has_1_to_1024_bytes);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
