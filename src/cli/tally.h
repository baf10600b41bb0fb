/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * tally - dead letters counted by topic and reason.
 *
 * However many there are, it holds a limited number of pairs; what comes
 * beyond them is counted together, as "(others)".
 */
#ifndef LAPSED_CLI_TALLY_H
#define LAPSED_CLI_TALLY_H

#include "core/bytes.h"
#include "core/when.h"

#define TALLY_PAIRS	1000
#define TALLY_REASON	256	/* so many bytes of a reason tell it from others */

struct tally;

struct tally *tally_new(void);
void tally_free(struct tally *t);	/* accepts NULL */
void tally_add(struct tally *t, struct bytes topic, struct bytes reason, msec_t died);

/* The largest counts first; one JSON object a line, or a table. */
void tally_print(struct tally *t, bool json);

#endif
