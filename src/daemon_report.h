/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * daemon_report - what the bridge notes, and its figures, as log lines.
 */
#ifndef LAPSED_DAEMON_REPORT_H
#define LAPSED_DAEMON_REPORT_H

#include "core/bridge.h"
#include "log.h"
#include "metrics.h"

/* `gap_ms` is how long there was no subscription, for the note of a sweep
 * after it; negative: it is the first. */
void report_note(struct log *log, const struct note *n, int64_t gap_ms);

void report_stats(struct metrics *m, struct log *log, struct bridge *b, size_t kafka,
		  usec_t now);

#endif
