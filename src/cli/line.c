/* SPDX-License-Identifier: BSD-2-Clause */

#include "cli/line.h"

#include <stdint.h>
#include <string.h>

#include "core/json.h"

/* All of this reads what json_valid() has seen. */

static void skip_space(struct line *l)
{
	while (l->at < l->end && memchr(" \t\r\n,:", *l->at, 6))
		l->at++;
}

bool line_open(struct line *l, struct bytes text, struct err *err)
{
	buf_reset(&l->room);
	/* Views stay valid, since decoding makes nothing longer. */
	buf_reserve(&l->room, text.n + 1);
	l->at = text.p;
	l->end = text.p + text.n;
	if (!json_valid(text))
		return err_set(err, "it is not JSON");
	skip_space(l);
	if (*l->at != '{')
		return err_set(err, "it is not a JSON object");
	l->at++;
	return true;
}

static unsigned hex4(const char *p)
{
	unsigned v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 4 | (unsigned)(p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
	return v;
}

static void put_utf8(struct buf *out, unsigned c)
{
	if (c < 0x80) {
		buf_byte(out, (char)c);
		return;
	}
	if (c < 0x800) {
		buf_byte(out, (char)(0xc0 | c >> 6));
	} else if (c < 0x10000) {
		buf_byte(out, (char)(0xe0 | c >> 12));
		buf_byte(out, (char)(0x80 | (c >> 6 & 63)));
	} else {
		buf_byte(out, (char)(0xf0 | c >> 18));
		buf_byte(out, (char)(0x80 | (c >> 12 & 63)));
		buf_byte(out, (char)(0x80 | (c >> 6 & 63)));
	}
	buf_byte(out, (char)(0x80 | (c & 63)));
}

/* At the `u` of an escape; a lone surrogate becomes U+FFFD. */
static void take_unicode(struct line *l)
{
	unsigned c = hex4(l->at + 1), low = 0;

	l->at += 5;
	if (c >= 0xd800 && c < 0xdc00 && l->end - l->at > 6 && l->at[0] == '\\' && l->at[1] == 'u')
		low = hex4(l->at + 2);
	if (low >= 0xdc00 && low < 0xe000) {
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		l->at += 6;
	} else if (c >= 0xd800 && c < 0xe000) {
		c = 0xfffd;
	}
	put_utf8(&l->room, c);
}

static struct bytes take_string(struct line *l)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	size_t began = l->room.n;

	l->at++;
	while (*l->at != '"') {
		const char *plain;

		if (*l->at != '\\') {
			buf_byte(&l->room, *l->at++);
			continue;
		}
		l->at++;
		if (*l->at == 'u') {
			take_unicode(l);
			continue;
		}
		plain = memchr(from, *l->at, 5);
		buf_byte(&l->room, plain ? to[plain - from] : *l->at);
		l->at++;
	}
	l->at++;
	return buf_since(&l->room, began);
}

/* Over an object or an array. */
static void skip_nested(struct line *l)
{
	int depth = 0;

	do {
		if (*l->at == '"') {
			for (l->at++; *l->at != '"'; l->at++)
				l->at += *l->at == '\\';
		}
		depth += *l->at == '{' || *l->at == '[';
		depth -= *l->at == '}' || *l->at == ']';
		l->at++;
	} while (depth > 0);
}

static enum line_kind kind_of(char c)
{
	switch (c) {
	case '"':
		return LINE_STRING;
	case '{':
		return LINE_OBJECT;
	case '[':
		return LINE_ARRAY;
	case 't':
		return LINE_TRUE;
	case 'f':
		return LINE_FALSE;
	case 'n':
		return LINE_NULL;
	}
	return LINE_NUMBER;
}

bool line_next(struct line *l)
{
	const char *began;

	skip_space(l);
	if (l->at >= l->end || *l->at == '}')
		return false;
	l->name = take_string(l);
	skip_space(l);
	l->kind = kind_of(*l->at);
	if (l->kind == LINE_STRING) {
		l->value = take_string(l);
		return true;
	}
	began = l->at;
	if (l->kind == LINE_OBJECT || l->kind == LINE_ARRAY)
		skip_nested(l);
	else
		while (l->at < l->end && !memchr(",} \t\r\n", *l->at, 6))
			l->at++;
	l->value = bytes_of(began, (size_t)(l->at - began));
	return true;
}

void line_clear(struct line *l)
{
	buf_clear(&l->room);
}

bool line_base64(struct bytes from, struct buf *to)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t v = 0;
	int bits = 0;

	while (from.n && from.p[from.n - 1] == '=')
		from.n--;
	if (from.n % 4 == 1)
		return false;
	for (size_t i = 0; i < from.n; i++) {
		const char *digit = memchr(digits, from.p[i], 64);

		if (!digit)
			return false;
		v = v << 6 | (uint32_t)(digit - digits);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf_byte(to, (char)(v >> bits & 255));
		}
	}
	return true;
}
