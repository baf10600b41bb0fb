/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char hex[] = "0123456789abcdef";

void json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
}

/* Called in front of each value; a key has cleared the comma. */
static void value_begins(struct json *j)
{
	if (j->comma)
		buf_byte(j->out, ',');
	j->comma = true;
}

static void open(struct json *j, char bracket)
{
	value_begins(j);
	buf_byte(j->out, bracket);
	j->comma = false;
	j->depth++;
}

static void end(struct json *j, char bracket)
{
	assert(j->depth > 0);
	j->depth--;
	buf_byte(j->out, bracket);
	j->comma = true;
}

void json_object(struct json *j)
{
	open(j, '{');
}

void json_object_end(struct json *j)
{
	end(j, '}');
}

void json_array(struct json *j)
{
	open(j, '[');
}

void json_array_end(struct json *j)
{
	end(j, ']');
}

static bool in_range(unsigned char c, unsigned char first, unsigned char last)
{
	return c >= first && c <= last;
}

/*
 * The length of the UTF-8 sequence at the start of `s`, 0 when there is none.
 * What the second byte may be tells overlong forms, surrogates and what lies
 * beyond U+10FFFF (Unicode, table 3-7).
 */
static size_t sequence(const unsigned char *s, size_t n)
{
	unsigned char first = 0x80, last = 0xbf;
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (in_range(s[0], 0xc2, 0xdf))
		len = 2;
	else if (in_range(s[0], 0xe0, 0xef))
		len = 3;
	else if (in_range(s[0], 0xf0, 0xf4))
		len = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		first = 0xa0;
	else if (s[0] == 0xed)
		last = 0x9f;
	else if (s[0] == 0xf0)
		first = 0x90;
	else if (s[0] == 0xf4)
		last = 0x8f;
	if (n < len || !in_range(s[1], first, last))
		return 0;
	for (size_t i = 2; i < len; i++)
		if (!in_range(s[i], 0x80, 0xbf))
			return 0;
	return len;
}

bool json_utf8(struct bytes s)
{
	size_t len;

	for (size_t at = 0; at < s.n; at += len) {
		len = sequence((const unsigned char *)s.p + at, s.n - at);
		if (!len)
			return false;
	}
	return true;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void escape(struct buf *out, unsigned char c)
{
	static const char names[][2] = {
		{ '"', '"' }, { '\\', '\\' }, { '\b', 'b' }, { '\f', 'f' },
		{ '\n', 'n' }, { '\r', 'r' }, { '\t', 't' },
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if ((unsigned char)names[i][0] == c) {
			buf_byte(out, '\\');
			buf_byte(out, names[i][1]);
			return;
		}
	}
	buf_add(out, c < 0x80 ? BYTES("\\u00") : BYTES("\\\\x"));
	buf_byte(out, hex[c >> 4]);
	buf_byte(out, hex[c & 15]);
}

static void quoted(struct buf *out, struct bytes s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t at = 0, from = 0;

	buf_reserve(out, s.n + 2);
	buf_byte(out, '"');
	while (at < s.n) {
		size_t len = is_plain(p[at]) ? 1 : 0;

		if (p[at] >= 0x80)
			len = sequence(p + at, s.n - at);
		if (len) {
			at += len;
			continue;
		}
		buf_add(out, bytes_of(s.p + from, at - from));
		escape(out, p[at]);
		from = ++at;
	}
	if (s.n)
		buf_add(out, bytes_of(s.p + from, at - from));
	buf_byte(out, '"');
}

void json_key_bytes(struct json *j, struct bytes name)
{
	value_begins(j);
	quoted(j->out, name);
	buf_byte(j->out, ':');
	j->comma = false;
}

void json_key(struct json *j, const char *name)
{
	json_key_bytes(j, bytes_str(name));
}

void json_string(struct json *j, struct bytes s)
{
	if (!s.p) {
		json_null(j);
		return;
	}
	value_begins(j);
	quoted(j->out, s);
}

void json_cstr(struct json *j, const char *s)
{
	json_string(j, bytes_str(s));
}

void json_raw(struct json *j, struct bytes s)
{
	value_begins(j);
	buf_add(j->out, s);
}

void json_null(struct json *j)
{
	json_raw(j, BYTES("null"));
}

void json_bool(struct json *j, bool v)
{
	json_raw(j, v ? BYTES("true") : BYTES("false"));
}

void json_int(struct json *j, int64_t v)
{
	value_begins(j);
	buf_int(j->out, v);
}

void json_uint(struct json *j, uint64_t v)
{
	value_begins(j);
	buf_uint(j->out, v);
}

/* The fewest digits that read back as the same number. */
void json_double(struct json *j, double v)
{
	char text[40];

	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	for (char *p = text; *p; p++)
		if (*p == ',')	/* a locale's decimal point */
			*p = '.';
	json_raw(j, bytes_str(text));
}

void json_base64(struct json *j, struct bytes s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)s.p;
	char *to;

	value_begins(j);
	buf_reserve(j->out, s.n / 3 * 4 + 6);
	to = j->out->p + j->out->n;
	*to++ = '"';
	for (size_t at = 0; at < s.n; at += 3, to += 4) {
		size_t left = s.n - at;
		uint32_t v = (uint32_t)p[at] << 16;

		if (left > 1)
			v |= (uint32_t)p[at + 1] << 8;
		if (left > 2)
			v |= p[at + 2];
		to[0] = digits[v >> 18];
		to[1] = digits[v >> 12 & 63];
		to[2] = left > 1 ? digits[v >> 6 & 63] : '=';
		to[3] = left > 2 ? digits[v & 63] : '=';
	}
	*to++ = '"';
	j->out->n = (size_t)(to - j->out->p);
}

/*
 * Validation: a loop over the text with a stack of one bit per open bracket,
 * so that hostile nesting costs nothing.
 */
struct reader {
	struct bytes s;
	size_t at;
	size_t depth;
	uint64_t objects[JSON_DEPTH_MAX / 64];	/* bit d: bracket d is a { */
};

static void space(struct reader *r)
{
	while (r->at < r->s.n && memchr(" \t\r\n", r->s.p[r->at], 4))
		r->at++;
}

static bool next_is(const struct reader *r, char c)
{
	return r->at < r->s.n && r->s.p[r->at] == c;
}

static bool take(struct reader *r, char c)
{
	if (!next_is(r, c))
		return false;
	r->at++;
	return true;
}

static bool is_digit(const struct reader *r)
{
	return r->at < r->s.n && r->s.p[r->at] >= '0' && r->s.p[r->at] <= '9';
}

static bool take_digits(struct reader *r)
{
	size_t from = r->at;

	while (is_digit(r))
		r->at++;
	return r->at > from;
}

static bool take_number(struct reader *r)
{
	take(r, '-');
	if (!take(r, '0') && !take_digits(r))
		return false;
	if (take(r, '.') && !take_digits(r))
		return false;
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '+'))
			take(r, '-');
		return take_digits(r);
	}
	return true;
}

static bool take_escape(struct reader *r)
{
	size_t digits = 0;

	if (r->at == r->s.n)
		return false;
	if (r->s.p[r->at] != 'u')
		return memchr("\"\\/bfnrt", r->s.p[r->at++], 8) != NULL;
	for (r->at++; digits < 4 && r->at < r->s.n; digits++, r->at++)
		if (!memchr("0123456789abcdefABCDEF", r->s.p[r->at], 22))
			return false;
	return digits == 4;
}

static bool take_string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (r->at < r->s.n) {
		const unsigned char *p = (const unsigned char *)r->s.p + r->at;
		size_t len = sequence(p, r->s.n - r->at);

		if (*p < 0x20 || !len)
			return false;
		r->at += len;
		if (*p == '"')
			return true;
		if (*p == '\\' && !take_escape(r))
			return false;
	}
	return false;
}

static bool take_word(struct reader *r, const char *word)
{
	struct bytes rest = bytes_skip(r->s, r->at);

	if (!bytes_starts(rest, bytes_str(word)))
		return false;
	r->at += strlen(word);
	return true;
}

static bool take_scalar(struct reader *r)
{
	if (r->at == r->s.n)
		return false;
	switch (r->s.p[r->at]) {
	case '"':
		return take_string(r);
	case 't':
		return take_word(r, "true");
	case 'f':
		return take_word(r, "false");
	case 'n':
		return take_word(r, "null");
	default:
		return take_number(r);
	}
}

static bool in_object(const struct reader *r)
{
	size_t d = r->depth - 1;

	return r->depth && r->objects[d / 64] >> d % 64 & 1;
}

static bool push(struct reader *r, bool object)
{
	uint64_t bit = UINT64_C(1) << r->depth % 64;

	if (r->depth == JSON_DEPTH_MAX)
		return false;
	if (object)
		r->objects[r->depth / 64] |= bit;
	else
		r->objects[r->depth / 64] &= ~bit;
	r->depth++;
	return true;
}

/* The key of the next value, where the innermost bracket wants one. */
static bool take_key(struct reader *r)
{
	space(r);
	if (!in_object(r))
		return true;
	if (!take_string(r))
		return false;
	space(r);
	return take(r, ':');
}

/* Behind a value: closes brackets until a comma, which asks for one more. */
static bool take_ends(struct reader *r, bool *more)
{
	*more = false;
	for (;;) {
		space(r);
		if (!r->depth)
			return true;
		if (take(r, ',')) {
			*more = true;
			return take_key(r);
		}
		if (!take(r, in_object(r) ? '}' : ']'))
			return false;
		r->depth--;
	}
}

bool json_valid(struct bytes s)
{
	struct reader r = { .s = s };
	bool more = true;

	while (more) {
		bool object;

		space(&r);
		object = next_is(&r, '{');
		if (object || next_is(&r, '[')) {
			r.at++;
			if (!push(&r, object))
				return false;
			space(&r);
			if (!next_is(&r, object ? '}' : ']')) {
				if (!take_key(&r))
					return false;
				continue;
			}
		} else if (!take_scalar(&r)) {
			return false;
		}
		if (!take_ends(&r, &more))
			return false;
	}
	return r.at == s.n;
}
