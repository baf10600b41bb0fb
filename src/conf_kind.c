/* SPDX-License-Identifier: BSD-2-Clause */

/* The kinds of values of the option table: one entry of kinds[] each. */
#include "conf_table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "conf_file.h"
#include "core/mem.h"
#include "core/units.h"

#define DATABASES_MAX	1024
#define PATTERNS_MAX	256

/* One kind of value: `field` points into a struct conf or conf_route. */
struct kind {
	size_t size;
	bool (*parse)(const struct conf_option *o, void *field, const char *text,
		      struct err *e);
	void (*print)(const struct conf_option *o, const void *field, struct buf *out);
	/* Both NULL: the bytes of the field are all there is to it. */
	void (*clear)(void *field);
	void (*copy)(void *to, const void *from);	/* over what was cleared */
};

static bool text_ok(const struct conf_option *o, const char *text, struct err *e)
{
	size_t n = strlen(text);

	if (n < (size_t)o->min)
		return err_set(e, "has no value");
	if (n > (size_t)o->max)
		return err_set(e, "is longer than %lld bytes", (long long)o->max);
	return !o->check || o->check(text, e);
}

static bool text_parse(const struct conf_option *o, void *field, const char *text,
		       struct err *e)
{
	char **value = field;

	if (!text_ok(o, text, e))
		return false;
	conf_secret_free(*value);
	*value = mem_copy(bytes_str(text));
	return true;
}

void conf_text_print(const char *s, struct buf *out)
{
	bool plain = s[0] != '"' && s[0] != ' ' && s[0] != ';' && s[0] &&
		     !strstr(s, " ;") && !strpbrk(s, "\n\t") && s[strlen(s) - 1] != ' ';

	if (plain) {
		buf_str(out, s);
		return;
	}
	buf_byte(out, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_byte(out, '\\');
		if (*s == '\n' || *s == '\t')
			buf_str(out, *s == '\n' ? "\\n" : "\\t");
		else
			buf_byte(out, *s);
	}
	buf_byte(out, '"');
}

static void text_print(const struct conf_option *o, const void *field, struct buf *out)
{
	const char *value = *(char *const *)field;

	if (value)
		conf_text_print(value, out);
}

static void text_clear(void *field)
{
	conf_secret_free(*(char **)field);
}

static void text_copy(void *to, const void *from)
{
	const char *value = *(char *const *)from;

	*(char **)to = value ? mem_copy(bytes_str(value)) : NULL;
}

static bool patterns_parse(const struct conf_option *o, void *field,
			   const char *text, struct err *e)
{
	struct conf_patterns *list = field;

	if (!text_ok(o, text, e))
		return false;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->p[i], text) == 0)
			return err_set(e, "%s stands there twice", text);
	if (list->n == PATTERNS_MAX)
		return err_set(e, "there are more than %d", PATTERNS_MAX);
	list->p = mem_resize(list->p, list->n + 1, sizeof(*list->p));
	list->p[list->n++] = mem_copy(bytes_str(text));
	return true;
}

/* A line each; the caller has written the first one's name. */
static void patterns_print(const struct conf_option *o, const void *field,
			   struct buf *out)
{
	const struct conf_patterns *list = field;

	for (size_t i = 0; i < list->n; i++) {
		if (i)
			buf_printf(out, "\n%s = ", o->name);
		conf_text_print(list->p[i], out);
	}
}

static void patterns_clear(void *field)
{
	struct conf_patterns *list = field;

	for (size_t i = 0; i < list->n; i++)
		free(list->p[i]);
	free(list->p);
}

static void patterns_copy(void *to, const void *from)
{
	const struct conf_patterns *old = from;
	struct conf_patterns *list = to;

	list->n = old->n;
	list->p = mem_alloc(old->n, sizeof(*list->p));
	for (size_t i = 0; i < old->n; i++)
		list->p[i] = mem_copy(bytes_str(old->p[i]));
}

static bool number_parse(const struct conf_option *o, void *field, const char *text,
			 struct err *e)
{
	uint64_t v;

	if (!units_number(bytes_str(text), (uint64_t)o->min, (uint64_t)o->max, &v, e))
		return false;
	*(int64_t *)field = (int64_t)v;
	return true;
}

static void number_print(const struct conf_option *o, const void *field, struct buf *out)
{
	if (*(const int64_t *)field >= 0)
		buf_int(out, *(const int64_t *)field);
}

static bool in_range(const struct conf_option *o, int64_t v, const char *text,
		     const char *(*show)(int64_t, char[UNITS_TEXT]), struct err *e)
{
	char min[UNITS_TEXT], max[UNITS_TEXT];

	if (v >= o->min && v <= o->max)
		return true;
	return err_set(e, "%s is out of range (%s to %s)", text,
		       show(o->min, min), show(o->max, max));
}

static bool size_parse(const struct conf_option *o, void *field, const char *text,
		       struct err *e)
{
	int64_t v;

	if (!units_size(bytes_str(text), &v, e) ||
	    !in_range(o, v, text, units_size_text, e))
		return false;
	*(int64_t *)field = v;
	return true;
}

static void size_print(const struct conf_option *o, const void *field, struct buf *out)
{
	char text[UNITS_TEXT];

	buf_str(out, units_size_text(*(const int64_t *)field, text));
}

static bool duration_parse(const struct conf_option *o, void *field,
			   const char *text, struct err *e)
{
	int64_t v;

	if (!units_duration(bytes_str(text), &v, e) ||
	    !in_range(o, v, text, units_duration_text, e))
		return false;
	*(int64_t *)field = v;
	return true;
}

static void duration_print(const struct conf_option *o, const void *field,
			   struct buf *out)
{
	char text[UNITS_TEXT];

	buf_str(out, units_duration_text(*(const int64_t *)field, text));
}

/* The place of `word` among the choices; -1, with `e` filled, if none. */
static int choose(const struct conf_option *o, struct bytes word, struct err *e)
{
	char all[128];
	size_t n = 0;

	for (int i = 0; o->choices[i]; i++) {
		if (bytes_eq(word, bytes_str(o->choices[i])))
			return i;
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "",
				      o->choices[i]);
		assert(n < sizeof(all));
	}
	err_set(e, "\"%.*s\" is none of %s", (int)word.n, word.p, all);
	return -1;
}

static bool choice_parse(const struct conf_option *o, void *field, const char *text,
			 struct err *e)
{
	int i = choose(o, bytes_str(text), e);

	if (i < 0)
		return false;
	*(int *)field = i;
	return true;
}

static void choice_print(const struct conf_option *o, const void *field, struct buf *out)
{
	buf_str(out, o->choices[*(const int *)field]);
}

/* The next of a list like `a, b`, without the blanks; false at its end. */
static bool next_word(const char **list, struct bytes *word)
{
	if (!*list)
		return false;

	size_t n = strcspn(*list, ",");
	const char *rest = (*list)[n] ? *list + n + 1 : NULL;

	*word = bytes_of(*list, n);
	while (word->n && word->p[0] == ' ')
		*word = bytes_skip(*word, 1);
	while (word->n && word->p[word->n - 1] == ' ')
		word->n--;
	*list = rest;
	return true;
}

static bool bits_parse(const struct conf_option *o, void *field, const char *text,
		       struct err *e)
{
	struct bytes word;
	unsigned bits = 0;

	while (next_word(&text, &word)) {
		int i = choose(o, word, e);

		if (i < 0 || (o->check && !o->check(o->choices[i], e)))
			return false;
		bits |= 1u << i;
	}
	*(unsigned *)field = bits;
	return true;
}

static void bits_print(const struct conf_option *o, const void *field, struct buf *out)
{
	unsigned bits = *(const unsigned *)field;
	const char *comma = "";

	for (int i = 0; o->choices[i]; i++) {
		if (bits & 1u << i) {
			buf_printf(out, "%s%s", comma, o->choices[i]);
			comma = ",";
		}
	}
}

static bool add_database(const struct conf_option *o, struct conf_databases *list,
			 struct bytes word, struct err *e)
{
	uint64_t v;
	size_t at = 0;

	if (!units_number(word, (uint64_t)o->min, (uint64_t)o->max, &v, e))
		return false;
	while (at < list->n && list->db[at] < v)
		at++;
	if (at < list->n && list->db[at] == v)
		return err_set(e, "%u stands there twice", (unsigned)v);
	if (list->n == DATABASES_MAX)
		return err_set(e, "there are more than %d; use * for all", DATABASES_MAX);
	list->db = mem_resize(list->db, list->n + 1, sizeof(*list->db));
	memmove(list->db + at + 1, list->db + at, (list->n - at) * sizeof(*list->db));
	list->db[at] = (unsigned)v;
	list->n++;
	return true;
}

static bool databases_parse(const struct conf_option *o, void *field,
			    const char *text, struct err *e)
{
	struct conf_databases *old = field, list = { 0 };
	struct bytes word;

	list.all = strcmp(text, "*") == 0;
	while (!list.all && next_word(&text, &word)) {
		if (!add_database(o, &list, word, e)) {
			free(list.db);
			return false;
		}
	}
	free(old->db);
	*old = list;
	return true;
}

static void databases_print(const struct conf_option *o, const void *field,
			    struct buf *out)
{
	const struct conf_databases *list = field;

	if (list->all)
		buf_byte(out, '*');
	for (size_t i = 0; i < list->n; i++)
		buf_printf(out, "%s%u", i ? "," : "", list->db[i]);
}

static void databases_clear(void *field)
{
	free(((struct conf_databases *)field)->db);
}

static void databases_copy(void *to, const void *from)
{
	const struct conf_databases *old = from;
	struct conf_databases *list = to;

	*list = *old;
	list->db = mem_alloc(old->n, sizeof(*list->db));
	if (old->n)
		memcpy(list->db, old->db, old->n * sizeof(*list->db));
}

static const struct kind kinds[KIND_COUNT] = {
	[KIND_TEXT] = { sizeof(char *), text_parse, text_print, text_clear, text_copy },
	[KIND_PATTERNS] = { sizeof(struct conf_patterns), patterns_parse,
			    patterns_print, patterns_clear, patterns_copy },
	[KIND_NUMBER] = { sizeof(int64_t), number_parse, number_print },
	[KIND_SIZE] = { sizeof(int64_t), size_parse, size_print },
	[KIND_DURATION] = { sizeof(int64_t), duration_parse, duration_print },
	[KIND_CHOICE] = { sizeof(int), choice_parse, choice_print },
	[KIND_BITS] = { sizeof(unsigned), bits_parse, bits_print },
	[KIND_DATABASES] = { sizeof(struct conf_databases), databases_parse,
			     databases_print, databases_clear, databases_copy },
};

bool conf_option_parse(const struct conf_option *o, void *base, const char *text,
		       struct err *e)
{
	return kinds[o->kind].parse(o, (char *)base + o->offset, text, e);
}

void conf_option_print(const struct conf_option *o, const void *base, struct buf *out)
{
	kinds[o->kind].print(o, (const char *)base + o->offset, out);
}

void conf_option_copy(const struct conf_option *o, void *to, const void *from)
{
	const struct kind *kind = &kinds[o->kind];

	conf_option_clear(o, to);
	if (kind->copy)
		kind->copy((char *)to + o->offset, (const char *)from + o->offset);
	else
		memcpy((char *)to + o->offset, (const char *)from + o->offset, kind->size);
}

bool conf_option_same(const struct conf_option *o, const void *a, const void *b)
{
	struct buf ta = { 0 }, tb = { 0 };

	conf_option_print(o, a, &ta);
	conf_option_print(o, b, &tb);

	bool same = bytes_eq(buf_view(&ta), buf_view(&tb));

	buf_clear(&ta);
	buf_clear(&tb);
	return same;
}

void conf_option_clear(const struct conf_option *o, void *base)
{
	void *field = (char *)base + o->offset;

	if (kinds[o->kind].clear)
		kinds[o->kind].clear(field);
	memset(field, 0, kinds[o->kind].size);
}
