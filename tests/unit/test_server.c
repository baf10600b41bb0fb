/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/server.h"

#include "unit.h"

START_TEST(info_tells_version_and_mode)
{
	struct server_info s;

	server_info(BYTES("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"), &s);
	ck_assert_str_eq(s.version, "7.0.15");
	ck_assert_uint_eq(s.number, 70015);
	ck_assert(!s.cluster && !s.valkey);
	server_info(BYTES("redis_version:6.0.16\nredis_mode:cluster"), &s);
	ck_assert_uint_eq(s.number, 60016);
	ck_assert(s.cluster);
	server_info(BYTES("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n"),
		    &s);
	ck_assert(s.valkey);
	ck_assert_str_eq(s.version, "8.1.1");
	ck_assert_uint_eq(s.number, 70204);
	ck_assert(!s.cluster);
	server_info(BYTES("valkey_version:8.1.1\r\nserver_mode:cluster\r\n"), &s);
	ck_assert(s.cluster);
}
END_TEST

START_TEST(an_odd_info_tells_nothing)
{
	struct server_info s;

	server_info(bytes_none, &s);
	ck_assert_uint_eq(s.number, 0);
	server_info(BYTES("redis_version"), &s);
	ck_assert_uint_eq(s.number, 0);
	server_info(BYTES("xredis_version:7.0.0\n\n:\n"), &s);
	ck_assert_uint_eq(s.number, 0);
	server_info(BYTES("redis_version:9999999999999999999999999999999999999999.1\n"), &s);
	ck_assert_uint_lt(strlen(s.version), sizeof s.version);
}
END_TEST

START_TEST(flags_are_a_set)
{
	static const struct {
		const char *flags, *needed, *missing;
	} cases[] = {
		{ "", "Ex", "Ex" }, { "Ex", "Ex", "" }, { "xE", "Ex", "" },
		{ "AKE", "Ex", "" }, { "KEA", "Ex", "" }, { "x", "Ex", "E" },
		{ "E", "Ex", "x" }, { "Kx", "Ex", "E" }, { "KA", "Ex", "E" },
		{ "xE", "Exg$e", "g$e" }, { "AE", "Exg$e", "" }, { "A", "Exg$e", "E" },
	};
	char missing[16];

	server_notify_missing(bytes_str(cases[_i].flags), cases[_i].needed, missing);
	ck_assert_str_eq(missing, cases[_i].missing);
}
END_TEST

START_TEST(a_keyevent_channel_is_taken_apart)
{
	struct bytes event;
	unsigned db;

	ck_assert(server_keyevent(BYTES("__keyevent@0__:expired"), &db, &event));
	ck_assert_uint_eq(db, 0);
	ck_assert_text(event, "expired");
	ck_assert(server_keyevent(BYTES("__keyevent@15__:del"), &db, &event));
	ck_assert_uint_eq(db, 15);
	ck_assert_text(event, "del");
}
END_TEST

static const char *const not_keyevents[] = {
	"", "__keyevent@", "__keyevent@0", "__keyevent@0__", "__keyevent@0__:",
	"__keyevent@__:expired", "__keyevent@-1__:expired", "__keyevent@x__:expired",
	"__keyevent@99999999999__:expired", "__keyevent@4294967296__:expired",
	"__keyspace@0__:expired", "lapse:{0}:wake", "x__keyevent@0__:expired",
};

START_TEST(another_channel_is_none)
{
	struct bytes event;
	unsigned db;

	ck_assert_msg(!server_keyevent(bytes_str(not_keyevents[_i]), &db, &event), "%s",
		      not_keyevents[_i]);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("server");

	tcase_add_test(tests, info_tells_version_and_mode);
	tcase_add_test(tests, an_odd_info_tells_nothing);
	tcase_add_loop_test(tests, flags_are_a_set, 0, 12);
	tcase_add_test(tests, a_keyevent_channel_is_taken_apart);
	tcase_add_loop_test(tests, another_channel_is_none, 0, COUNT_OF(not_keyevents));
	return unit_main("server", tests);
}
