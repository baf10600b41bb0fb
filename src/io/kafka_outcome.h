/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * kafka_outcome - what a delivery report means for the event.
 */
#ifndef LAPSED_IO_KAFKA_OUTCOME_H
#define LAPSED_IO_KAFKA_OUTCOME_H

#include <librdkafka/rdkafka.h>

#include "io/kafka.h"

enum kafka_outcome kafka_outcome(rd_kafka_resp_err_t err,
				 rd_kafka_msg_status_t status);

#endif
