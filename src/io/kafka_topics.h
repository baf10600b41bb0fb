/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * kafka_topics - one librdkafka handle for each topic in use.
 *
 * A message produced by name to a topic without a handle may wait for up to a
 * second; by handle it waits for the answer to one metadata request.  Handles
 * stay until the producer goes: librdkafka keeps a topic's memory that long
 * anyway, so that closing them early would bound nothing.
 */
#ifndef LAPSED_IO_KAFKA_TOPICS_H
#define LAPSED_IO_KAFKA_TOPICS_H

#include <librdkafka/rdkafka.h>
#include <stddef.h>

#include "core/bytes.h"
#include "core/when.h"

struct kafka_topics;

/* For the topics of `rk`, `max` of them at most. */
struct kafka_topics *kafka_topics_new(rd_kafka_t *rk, size_t max);
void kafka_topics_free(struct kafka_topics *t);	/* before `rk` goes */

/*
 * The handle of `name`, opened if need be, which does not wait for anything.
 * NULL when there are too many, or librdkafka can't have such a name; `*error`
 * (static) says which.
 */
rd_kafka_topic_t *kafka_topics_get(struct kafka_topics *t, struct bytes name,
				   const char **error);

/*
 * Asks the brokers again about a topic that was refused, at most once a second
 * and without waiting.  librdkafka believes for minutes that a topic is denied.
 */
void kafka_topics_refresh(struct kafka_topics *t, struct bytes name,
			  usec_t now);

#endif
