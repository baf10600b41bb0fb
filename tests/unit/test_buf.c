/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/buf.h"

#include <stdint.h>

#include "unit.h"

START_TEST(a_zeroed_buffer_is_empty)
{
	struct buf b = { 0 };

	ck_assert_uint_eq(buf_view(&b).n, 0);
	buf_add(&b, bytes_none);
	ck_assert_uint_eq(b.n, 0);
	buf_clear(&b);
	ck_assert_ptr_null(b.p);
}
END_TEST

START_TEST(bytes_are_kept_as_they_come)
{
	struct buf b = { 0 };

	buf_add(&b, BYTES("a\0b"));
	buf_byte(&b, '\xff');
	buf_str(&b, "cd");
	buf_str(&b, "");
	buf_str(&b, NULL);
	ck_assert_text(buf_view(&b), "a\0b\xff" "cd");
	ck_assert_text(buf_since(&b, 4), "cd");
	buf_clear(&b);
}
END_TEST

START_TEST(numbers_are_plain_decimals)
{
	struct buf b = { 0 };

	buf_uint(&b, 0);
	buf_byte(&b, ' ');
	buf_uint(&b, UINT64_MAX);
	buf_byte(&b, ' ');
	buf_int(&b, INT64_MIN);
	buf_byte(&b, ' ');
	buf_int(&b, INT64_MAX);
	ck_assert_str_eq(buf_cstr(&b), "0 18446744073709551615 "
			 "-9223372036854775808 9223372036854775807");
	buf_clear(&b);
}
END_TEST

START_TEST(binary_numbers_are_big_endian)
{
	struct buf b = { 0 };

	buf_be16(&b, 0x0102);
	buf_be64(&b, UINT64_C(0xf102030405060708));
	ck_assert_text(buf_view(&b), "\1\2\xf1\2\3\4\5\6\7\10");
	buf_clear(&b);
}
END_TEST

START_TEST(formatted_text_of_any_length_fits)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s", "");
	buf_printf(&b, "%d-%s-%0*d", 7, "x", 500, 1);
	ck_assert_uint_eq(b.n, 504);
	ck_assert(bytes_starts(buf_view(&b), BYTES("7-x-000")));
	ck_assert_int_eq(b.p[503], '1');
	buf_clear(&b);
}
END_TEST

START_TEST(the_c_string_does_not_count_its_nul)
{
	struct buf b = { 0 };

	ck_assert_str_eq(buf_cstr(&b), "");
	for (int i = 0; i < 1000; i++) {
		buf_byte(&b, 'x');
		ck_assert_uint_eq(strlen(buf_cstr(&b)), b.n);
	}
	buf_clear(&b);
}
END_TEST

START_TEST(what_was_reserved_does_not_move)
{
	struct buf b = { 0 };
	const char *p;

	buf_byte(&b, 'x');
	buf_reserve(&b, 100000);
	p = b.p;
	for (int i = 0; i < 100000; i++)
		buf_byte(&b, 'y');
	ck_assert_ptr_eq(b.p, p);
	buf_clear(&b);
}
END_TEST

START_TEST(a_reset_buffer_keeps_its_room)
{
	struct buf b = { 0 };
	size_t cap;

	buf_printf(&b, "%0*d", 5000, 0);
	cap = b.cap;
	buf_reset(&b);
	ck_assert_uint_eq(b.n, 0);
	buf_printf(&b, "%0*d", 4000, 0);
	ck_assert_uint_eq(b.cap, cap);
	buf_clear(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("buf");
	TCase *tc = tcase_create("buf");

	tcase_add_test(tc, a_zeroed_buffer_is_empty);
	tcase_add_test(tc, bytes_are_kept_as_they_come);
	tcase_add_test(tc, numbers_are_plain_decimals);
	tcase_add_test(tc, binary_numbers_are_big_endian);
	tcase_add_test(tc, formatted_text_of_any_length_fits);
	tcase_add_test(tc, the_c_string_does_not_count_its_nul);
	tcase_add_test(tc, what_was_reserved_does_not_move);
	tcase_add_test(tc, a_reset_buffer_keeps_its_room);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
