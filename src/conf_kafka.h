/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf_kafka - which librdkafka properties [kafka] may hold.
 *
 * io/kafka knows what the producer itself forbids, and librdkafka what it
 * knows; here is what makes no sense in this file.  Private to conf*.c.
 */
#ifndef LAPSED_CONF_KAFKA_H
#define LAPSED_CONF_KAFKA_H

#include "core/err.h"

struct conf;

/*
 * Whether the property may be set to that; `e` says why not, which version of
 * librdkafka says so, and what was probably meant.  It quotes no secret.
 */
bool conf_kafka_check(const char *name, const char *value, struct err *e) MUST_CHECK;

/* A value that is not to be printed. */
bool conf_kafka_secret(const char *name);

/*
 * Properties that are each fine may still contradict each other, or name files
 * that can't be read: has librdkafka make a producer of them, without a
 * broker to connect to, and forgets it.
 */
bool conf_kafka_try(const struct conf *c, struct err *e) MUST_CHECK;

/* Adds a property with a copy of its value, and frees them all. */
void conf_properties_add(struct conf *c, const char *name, const char *value, int line);
void conf_properties_clear(struct conf *c);

/* Replaces those of `to` by copies of those of `from`. */
void conf_properties_copy(struct conf *to, const struct conf *from);

#endif
