/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * args - the command line, taken apart by the table of verbs.
 *
 *	lapse [options] VERB [options] [arguments]
 *
 * Options may stand anywhere before `--`, as `--name value` or `--name=value`.
 * What a verb does not know is refused with the nearest name that it does.
 */
#ifndef LAPSED_CLI_ARGS_H
#define LAPSED_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct cli;

/* The exit status of lapse. */
enum status {
	STATUS_DONE,
	STATUS_FAILED,		/* the server, the network, the disk */
	STATUS_USAGE,		/* wrong usage or configuration */
	STATUS_REFUSED,		/* not found, or refused by state */
};

/* A table of options ends with an entry whose name is NULL. */
struct option {
	const char *name;	/* without the dashes */
	const char *value;	/* what its value is called; NULL: it has none */
	const char *help;
	char letter;		/* a short form, or 0 */
	bool many;		/* may be given more than once */
};

#define ARGS_ANY	((size_t)-1)

/*
 * One verb.  A name of two words makes a family ("dead list").  The table ends
 * with an entry whose name is NULL.
 */
struct verb {
	const char *name;
	const char *words;	/* its arguments by name: "KEY DURATION VALUE" */
	size_t min, max;	/* how many of them; ARGS_ANY: no limit */
	const char *usage;	/* the options that matter, for the usage line */
	const char *summary;	/* one line, lower case */
	const char *help;	/* paragraphs */
	const struct option *options;	/* NULL: only the global ones */
	enum status (*run)(struct cli *cli);
};

extern const struct option args_global[];

struct given {
	const struct option *option;
	const char *value;	/* NULL for an option without one */
};

struct args {
	const struct verb *verb;	/* NULL: none was named */
	const char **word;		/* the verb's arguments */
	size_t n_words;
	struct given *given;
	size_t n_given;
};

/*
 * False, with the reason in `err`, for what can't be made out; `a->verb` is
 * then the verb, if that much was clear.  With --help or --version among the
 * options the number of arguments is not looked at, and no verb is needed.
 * Borrows from argv and `verbs`.  Owes an args_clear() either way.
 */
bool args_parse(struct args *a, const struct verb *verbs, int argc, char **argv,
		struct err *err) MUST_CHECK;
void args_clear(struct args *a);

/* The verb of that name, or NULL. */
const struct verb *args_verb(const struct verb *verbs, const char *name);

/* The value of an option of this verb, or NULL when it was not given. */
const char *args_value(const struct args *a, const char *name);

/* Whether it was given. */
bool args_flag(const struct args *a, const char *name);

#endif
