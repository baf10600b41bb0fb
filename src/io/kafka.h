/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * kafka - an idempotent producer on the loop.
 *
 * librdkafka's threads do the network; what they have to tell arrives on one
 * queue, whose eventfd wakes the loop.  All calls and all handlers run on the
 * loop's thread; none blocks but kafka_free(), which is bounded, and, while
 * flushing, one millisecond in fifty.
 *
 *   kafka_produce() --TAKEN--> librdkafka --> broker
 *                                   |            |
 *        report(opaque, outcome) <--+------------+    exactly one for each
 *        reports_done()                               message taken
 *
 * A message that was taken is told of once, by report(), even when the
 * producer had to be replaced, or kafka_purge() was called.  Until then a
 * borrowed value must stay where it is; topic, key and headers are copied.
 *
 * librdkafka's fatal error is routine: a new producer is created, the messages
 * of the old one are reported by what is known of them (KAFKA_RETRY,
 * KAFKA_RETRY_MAYBE), the old one is destroyed on a thread of its own, and
 * KAFKA_RESTARTED is told.  In between kafka_produce() says KAFKA_FULL.
 */
#ifndef LAPSED_IO_KAFKA_H
#define LAPSED_IO_KAFKA_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/event.h"

struct kafka;

/* What became of a message. */
enum kafka_outcome {
	KAFKA_ACKED,		/* the broker has it */
	KAFKA_RETRY,		/* not persisted: produce it again */
	KAFKA_RETRY_MAYBE,	/* perhaps persisted: again, perhaps double */
	KAFKA_PERMANENT,	/* refused by the broker: too large, invalid, policy;
				   a neighbour of the culprit in librdkafka's
				   batch is told the same, so produce it alone
				   before blaming it */
	KAFKA_NO_TOPIC,		/* there is no such topic, or no such name */
	KAFKA_DENIED,		/* not authorised to write to the topic */
	KAFKA_NOUTCOMES
};

enum kafka_state {
	KAFKA_REACHED,		/* connected, authenticated */
	KAFKA_UNREACHABLE,	/* no broker has been, for a second or more */
	KAFKA_RESTARTED		/* a fatal error was handled */
};

struct kafka_handlers {
	/*
	 * One message is settled.  `error` is librdkafka's name of the reason
	 * (static), NULL when acknowledged.
	 */
	void (*report)(void *arg, void *opaque, enum kafka_outcome outcome,
		       const char *error);

	/*
	 * After a burst of reports, and whenever a kafka_produce() that said
	 * KAFKA_FULL may fare better.
	 */
	void (*reports_done)(void *arg);

	/*
	 * `text` says why, for an operator.  REACHED and UNREACHABLE alternate;
	 * the first of either is told once it is known.
	 */
	void (*state)(void *arg, enum kafka_state state, const char *text);

	/* librdkafka's log and its informative errors; level as in syslog. */
	void (*log)(void *arg, int level, const char *facility, const char *text);
};

struct kafka_setting {
	const char *name;
	const char *value;
};

struct kafka_conf {
	/* librdkafka's, set in this order on top of kafka_defaults() */
	const struct kafka_setting *settings;
	size_t nsettings;
	size_t max_inflight;	/* messages without report, at most; 0: 10,000 */
	size_t max_topics;	/* topics in use, at most; 0: 1,000 */
};

/*
 * What we set where nobody says otherwise; ends with a NULL name.  Those that
 * this librdkafka does not know are passed over.
 */
const struct kafka_setting *kafka_defaults(void);

/*
 * Whether a setting may be used: known to this librdkafka, valid, and not one
 * that the promises rest on (those are refused by name).
 */
bool kafka_check(const char *name, const char *value, struct err *e) MUST_CHECK;

/*
 * Copies `conf` and `handlers`.  Returns NULL and fills `e` when librdkafka
 * refuses the settings.  No handler is called before the loop runs, but for
 * log().
 */
struct kafka *kafka_new(struct ev_loop *loop, const struct kafka_conf *conf,
			const struct kafka_handlers *handlers, void *arg,
			struct err *e) MUST_CHECK;

/*
 * Makes a topic known, so that its first message needn't wait for metadata.
 * Optional.
 */
void kafka_warm(struct kafka *k, struct bytes topic);

enum kafka_produced {
	KAFKA_TAKEN,		/* one report() will follow */

	/* Nothing was taken and no report() follows: */
	KAFKA_FULL,		/* try again after the next reports_done() */
	KAFKA_TOO_LARGE,	/* this very message; as KAFKA_PERMANENT, alone */
	KAFKA_INVALID,		/* likewise: librdkafka can't carry it */
	KAFKA_UNKNOWN_TOPIC,	/* as KAFKA_NO_TOPIC; also: too many topics, or
				   its metadata has an error */
	KAFKA_DENIED_TOPIC	/* as KAFKA_DENIED */
};

enum kafka_value {
	KAFKA_BORROW,		/* m->value stays in place until the report */
	KAFKA_COPY		/* copied at once */
};

/*
 * Hands `m` over.  `opaque` comes back in the report.  `*error` (static) is
 * librdkafka's name of the reason when it was not taken, else NULL.
 * An absent value is produced as an empty one, never as a tombstone.
 * May be called from handlers.
 */
enum kafka_produced kafka_produce(struct kafka *k, const struct message *m,
				  enum kafka_value value, void *opaque,
				  const char **error);

/* Messages taken and not yet reported. */
size_t kafka_outstanding(const struct kafka *k);

/*
 * The way to stop: no more kafka_produce(); kafka_flush_begin() sends what
 * waits for company, reports go on; past the caller's limit kafka_purge()
 * gives up on the rest, and reports that; when nothing is outstanding, or
 * the caller waits no longer, kafka_free().
 */
void kafka_flush_begin(struct kafka *k);
void kafka_purge(struct kafka *k);

/*
 * Calls no handler; not to be called from one.  Takes a second or two at the
 * worst.  False when threads had to be left behind: then borrowed values
 * without a report must stay until the process ends.  Accepts NULL.
 */
bool kafka_free(struct kafka *k);

/*
 * Once in a process, at its start.  A message with its headers is a dozen small
 * blocks, and they are freed by the thousand; glibc then spends half of the
 * time on merging and sorting them, unless its fast bins are off.
 */
void kafka_tune_malloc(void);

/* "2.0.2": of the librdkafka that is loaded. */
const char *kafka_version(void);

#endif
