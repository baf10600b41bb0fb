/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * log - one line per event on stderr, as JSON or as text.
 *
 *	struct log_line l;
 *
 *	log_begin(&l, log, LOG_REDIS_LOST, "connection to %s lost; trying again", at);
 *	log_int(&l, "retry_ms", 250);
 *	log_end(&l);
 *
 * The events are those of log_events.h and no others.  The message is a
 * sentence that says what follows; figures and names that a program may want
 * stand as fields, with units in their names.
 *
 * Logging never blocks and never fails: a line that stderr does not take at
 * once is dropped and counted.  A line is at most LOG_LINE_MAX bytes and one
 * write(), which a pipe takes whole; what does not fit is cut, and the line
 * says `"truncated":true`.
 *
 * A warning or error that repeats within LOG_FOLD_MS of the last one that was
 * written is counted instead, and the next one written has the count in
 * `repeated`.  Only for the thread that made the log.
 */
#ifndef LAPSED_LOG_H
#define LAPSED_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/bytes.h"
#include "core/when.h"
#include "log_events.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum log_format { LOG_AUTO, LOG_JSON, LOG_TEXT };	/* AUTO: text on a terminal */

#define LOG_LINE_MAX	4096		/* PIPE_BUF of Linux, newline included */
#define LOG_FOLD_MS	10000

struct log;

struct log_line {
	struct log *log;	/* NULL: the line is not wanted; fields are ignored */
};

/* Does not own `fd`.  NULL as `now` is the wall clock; tests bring their own. */
struct log *log_new(int fd, enum log_format format, enum log_level level,
		    msec_t (*now)(void));
void log_free(struct log *log);		/* accepts NULL; reports what is folded */

/* Both may be called at any time; they hold from the next line on. */
void log_set_level(struct log *log, enum log_level level);
void log_set_format(struct log *log, enum log_format format);

/* True when a line at that level would be written: for costly arguments. */
bool log_wants(const struct log *log, enum log_level level);

/*
 * Begins a line at the event's own level.  Each begin obliges to a log_end(),
 * and that before the next begin.
 */
void log_begin(struct log_line *l, struct log *log, enum log_event event,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * The same with a level of the caller's, and a subject: repeats are folded by
 * event and subject, so that one refused topic does not hide another.
 * bytes_none where there is none.
 */
void log_begin_about(struct log_line *l, struct log *log, enum log_event event,
		     enum log_level level, struct bytes subject,
		     const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* Fields.  `name` is of a-z, 0-9 and `_`; a name stands once in a line. */
void log_int(struct log_line *l, const char *name, int64_t value);
void log_uint(struct log_line *l, const char *name, uint64_t value);
void log_double(struct log_line *l, const char *name, double value);	/* 3 decimals */
void log_bool(struct log_line *l, const char *name, bool value);
void log_str(struct log_line *l, const char *name, const char *value);	/* NULL: null */
void log_bytes(struct log_line *l, const char *name, struct bytes value); /* any byte */

/* The same with fields one deeper: "name":{...}; text shows name.field. */
void log_object(struct log_line *l, const char *name);
void log_object_end(struct log_line *l);

/* Writes the line. */
void log_end(struct log_line *l);

/*
 * Writes what was folded and has not come again for LOG_FOLD_MS as
 * log.repeated; to be called now and then (with the stats, say).
 */
void log_settle(struct log *log);

/*
 * The next line of `event` is written whatever came before: somebody asks, and
 * is to get the answer.
 */
void log_unfold(struct log *log, enum log_event event);

/* Lines dropped so far because the descriptor did not take them. */
uint64_t log_dropped(const struct log *log);

/* "error", "warn", "info", "debug"; and an event's name in the catalogue. */
const char *log_level_name(enum log_level level);
const char *log_event_name(enum log_event event);

/*
 * Opens /dev/null for those of the descriptors 0 to 2 that are closed, so that
 * no socket gets number 2 and with it the log.  First thing in main().
 */
void log_secure_stdio(void);

#endif
