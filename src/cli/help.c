/* SPDX-License-Identifier: BSD-2-Clause */

/* help - the verbs that need no server: help, version. */
#include "config.h"

#include "cli/cli.h"

#define COLUMNS	78
#define INDENT	26

/* Words of `text` from column `at` on, no line longer than COLUMNS. */
static void put_wrapped(FILE *f, const char *text, int indent, int at)
{
	bool first = true;

	while (*text) {
		int n = (int)strcspn(text, " \n");

		if (!first && (at + 1 + n > COLUMNS)) {
			fprintf(f, "\n%*s", indent, "");
			at = indent;
			first = true;
		}
		at += fprintf(f, "%s%.*s", first ? "" : " ", n, text);
		first = false;
		text += n;
		if (*text == '\n') {
			fprintf(f, "\n%*s", indent, "");
			at = indent;
			first = true;
		}
		text += *text != '\0';
	}
	fputc('\n', f);
}

static void put_options(FILE *f, const struct option *o)
{
	for (; o && o->name; o++) {
		int at = o->letter ? fprintf(f, "  -%c, --%s", o->letter, o->name)
			: fprintf(f, "  --%s", o->name);

		if (o->value)
			at += fprintf(f, " %s", o->value);
		if (at >= INDENT)
			at = fprintf(f, "\n") - 1;
		fprintf(f, "%*s", INDENT - at, "");
		put_wrapped(f, o->help, INDENT, INDENT);
	}
}

void help_usage(FILE *f, const struct verb *v)
{
	fprintf(f, "usage: lapse %s%s%s\n", v->name, *v->usage ? " " : "", v->usage);
}

static void help_verb(const struct verb *v)
{
	help_usage(stdout, v);
	putchar('\n');
	put_wrapped(stdout, v->help, 0, 0);
	if (v->options) {
		fputs("\noptions:\n", stdout);
		put_options(stdout, v->options);
	}
	fputs("\noptions of every verb:\n", stdout);
	put_options(stdout, args_global);
}

void help_all(FILE *f, const struct verb *verbs)
{
	fputs("usage: lapse [options] VERB [arguments]\n\n", f);
	for (; verbs->name; verbs++)
		fprintf(f, "  %-14s%s\n", verbs->name, verbs->summary);
	fputs("\noptions of every verb:\n", f);
	put_options(f, args_global);
	fputs("\nDurations are written 250ms, 10s, 30m, 2h or 7d. LAPSED_REDIS_URL and\n"
		"LAPSED_REDIS_PASSWORD serve where no option is given. Exit status: 0 done,\n"
		"1 failed, 2 wrong usage or configuration, 3 not found or refused by state.\n", f);
}

/* All verbs of a family ("dead"). */
static void help_family(const struct verb *verbs, const char *family)
{
	size_t n = strlen(family);

	for (; verbs->name; verbs++) {
		if (strncmp(verbs->name, family, n) != 0 || verbs->name[n] != ' ')
			continue;
		help_usage(stdout, verbs);
		printf("       %s\n", verbs->summary);
	}
}

void help_for(const struct args *args, const struct verb *verbs)
{
	if (args->verb)
		help_verb(args->verb);
	else if (args->n_words > 0)
		help_family(verbs, args->word[0]);
	else
		help_all(stdout, verbs);
}

/* `lapse help dead list` is `lapse dead list --help`. */
enum status cli_help(struct cli *cli)
{
	char self[] = "lapse", flag[] = "--help", words[] = "--";
	char *argv[] = { self, flag, words, NULL, NULL };
	int argc = 3;
	struct args asked;
	struct err err;
	bool known;

	for (size_t i = 0; i < cli->args.n_words; i++)
		argv[argc++] = (char *)cli->args.word[i];
	known = args_parse(&asked, cli->verbs, argc, argv, &err);
	if (known)
		help_for(&asked, cli->verbs);
	args_clear(&asked);
	return known ? STATUS_DONE : cli_usage(cli, &err);
}

enum status cli_version(struct cli *cli)
{
	struct buf b = { .n = 0 };
	struct json j;

	if (!cli->json) {
		puts("lapse " PACKAGE_VERSION);
		return STATUS_DONE;
	}
	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "version");
	json_cstr(&j, PACKAGE_VERSION);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
	return STATUS_DONE;
}
