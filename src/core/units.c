/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>

struct unit {
	const char *name;
	int64_t factor;
};

/* From small to large, so that the last one that divides is the best. */
static const struct unit duration_units[] = {
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60 * 1000 },
	{ "h", 60 * 60 * 1000 },
	{ "d", 24 * 60 * 60 * 1000 },
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "k", INT64_C(1) << 10 },
	{ "m", INT64_C(1) << 20 },
	{ "g", INT64_C(1) << 30 },
	{ NULL, 0 },
};

/* As much of the text as an operator needs to find it. */
static int shown(struct bytes text)
{
	return text.n > 64 ? 64 : (int)text.n;
}

static bool refuse(struct bytes text, const char *why, struct err *err)
{
	return err_set(err, "\"%.*s\" %s", shown(text), text.n ? text.p : "", why);
}

/*
 * The digits at the start of `text` and how many they are; 0 when there are
 * none, when they overflow or when they start with a needless zero.
 */
static size_t digits(struct bytes text, uint64_t *v)
{
	size_t n = 0;

	*v = 0;
	while (n < text.n && text.p[n] >= '0' && text.p[n] <= '9') {
		unsigned digit = (unsigned)(text.p[n] - '0');

		if (*v > (UINT64_MAX - digit) / 10)
			return 0;
		*v = *v * 10 + digit;
		n++;
	}
	return n > 1 && text.p[0] == '0' ? 0 : n;
}

static const struct unit *unit_named(const struct unit *units, struct bytes name)
{
	for (; units->name; units++)
		if (bytes_eq(bytes_str(units->name), name))
			return units;
	return NULL;
}

static bool scaled(struct bytes text, const struct unit *units,
		   const char *expected, int64_t *out, struct err *err)
{
	uint64_t v;
	size_t n = digits(text, &v);
	const struct unit *unit = NULL;

	if (n)
		unit = unit_named(units, bytes_skip(text, n));
	if (!unit)
		return refuse(text, expected, err);
	if (v > (uint64_t)(INT64_MAX / unit->factor))
		return refuse(text, "is too large", err);
	*out = (int64_t)v * unit->factor;
	return true;
}

bool units_duration(struct bytes text, int64_t *ms, struct err *err)
{
	if (bytes_eq(text, BYTES("0"))) {
		*ms = 0;
		return true;
	}
	return scaled(text, duration_units,
		      "is not a duration such as 250ms, 10s, 30m, 2h or 7d",
		      ms, err);
}

bool units_size(struct bytes text, int64_t *bytes, struct err *err)
{
	return scaled(text, size_units, "is not a size such as 512, 64k, 1m or 2g",
		      bytes, err);
}

bool units_number(struct bytes text, uint64_t min, uint64_t max, uint64_t *v,
		  struct err *err)
{
	uint64_t got;
	size_t n = digits(text, &got);

	if (!n || n != text.n || got < min || got > max)
		return err_set(err, "\"%.*s\" is not a number from %" PRIu64
			       " to %" PRIu64, shown(text), text.n ? text.p : "",
			       min, max);
	*v = got;
	return true;
}

static const char *format(int64_t v, const struct unit *units,
			  char out[UNITS_TEXT])
{
	const struct unit *best = units;

	if (v <= 0)
		return strcpy(out, "0");
	for (; units->name; units++)
		if (v % units->factor == 0)
			best = units;
	snprintf(out, UNITS_TEXT, "%" PRId64 "%s", v / best->factor, best->name);
	return out;
}

const char *units_duration_text(int64_t ms, char out[UNITS_TEXT])
{
	return format(ms, duration_units, out);
}

const char *units_size_text(int64_t bytes, char out[UNITS_TEXT])
{
	return format(bytes, size_units, out);
}
