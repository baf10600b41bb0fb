/* SPDX-License-Identifier: BSD-2-Clause */
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/event.h"
#include "core/json.h"
#include "core/mem.h"

#define FOLDS		64	/* subjects told apart within one window */
#define MESSAGE_MAX	1024
#define RESERVE		96	/* for what log_end() adds */
#define FIELDS_MAX	(LOG_LINE_MAX - RESERVE)

/* A warning that was written not long ago, and how often it came since. */
struct fold {
	bool used;
	enum log_event event;
	enum log_level level;
	uint64_t subject;	/* hash; 0: the event as a whole */
	char about[64];		/* the subject itself, as far as it fits */
	size_t about_n;
	msec_t written;
	uint64_t count;
};

struct log {
	int fd;
	enum log_format format;		/* never LOG_AUTO */
	enum log_level level;
	msec_t (*now)(void);
	uint64_t dropped;

	/* The line that is being made. */
	bool open;
	bool truncated;
	uint64_t repeated;
	const char *prefix;		/* of text fields in an object */
	struct buf line;
	struct json json;

	struct buf tail;		/* of a line that was written in part */
	struct fold folds[FOLDS];
	struct fold whole[LOG_EVENT_COUNT];	/* when folds[] is full */
};

static const struct {
	const char *name;
	enum log_level level;
} events[LOG_EVENT_COUNT] = {
#define X(name, text, level, meaning)	[LOG_##name] = { text, LOG_##level },
	LOG_EVENTS(X)
#undef X
};

static msec_t wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (msec_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct log *log_new(int fd, enum log_format format, enum log_level level,
		    msec_t (*now)(void))
{
	struct log *log = mem_alloc(1, sizeof(*log));

	log->fd = fd;
	log->level = level;
	log->now = now ? now : wall_clock;
	log_set_format(log, format);
	buf_reserve(&log->line, 2 * LOG_LINE_MAX);
	return log;
}

void log_set_level(struct log *log, enum log_level level)
{
	log->level = level;
}

void log_set_format(struct log *log, enum log_format format)
{
	if (format == LOG_AUTO)
		format = isatty(log->fd) ? LOG_TEXT : LOG_JSON;
	log->format = format;
}

bool log_wants(const struct log *log, enum log_level level)
{
	return level <= log->level;
}

uint64_t log_dropped(const struct log *log)
{
	return log->dropped;
}

const char *log_level_name(enum log_level level)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };

	return names[level];
}

const char *log_event_name(enum log_event event)
{
	return events[event].name;
}

/* Out. */

/* Takes from the front of `b` what the descriptor takes without waiting. */
static bool write_some(int fd, struct bytes *b)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	while (b->n) {
		if (poll(&p, 1, 0) < 1 || !(p.revents & POLLOUT))
			return false;

		ssize_t n = write(fd, b->p, b->n);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0)
			*b = bytes_skip(*b, (size_t)n);
	}
	return true;
}

static bool write_tail(struct log *log)
{
	struct bytes rest = buf_view(&log->tail);
	bool all = write_some(log->fd, &rest);

	if (rest.n && rest.n < log->tail.n)
		memmove(log->tail.p, rest.p, rest.n);
	log->tail.n = rest.n;
	return all;
}

/* A line begun is a line finished, sooner or later; otherwise it is dropped. */
static void write_line(struct log *log)
{
	struct bytes rest = buf_view(&log->line);

	if (!write_tail(log) || (!write_some(log->fd, &rest) && rest.n == log->line.n))
		log->dropped++;
	else if (rest.n)
		buf_add(&log->tail, rest);
}

/* Fields.  What does not fit is cut; each leaves room for the end. */

static bool bare(struct bytes s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '\\' ||
		    s.p[i] == '=')
			return false;
	return s.n > 0;
}

static void put_string(struct log *log, struct bytes s)
{
	if (log->format == LOG_TEXT && bare(s))
		buf_add(&log->line, s);
	else
		json_string(&log->json, s);
}

/* `n` bytes of `s`, or up to three less so that no character is cut. */
static struct bytes cut(struct bytes s, size_t n)
{
	if (n >= s.n)
		return s;
	for (int i = 0; i < 3 && n && ((unsigned char)s.p[n] & 0xc0) == 0x80; i++)
		n--;
	return bytes_of(s.p, n);
}

/* A string, and no more of it than the line has room for. */
static void put_fitting(struct log *log, struct bytes s)
{
	struct json json = log->json;
	size_t before = log->line.n;

	if (s.n > LOG_LINE_MAX) {
		s = cut(s, LOG_LINE_MAX);
		log->truncated = true;
	}
	put_string(log, s);
	if (log->line.n <= FIELDS_MAX)
		return;

	/* No byte takes more than six. */
	size_t room = before + 16 < FIELDS_MAX ? (FIELDS_MAX - before - 16) / 6 : 0;

	log->json = json;
	log->line.n = before;
	log->truncated = true;
	put_string(log, cut(s, room));
}

static void put_name(struct log *log, const char *name)
{
	if (log->format == LOG_JSON)
		json_key(&log->json, name);
	else
		buf_printf(&log->line, " %s%s%s=", log->prefix ? log->prefix : "",
			   log->prefix ? "." : "", name);
	log->json.comma = false;
}

/* What a field began with, to go back to when it has no room. */
struct mark {
	struct json json;
	size_t n;
};

static struct mark begin_field(struct log *log, const char *name)
{
	struct mark m = { log->json, log->line.n };

	put_name(log, name);
	return m;
}

static void end_field(struct log *log, struct mark m)
{
	if (log->line.n <= FIELDS_MAX)
		return;
	log->json = m.json;
	log->line.n = m.n;
	log->truncated = true;
}

void log_bytes(struct log_line *l, const char *name, struct bytes value)
{
	if (!l->log)
		return;

	struct mark m = begin_field(l->log, name);

	if (value.p)
		put_fitting(l->log, value);
	else
		json_null(&l->log->json);
	end_field(l->log, m);
}

void log_str(struct log_line *l, const char *name, const char *value)
{
	log_bytes(l, name, bytes_str(value));
}

void log_int(struct log_line *l, const char *name, int64_t value)
{
	if (!l->log)
		return;

	struct mark m = begin_field(l->log, name);

	json_int(&l->log->json, value);
	end_field(l->log, m);
}

void log_uint(struct log_line *l, const char *name, uint64_t value)
{
	if (!l->log)
		return;

	struct mark m = begin_field(l->log, name);

	json_uint(&l->log->json, value);
	end_field(l->log, m);
}

void log_double(struct log_line *l, const char *name, double value)
{
	char text[340];

	if (!l->log)
		return;

	struct mark m = begin_field(l->log, name);

	if (isfinite(value)) {
		snprintf(text, sizeof(text), "%.3f", value);
		json_raw(&l->log->json, bytes_str(text));
	} else {
		json_null(&l->log->json);
	}
	end_field(l->log, m);
}

void log_bool(struct log_line *l, const char *name, bool value)
{
	if (!l->log)
		return;

	struct mark m = begin_field(l->log, name);

	json_bool(&l->log->json, value);
	end_field(l->log, m);
}

void log_object(struct log_line *l, const char *name)
{
	if (!l->log)
		return;
	assert(!l->log->prefix);
	l->log->prefix = name;
	if (l->log->format == LOG_JSON) {
		json_key(&l->log->json, name);
		json_object(&l->log->json);
	}
}

void log_object_end(struct log_line *l)
{
	if (!l->log)
		return;
	assert(l->log->prefix);
	l->log->prefix = NULL;
	if (l->log->format == LOG_JSON)
		json_object_end(&l->log->json);
}

/* Lines. */

static void put_head_json(struct log *log, struct bytes time, enum log_event event,
			  enum log_level level, struct bytes message)
{
	struct json *j = &log->json;

	json_object(j);
	json_key(j, "ts");
	json_string(j, time);
	json_key(j, "level");
	json_cstr(j, log_level_name(level));
	json_key(j, "event");
	json_cstr(j, log_event_name(event));
	json_key(j, "msg");
	put_fitting(log, message);
}

static void put_head_text(struct log *log, struct bytes time, enum log_event event,
			  enum log_level level, struct bytes message)
{
	buf_printf(&log->line, "%.*s %-5s %s: ", (int)time.n, time.p,
		   log_level_name(level), log_event_name(event));

	size_t from = log->line.n;

	json_string(&log->json, message);

	/* Escaped as in JSON, and then without the quotes around it. */
	size_t n = log->line.n - from - 2;

	memmove(log->line.p + from, log->line.p + from + 1, n);
	log->line.n = from + n;
	if (log->line.n > FIELDS_MAX) {
		log->line.n = from + cut(bytes_of(log->line.p + from, n), FIELDS_MAX - from).n;
		log->truncated = true;
	}
}

static void start_line(struct log *log, enum log_event event, enum log_level level,
		       uint64_t repeated, const char *fmt, va_list ap)
{
	char time[EVENT_TIME_LEN], message[MESSAGE_MAX];
	int n = vsnprintf(message, sizeof(message), fmt, ap);
	struct bytes text = bytes_of(message, n < 0 ? 0 : (size_t)n);

	assert(!log->open);
	log->open = true;
	log->truncated = text.n >= sizeof(message);
	log->repeated = repeated;
	buf_reset(&log->line);
	json_init(&log->json, &log->line);
	if (log->truncated)
		text = cut(text, sizeof(message) - 4);
	event_time(log->now(), time);
	(log->format == LOG_JSON ? put_head_json : put_head_text)(
		log, bytes_of(time, sizeof(time)), event, level, text);
}

void log_end(struct log_line *l)
{
	struct log *log = l->log;

	if (!log)
		return;
	assert(log->open && !log->prefix);
	log->open = false;
	l->log = NULL;
	if (log->repeated) {
		put_name(log, "repeated");
		json_uint(&log->json, log->repeated);
	}
	if (log->truncated) {
		put_name(log, "truncated");
		json_bool(&log->json, true);
	}
	if (log->format == LOG_JSON)
		json_object_end(&log->json);
	buf_byte(&log->line, '\n');
	assert(log->line.n <= LOG_LINE_MAX);
	write_line(log);
}

/* Folding. */

static uint64_t hash(struct bytes b)
{
	uint64_t h = 14695981039346656037u;	/* FNV-1a */

	for (size_t i = 0; i < b.n; i++)
		h = (h ^ (unsigned char)b.p[i]) * 1099511628211u;
	return b.n ? h | 1 : 0;
}

static bool within(const struct fold *f, msec_t now)
{
	return now >= f->written && now - f->written < LOG_FOLD_MS;
}

static void report_fold(struct log *log, struct fold *f)
{
	uint64_t n = f->count;
	struct log_line l;

	f->count = 0;
	if (n == 0)
		return;
	log_begin_about(&l, log, LOG_LOG_REPEATED, f->level, bytes_none,
			"%llu more lines of %s were folded", (unsigned long long)n,
			log_event_name(f->event));
	log_str(&l, "of", log_event_name(f->event));
	if (f->about_n)
		log_bytes(&l, "about", bytes_of(f->about, f->about_n));
	log_uint(&l, "repeated", n);
	log_end(&l);
}

/* The fold of event and subject; a new one is `used` and not within. */
static struct fold *find_fold(struct log *log, enum log_event event, struct bytes about,
			      msec_t now)
{
	struct fold *spare = NULL;
	uint64_t subject = hash(about);

	for (size_t i = 0; i < FOLDS; i++) {
		struct fold *f = &log->folds[i];

		if (f->used && f->event == event && f->subject == subject)
			return f;
		if (!spare && (!f->used || !within(f, now)))
			spare = f;
	}
	if (!spare)
		return &log->whole[event];
	if (spare->used)
		report_fold(log, spare);
	about = cut(about, sizeof(spare->about));
	*spare = (struct fold){ .used = true, .event = event, .subject = subject,
				.about_n = about.n, .written = now - LOG_FOLD_MS };
	if (about.n)
		memcpy(spare->about, about.p, about.n);
	return spare;
}

/* False when the line is to be folded; else `*repeated` were before it. */
static bool pass_fold(struct log *log, enum log_event event, enum log_level level,
		      struct bytes subject, uint64_t *repeated)
{
	msec_t now = log->now();
	struct fold *f = find_fold(log, event, subject, now);

	if (f->used && within(f, now)) {
		f->count++;
		return false;
	}
	*repeated = f->count;
	f->used = true;
	f->event = event;
	f->level = level;
	f->count = 0;
	f->written = now;
	return true;
}

static void begin(struct log_line *l, struct log *log, enum log_event event,
		  enum log_level level, struct bytes subject, const char *fmt, va_list ap)
{
	uint64_t repeated = 0;

	l->log = NULL;
	if (!log_wants(log, level))
		return;
	if (level <= LOG_WARN && event != LOG_LOG_REPEATED &&
	    !pass_fold(log, event, level, subject, &repeated))
		return;
	l->log = log;
	start_line(log, event, level, repeated, fmt, ap);
}

void log_begin(struct log_line *l, struct log *log, enum log_event event,
	       const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	begin(l, log, event, events[event].level, bytes_none, fmt, ap);
	va_end(ap);
}

void log_begin_about(struct log_line *l, struct log *log, enum log_event event,
		     enum log_level level, struct bytes subject, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	begin(l, log, event, level, subject, fmt, ap);
	va_end(ap);
}

static void settle(struct log *log, struct fold *folds, size_t n, bool all)
{
	msec_t now = log->now();

	for (size_t i = 0; i < n; i++)
		if (all || !within(&folds[i], now))
			report_fold(log, &folds[i]);
}

static void unfold(struct log *log, struct fold *f, enum log_event event)
{
	if (!f->used || f->event != event)
		return;
	report_fold(log, f);
	f->used = false;
}

void log_unfold(struct log *log, enum log_event event)
{
	for (size_t i = 0; i < FOLDS; i++)
		unfold(log, &log->folds[i], event);
	unfold(log, &log->whole[event], event);
}

void log_settle(struct log *log)
{
	settle(log, log->folds, FOLDS, false);
	settle(log, log->whole, LOG_EVENT_COUNT, false);
}

void log_free(struct log *log)
{
	if (!log)
		return;
	settle(log, log->folds, FOLDS, true);
	settle(log, log->whole, LOG_EVENT_COUNT, true);
	buf_clear(&log->line);
	buf_clear(&log->tail);
	free(log);
}

void log_secure_stdio(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", fd ? O_WRONLY : O_RDONLY);
}
