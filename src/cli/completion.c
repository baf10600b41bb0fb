/* SPDX-License-Identifier: BSD-2-Clause */

/* completion - the verb that prints how a shell completes the command line. */
#include "cli/cli.h"

static void put_names(const struct option *o)
{
	for (; o && o->name; o++)
		printf(" --%s", o->name);
}

/* Patterns of the options whose value is a FILE, or (without `files`) any other. */
static void put_valued(const struct option *o, bool files)
{
	for (; o && o->name; o++) {
		if (!o->value || (strcmp(o->value, "FILE") == 0) != files)
			continue;
		printf(" | --%s", o->name);
		if (o->letter)
			printf(" | -%c", o->letter);
	}
}

static void put_all_valued(const struct verb *v, bool files)
{
	put_valued(args_global, files);
	for (; v->name; v++)
		put_valued(v->options, files);
}

/* "dead list" is completed in two steps. */
static bool opens_family(const struct verb *verbs, const struct verb *v)
{
	size_t n = strcspn(v->name, " ");

	return v->name[n] && (v == verbs || strncmp(v[-1].name, v->name, n + 1) != 0);
}

static void put_family(const struct verb *v)
{
	size_t n = strcspn(v->name, " ");

	printf("\t'%.*s '*) words='", (int)n, v->name);
	for (const struct verb *w = v; w->name && strncmp(w->name, v->name, n + 1) == 0; w++)
		printf("%s%s", w == v ? "" : " ", w->name + n + 1);
	puts("' ;;");
}

static void put_cases(const struct verb *verbs)
{
	for (const struct verb *v = verbs; v->name; v++) {
		printf("\t'%s '*) words='", v->name);
		put_names(v->options);
		puts("' ;;");
	}
	for (const struct verb *v = verbs; v->name; v++)
		if (opens_family(verbs, v))
			put_family(v);
	fputs("\t' ') words='", stdout);
	for (const struct verb *v = verbs; v->name; v++)
		if (!strchr(v->name, ' ') || opens_family(verbs, v))
			printf("%.*s ", (int)strcspn(v->name, " "), v->name);
	puts("' ;;");
}

/* Bash's way, which zsh knows too. */
static void put_function(const struct verb *verbs)
{
	fputs("_lapse()\n"
	      "{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal verb='' words='' i\n"
	      "\tCOMPREPLY=()\n"
	      "\tcase $prev in\n"
	      "\t''", stdout);
	put_all_valued(verbs, true);
	fputs(") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
	      "\t''", stdout);
	put_all_valued(verbs, false);
	fputs(") return ;;\n"
	      "\tesac\n"
	      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	      "\t\tcase ${COMP_WORDS[i]} in\n"
	      "\t\t''", stdout);
	put_all_valued(verbs, true);
	put_all_valued(verbs, false);
	fputs(") ((i++)) ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) verb=\"$verb${COMP_WORDS[i]} \" ;;\n"
	      "\t\tesac\n"
	      "\tdone\n"
	      "\tcase \"${verb:- }\" in\n", stdout);
	put_cases(verbs);
	fputs("\tesac\n"
	      "\tcase $cur in\n"
	      "\t-*) words=\"$words", stdout);
	put_names(args_global);
	puts("\" ;;\n"
	     "\tesac\n"
	     "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	     "}\n"
	     "complete -F _lapse lapse");
}

enum status cli_completion(struct cli *cli)
{
	const char *shell = cli->args.word[0];
	struct err err;

	if (strcmp(shell, "zsh") == 0) {
		puts("#compdef lapse\nautoload -Uz bashcompinit && bashcompinit");
	} else if (strcmp(shell, "bash") != 0) {
		err_set(&err, "SHELL: \"%s\" is none that is known; these are bash and zsh",
			shell);
		return cli_usage(cli, &err);
	}
	put_function(cli->verbs);
	return STATUS_DONE;
}
