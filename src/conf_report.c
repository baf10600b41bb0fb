/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf_report.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

static bool kept(struct conf_report *r, enum conf_severity severity)
{
	if (severity == CONF_CHANGE)
		return true;

	size_t *count = severity == CONF_MISTAKE ? &r->mistakes : &r->warnings;

	return (*count)++ < CONF_NOTES_MAX;
}

/* What is about no line comes last. */
static int place(const struct conf_note *n)
{
	return n->line ? n->line : INT_MAX;
}

static void insert(struct conf_report *r, struct conf_note note)
{
	size_t at = r->n;

	r->notes = mem_resize(r->notes, r->n + 1, sizeof(*r->notes));
	for (; at > 0 && place(&r->notes[at - 1]) > place(&note); at--)
		r->notes[at] = r->notes[at - 1];
	r->notes[at] = note;
	r->n++;
}

static void add_place(struct buf *b, const char *path, const struct conf_origin *o)
{
	if (o && o->kind == ORIGIN_FILE)
		buf_printf(b, "%s:%d: ", path, o->line);
	else if (o && o->kind != ORIGIN_DEFAULT)
		buf_printf(b, "%s: ", o->name);
	else if (path)
		buf_printf(b, "%s: ", path);
}

void conf_say(struct conf_report *r, enum conf_severity severity, const char *path,
	      const struct conf_origin *origin, const char *fmt, ...)
{
	struct buf b = { 0 };
	char text[1024];
	va_list ap;

	if (!kept(r, severity))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_place(&b, path, origin);
	buf_str(&b, text);
	for (size_t i = 0; i < b.n; i++)
		if ((unsigned char)b.p[i] < ' ' || b.p[i] == 0x7f)
			b.p[i] = '?';
	insert(r, (struct conf_note){
		.severity = severity,
		.line = origin && origin->kind == ORIGIN_FILE ? origin->line : 0,
		.text = mem_copy(buf_view(&b)),
	});
	buf_clear(&b);
}

static void print_surplus(size_t count, const char *what, FILE *out)
{
	if (count > CONF_NOTES_MAX)
		fprintf(out, "... and %zu more %s\n", count - CONF_NOTES_MAX, what);
}

void conf_report_print(const struct conf_report *r, const char *who, FILE *out)
{
	for (size_t i = 0; i < r->n; i++)
		fprintf(out, "%s%s%s\n", who, r->notes[i].severity == CONF_WARNING ? "warning: " : "",
			r->notes[i].text);
	print_surplus(r->mistakes, "mistakes", out);
	print_surplus(r->warnings, "warnings", out);
}

void conf_report_clear(struct conf_report *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->notes[i].text);
	free(r->notes);
	*r = (struct conf_report){ 0 };
}
