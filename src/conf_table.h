/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf_table - every option, and how its kind is read, shown and compared.
 *
 * Parser, --check, --dump, reload, the man page's and the sample's lint all
 * follow this one table.  Private to conf*.c.
 */
#ifndef LAPSED_CONF_TABLE_H
#define LAPSED_CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf.h"
#include "core/buf.h"
#include "core/err.h"

enum conf_section {
	SECTION_LAPSED,
	SECTION_REDIS,
	SECTION_KAFKA,
	SECTION_ROUTE,		/* one each; its options belong to a conf_route */
	SECTION_COUNT
};

enum conf_kind {
	KIND_TEXT,		/* char *; min and max are bytes */
	KIND_PATTERNS,		/* struct conf_patterns; each line adds one */
	KIND_NUMBER,		/* int64_t */
	KIND_SIZE,		/* int64_t, bytes */
	KIND_DURATION,		/* int64_t, ms */
	KIND_CHOICE,		/* int, index into choices */
	KIND_BITS,		/* unsigned, a bit for each of the choices */
	KIND_DATABASES,		/* struct conf_databases */
	KIND_COUNT
};

enum conf_flag {
	OPTION_RELOAD = 1 << 0,		/* SIGHUP may change it */
	OPTION_TOOL = 1 << 1,		/* lapse reads it too */
	OPTION_REQUIRED = 1 << 2,
};

struct conf_option {
	enum conf_section section;
	const char *name;
	enum conf_kind kind;
	size_t offset;			/* in struct conf or struct conf_route */
	const char *fallback;		/* NULL: none, the value stays 0 or NULL */
	int64_t min, max;
	unsigned flags;			/* of enum conf_flag */
	const char *const *choices;	/* ends with NULL */
	bool (*check)(const char *value, struct err *e);	/* or NULL */
	const char *help;		/* one line */
};

struct conf_patterns {
	char **p;
	size_t n;
};

/* Where a value is from. */
struct conf_origin {
	enum { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_ARGUMENT } kind;
	int line;			/* ORIGIN_FILE */
	const char *name;		/* of the variable or argument; static */
};

#define CONF_OPTIONS_MAX	64

/* A [route NAME] as it was written. */
struct conf_route {
	char *name;
	int line;
	struct conf_patterns patterns;
	struct conf_patterns excludes;
	unsigned registers;
	struct conf_databases databases;
	char *topic;
	struct conf_patterns topics;	/* that may come of it */
	char *dead_topic;		/* NULL: the one of [lapsed] */
	char *key;
	int value;			/* 0 none, 1 copy */
	int64_t max_value;		/* of a value that is copied */
	int refresh;			/* 1: copied again when written to */
	int evicted;			/* enum route_evicted */
	int inferred;			/* enum route_inferred */
	int mode;			/* enum route_mode */
	char *content_type;
	char *type;
	char *subject;
	struct conf_origin origins[CONF_OPTIONS_MAX];
};

/* What conf.c keeps beside the values. */
struct conf_private {
	char *path;			/* NULL: there was no file */
	struct conf_origin origins[CONF_OPTIONS_MAX];
	struct conf_route *routes;
	size_t n_routes;
};

extern const struct conf_option conf_options[];
extern const size_t conf_n_options;
extern const char *const conf_section_names[SECTION_COUNT];

/* The option's place in the table, for the origins. */
size_t conf_option_index(const struct conf_option *o);

/* NULL when the section has no such option. */
const struct conf_option *conf_option_find(enum conf_section section,
					   const char *name);

/*
 * Replaces the value of `o` in `base` (a struct conf or conf_route) by what
 * `text` says; on failure the value is as it was and `e` says why.
 */
bool conf_option_parse(const struct conf_option *o, void *base, const char *text,
		       struct err *e) MUST_CHECK;

/* Adds the value as the file would have it; nothing when there is none. */
void conf_option_print(const struct conf_option *o, const void *base, struct buf *out);

/* Adds `text`, in quotes where the file's rules ask for them. */
void conf_text_print(const char *text, struct buf *out);

/* Replaces the value in one base by a copy of that in another. */
void conf_option_copy(const struct conf_option *o, void *to, const void *from);

bool conf_option_same(const struct conf_option *o, const void *a, const void *b);

/* Frees what the value holds and zeroes it. */
void conf_option_clear(const struct conf_option *o, void *base);

#endif
