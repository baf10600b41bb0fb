/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/args.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/suggest.h"

const struct option args_global[] = {
	{ "config", "FILE", "read [redis], namespace and database from lapsed's configuration", 'c' },
	{ "redis", "URL", "the server: redis://[user@]host[:port] or unix:///path" },
	{ "password-file", "FILE", "take the password from FILE" },
	{ "namespace", "NAME", "what lapsed's keys begin with (lapse)" },
	{ "database", "N", "the database that lapsed's keys are in (0)" },
	{ "encoded", NULL, "ids and keys on the command line are percent-encoded, as in ce_id" },
	{ "json", NULL, "answer in JSON: one object, or one a line for lists" },
	{ "help", NULL, "say how the verb is used", 'h' },
	{ "version", NULL, "say which version this is", 'V' },
	{ NULL }
};

static const struct option *option_in(const struct option *table, const char *name, size_t n)
{
	for (; table && table->name; table++)
		if (strlen(table->name) == n && memcmp(table->name, name, n) == 0)
			return table;
	return NULL;
}

/* An option of that name, whoever has it; the same name is one kind of thing. */
static const struct option *option_anywhere(const struct verb *verbs, const char *name, size_t n)
{
	const struct option *o = option_in(args_global, name, n);

	for (; !o && verbs->name; verbs++)
		o = option_in(verbs->options, name, n);
	return o;
}

static const struct option *letter_in(const struct option *o, char letter)
{
	while (o && o->name && o->letter != letter)
		o++;
	return o && o->name ? o : NULL;
}

static const struct option *option_letter(const struct verb *verbs, char letter)
{
	const struct option *o = letter_in(args_global, letter);

	for (; !o && verbs->name; verbs++)
		o = letter_in(verbs->options, letter);
	return o;
}

/* `arg` begins with a dash; what follows a `=` goes to `value`. */
static const struct option *option_of(const struct verb *verbs, const char *arg,
				      const char **value)
{
	size_t n;

	*value = NULL;
	if (arg[1] != '-')
		return arg[1] && !arg[2] ? option_letter(verbs, arg[1]) : NULL;
	arg += 2;
	n = strcspn(arg, "=");
	if (arg[n])
		*value = arg + n + 1;
	return option_anywhere(verbs, arg, n);
}

static void offer_options(struct suggest *s, const struct option *table)
{
	for (; table && table->name; table++)
		suggest_offer(s, table->name);
}

/* Only what fits is suggested: the verb's own options, once there is a verb. */
static bool unknown_option(const struct verb *verb, const struct verb *verbs,
			   const char *arg, struct err *err)
{
	char name[64];
	struct suggest s;

	if (arg[1] != '-')
		return err_set(err, "unknown option %s (an argument that begins with a "
			"dash needs -- in front of it)", arg);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
	s = suggest_for(name);
	offer_options(&s, args_global);
	if (verb)
		offer_options(&s, verb->options);
	else
		for (; verbs->name; verbs++)
			offer_options(&s, verbs->options);
	if (s.best)
		return err_set(err, "unknown option --%s; did you mean --%s?", name, s.best);
	return err_set(err, "unknown option --%s", name);
}

static bool take_option(struct args *a, const struct verb *verbs, int argc, char **argv,
			int *i, struct err *err)
{
	const char *value, *arg = argv[*i];
	const struct option *o = option_of(verbs, arg, &value);

	if (!o)
		return unknown_option(a->verb, verbs, arg, err);
	if (!o->value && value)
		return err_set(err, "--%s takes no value", o->name);
	if (o->value && !value) {
		const char *next = *i + 1 < argc ? argv[*i + 1] : NULL, *ignored;

		if (!next)
			return err_set(err, "--%s lacks its value, %s", o->name, o->value);
		if (next[0] == '-' && next[1] && option_of(verbs, next, &ignored))
			return err_set(err, "--%s lacks its value, %s (if %s is meant: --%s=%s)",
				o->name, o->value, next, o->name, next);
		value = next;
		++*i;
	}
	for (size_t g = 0; g < a->n_given && !o->many; g++)
		if (strcmp(a->given[g].option->name, o->name) == 0)
			return err_set(err, "--%s is given twice", o->name);
	a->given[a->n_given++] = (struct given){ o, value };
	return true;
}

const struct verb *args_verb(const struct verb *verbs, const char *name)
{
	while (verbs->name && strcmp(verbs->name, name) != 0)
		verbs++;
	return verbs->name ? verbs : NULL;
}

/* The verb's first word is all of `word`, and there is a second. */
static bool in_family(const struct verb *v, const char *word)
{
	size_t n = strlen(word);

	return strncmp(v->name, word, n) == 0 && v->name[n] == ' ';
}

static bool is_family(const struct verb *verbs, const char *word)
{
	while (verbs->name && !in_family(verbs, word))
		verbs++;
	return verbs->name != NULL;
}

static bool unknown_verb(const struct verb *verbs, const char *word, struct err *err)
{
	struct suggest s = suggest_for(word);
	char first[32], best[32] = "";

	for (; verbs->name; verbs++) {
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(verbs->name, " "),
			verbs->name);
		suggest_offer(&s, first);
		if (s.best == first) {
			strcpy(best, first);
			s.best = best;
		}
	}
	if (s.best)
		return err_set(err, "unknown verb %s; did you mean %s?", word, best);
	return err_set(err, "unknown verb %s; lapse help lists them", word);
}

static bool unknown_member(const struct verb *verbs, const char *family, const char *word,
			   struct err *err)
{
	struct suggest s = suggest_for(word ? word : "");
	char all[128] = "";
	size_t n = 0;

	for (; verbs->name; verbs++) {
		const char *second = verbs->name + strlen(family) + 1;

		if (!in_family(verbs, family))
			continue;
		suggest_offer(&s, second);
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", second);
		assert(n < sizeof(all));
	}
	if (!word)
		return err_set(err, "%s needs to know what to do: %s", family, all);
	if (s.best)
		return err_set(err, "unknown verb %s %s; did you mean %s %s?", family, word,
			family, s.best);
	return err_set(err, "unknown verb %s %s; there are %s", family, word, all);
}

/* Takes the verb, one word or two, off the front of the words. */
static bool resolve_verb(struct args *a, const struct verb *verbs, bool *pending,
			 struct err *err)
{
	const char *first = a->word[0];
	char name[64];
	size_t used = 1;

	*pending = false;
	a->verb = args_verb(verbs, first);
	if (!a->verb && !is_family(verbs, first))
		return unknown_verb(verbs, first, err);
	if (!a->verb) {
		if (a->n_words < 2) {
			*pending = true;
			return true;
		}
		snprintf(name, sizeof(name), "%s %s", first, a->word[1]);
		a->verb = args_verb(verbs, name);
		if (!a->verb)
			return unknown_member(verbs, first, a->word[1], err);
		used = 2;
	}
	a->n_words -= used;
	memmove(a->word, a->word + used, a->n_words * sizeof(*a->word));
	return true;
}

/* What the i-th argument is called, in `out`; the last name serves for more. */
static const char *word_name(const struct verb *v, size_t i, char out[32])
{
	const char *p = v->words;
	size_t n = strcspn(p, " ");

	while (i-- > 0 && p[n]) {
		p += n + 1;
		n = strcspn(p, " ");
	}
	snprintf(out, 32, "%.*s", (int)n, p);
	return out;
}

/* Options that the verb has, and as many words as it wants. */
static bool fits_verb(const struct args *a, struct err *err)
{
	const struct verb *v = a->verb;
	char name[32];

	for (size_t i = 0; i < a->n_given; i++) {
		const char *o = a->given[i].option->name;

		if (!option_in(args_global, o, strlen(o)) && !option_in(v->options, o, strlen(o)))
			return err_set(err, "--%s is no option of %s", o, v->name);
	}
	if (args_flag(a, "help") || args_flag(a, "version"))
		return true;
	if (a->n_words < v->min)
		return err_set(err, "%s is missing", word_name(v, a->n_words, name));
	if (a->n_words > v->max)
		return err_set(err, "surplus argument %s", a->word[v->max]);
	return true;
}

bool args_parse(struct args *a, const struct verb *verbs, int argc, char **argv,
		struct err *err)
{
	bool only_words = false, pending = true;

	*a = (struct args){ .verb = NULL };
	a->word = mem_alloc((size_t)argc + 1, sizeof(*a->word));
	a->given = mem_alloc((size_t)argc + 1, sizeof(*a->given));
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];

		if (!only_words && strcmp(arg, "--") == 0) {
			only_words = true;
		} else if (!only_words && arg[0] == '-' && arg[1]) {
			if (!take_option(a, verbs, argc, argv, &i, err))
				return false;
		} else {
			a->word[a->n_words++] = arg;
			if (pending && !resolve_verb(a, verbs, &pending, err))
				return false;
		}
	}
	if (a->verb)
		return fits_verb(a, err);
	if (args_flag(a, "help") || args_flag(a, "version"))
		return true;
	if (a->n_words > 0)
		return unknown_member(verbs, a->word[0], NULL, err);
	return err_set(err, "no verb is given");
}

void args_clear(struct args *a)
{
	free(a->word);
	free(a->given);
	*a = (struct args){ .verb = NULL };
}

static const struct given *find_given(const struct args *a, const char *name)
{
	for (size_t i = 0; i < a->n_given; i++)
		if (strcmp(a->given[i].option->name, name) == 0)
			return &a->given[i];
	return NULL;
}

const char *args_value(const struct args *a, const char *name)
{
	const struct given *g = find_given(a, name);

	return g ? g->value : NULL;
}

bool args_flag(const struct args *a, const char *name)
{
	return find_given(a, name) != NULL;
}
