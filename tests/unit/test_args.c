/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/args.h"

#include "unit.h"

static enum status nothing(struct cli *cli)
{
	return STATUS_DONE;
}

static const struct option put_options[] = {
	{ "topic", "TOPIC", "" },
	{ "header", "NAME=VALUE", "", .many = true },
	{ "nx", NULL, "" },
	{ NULL }
};

static const struct option list_options[] = { { "limit", "N", "" }, { NULL } };

static const struct verb verbs[] = {
	{ "put", "KEY VALUE", 2, 2, "", "", "", put_options, nothing },
	{ "list", "", 0, 0, "", "", "", list_options, nothing },
	{ "dead list", "", 0, 0, "", "", "", list_options, nothing },
	{ "dead drop", "CE_ID", 0, ARGS_ANY, "", "", "", NULL, nothing },
	{ NULL }
};

static struct args args;
static struct err err;

/* Words with blanks between them; the longest line here has 9. */
static bool parse(const char *line)
{
	static char text[256];
	static char *argv[16];
	int argc = 0;

	args_clear(&args);
	snprintf(text, sizeof(text), "%s", line);
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	return args_parse(&args, verbs, argc, argv, &err);
}

static void done(void)
{
	args_clear(&args);
}

START_TEST(options_stand_anywhere)
{
	static const char *const lines[] = {
		"lapse put k v --topic t --nx",
		"lapse --topic t put --nx k v",
		"lapse --nx --topic=t put k v",
		"lapse put k --nx --topic t -- v",
	};

	ck_assert_msg(parse(lines[_i]), "%s", err.text);
	ck_assert_str_eq(args.verb->name, "put");
	ck_assert_uint_eq(args.n_words, 2);
	ck_assert_str_eq(args.word[0], "k");
	ck_assert_str_eq(args.word[1], "v");
	ck_assert_str_eq(args_value(&args, "topic"), "t");
	ck_assert(args_flag(&args, "nx"));
	ck_assert(!args_flag(&args, "json"));
	ck_assert_ptr_null(args_value(&args, "header"));
}
END_TEST

START_TEST(a_value_may_look_like_anything)
{
	ck_assert(parse("lapse put k v --topic=--nx --header -x --header=a=b"));
	ck_assert_str_eq(args_value(&args, "topic"), "--nx");
	ck_assert_uint_eq(args.n_given, 3);
	ck_assert_str_eq(args.given[1].value, "-x");
	ck_assert_str_eq(args.given[2].value, "a=b");
	ck_assert(parse("lapse put -- --topic -"));
	ck_assert_str_eq(args.word[0], "--topic");
	ck_assert(parse("lapse put - --topic= v"));
	ck_assert_str_eq(args.word[0], "-");
	ck_assert_str_eq(args_value(&args, "topic"), "");
}
END_TEST

START_TEST(a_verb_may_have_two_words)
{
	ck_assert(parse("lapse dead --limit 3 list"));
	ck_assert_str_eq(args.verb->name, "dead list");
	ck_assert(parse("lapse dead drop a b c -c f"));
	ck_assert_uint_eq(args.n_words, 3);
	ck_assert_str_eq(args_value(&args, "config"), "f");
}
END_TEST

START_TEST(help_needs_no_arguments)
{
	ck_assert(parse("lapse put --help"));
	ck_assert_str_eq(args.verb->name, "put");
	ck_assert(parse("lapse -h"));
	ck_assert_ptr_null(args.verb);
	ck_assert(parse("lapse dead -h"));
	ck_assert_ptr_null(args.verb);
	ck_assert(parse("lapse -V"));
}
END_TEST

static const struct {
	const char *line;
	const char *why;
} wrong[] = {
	{ "lapse", "no verb" },
	{ "lapse --json", "no verb" },
	{ "lapse lst", "unknown verb lst; did you mean list?" },
	{ "lapse ded", "did you mean dead?" },
	{ "lapse xyzzyx", "lapse help lists them" },
	{ "lapse dead", "dead needs to know what to do: list, drop" },
	{ "lapse dead lits", "did you mean dead list?" },
	{ "lapse dead xyzzyx", "there are list, drop" },
	{ "lapse put k", "VALUE is missing" },
	{ "lapse put", "KEY is missing" },
	{ "lapse put k v w", "surplus argument w" },
	{ "lapse list x", "surplus argument x" },
	{ "lapse put k v --topc t", "unknown option --topc; did you mean --topic?" },
	{ "lapse put k v --limt=3", "unknown option --limt" },
	{ "lapse --topc t put k v", "did you mean --topic?" },
	{ "lapse list --jsn", "did you mean --json?" },
	{ "lapse put k -5", "unknown option -5 (an argument that begins with a dash" },
	{ "lapse put k v -cf", "unknown option -cf" },
	{ "lapse put k v --topic", "--topic lacks its value, TOPIC" },
	{ "lapse put k v --topic --nx", "if --nx is meant: --topic=--nx" },
	{ "lapse put k v --nx=1", "--nx takes no value" },
	{ "lapse put k v --nx --nx", "--nx is given twice" },
	{ "lapse put k v --topic a --topic=b", "--topic is given twice" },
	{ "lapse put k v --limit 3", "--limit is no option of put" },
	{ "lapse dead drop --nx", "--nx is no option of dead drop" },
	{ "lapse put k v --", "" },
	{ "lapse -- -h", "unknown verb -h" },
};

START_TEST(wrong_usage_is_named)
{
	bool ok = parse(wrong[_i].line);

	ck_assert_msg(ok == !*wrong[_i].why, "%s", wrong[_i].line);
	if (!ok)
		ck_assert_has(err.text, wrong[_i].why);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("args");
	TCase *tc = tcase_create("args");

	tcase_add_checked_fixture(tc, NULL, done);
	tcase_add_loop_test(tc, options_stand_anywhere, 0, 4);
	tcase_add_test(tc, a_value_may_look_like_anything);
	tcase_add_test(tc, a_verb_may_have_two_words);
	tcase_add_test(tc, help_needs_no_arguments);
	tcase_add_loop_test(tc, wrong_usage_is_named, 0, (int)COUNT_OF(wrong));
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
