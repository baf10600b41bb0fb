/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf - the configuration file, the environment and the defaults, as one
 * checked structure.
 *
 * One table (conf_table.c) names every option with its kind, default, range
 * and meaning; parser, --check, --dump, reload and the lints all read it.
 * Where a value is said twice, the command line beats the environment, which
 * beats the file, which beats the default.
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
#include "core/route.h"

/* What an instance does; the halves may run apart. */
enum conf_role { ROLE_BOTH, ROLE_BRIDGE, ROLE_SWEEPER };

/* Which databases hold watched keys. */
struct conf_databases {
	bool all;		/* `*` */
	unsigned *db;		/* ascending, none twice */
	size_t n;		/* 0 when all */
};

/* One librdkafka property, to be set on top of what io/kafka sets by itself. */
struct conf_property {
	char *name;
	char *value;
	bool secret;			/* never to be printed */
	int line;			/* in the file; 0: from elsewhere */
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
	int64_t rescan_ms;		/* 0: only after a gap */
	int64_t scan_rate;		/* keys a second */
	int64_t stop_timeout_ms;
	int role;			/* enum conf_role */
	int64_t park_min_ms;		/* first retry of a parked topic */
	int64_t park_max_ms;		/* and the longest pause between two */
	char *dead_topic;		/* for dead letters, or NULL */
	int64_t max_dead;		/* how many of them; 0: no limit */
	int drop_dead;			/* 1: beyond it the oldest are dropped */
	int64_t stats_interval_ms;	/* 0: no stats lines */
	int mode;			/* enum route_mode, of scheduled events */
	int log_format;			/* enum log_format */
	int log_level;			/* enum log_level */

	/* [redis] */
	char *redis_url;		/* as given, but without a password */
	char *redis_host;		/* NULL when redis_socket is set */
	int redis_port;
	char *redis_socket;		/* path of a Unix socket, or NULL */
	char *redis_username;		/* NULL: the default user */
	char *redis_password;		/* NULL: no AUTH; never printed */
	char *redis_password_file;	/* where it was read from, or NULL */
	struct conf_databases databases;
	int64_t connect_timeout_ms;
	int64_t answer_timeout_ms;
	int set_notify;			/* CONFIG SET notify-keyspace-events when it lacks */

	/* [kafka] */
	char *kafka_servers;		/* bootstrap.servers */
	char *kafka_password_file;	/* for sasl.password, or NULL */
	struct conf_property *kafka;	/* in the order to set them, password
					   and bootstrap.servers included */
	size_t n_kafka;

	/* [route NAME], in the order of the file; never NULL, often empty */
	struct routes *routes;

	struct conf_private *private;	/* where each value is from */
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
void conf_report_print(const struct conf_report *r, const char *who, FILE *out);
void conf_report_clear(struct conf_report *r);

/* What to read.  All zero: the defaults and the environment. */
struct conf_source {
	const char *path;	/* NULL: no file */
	/*
	 * For lapse: only namespace, database, [redis] and the routes matter.
	 * Mistakes elsewhere are passed over, as are routes that can't be used,
	 * and [kafka] may be missing.
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
 * Prepares `fresh` to take the place of `running` without a restart.  Options
 * that can't change in a running process get their running value back, with a
 * warning where another was asked for; every other change is noted as
 * CONF_CHANGE.
 */
void conf_reload_diff(const struct conf *running, struct conf *fresh,
		      struct conf_report *report);

/* Every option with its value and, as a comment, where that is from. */
void conf_dump(const struct conf *c, FILE *out);

/* `lapsed --check` and `lapsed --dump`: print, and return the exit status. */
int conf_check_main(const struct conf_source *source);
int conf_dump_main(const struct conf_source *source);

#endif
