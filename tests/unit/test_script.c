/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The embedded files are replaced by small ones of our own: the linker takes
 * this table before it looks into the library.
 */
#include "io/script.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "lua/lua_sources.h"

#define APP(name)	{ name, "-- uses: common record\n-- " name "\n" }

const struct lua_source lua_sources[] = {
	{ "common", "COMMON\n" },
	{ "batch", "BATCH\n" },
	{ "record", "RECORD\n" },
	{ "claim", "-- head\n-- uses: common  batch\n--\nCLAIM\n" },
	{ "alone", "ALONE\n" },
	{ "broken", "-- uses: common missing\nBROKEN\n" },
	APP("schedule"), APP("cancel"), APP("reschedule"), APP("finish"),
	APP("touch"), APP("fail"), APP("schedule_bulk"),
	APP("cancel_bulk"), APP("setex"),
	APP("del"),
	{ "show", "-- uses: common\n-- flags: no-writes allow-oom\n-- show\n" },
	APP("stats"),
	{ NULL, NULL }
};

START_TEST(a_script_has_its_libraries_in_front)
{
	char *text = script_text("claim", 3);

	ck_assert_str_eq(text, "local NSDB = 3\n"
		"COMMON\n\nBATCH\n\n"
		"-- head\n-- uses: common  batch\n--\nCLAIM\n\n"
		"return lapse_claim(KEYS, ARGV)\n");
	free(text);
}
END_TEST

START_TEST(a_script_may_need_no_library)
{
	char *text = script_text("alone", 0);

	ck_assert_str_eq(text, "local NSDB = 0\nALONE\n\n"
		"return lapse_alone(KEYS, ARGV)\n");
	free(text);
}
END_TEST

START_TEST(what_does_not_exist_is_null)
{
	ck_assert_ptr_null(script_text("nothing", 0));
	ck_assert_ptr_null(script_text("", 0));
	ck_assert_ptr_null(script_text("broken", 0));
}
END_TEST

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	while ((text = strstr(text, what))) {
		text += strlen(what);
		n++;
	}
	return n;
}

START_TEST(the_library_holds_each_file_once)
{
	char *text = script_library(7);
	static const char head[] = "#!lua name=lapse\nlocal NSDB = 7\nCOMMON\n";

	ck_assert_int_eq(strncmp(text, head, strlen(head)), 0);
	ck_assert_uint_eq(count(text, "COMMON"), 1);
	ck_assert_uint_eq(count(text, "RECORD"), 1);
	ck_assert_uint_eq(count(text, "BATCH"), 0);
	ck_assert_uint_eq(count(text, "CLAIM"), 0);
	ck_assert_uint_eq(count(text, "return lapse_"), 0);
	free(text);
}
END_TEST

START_TEST(the_library_registers_every_function)
{
	char *text = script_library(0);

	ck_assert_uint_eq(count(text, "redis.register_function"), 12);
	ck_assert_ptr_nonnull(strstr(text,
		"\nredis.register_function{ function_name = 'lapse_schedule', "
		"callback = lapse_schedule, flags = { } }\n"));
	ck_assert_ptr_nonnull(strstr(text,
		"\nredis.register_function{ function_name = 'lapse_show', "
		"callback = lapse_show, flags = { 'no-writes', 'allow-oom', } }\n"));
	for (size_t i = 0; script_function(i); i++)
		ck_assert_ptr_nonnull(strstr(text, script_function(i)));
	ck_assert_str_eq(script_function(0), "lapse_schedule");
	free(text);
}
END_TEST

static const struct {
	const char *reply;
	enum script_error code;
} replies[] = {
	{ "NOSCRIPT No matching script. Please use EVAL.", SCRIPT_NOSCRIPT },
	{ "LOADING Redis is loading the dataset in memory", SCRIPT_LOADING },
	{ "BUSY Redis is busy running a script.", SCRIPT_BUSY },
	{ "MASTERDOWN Link with MASTER is down", SCRIPT_MASTERDOWN },
	{ "CLUSTERDOWN The cluster is down", SCRIPT_CLUSTERDOWN },
	{ "TRYAGAIN Multiple keys request during rehashing", SCRIPT_TRYAGAIN },
	{ "READONLY You can't write against a read only replica.", SCRIPT_READONLY },
	{ "MOVED 3999 127.0.0.1:6381", SCRIPT_MOVED },
	{ "ASK 3999 127.0.0.1:6381", SCRIPT_ASK },
	{ "OOM command not allowed when used memory > 'maxmemory'. script: f, "
	  "on @user_script:5.", SCRIPT_OOM },
	{ "MISCONF Redis is configured to save RDB snapshots", SCRIPT_MISCONF },
	{ "NOREPLICAS Not enough good replicas to write.", SCRIPT_NOREPLICAS },
	{ "NOAUTH Authentication required.", SCRIPT_NOAUTH },
	{ "WRONGPASS invalid username-password pair", SCRIPT_WRONGPASS },
	{ "NOPERM this user has no permissions to run the 'set' command", SCRIPT_NOPERM },
	{ "CROSSSLOT Keys in request don't hash to the same slot", SCRIPT_CROSSSLOT },
	{ "WRONGTYPE Operation against a key", SCRIPT_WRONGTYPE },
	{ "LAPSE_BADARG time must be +<ms>", SCRIPT_BADARG },
	{ "LAPSE_EXISTS", SCRIPT_EXISTS },
	{ "LAPSE_UNSURE more than", SCRIPT_UNSURE },
	{ "LAPSE_NOTFOUND no dead letter s:a@1.0", SCRIPT_NOTFOUND },
	{ "LAPSE_FENCED slot 0 is not held", SCRIPT_FENCED },
	{ "ERR unknown command 'FCALL'", SCRIPT_ERR },
	{ "OOMPH", SCRIPT_ERR },
	{ "", SCRIPT_ERR },
	/* Redis 6.2 */
	{ "ERR Error running script (call to f_9a): @user_script:5: @user_script: 5: "
	  "-OOM command not allowed when used memory > 'maxmemory'.", SCRIPT_OOM },
	{ "ERR Error running script (call to f_9a): @user_script:1: @user_script: 1: "
	  "-READONLY You can't write against a read only replica.", SCRIPT_READONLY },
	{ "ERR Error running script (call to f_9a): @user_script:1: @user_script: 1: "
	  "-MISCONF", SCRIPT_MISCONF },
	{ "ERR Error running script (call to f_9a): @user_script:1: @user_script: 1: "
	  "The user executing the script can't run this command or subcommand",
	  SCRIPT_NOPERM },
	{ "ERR Error running script (call to f_9a): @user_script:233: WRONGTYPE "
	  "Operation against a key holding the wrong kind of value", SCRIPT_WRONGTYPE },
	{ "ERR Error running script (call to f_9a): @user_script:1: it is BUSY",
	  SCRIPT_ERR },
	{ "ERR Error running script (call to f_9a): @user_script:1: attempt to "
	  "index a - nil -value", SCRIPT_ERR },
	/* Redis 7 */
	{ "ERR ACL failure in script: User default has no permissions to run the "
	  "'set' command script: 9a, on @user_script:1.", SCRIPT_NOPERM },
};

START_TEST(an_error_has_a_code)
{
	enum script_error code = script_error_code(bytes_str(replies[_i].reply));

	ck_assert_msg(code == replies[_i].code, "%s: %s", replies[_i].reply,
		script_error_name(code));
}
END_TEST

START_TEST(a_code_has_a_name)
{
	ck_assert_str_eq(script_error_name(SCRIPT_ERR), "ERR");
	for (int code = SCRIPT_NOSCRIPT; code <= SCRIPT_FENCED; code++)
		ck_assert_int_eq(script_error_code(bytes_str(
			script_error_name((enum script_error)code))), code);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("script");
	TCase *texts = tcase_create("texts");
	TCase *errors = tcase_create("errors");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(texts, a_script_has_its_libraries_in_front);
	tcase_add_test(texts, a_script_may_need_no_library);
	tcase_add_test(texts, what_does_not_exist_is_null);
	tcase_add_test(texts, the_library_holds_each_file_once);
	tcase_add_test(texts, the_library_registers_every_function);
	tcase_add_loop_test(errors, an_error_has_a_code, 0,
		(int)(sizeof(replies) / sizeof(replies[0])));
	tcase_add_test(errors, a_code_has_a_name);
	suite_add_tcase(suite, texts);
	suite_add_tcase(suite, errors);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
