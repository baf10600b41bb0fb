/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/kafka_outcome.h"

/*
 * By error first, then by what librdkafka knows of the message.  An error of
 * the broker that is not named here is one that librdkafka does not retry
 * either: permanent, but told of each message in the batch, so the caller
 * finds the culprit by producing them one by one.
 */
enum kafka_outcome kafka_outcome(rd_kafka_resp_err_t err,
				 rd_kafka_msg_status_t status)
{
	switch (err) {
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		return KAFKA_ACKED;

	case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
	case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
	case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
		return KAFKA_NO_TOPIC;

	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
		return KAFKA_DENIED;

	/* Of the broker or the way to it, not of the message. */
	case RD_KAFKA_RESP_ERR_UNKNOWN:
	case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
	case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
	case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
	case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
	case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
	case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
	case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
	case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
	case RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
	case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
	case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
	/* Of the producer's session. */
	case RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
	case RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER:
	case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
	case RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
	case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
	case RD_KAFKA_RESP_ERR_INVALID_TXN_STATE:
		break;

	default:
		if (err > RD_KAFKA_RESP_ERR_NO_ERROR)
			return KAFKA_PERMANENT;
		/* librdkafka's own: timed out, purged, cut off, fatal ... */
	}
	return status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED ? KAFKA_RETRY :
							     KAFKA_RETRY_MAYBE;
}
