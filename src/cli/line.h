/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * line - a JSON object in one line of input, member by member.
 *
 *	struct line l;
 *	if (!line_open(&l, text, &err)) ...
 *	while (line_next(&l)) use l.name, l.kind, l.value
 *
 * The text must be valid JSON, which line_open() checks.  Strings are decoded
 * into `room`, so names and strings are valid until the next line_open().
 */
#ifndef LAPSED_CLI_LINE_H
#define LAPSED_CLI_LINE_H

#include <stdbool.h>

#include "core/buf.h"
#include "core/bytes.h"
#include "core/err.h"

enum line_kind { LINE_STRING, LINE_NUMBER, LINE_TRUE, LINE_FALSE, LINE_NULL, LINE_OBJECT, LINE_ARRAY };

struct line {
	struct buf room;	/* zeroed at first; line_clear() at last */
	const char *at, *end;
	struct bytes name;
	enum line_kind kind;
	struct bytes value;	/* decoded, of a string; else as it stands */
};

bool line_open(struct line *l, struct bytes text, struct err *err) MUST_CHECK;
bool line_next(struct line *l);
void line_clear(struct line *l);

/* Base64 with or without its padding; false for anything else. */
bool line_base64(struct bytes from, struct buf *to) MUST_CHECK;

#endif
