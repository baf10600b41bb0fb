/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * cli - what the verbs of lapse share: arguments as values, the way to Redis,
 * and how to say no.
 *
 * A verb checks its arguments first and asks for the link last, so that a
 * mistake is told without a server.
 */
#ifndef LAPSED_CLI_CLI_H
#define LAPSED_CLI_CLI_H

#include <stdint.h>

#include "cli/args.h"
#include "cli/link.h"
#include "cli/out.h"
#include "conf.h"
#include "core/buf.h"
#include "core/err.h"

#define CLI_TIME	32

struct cli {
	const struct verb *verbs;
	struct args args;
	bool json;
	struct buf **room;	/* decoded names and data, kept to the end */
	size_t n_rooms;
	struct conf *conf;	/* these three are NULL before cli_connect() */
	struct link *link;
	char *prefix;		/* lapse:{0} */
};

/* Says why on stderr, "lapse: " in front, and gives the status back. */
enum status cli_fail(enum status status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for a warning or hint, of which no status comes. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* STATUS_REFUSED, after "lapse: order-42: not found". */
enum status cli_refuse(struct bytes name, const char *what);

/* STATUS_USAGE, with the verb's name in front of the reason. */
enum status cli_usage(const struct cli *cli, const struct err *err);

/* Reads the configuration; false after it has told what is wrong with it. */
bool cli_load_conf(struct cli *cli, const struct conf_source *source) MUST_CHECK;

/*
 * Reads the configuration and connects; any failure is told at once and is
 * not STATUS_DONE.
 */
enum status cli_connect(struct cli *cli) MUST_CHECK;

/* After a failed call: tells the reason and gives the status that fits. */
enum status cli_failed_call(const struct cli *cli, const struct err *err);

/* Bytes that live until the end. */
struct buf *cli_room(struct cli *cli);

/*
 * A text of the command line as the name of something, decoded with --encoded.
 * `what` is named in the error.
 */
bool cli_name(struct cli *cli, const char *text, const char *what, struct bytes *name,
	      struct err *err) MUST_CHECK;

/* The number of an option; `fallback` when it is not given. */
bool cli_number(const struct cli *cli, const char *option, uint64_t max,
		uint64_t fallback, uint64_t *n, struct err *err) MUST_CHECK;

/* --limit, at least 1. */
bool cli_limit(const struct cli *cli, uint64_t fallback, uint64_t *n, struct err *err) MUST_CHECK;

/*
 * After a list of `listed` members of a ZSET up to `max`: says how many there
 * are when `fallback`, and no --limit, has cut it short.
 */
enum status cli_tell_rest(struct cli *cli, const char *zset, const char *max, size_t listed,
			  size_t fallback);

/* A due time, as the scripts take it. */
struct cli_when {
	char text[CLI_TIME];	/* "+1800000" or "@1764505800000" */
	int64_t in;		/* ms from now; -1 with --at */
};

/* Of --in or --at, one of which must be there. */
bool cli_when(const struct cli *cli, struct cli_when *when, struct err *err) MUST_CHECK;

/*
 * " (in 30m)": from --in as it was given, else by Redis' clock; "" when that
 * can't be asked.
 */
const char *cli_until(struct cli *cli, const struct cli_when *when, msec_t due,
		      char out[OUT_SPAN]);

/* The i-th string of an answer; bytes_none when it is none. */
struct bytes cli_answer(const redisReply *reply, size_t i);

/* The number in that string; `missing` when it is none. */
int64_t cli_answer_number(const redisReply *reply, size_t i, int64_t missing);

/* schedule_bulk or cancel_bulk for what --file holds. */
enum status cli_bulk(struct cli *cli, const char *script);

/* The verbs. */
enum status cli_cancel(struct cli *cli);
enum status cli_dead_drop(struct cli *cli);
enum status cli_dead_list(struct cli *cli);
enum status cli_dead_replay(struct cli *cli);
enum status cli_dead_show(struct cli *cli);
enum status cli_del(struct cli *cli);
enum status cli_fail_job(struct cli *cli);
enum status cli_finish(struct cli *cli);
enum status cli_fsck(struct cli *cli);
enum status cli_help(struct cli *cli);
enum status cli_import(struct cli *cli);
enum status cli_install(struct cli *cli);
enum status cli_list(struct cli *cli);
enum status cli_purge(struct cli *cli);
enum status cli_match(struct cli *cli);
enum status cli_reschedule(struct cli *cli);
enum status cli_schedule(struct cli *cli);
enum status cli_setex(struct cli *cli);
enum status cli_show(struct cli *cli);
enum status cli_stats(struct cli *cli);
enum status cli_completion(struct cli *cli);
enum status cli_touch(struct cli *cli);
enum status cli_version(struct cli *cli);
enum status cli_watch(struct cli *cli);

/* How a verb is used, in one line. */
void help_usage(FILE *f, const struct verb *v);

/* All verbs, in short. */
void help_all(FILE *f, const struct verb *verbs);

/* All about the verb that was named, its family, or all verbs. */
void help_for(const struct args *args, const struct verb *verbs);

#endif
