/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf_report - notes about a configuration, kept in the order of its lines.
 *
 * Private to conf*.c; what others do with a report is in conf.h.
 */
#ifndef LAPSED_CONF_REPORT_H
#define LAPSED_CONF_REPORT_H

#include "conf.h"
#include "conf_table.h"

/* Past so many of a severity, notes are counted and not kept. */
#define CONF_NOTES_MAX	100

/*
 * Adds a note.  `origin` says what it is about: a line of `path`, a variable,
 * an argument; or, when it is NULL or a default, the file as a whole.  `path`
 * may be NULL.  Control characters become `?`.
 */
void conf_say(struct conf_report *r, enum conf_severity severity, const char *path,
	      const struct conf_origin *origin, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

#endif
