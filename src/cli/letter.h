/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * letter - one dead letter: read, chosen by topic and reason, and shown.
 *
 * What can't be read is shown as that, and can be chosen by "(unreadable)".
 */
#ifndef LAPSED_CLI_LETTER_H
#define LAPSED_CLI_LETTER_H

#include "cli/cli.h"
#include "cli/entry.h"
#include "core/route.h"

struct letter {
	struct bytes ce_id;
	msec_t died;
	bool readable;		/* the obituary is; what is below is only then set */
	struct bytes reason;
	bool enveloped;		/* `due` could be read */
	msec_t due;
	struct entry entry;
	struct err why;		/* it is not readable */
	struct bytes topic;	/* the record's, or a route's; a hyphen: neither is
				   known; "(unreadable)" */
};

/* Borrows the bytes and the topics of `routes`. */
void letter_read(struct letter *l, const struct routes *routes, struct bytes ce_id,
		 msec_t died, struct bytes obituary);

/* Which letters: those whose topic is that and whose reason has this in it. */
struct letter_choice {
	const char *topic;	/* NULL: any */
	const char *reason;
};

/* Of --topic and --reason. */
struct letter_choice letter_choice(const struct cli *cli);
bool letter_chosen(const struct letter *l, const struct letter_choice *choice);

/* One object; the payload and headers only with `all`. */
void letter_json(const struct letter *l, bool all);

/* One line of a list, and what stands above the first. */
void letter_line(const struct letter *l);
void letter_line_head(void);

/* A line for each thing that is known. */
void letter_text(const struct letter *l);

#endif
