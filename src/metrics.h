/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * metrics - the `stats` line: everything there is to watch, in one record.
 *
 *   <counter>			since the process started
 *   delta.<counter>		since the last such line; absent when 0
 *   <gauge>			now
 *   lateness_<what>_ms		acknowledgement minus due time, of the events
 *				acknowledged since the last such line
 *   lateness_total_<what>_ms	of all since the process started
 *
 * <what> is p50, p90, p99, p999 and max.
 */
#ifndef LAPSED_METRICS_H
#define LAPSED_METRICS_H

#include "core/counters.h"
#include "core/hist.h"
#include "core/when.h"
#include "log.h"

/* What is at the moment, as opposed to what happened so far. */
struct gauge {
	const char *name;	/* as a log field */
	int64_t value;
};

struct metrics {
	struct counters last;	/* as they were in the last line */
	struct hist lateness;	/* of all lines so far */
	usec_t since;		/* when the last line was */
};

void metrics_init(struct metrics *m, usec_t now);

/*
 * Writes the line and begins a new interval: `lateness`, the interval's
 * values, is added to the total and emptied.
 */
void metrics_stats(struct metrics *m, struct log *log, const struct counters *c,
		   struct hist *lateness, const struct gauge *gauges, size_t n,
		   usec_t now);

#endif
