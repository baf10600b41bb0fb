/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * json - writes JSON, and tells whether bytes are JSON.
 *
 * Commas and colons come by themselves; the caller only opens and closes in
 * pairs and puts a key in front of each value of an object.
 *
 *	json_init(&j, &buf);
 *	json_object(&j);
 *	json_key(&j, "entries");
 *	json_uint(&j, 7);
 *	json_object_end(&j);			{"entries":7}
 *
 * Strings may hold any byte.  What is not UTF-8 is written as a backslash, an
 * x and two hexadecimal digits (escaped: "\\xff"), so the output is always
 * valid JSON and valid UTF-8; where bytes must survive, use json_base64().
 *
 * Jansson has functions of the same names: the two can't be linked together.
 */
#ifndef LAPSED_CORE_JSON_H
#define LAPSED_CORE_JSON_H

#include <stdint.h>

#include "core/buf.h"
#include "core/bytes.h"

struct json {
	struct buf *out;	/* what the caller's buffer holds stays in front */
	unsigned depth;
	bool comma;		/* a value stands in front of the next one */
};

void json_init(struct json *j, struct buf *out);

void json_object(struct json *j);
void json_object_end(struct json *j);
void json_array(struct json *j);
void json_array_end(struct json *j);

void json_key(struct json *j, const char *name);
void json_key_bytes(struct json *j, struct bytes name);

void json_string(struct json *j, struct bytes s);	/* bytes_none: null */
void json_cstr(struct json *j, const char *s);		/* NULL: null */
void json_base64(struct json *j, struct bytes s);	/* a string */
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_double(struct json *j, double v);	/* not finite: null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* `s` is JSON already. */
void json_raw(struct json *j, struct bytes s);

/* How deep json_valid() looks; what is deeper it calls invalid. */
#define JSON_DEPTH_MAX	128

/* Whether `s` is one JSON text as in RFC 8259, in UTF-8. */
bool json_valid(struct bytes s);

/* Whether `s` is UTF-8: no overlong forms, no surrogates. */
bool json_utf8(struct bytes s);

#endif
