/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * arrival - what a record in Kafka says of its event: in its headers, or in
 * structured mode in its JSON.
 *
 *	struct arrival a = { .line.at = NULL };
 *	arrival_read(&a, message);	as often as there are messages
 *	arrival_clear(&a);
 *
 * Attributes that are not there are bytes_none.  All is valid until the next
 * arrival_read(), and while the message is.
 */
#ifndef LAPSED_CLI_ARRIVAL_H
#define LAPSED_CLI_ARRIVAL_H

#include <librdkafka/rdkafka.h>

#include "cli/line.h"
#include "core/bytes.h"
#include "core/when.h"

struct arrival {
	struct bytes ce_id, time, subject, attempt, trigger, payload;
	msec_t due;		/* -1 when the record does not say */
	struct line line;
	struct buf room;	/* of what was base64 */
};

void arrival_read(struct arrival *a, const rd_kafka_message_t *m);
void arrival_clear(struct arrival *a);

#endif
