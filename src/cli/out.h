/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * out - what lapse writes for people and for programs.
 *
 * Names and payloads may hold any byte, terminals obey some of them, and JSON
 * takes only UTF-8; so nothing of a user's goes out but through here.
 */
#ifndef LAPSED_CLI_OUT_H
#define LAPSED_CLI_OUT_H

#include <stdio.h>

#include "cli/args.h"
#include "core/bytes.h"
#include "core/json.h"
#include "core/when.h"

#define OUT_TIME	32	/* room for out_time() */
#define OUT_SPAN	48	/* room for out_span() and out_from_now() */

/* So much of a payload or header is for people; JSON has all of it. */
#define OUT_SHOWN	2048

/* An id, key or topic, percent-encoded as in ce_id: --encoded takes it back. */
void out_name(FILE *f, struct bytes name);

/* The same on stdout with blanks behind it, `width` in all and then two. */
void out_column(struct bytes name, int width);

/*
 * Text as it stands, but for control characters and what is not UTF-8, which
 * become \n, \t and \xHH.  Of more than `limit` bytes only that many are
 * shown, and how many there are.
 */
void out_text(FILE *f, struct bytes text, size_t limit);

/* The first column on stdout of what is told a line a thing. */
void out_label(const char *label);

/* 2026-11-30T12:30:00.000Z */
const char *out_time(msec_t t, char out[OUT_TIME]);

/* The two largest units: 3d4h, 29m59s, 850ms; not negative. */
const char *out_span(int64_t ms, char out[OUT_SPAN]);

/* "in 29m59s", "now" or "3s ago". */
const char *out_from_now(msec_t t, msec_t now, char out[OUT_SPAN]);

/* A member "name", or "name_base64" where the bytes are no UTF-8. */
void out_json_bytes(struct json *j, const char *name, struct bytes value);

/* Two members: "name" as out_time() writes it and "name_ms". */
void out_json_time(struct json *j, const char *name, msec_t t);

/* Writes what the buffer holds as one line, and empties it. */
void out_json_line(struct buf *b);

/* False once nobody reads standard output any more. */
bool out_open(void);

/*
 * Writes out what is left and gives the exit status: `status` itself, or
 * STATUS_FAILED, after a word about it, when the output got lost (a full disk,
 * say).  A reader that has gone away has seen enough, and is no failure.
 */
enum status out_finish(enum status status);

#endif
