/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/template.h"

#include <stdlib.h>

#include "core/mem.h"
#include "core/record.h"

enum part_kind {
	PART_LITERAL,
	PART_KEY,
	PART_ID,
	PART_DB,
	PART_CAPTURE,
};

struct part {
	enum part_kind kind;
	size_t capture;		/* of PART_CAPTURE, from 0 */
	struct bytes literal;	/* of PART_LITERAL, borrowed from text */
};

struct template {
	char *text;
	struct part *parts;
	size_t nparts;
};

static void part_add(struct template *t, struct part part)
{
	t->parts = mem_resize(t->parts, t->nparts + 1, sizeof *t->parts);
	t->parts[t->nparts++] = part;
}

/* The part that stands in braces as `name`. */
static bool part_named(struct bytes name, size_t wildcards, struct part *part,
		       struct err *err)
{
	static const struct {
		struct bytes name;
		enum part_kind kind;
	} known[] = {
		{ { "key", 3 }, PART_KEY },
		{ { "id", 2 }, PART_ID },
		{ { "db", 2 }, PART_DB },
	};

	*part = (struct part){ 0 };
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		part->kind = known[i].kind;
		if (bytes_eq(name, known[i].name))
			return true;
	}
	if (name.n != 1 || name.p[0] < '1' || name.p[0] > '9')
		return err_set(err, "unknown name {%.*s} (known are {key}, {1} to"
			       " {9}, {db} and {id}; {{ is a brace)",
			       name.n > 64 ? 64 : (int)name.n, name.p);
	part->kind = PART_CAPTURE;
	part->capture = (size_t)(name.p[0] - '1');
	if (part->capture >= wildcards)
		return err_set(err, "{%c} is beyond the last wildcard of the"
			       " pattern, which has %zu", name.p[0], wildcards);
	return true;
}

/* Adds the part at the start of `rest`, one or more bytes, and skips it. */
static bool part_take(struct template *t, struct bytes *rest, size_t wildcards,
		      struct err *err)
{
	char c = rest->p[0];
	size_t n = 0;
	struct part part;
	const char *end;

	while (n < rest->n && rest->p[n] != '{' && rest->p[n] != '}')
		n++;
	if (n || (rest->n > 1 && rest->p[1] == c)) {
		part = (struct part){ .literal = bytes_of(rest->p, n ? n : 1) };
		part_add(t, part);
		*rest = bytes_skip(*rest, n ? n : 2);
		return true;
	}
	if (c == '}')
		return err_set(err, "a } that closes nothing (write }} for a brace)");
	end = memchr(rest->p, '}', rest->n);
	if (!end)
		return err_set(err, "a { that is never closed (write {{ for a brace)");
	n = (size_t)(end - rest->p);
	if (!part_named(bytes_of(rest->p + 1, n - 1), wildcards, &part, err))
		return false;
	part_add(t, part);
	*rest = bytes_skip(*rest, n + 1);
	return true;
}

struct template *template_new(struct bytes text, size_t wildcards,
			      struct err *err)
{
	struct template *t = mem_alloc(1, sizeof *t);
	struct bytes rest;

	t->text = mem_copy(text);
	rest = bytes_of(t->text, text.n);
	while (rest.n) {
		if (!part_take(t, &rest, wildcards, err)) {
			template_free(t);
			return NULL;
		}
	}
	return t;
}

void template_free(struct template *t)
{
	if (!t)
		return;
	free(t->text);
	free(t->parts);
	free(t);
}

static struct bytes part_value(const struct part *part,
			       const struct template_values *v)
{
	switch (part->kind) {
	case PART_LITERAL:
		return part->literal;
	case PART_KEY:
		return v->key;
	case PART_ID:
		return v->id;
	case PART_CAPTURE:
		return v->captures ? v->captures[part->capture] : bytes_none;
	case PART_DB:
		break;
	}
	return bytes_none;
}

size_t template_bound(const struct template *t, const struct template_values *v)
{
	size_t n = 0;

	for (size_t i = 0; i < t->nparts; i++)
		n += t->parts[i].kind == PART_DB ? BUF_DECIMAL_MAX :
			part_value(&t->parts[i], v).n;
	return n;
}

static void part_write(const struct part *part, const struct template_values *v,
		       struct buf *out)
{
	if (part->kind == PART_DB)
		buf_uint(out, v->db);
	else
		buf_add(out, part_value(part, v));
}

void template_write(const struct template *t, const struct template_values *v,
		    struct buf *out)
{
	for (size_t i = 0; i < t->nparts; i++)
		part_write(&t->parts[i], v, out);
}

void template_write_text(const struct template *t, const struct template_values *v,
			 struct buf *out)
{
	for (size_t i = 0; i < t->nparts; i++) {
		const struct part *part = &t->parts[i];

		if (part->kind == PART_KEY || part->kind == PART_CAPTURE)
			percent_encode(part_value(part, v), out);
		else
			part_write(part, v, out);
	}
}
