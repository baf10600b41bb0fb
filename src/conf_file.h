/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf_file - a file of the configuration as bytes, and those bytes as
 * sections and options.
 *
 * inih finds sections and names.  Its line buffer, its short names and its
 * continuation lines are kept out of the way: values are taken from the line
 * itself, by these rules:
 *
 *   # at the start of a line, or ; there or behind a blank, begins a comment
 *   name = value		blanks around either are dropped
 *   name = "a ; b"		quoted: as it stands; \" \\ \n \t
 *
 * Lines may be indented, and a line is always complete in itself.
 */
#ifndef LAPSED_CONF_FILE_H
#define LAPSED_CONF_FILE_H

#include "core/buf.h"
#include "core/bytes.h"
#include "core/err.h"

#define CONF_FILE_MAX	(1024 * 1024)
#define CONF_LINE_MAX	8192
#define CONF_NAME_MAX	49	/* of sections and options: inih's buffers */

/*
 * Adds all of a file to `out`.  False when it can't be read, is a directory,
 * or holds more than `max` bytes; `out` may then hold a part of it.
 */
bool conf_file_read(const char *path, size_t max, struct buf *out,
		    struct err *e) MUST_CHECK;

/*
 * A password file: its content without the newline at the end.  Refused when
 * empty, longer than 4,096 bytes, or with a NUL inside.  `*open` says that
 * everyone on the machine may read it.  NULL with `e` filled on failure; to be
 * wiped and freed by the caller.
 */
char *conf_secret_read(const char *path, bool *open, struct err *e) MUST_CHECK;

/* Overwrites `s` (NULL is allowed) and frees it. */
void conf_secret_free(char *s);

/* Called in the order of the lines, which count from 1.  None may be NULL. */
struct conf_file_handlers {
	void (*section)(void *arg, int line, const char *name);
	void (*option)(void *arg, int line, const char *name, const char *value);
	void (*mistake)(void *arg, int line, const char *text);
};

/* Goes through all of `text`, mistakes or not. */
void conf_file_parse(struct bytes text, const struct conf_file_handlers *h,
		     void *arg);

#endif
