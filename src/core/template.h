/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * template - text with places to fill in, such as `{1}-{db}`.
 *
 *   {key}       the key (of a scheduled event: its id)
 *   {1} .. {9}  what the 1st .. 9th wildcard of the route's pattern matched
 *   {db}        the number of the database
 *   {id}        the event's ce_id
 *   {{ and }}   a brace
 *
 * Parsed and checked once; filling in can't fail.
 */
#ifndef LAPSED_CORE_TEMPLATE_H
#define LAPSED_CORE_TEMPLATE_H

#include "core/buf.h"
#include "core/bytes.h"
#include "core/err.h"
#include "core/glob.h"

struct template;

struct template_values {
	struct bytes key;
	struct bytes id;
	unsigned db;
	const struct bytes *captures;	/* GLOB_CAPTURES of them; NULL: none */
};

/*
 * NULL, with the reason in `err`, when `text` is not a template or names a
 * wildcard beyond the first `wildcards`.  Copies `text`.
 */
struct template *template_new(struct bytes text, size_t wildcards,
			      struct err *err) MUST_CHECK;
void template_free(struct template *t);	/* accepts NULL */

/* No expansion with these values is longer. */
size_t template_bound(const struct template *t, const struct template_values *v);

/* Adds the expansion to `out`. */
void template_write(const struct template *t, const struct template_values *v,
		    struct buf *out);

/*
 * The same for text: what is filled in is percent-encoded, but for {id}, which
 * is text already.  At most three times as long as template_bound().
 */
void template_write_text(const struct template *t, const struct template_values *v,
			 struct buf *out);

#endif
