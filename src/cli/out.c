/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/out.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "core/event.h"
#include "core/record.h"

void out_name(FILE *f, struct bytes name)
{
	struct buf b = { .n = 0 };

	percent_encode(name, &b);
	fwrite(b.p, 1, b.n, f);
	buf_clear(&b);
}

void out_column(struct bytes name, int width)
{
	struct buf b = { .n = 0 };

	percent_encode(name, &b);
	printf("%-*s  ", width, buf_cstr(&b));
	buf_clear(&b);
}

/* C0, DEL and, in UTF-8, C1: a terminal would obey them. */
static bool is_control(struct bytes text, size_t i)
{
	unsigned char c = (unsigned char)text.p[i];

	return c < 0x20 || c == 0x7f || (c == 0xc2 && i + 1 < text.n
		&& (unsigned char)text.p[i + 1] < 0xa0);
}

static void put_escaped(FILE *f, unsigned char c)
{
	if (c == '\n')
		fputs("\\n", f);
	else if (c == '\t')
		fputs("\\t", f);
	else
		fprintf(f, "\\x%02x", c);
}

/* No more than `limit` bytes, and no part of a character at the end. */
static struct bytes head_of(struct bytes text, size_t limit)
{
	size_t n = limit;

	if (text.n <= limit)
		return text;
	while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
		n--;
	return bytes_of(text.p, n);
}

void out_text(FILE *f, struct bytes text, size_t limit)
{
	bool utf8 = json_utf8(text);
	struct bytes shown = utf8 ? head_of(text, limit)
		: bytes_of(text.p, text.n < limit ? text.n : limit);

	for (size_t i = 0; i < shown.n; i++) {
		unsigned char c = (unsigned char)shown.p[i];

		if (is_control(shown, i)) {
			put_escaped(f, c);
			if (c == 0xc2 && utf8)
				put_escaped(f, (unsigned char)shown.p[++i]);
		} else if (c >= 0x80 && !utf8) {
			put_escaped(f, c);
		} else {
			fputc(c, f);
		}
	}
	if (shown.n < text.n)
		fprintf(f, "... (%zu bytes in all)", text.n);
}

void out_label(const char *label)
{
	printf("%-14s", label);
}

const char *out_time(msec_t t, char out[OUT_TIME])
{
	event_time(t, out);
	out[EVENT_TIME_LEN] = '\0';
	return out;
}

static const struct {
	int64_t ms;
	const char *name;
} units[] = {
	{ 86400000, "d" }, { 3600000, "h" }, { 60000, "m" }, { 1000, "s" },
};

#define N_UNITS	(sizeof(units) / sizeof(units[0]))

const char *out_span(int64_t ms, char out[OUT_SPAN])
{
	size_t i = 0;
	int64_t more;

	while (i < N_UNITS && ms < units[i].ms)
		i++;
	if (i == N_UNITS) {
		snprintf(out, OUT_SPAN, "%lldms", (long long)ms);
		return out;
	}
	more = i + 1 < N_UNITS ? ms % units[i].ms / units[i + 1].ms : 0;
	if (more)
		snprintf(out, OUT_SPAN, "%lld%s%lld%s", (long long)(ms / units[i].ms),
			units[i].name, (long long)more, units[i + 1].name);
	else
		snprintf(out, OUT_SPAN, "%lld%s", (long long)(ms / units[i].ms), units[i].name);
	return out;
}

const char *out_from_now(msec_t t, msec_t now, char out[OUT_SPAN])
{
	char span[OUT_SPAN];

	if (t == now)
		snprintf(out, OUT_SPAN, "now");
	else if (t > now)
		snprintf(out, OUT_SPAN, "in %.40s", out_span(t - now, span));
	else
		snprintf(out, OUT_SPAN, "%.40s ago", out_span(now - t, span));
	return out;
}

void out_json_bytes(struct json *j, const char *name, struct bytes value)
{
	char base64[64];

	if (json_utf8(value)) {
		json_key(j, name);
		json_string(j, value);
		return;
	}
	snprintf(base64, sizeof(base64), "%s_base64", name);
	json_key(j, base64);
	json_base64(j, value);
}

void out_json_time(struct json *j, const char *name, msec_t t)
{
	char text[OUT_TIME], ms[64];

	json_key(j, name);
	json_cstr(j, out_time(t, text));
	snprintf(ms, sizeof(ms), "%s_ms", name);
	json_key(j, ms);
	json_int(j, t);
}

void out_json_line(struct buf *b)
{
	buf_byte(b, '\n');
	fwrite(b->p, 1, b->n, stdout);
	buf_reset(b);
}

bool out_open(void)
{
	return !ferror(stdout);
}

/* A pipe whose reader has gone says so to whoever would write. */
static bool reader_gone(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

enum status out_finish(enum status status)
{
	bool lost = ferror(stdout) != 0;
	const char *reason = "it was cut short";

	if (fflush(stdout) != 0) {
		lost = true;
		reason = strerror(errno);
	}
	if (!lost || reader_gone())
		return status;
	fprintf(stderr, "lapse: can't write to standard output: %s\n", reason);
	return status == STATUS_DONE ? STATUS_FAILED : status;
}
