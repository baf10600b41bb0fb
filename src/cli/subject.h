/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * subject - the one event or watched key that a verb is about.
 *
 * The scripts take both in the same place: behind the prefix, an id as the
 * first argument and a watched key as the second key (but for `show`, where
 * it is an argument too).
 */
#ifndef LAPSED_CLI_SUBJECT_H
#define LAPSED_CLI_SUBJECT_H

#include "cli/cli.h"

struct subject {
	bool watched;		/* a key and not an id */
	struct bytes name;
	uint64_t db;		/* of a key */
	int keys;		/* of the call: the prefix, and a key where it is one */
};

/* From the first argument, and --db for a key. */
bool subject_read(struct cli *cli, bool watched, struct subject *s, struct err *err) MUST_CHECK;

/*
 * Connects, unless that was done, and runs a script with `args` behind the subject; a key's database
 * is among the options that are added.  NULL when that fails: `status` is then
 * what it is, told already unless it is STATUS_DONE, when an error reply has
 * left its reason in `err`.
 */
redisReply *subject_call(struct cli *cli, const char *script, const struct subject *s,
			 const struct call *args, enum status *status,
			 struct err *err) MUST_CHECK;

struct change {
	msec_t due;
	char state[16];		/* in which it was; empty when that is not told */
};

/*
 * Runs a script that answers `wanted`, due and perhaps a state; or in-flight,
 * waiting, dying, dead or not-found, which are told here, and are no STATUS_DONE.
 */
enum status subject_change(struct cli *cli, const char *script, const char *wanted,
			   const struct subject *s, const struct call *args,
			   struct change *change);

/* Members of an object: `id`, or `key` and `db`. */
void subject_json(struct json *j, const struct subject *s);

/* One line of JSON; `due` is -1, `state` NULL and `ce_id` bytes_none where there is none. */
void subject_tell_json(const struct subject *s, const char *result, msec_t due,
		       const char *state, struct bytes ce_id);

/* "rescheduled order-42 for 2026-11-30T12:30:00.000Z (in 30m)"; "set ..., expires ..." */
void subject_tell_due(struct cli *cli, const struct subject *s, const char *result,
		      msec_t due, const struct cli_when *when);

/* "cancelled order-42" */
void subject_tell(const struct subject *s, const char *result);

#endif
