/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * joblog - the judge of jobs: every life that was scheduled with a time to run,
 * what its users and consumers were answered, and what arrived.
 *
 *	a job ends: it is finished, cancelled, replaced, or dead after its last
 *	attempt with the history of all; none is silent
 *	no attempt arrives before it is due, nor the next before the one before
 *	has ended; numbers rise by one; none arrives again without a reason
 *	finish, touch and fail are accepted of the life and attempt that count,
 *	and of no other
 *	who is in time is never refused
 *	what has ended is not sent, not dead, and not answered any more
 *	a dead letter was told to the topic for them, with its reason, or
 *	counted as untold
 *
 * What a failover may have undone is exempt: `undone` may be in an earlier
 * state than we know, and still has to end; `exempt` may be anything.
 */
#ifndef LAPSED_TESTS_SIM_JOBLOG_H
#define LAPSED_TESTS_SIM_JOBLOG_H

#include "core/record.h"
#include "world.h"

#define JOB_NAMES	24	/* ids are j0, j1 ... */
#define JOB_ATTEMPTS	4	/* at most */

enum job_end {
	JOB_LIVES,
	JOB_DYING,		/* its last attempt has failed */
	JOB_FINISHED,
	JOB_CANCELLED,
	JOB_REPLACED,
	JOB_REPLAYED,		/* was dead, and lives on as another */
	JOB_DROPPED,		/* was dead, and is gone */
	JOB_DEAD,
	JOB_ENDS
};

struct job_attempt {
	unsigned came, told, reasons;
	usec_t came_at;
	char how;		/* it ended: `t` out of time, `f` failed, 0: unknown */
};

struct job_life {
	char id[64];		/* of every attempt, up to the dot */
	size_t name, topic;
	struct job terms;
	bool poison, undone, exempt;
	bool pending;		/* when we last looked */
	bool never_flew;	/* ended before its attempt was claimed */
	enum job_end end;
	unsigned attempt;	/* the one that counts, as far as we know */
	unsigned upto;		/* the last that may arrive after the end */
	int64_t due;		/* ms, of that attempt */
	bool exact;		/* else not before then */
	int64_t deadline;	/* not before then; 0: it does not run yet */
	int64_t out;		/* its end comes by then, when all is calm */
	usec_t touched;
	struct job_attempt attempts[JOB_ATTEMPTS];
};

struct joblog;

struct joblog *joblog_new(struct world *w);
void joblog_free(struct joblog *l);

/* What users do, and are answered. */
struct job_life *joblog_begin(struct joblog *l, size_t name, const char *status, int64_t due,
			      const char *id, const struct job *terms);
struct job_life *joblog_current(struct joblog *l, size_t name);	/* or NULL */
void joblog_cancel(struct joblog *l, size_t name, const char *status, const char *where);
void joblog_reschedule(struct joblog *l, size_t name, const char *status, int64_t due);
/* How many are pending for that topic, and that they are no more. */
size_t joblog_pending(struct joblog *l, size_t topic);
void joblog_purged(struct joblog *l, size_t topic);
/* Some life that is a dead letter, with its ce_id, or NULL. */
struct job_life *joblog_dead_one(struct joblog *l, size_t from, char id[96]);
void joblog_buried(struct joblog *l, struct job_life *life, enum job_end end);

/* What consumers do with the token of `attempt`; `error` is NULL if it is done. */
void joblog_finished(struct joblog *l, struct job_life *life, unsigned attempt,
		     const char *error, const char *where);
void joblog_touched(struct joblog *l, struct job_life *life, unsigned attempt,
		    const char *error, int64_t deadline);
/* `pause` is what was asked for, -1: nothing; `id` is that of the next. */
void joblog_failed(struct joblog *l, struct job_life *life, unsigned attempt,
		   const char *error, const char *status, int64_t due, int64_t pause,
		   const char *id);

/* What happens.  The life that arrived, or NULL when it is none that is known. */
struct job_life *joblog_arrived(struct joblog *l, struct bytes id, unsigned *attempt);
void joblog_told(struct joblog *l, struct bytes id, struct bytes reason);
void joblog_reason(struct joblog *l, struct bytes id);
void joblog_failed_over(struct joblog *l, usec_t since);

/* The verdict; dead letters that were not told are taken from `untold`. */
void joblog_check(struct joblog *l, uint64_t *untold);
size_t joblog_duplicates(const struct joblog *l);

/* How it went, for the summary. */
struct job_sums {
	uint64_t lives, ends[JOB_ENDS], stale, deliveries;
};
void joblog_sum(const struct joblog *l, struct job_sums *s);

#endif
