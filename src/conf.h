/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf - the configuration file, the environment and the defaults, as one
 * checked structure.
 *
 * One table (conf_table.c) names every option with its kind, default, range
 * and meaning; parser, --check, --dump, reload and the lints all read it.
 * Where a value is said twice, the environment beats the command line, and
 * both beat the file, which beats the default.
 *
 * Every mistake of a file is reported in one go, so that it takes one run and
 * not one per mistake to get it right.  Secrets come from files and from the
 * environment only; nothing here ever prints one.
 */
#ifndef LAPSED_CONF_H
#define LAPSED_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/err.h"

/* How a record is laid out in Kafka (CloudEvents Kafka binding, or bare). */
enum conf_mode { CONF_BINARY, CONF_STRUCTURED, CONF_RAW };

/* How an entry of a route gets into the shadow; the values are bits. */
enum conf_register {
	CONF_REGISTER_NONE = 1,		/* the notification itself, best effort */
	CONF_REGISTER_APP = 2,		/* the application says so */
};

/* One [route NAME]; routes are tried in the order of the file. */
struct conf_route {
	char *name;
	char **patterns;		/* as in Redis' KEYS; at least one */
	size_t n_patterns;
	unsigned registers;		/* bits of enum conf_register */
	char *topic;
	char *key;			/* template, "{key}" by default */
	bool value_copy;		/* false: the record carries no copy */
	bool inferred_emit;		/* false: drop what nobody saw expire */
	int mode;			/* enum conf_mode */
	char *content_type;		/* NULL: left to the mode */
	char *type;			/* ce_type; NULL: io.lapsed.expired */
	int line;			/* of its section in the file */
};

/* One librdkafka property of [kafka], our own defaults among them. */
struct conf_property {
	char *name;
	char *value;
	bool secret;			/* never to be printed */
	int line;			/* 0: not from the file */
};

struct conf {
	/* [lapsed] */
	char *namespace;
	int64_t database;		/* of lapsed's own keys */
	char *instance;			/* host:pid by default */
	char *source;			/* ce_source */
	int64_t max_inflight;		/* events between claim and settle */
	int64_t max_inflight_bytes;
	int64_t claim_limit;		/* entries per claim */
	int64_t lease_ms;
	int64_t grace_ms;
	int64_t sweep_interval_ms;
	int64_t stop_timeout_ms;
	int64_t park_min_ms;		/* first retry of a parked topic */
	int64_t park_max_ms;		/* and the longest pause between two */
	int64_t stats_interval_ms;	/* 0: no stats lines */
	int mode;			/* enum conf_mode, of scheduled events */
	int log_format;			/* enum log_format */
	int log_level;			/* enum log_level */

	/* [redis] */
	char *redis_url;		/* as given, its password taken out */
	char *redis_host;		/* NULL when redis_socket is set */
	int redis_port;
	char *redis_socket;		/* path of a Unix socket, or NULL */
	char *redis_username;		/* NULL: the default user */
	char *redis_password;		/* NULL: no AUTH; never printed */
	char *redis_password_file;	/* where it was read from, or NULL */
	bool databases_all;		/* `databases = *` */
	int *databases;			/* watched ones, ascending, no twice */
	size_t n_databases;		/* 0 with databases_all */
	int64_t connect_timeout_ms;

	/* [kafka] */
	char *kafka_password_file;	/* for sasl.password, or NULL */
	struct conf_property *kafka;	/* in the order to set them */
	size_t n_kafka;

	/* [route NAME] */
	struct conf_route *routes;
	size_t n_routes;

	struct conf_origin *origins;	/* where each value is from; private */
};

/* What loading or reloading has to say, in the order of the file. */
enum conf_severity {
	CONF_MISTAKE,		/* the configuration can't be used */
	CONF_WARNING,		/* it can, but look here */
	CONF_CHANGE,		/* a reload changed this */
};

struct conf_note {
	enum conf_severity severity;
	int line;		/* 0: not about one line */
	char *text;		/* with file and line in front where known */
};

/* All zero is an empty report. */
struct conf_report {
	struct conf_note *notes;
	size_t n;
	size_t mistakes;
	size_t warnings;
};

/* One line a note, "warning: " in front of warnings. */
void conf_report_print(const struct conf_report *r, FILE *out);
void conf_report_clear(struct conf_report *r);

/* What to read.  All zero: the defaults and the environment. */
struct conf_source {
	const char *path;	/* NULL: no file */
	/*
	 * For lapse: only namespace, database and [redis] matter.  Mistakes
	 * elsewhere are passed over, and [kafka] may be missing.
	 */
	bool tool;
	const char *redis_url;	/* of the command line, or NULL; a password
				   in it is refused, as anyone can read it */
	const char *namespace;	/* of the command line, or NULL */
};

/*
 * NULL when there was any mistake, and then `report` has all of them;
 * otherwise the caller owes a conf_free(), and `report` may hold warnings.
 * Reads password files.  LAPSED_REDIS_URL, LAPSED_REDIS_PASSWORD and
 * LAPSED_KAFKA_BOOTSTRAP_SERVERS of the environment override the file.
 */
struct conf *conf_load(const struct conf_source *source,
		       struct conf_report *report) MUST_CHECK;
void conf_free(struct conf *c);		/* accepts NULL; wipes the secrets */

/*
 * Prepares `fresh` to take the place of `running` without a restart: options
 * that can't change in a running process get their running value back, with a
 * warning each; every change that stays is noted as CONF_CHANGE.
 */
void conf_reload_diff(const struct conf *running, struct conf *fresh,
		      struct conf_report *report);

/* Every option with its value and, as a comment, where that is from. */
void conf_dump(const struct conf *c, FILE *out);

/*
 * A producer configuration with all of [kafka] and what lapsed's promises rest
 * on (idempotence, acks=all).  For rd_kafka_new(), which takes it over on
 * success; else the caller owes rd_kafka_conf_destroy().  NULL only if the
 * library refuses what conf_load() had it check.
 */
struct rd_kafka_conf_s *conf_kafka(const struct conf *c, struct err *e) MUST_CHECK;

/* `lapsed --check` and `lapsed --dump`: print, and return the exit status. */
int conf_check_main(const struct conf_source *source);
int conf_dump_main(const struct conf_source *source);

#endif
