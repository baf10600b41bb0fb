/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/record.h"
#include "core/units.h"

#define MS_PER_DAY	INT64_C(86400000)

/* As milliseconds these all lie in January 1970; as seconds, in 2000 to 2286. */
#define SECONDS_FROM	INT64_C(946684800)
#define SECONDS_TO	INT64_C(9999999999)

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static bool percent_decode(const char *text, struct buf *out)
{
	for (; *text; text++) {
		int high, low;

		if (*text != '%') {
			buf_byte(out, *text);
			continue;
		}
		high = hex_digit(text[1]);
		low = high < 0 ? -1 : hex_digit(text[2]);
		if (low < 0)
			return false;
		buf_byte(out, (char)(high << 4 | low));
		text += 2;
	}
	return true;
}

bool value_name(const char *text, bool encoded, struct buf *room, struct bytes *name,
		struct err *err)
{
	*name = bytes_str(text);
	if (encoded) {
		buf_reset(room);
		if (!percent_decode(text, room))
			return err_set(err, "\"%s\" has a %% without two hexadecimal digits "
				"behind it", text);
		*name = buf_view(room);
	}
	if (name->n == 0)
		return err_set(err, "it is empty; 1 to %d bytes are allowed", RECORD_NAME_MAX);
	if (name->n > RECORD_NAME_MAX)
		return err_set(err, "it has %zu bytes; 1 to %d are allowed", name->n,
			RECORD_NAME_MAX);
	return true;
}

static bool too_late(const char *text, struct err *err)
{
	return err_set(err, "\"%s\" lies beyond the year 9999", text);
}

bool value_duration(const char *text, int64_t *ms, struct err *err)
{
	if (text[0] == '-')
		return err_set(err, "\"%s\" is negative; 0 means now", text);
	if (!units_duration(bytes_str(text), ms, err))
		return false;
	return *ms <= RECORD_DUE_MAX || too_late(text, err);
}

/* `n` digits of the text, which moves behind them; -1 if they are not there. */
static int digits(const char **p, int n)
{
	int v = 0;

	for (; n > 0; n--, ++*p) {
		if (**p < '0' || **p > '9')
			return -1;
		v = v * 10 + **p - '0';
	}
	return v;
}

static bool one_of(const char **p, const char *set)
{
	if (!**p || !strchr(set, **p))
		return false;
	++*p;
	return true;
}

/* The milliseconds of a fraction of a second; -1 for a dot without digits. */
static int fraction(const char **p)
{
	int ms = 0, n = 0;

	if (**p != '.')
		return 0;
	for (++*p; **p >= '0' && **p <= '9'; ++*p, n++)
		if (n < 3)
			ms = ms * 10 + **p - '0';
	if (n == 0)
		return -1;
	for (; n < 3; n++)
		ms *= 10;
	return ms;
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar. */
static int64_t day_number(int year, int month, int day)
{
	int64_t y = month > 2 ? year : year - 1;
	int64_t shifted = month > 2 ? month - 3 : month + 9;	/* March is 0 */
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t in_era = y - era * 400;

	return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100
		+ (153 * shifted + 2) / 5 + day - 1 - 719468;
}

static int days_in(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* full-date; the number of the day. */
static bool parse_date(const char **p, int64_t *day)
{
	int y, m, d;

	y = digits(p, 4);
	if (y < 0 || !one_of(p, "-"))
		return false;
	m = digits(p, 2);
	if (m < 1 || m > 12 || !one_of(p, "-"))
		return false;
	d = digits(p, 2);
	if (d < 1 || d > days_in(y, m))
		return false;
	*day = day_number(y, m, d);
	return true;
}

/* partial-time; milliseconds into the day.  A leap second is the next one. */
static bool parse_time_of_day(const char **p, int64_t *ms)
{
	int h, m, s, f;

	h = digits(p, 2);
	if (h < 0 || h > 23 || !one_of(p, ":"))
		return false;
	m = digits(p, 2);
	if (m < 0 || m > 59 || !one_of(p, ":"))
		return false;
	s = digits(p, 2);
	f = fraction(p);
	if (s < 0 || s > 60 || f < 0)
		return false;
	*ms = ((h * 60 + m) * 60 + s) * INT64_C(1000) + f;
	return true;
}

/* time-offset; what to add to get UTC. */
static bool parse_offset(const char **p, int64_t *ms)
{
	int sign, h, m;

	*ms = 0;
	if (one_of(p, "Zz"))
		return true;
	sign = **p == '-' ? 1 : -1;
	if (!one_of(p, "+-"))
		return false;
	h = digits(p, 2);
	if (h < 0 || h > 23 || !one_of(p, ":"))
		return false;
	m = digits(p, 2);
	if (m < 0 || m > 59)
		return false;
	*ms = sign * (h * 60 + m) * INT64_C(60000);
	return true;
}

static bool parse_rfc3339(const char *p, msec_t *t)
{
	int64_t day, ms, offset;

	if (!parse_date(&p, &day) || !one_of(&p, "Tt ") || !parse_time_of_day(&p, &ms)
			|| !parse_offset(&p, &offset) || *p)
		return false;
	*t = day * MS_PER_DAY + ms + offset;
	return true;
}

static bool parse_ms(const char *text, msec_t *t, struct err *err)
{
	uint64_t n;
	struct err ignored;

	if (!units_number(bytes_str(text), 0, RECORD_DUE_MAX, &n, &ignored))
		return strlen(text) > 14 ? too_late(text, err)
			: err_set(err, "\"%s\" is not a plain number of milliseconds up to "
				"the year 9999", text);
	*t = (msec_t)n;
	if (*t >= SECONDS_FROM && *t <= SECONDS_TO)
		return err_set(err, "%s looks like seconds; for milliseconds since 1970 "
			"write %s000", text, text);
	return true;
}

bool value_time(const char *text, msec_t *t, struct err *err)
{
	if (text[0] && strspn(text, "0123456789") == strlen(text))
		return parse_ms(text, t, err);
	if (!parse_rfc3339(text, t))
		return err_set(err, "\"%s\" is neither a time such as 2026-11-30T12:30:00Z "
			"nor milliseconds since 1970", text);
	if (*t < 0)
		*t = 0;		/* the past is now */
	return *t <= RECORD_DUE_MAX || too_late(text, err);
}

bool value_read(const char *path, struct buf *to, struct err *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	FILE *f = is_stdin ? stdin : fopen(path, "rb");
	bool failed;

	if (!f)
		return err_set(err, "can't open %s: %s", name, strerror(errno));
	buf_reset(to);
	buf_reserve(to, VALUE_PAYLOAD_MAX + 1);
	to->n = fread(to->p, 1, VALUE_PAYLOAD_MAX + 1, f);
	failed = ferror(f) != 0;
	if (failed)
		err_set(err, "can't read %s: %s", name, strerror(errno));
	if (!is_stdin)
		fclose(f);
	if (failed)
		return false;
	if (to->n > VALUE_PAYLOAD_MAX)
		return err_set(err, "%s holds more than %d bytes", name, VALUE_PAYLOAD_MAX);
	return true;
}
