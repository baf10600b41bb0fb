/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/units.h"

#include "unit.h"

static const struct {
	const char *text;
	int64_t ms;
	const char *back;	/* as it is written again */
} durations[] = {
	{ "0", 0, "0" },
	{ "0ms", 0, "0" },
	{ "0s", 0, "0" },
	{ "1ms", 1, "1ms" },
	{ "250ms", 250, "250ms" },
	{ "1000ms", 1000, "1s" },
	{ "10s", 10000, "10s" },
	{ "90s", 90000, "90s" },
	{ "30m", 1800000, "30m" },
	{ "2h", 7200000, "2h" },
	{ "24h", 86400000, "1d" },
	{ "7d", 604800000, "7d" },
	{ "9223372036854775807ms", INT64_MAX, "9223372036854775807ms" },
	{ "106751991167d", INT64_C(106751991167) * 86400000, "106751991167d" },
};

START_TEST(a_duration_is_read_and_written)
{
	char room[UNITS_TEXT];
	struct err err;
	int64_t ms = -1;

	ck_assert_msg(units_duration(bytes_str(durations[_i].text), &ms, &err),
		      "%s", err.text);
	ck_assert_int_eq(ms, durations[_i].ms);
	ck_assert_str_eq(units_duration_text(ms, room), durations[_i].back);
}
END_TEST

static const char *const bad_durations[] = {
	"", "s", "ms", "10", "1", "00", "01s", "-1s", "+1s", " 1s", "1s ", "1 s",
	"1.5s", "1e3s", "0x10s", "1S", "1w", "1sec", "1ss", "1m30s", "1s\n",
	"18446744073709551616ms", "9223372036854775808ms", "106751991168d",
	"99999999999999999999999999s", "\xd9\xa1s",
};

START_TEST(anything_else_is_no_duration)
{
	struct err err = { "" };
	int64_t ms = -1;

	ck_assert(!units_duration(bytes_str(bad_durations[_i]), &ms, &err));
	ck_assert_has(err.text, bad_durations[_i]);
	ck_assert_int_eq(ms, -1);
}
END_TEST

START_TEST(a_nul_is_not_the_end)
{
	struct err err;
	int64_t v;
	uint64_t u;

	ck_assert(!units_duration(BYTES("1s\0"), &v, &err));
	ck_assert(!units_duration(BYTES("0\0"), &v, &err));
	ck_assert(!units_size(BYTES("1k\0"), &v, &err));
	ck_assert(!units_number(BYTES("1\0"), 0, 9, &u, &err));
	ck_assert(!units_duration(bytes_none, &v, &err));
	ck_assert(!units_number(bytes_none, 0, 9, &u, &err));
}
END_TEST

static const struct {
	const char *text;
	int64_t bytes;
	const char *back;
} sizes[] = {
	{ "0", 0, "0" },
	{ "512", 512, "512" },
	{ "1024", 1024, "1k" },
	{ "64k", 65536, "64k" },
	{ "1m", 1048576, "1m" },
	{ "1536k", 1572864, "1536k" },
	{ "2g", INT64_C(2147483648), "2g" },
	{ "1000000", 1000000, "1000000" },
	{ "8589934591g", INT64_C(8589934591) << 30, "8589934591g" },
};

START_TEST(a_size_is_read_and_written)
{
	char room[UNITS_TEXT];
	struct err err;
	int64_t n = -1;

	ck_assert_msg(units_size(bytes_str(sizes[_i].text), &n, &err), "%s", err.text);
	ck_assert_int_eq(n, sizes[_i].bytes);
	ck_assert_str_eq(units_size_text(n, room), sizes[_i].back);
}
END_TEST

static const char *const bad_sizes[] = {
	"", "k", "1K", "1kb", "1b", "-1", "1t", "1 k", "1.5m", "007",
	"8589934592g", "9223372036854775808",
};

START_TEST(anything_else_is_no_size)
{
	struct err err = { "" };
	int64_t n = -1;

	ck_assert(!units_size(bytes_str(bad_sizes[_i]), &n, &err));
	ck_assert_has(err.text, bad_sizes[_i]);
}
END_TEST

START_TEST(numbers_have_a_range)
{
	struct err err;
	uint64_t v = 0;

	ck_assert(units_number(BYTES("1"), 1, 10, &v, &err));
	ck_assert_uint_eq(v, 1);
	ck_assert(units_number(BYTES("10"), 1, 10, &v, &err));
	ck_assert_uint_eq(v, 10);
	ck_assert(units_number(BYTES("18446744073709551615"), 0, UINT64_MAX, &v, &err));
	ck_assert_uint_eq(v, UINT64_MAX);
	ck_assert(!units_number(BYTES("0"), 1, 10, &v, &err));
	ck_assert(!units_number(BYTES("11"), 1, 10, &v, &err));
	ck_assert_str_eq(err.text, "\"11\" is not a number from 1 to 10");
	ck_assert(!units_number(BYTES("18446744073709551616"), 0, UINT64_MAX, &v, &err));
	ck_assert(!units_number(BYTES("1k"), 0, UINT64_MAX, &v, &err));
	ck_assert(!units_number(BYTES("-1"), 0, UINT64_MAX, &v, &err));
	ck_assert(!units_number(BYTES(""), 0, UINT64_MAX, &v, &err));
	ck_assert(!units_number(BYTES("05"), 0, UINT64_MAX, &v, &err));
}
END_TEST

START_TEST(a_long_text_is_quoted_in_part)
{
	struct err err;
	char lengthy[4000];
	int64_t ms;

	memset(lengthy, 'x', sizeof lengthy);
	ck_assert(!units_duration(bytes_of(lengthy, sizeof lengthy), &ms, &err));
	ck_assert_has(err.text, "such as");
}
END_TEST

START_TEST(negative_values_are_written_as_zero)
{
	char room[UNITS_TEXT];

	ck_assert_str_eq(units_duration_text(-5, room), "0");
	ck_assert_str_eq(units_size_text(INT64_MIN, room), "0");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("units");
	TCase *tc = tcase_create("units");

	tcase_add_loop_test(tc, a_duration_is_read_and_written, 0,
			    (int)COUNT_OF(durations));
	tcase_add_loop_test(tc, anything_else_is_no_duration, 0,
			    (int)COUNT_OF(bad_durations));
	tcase_add_test(tc, a_nul_is_not_the_end);
	tcase_add_loop_test(tc, a_size_is_read_and_written, 0, (int)COUNT_OF(sizes));
	tcase_add_loop_test(tc, anything_else_is_no_size, 0, (int)COUNT_OF(bad_sizes));
	tcase_add_test(tc, numbers_have_a_range);
	tcase_add_test(tc, a_long_text_is_quoted_in_part);
	tcase_add_test(tc, negative_values_are_written_as_zero);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
