/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/json.h"

#include <math.h>

#include "unit.h"

static struct buf out;
static struct json j;

static void setup(void)
{
	json_init(&j, &out);
}

static void teardown(void)
{
	buf_clear(&out);
}

START_TEST(commas_and_colons_come_by_themselves)
{
	json_object(&j);
	json_key(&j, "a");
	json_int(&j, -1);
	json_key(&j, "b");
	json_array(&j);
	json_array_end(&j);
	json_key(&j, "c");
	json_array(&j);
	json_uint(&j, UINT64_MAX);
	json_object(&j);
	json_object_end(&j);
	json_bool(&j, true);
	json_bool(&j, false);
	json_null(&j);
	json_array_end(&j);
	json_key_bytes(&j, BYTES("d\0"));
	json_cstr(&j, "e");
	json_key(&j, "f");
	json_raw(&j, BYTES("[1]"));
	json_object_end(&j);
	ck_assert_str_eq(buf_cstr(&out),
		"{\"a\":-1,\"b\":[],\"c\":[18446744073709551615,{},true,false,"
		"null],\"d\\u0000\":\"e\",\"f\":[1]}");
}
END_TEST

START_TEST(what_the_buffer_holds_stays_in_front)
{
	buf_str(&out, "log: ");
	json_init(&j, &out);
	json_array(&j);
	json_int(&j, 1);
	json_int(&j, 2);
	json_array_end(&j);
	ck_assert_str_eq(buf_cstr(&out), "log: [1,2]");
}
END_TEST

static const struct {
	struct bytes in;
	const char *out;
} strings[] = {
	{ { "", 0 }, "\"\"" },
	{ { NULL, 0 }, "null" },
	{ { "abc", 3 }, "\"abc\"" },
	{ { "\"\\/", 3 }, "\"\\\"\\\\/\"" },
	{ { "\b\f\n\r\t", 5 }, "\"\\b\\f\\n\\r\\t\"" },
	{ { "\0\x01\x1f\x7f", 4 }, "\"\\u0000\\u0001\\u001f\\u007f\"" },
	{ { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9 },
	  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
	{ { "\xff", 1 }, "\"\\\\xff\"" },
	{ { "a\x80z", 3 }, "\"a\\\\x80z\"" },
	{ { "\xc3", 1 }, "\"\\\\xc3\"" },
	{ { "\xc3(", 2 }, "\"\\\\xc3(\"" },
	{ { "\xe2\x82", 2 }, "\"\\\\xe2\\\\x82\"" },
	{ { "\xf0\x9f\x98", 3 }, "\"\\\\xf0\\\\x9f\\\\x98\"" },
	{ { "\xc0\xaf", 2 }, "\"\\\\xc0\\\\xaf\"" },		/* overlong */
	{ { "\xe0\x9f\xbf", 3 }, "\"\\\\xe0\\\\x9f\\\\xbf\"" },
	{ { "\xed\xa0\x80", 3 }, "\"\\\\xed\\\\xa0\\\\x80\"" },	/* surrogate */
	{ { "\xf4\x90\x80\x80", 4 }, "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"" },
	{ { "\xf8\x88\x80\x80", 4 }, "\"\\\\xf8\\\\x88\\\\x80\\\\x80\"" },
};

START_TEST(strings_may_hold_any_byte)
{
	json_string(&j, strings[_i].in);
	ck_assert_str_eq(buf_cstr(&out), strings[_i].out);
	ck_assert(json_valid(buf_view(&out)));
	ck_assert(json_utf8(buf_view(&out)));
}
END_TEST

START_TEST(random_strings_are_valid)
{
	uint32_t seed = 3;
	char raw[64];

	for (int i = 0; i < 5000; i++) {
		for (size_t k = 0; k < sizeof raw; k++) {
			seed = seed * 1664525u + 1013904223u;
			raw[k] = (char)(seed >> 24);
		}
		buf_reset(&out);
		json_init(&j, &out);
		json_array(&j);
		json_string(&j, bytes_of(raw, seed % sizeof raw));
		json_base64(&j, bytes_of(raw, seed % sizeof raw));
		json_array_end(&j);
		ck_assert(json_valid(buf_view(&out)));
		ck_assert(json_utf8(buf_view(&out)));
	}
}
END_TEST

static const struct {
	const char *in;
	const char *out;
} base64[] = {	/* RFC 4648, section 10 */
	{ "", "\"\"" },
	{ "f", "\"Zg==\"" },
	{ "fo", "\"Zm8=\"" },
	{ "foo", "\"Zm9v\"" },
	{ "foob", "\"Zm9vYg==\"" },
	{ "fooba", "\"Zm9vYmE=\"" },
	{ "foobar", "\"Zm9vYmFy\"" },
	{ "\xff\xfe\xfd", "\"//79\"" },
	{ "\xfb\xef\xbe", "\"++++\"" },
};

START_TEST(base64_is_that_of_the_rfc)
{
	json_base64(&j, bytes_str(base64[_i].in));
	ck_assert_str_eq(buf_cstr(&out), base64[_i].out);
}
END_TEST

static const struct {
	double in;
	const char *out;
} doubles[] = {
	{ 0, "0" }, { -0.0, "-0" }, { 1, "1" }, { 0.5, "0.5" }, { 0.1, "0.1" },
	{ 1234.567, "1234.567" }, { 1e100, "1e+100" }, { -2.5e-7, "-2.5e-07" },
	{ 1.0 / 3, "0.3333333333333333" }, { 9007199254740993.0, "9007199254740992" },
	{ INFINITY, "null" }, { -INFINITY, "null" }, { NAN, "null" },
};

START_TEST(doubles_read_back_as_they_were)
{
	json_double(&j, doubles[_i].in);
	ck_assert_str_eq(buf_cstr(&out), doubles[_i].out);
	ck_assert(json_valid(buf_view(&out)));
}
END_TEST

START_TEST(the_ends_of_integers)
{
	json_array(&j);
	json_int(&j, INT64_MIN);
	json_int(&j, INT64_MAX);
	json_uint(&j, 0);
	json_array_end(&j);
	ck_assert_str_eq(buf_cstr(&out),
			 "[-9223372036854775808,9223372036854775807,0]");
}
END_TEST

static const char *const valid[] = {
	"0", "-0", "10", "-1.5e+10", "1E-2", "0.0", "true", "false", "null", "\"\"",
	"\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD800\"", "\"\xc3\xa9\x7f\"",
	"[]", "{}", " [ ] ", "\t{\r\n}\n", "[1]", "[1,2]", "[[],[[]],{}]",
	"{\"a\":1}", "{ \"a\" : [ 1 , { \"b\" : null } ] , \"c\" : {} }",
	"{\"\":0,\"\":0}", "  1  ",
};

START_TEST(valid_json)
{
	struct bytes s = bytes_str(valid[_i]);

	ck_assert_msg(json_valid(s), "%s", valid[_i]);
	for (size_t n = 0; n < s.n; n++)
		json_valid(bytes_of(s.p, n));
}
END_TEST

static const char *const invalid[] = {
	"", " ", "a", "tru", "truex", "nul", "TRUE", "01", "-", "+1", "1.", ".5",
	"1e", "1e+", "0x1", "1 2", "--1", "NaN", "Infinity", "\"", "\"a", "\"\\",
	"\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\n\"", "\"\x01\"",
	"\"\xff\"", "\"\xc3\"", "\xef\xbb\xbf[]", "[", "]", "[1", "[1,", "[1,]",
	"[,1]", "[1 2]", "[1]]", "[}", "{", "}", "{]", "{\"a\"", "{\"a\":",
	"{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{1:1}",
	"{,}", "{\"a\"}", "{\"a\":}", "{\"a\"::1}", "[\"a\":1]", "[]{}", "'a'",
	"/**/1", "[1,,2]", "{\"a\":1,,\"b\":2}", "\"\\u\"", "\"\\uD8\"",
};

START_TEST(invalid_json)
{
	ck_assert_msg(!json_valid(bytes_str(invalid[_i])), "%s", invalid[_i]);
}
END_TEST

START_TEST(a_nul_is_not_json)
{
	ck_assert(!json_valid(BYTES("1\0")));
	ck_assert(!json_valid(BYTES("\"\0\"")));
	ck_assert(!json_valid(bytes_none));
	ck_assert(!json_utf8(BYTES("\xc3")));
	ck_assert(json_utf8(BYTES("a\0b")));
	ck_assert(json_utf8(bytes_none));
}
END_TEST

START_TEST(nesting_has_an_end)
{
	char deep[100000];
	const size_t d = JSON_DEPTH_MAX;

	memset(deep, '[', d);
	memset(deep + d, ']', d);
	ck_assert(json_valid(bytes_of(deep, 2 * d)));
	memset(deep, '[', d + 1);
	memset(deep + d + 1, ']', d + 1);
	ck_assert(!json_valid(bytes_of(deep, 2 * d + 2)));
	memset(deep, '[', sizeof deep);
	ck_assert(!json_valid(bytes_of(deep, sizeof deep)));
	for (size_t i = 0; i + 5 <= sizeof deep; i += 5)
		memcpy(deep + i, "{\"\":{", 5);
	ck_assert(!json_valid(bytes_of(deep, sizeof deep)));
}
END_TEST

START_TEST(mixed_brackets_are_kept_apart)
{
	struct buf b = { 0 };

	for (int i = 0; i < 60; i++)
		buf_str(&b, "[{\"a\":");
	buf_str(&b, "0");
	for (int i = 0; i < 60; i++)
		buf_str(&b, "}]");
	ck_assert(json_valid(buf_view(&b)));
	b.p[b.n - 1] = '}';
	ck_assert(!json_valid(buf_view(&b)));
	buf_clear(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("json");
	TCase *tc = tcase_create("write");
	TCase *check = tcase_create("check");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, commas_and_colons_come_by_themselves);
	tcase_add_test(tc, what_the_buffer_holds_stays_in_front);
	tcase_add_loop_test(tc, strings_may_hold_any_byte, 0, (int)COUNT_OF(strings));
	tcase_add_test(tc, random_strings_are_valid);
	tcase_add_loop_test(tc, base64_is_that_of_the_rfc, 0, (int)COUNT_OF(base64));
	tcase_add_loop_test(tc, doubles_read_back_as_they_were, 0,
			    (int)COUNT_OF(doubles));
	tcase_add_test(tc, the_ends_of_integers);
	tcase_add_loop_test(check, valid_json, 0, (int)COUNT_OF(valid));
	tcase_add_loop_test(check, invalid_json, 0, (int)COUNT_OF(invalid));
	tcase_add_test(check, a_nul_is_not_json);
	tcase_add_test(check, nesting_has_an_end);
	tcase_add_test(check, mixed_brackets_are_kept_apart);
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, check);
	return unit_run(suite);
}
