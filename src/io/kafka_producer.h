/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * kafka_producer - one rd_kafka_t on the loop, from its creation to its end.
 *
 * Its queue writes to an eventfd only when it turns from empty to not empty,
 * and only if it was read since.  So the fd is read first, then the queue
 * until it is empty; whoever stops earlier writes to the fd himself.
 */
#ifndef LAPSED_IO_KAFKA_PRODUCER_H
#define LAPSED_IO_KAFKA_PRODUCER_H

#include <ev.h>
#include <librdkafka/rdkafka.h>

#include "io/aside.h"
#include "io/kafka.h"
#include "io/kafka_topics.h"

struct producer;

struct producer_handlers {
	/* One is settled; `outstanding` is one less. */
	void (*report)(struct producer *p, const rd_kafka_message_t *m);

	/* Never of a fatal error. */
	void (*error)(struct producer *p, rd_kafka_resp_err_t err,
		      const char *text);
	void (*fatal)(struct producer *p);
	void (*log)(struct producer *p, int level, const char *facility,
		    const char *text);

	/* The queue was read, and had so many reports.  This one, and no
	   other, may retire the producer. */
	void (*served)(struct producer *p, size_t reports);
};

struct producer {
	struct ev_loop *loop;
	const struct producer_handlers *handlers;
	void *arg;			/* for them */

	rd_kafka_t *rk;
	rd_kafka_queue_t *queue;
	struct kafka_topics *topics;
	int fd;
	ev_io io;
	ev_timer flush;			/* running: nothing waits for company */
	ev_timer purge;			/* running: what is left is given up */
	rd_kafka_event_t *event;	/* read in part, or NULL */
	size_t outstanding;
	bool failed;			/* had its fatal error */
};

/*
 * Duplicates `conf`.  NULL, with `e` filled, when there can't be one.  The
 * caller sets `handlers` and `arg`; no handler is called before the loop runs.
 */
struct producer *producer_new(struct ev_loop *loop,
			      const rd_kafka_conf_t *conf, size_t max_topics,
			      struct err *e) MUST_CHECK;

/*
 * The end: nothing is reported any more, and what takes time goes on aside.
 */
void producer_retire(struct producer *p, struct aside *aside);

/* NO_ERROR: taken, and counted as outstanding. */
rd_kafka_resp_err_t producer_send(struct producer *p, rd_kafka_topic_t *rkt,
				  const struct message *m,
				  enum kafka_value value, void *opaque);

/* Makes the loop look at it. */
void producer_wake(struct producer *p);

/* From now on nothing waits for linger.ms. */
void producer_flush(struct producer *p);

/* What is queued is given up at once, what is on its way after a while. */
void producer_give_up(struct producer *p, ev_tstamp inflight_after);

#endif
