/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * kafka_conf - librdkafka's settings: ours, the user's, and those that nobody
 * may touch.
 */
#ifndef LAPSED_IO_KAFKA_CONF_H
#define LAPSED_IO_KAFKA_CONF_H

#include <librdkafka/rdkafka.h>

#include "io/kafka.h"

/*
 * How many reports may wait to be read while their messages still count as
 * queued: one event of them is given back as a whole.
 */
#define KAFKA_HEADROOM	20000

/*
 * The settings of one producer after the other, to be duplicated for each.
 * NULL, with `e` filled, when the user's can't be used.
 */
rd_kafka_conf_t *kafka_conf_build(const struct kafka_conf *conf,
				  struct err *e) MUST_CHECK;

#endif
