/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * entry - a member and its record, for the verbs that read them themselves.
 *
 * What can't be read is shown as that, with the reason: lists go on.
 */
#ifndef LAPSED_CLI_ENTRY_H
#define LAPSED_CLI_ENTRY_H

#include "cli/out.h"
#include "core/err.h"
#include "core/record.h"

struct entry {
	struct bytes raw;	/* the member as it stands */
	bool named;		/* `member` could be read */
	struct member member;
	enum { ENTRY_READABLE, ENTRY_BARE, ENTRY_UNREADABLE } state;
	struct record record;	/* of ENTRY_READABLE; ENTRY_BARE has none */
	struct err why;		/* of ENTRY_UNREADABLE */
};

/* Borrows both; `record` is bytes_none or empty where there is none. */
void entry_read(struct entry *e, struct bytes member, struct bytes record);

/* "event", "key/0", "expired/0" for a key that was set again, "?" */
#define ENTRY_KIND	24
const char *entry_kind(const struct entry *e, char out[ENTRY_KIND]);

/* The id or key. */
struct bytes entry_name(const struct entry *e);

/* The topic; a hyphen where the route decides, "(unreadable)" */
struct bytes entry_topic(const struct entry *e);

/* Members of an object; the payload and headers only with `all`. */
void entry_json(struct json *j, const struct entry *e, bool all);

/* One line for each thing that is known, as `lapse show` has them. */
void entry_text(const struct entry *e);

#endif
