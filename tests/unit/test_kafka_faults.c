/* SPDX-License-Identifier: BSD-2-Clause */

/* What the producer does when brokers refuse, fail, or are not there. */
#include "kafka_world.h"

#include <time.h>

#include "io/kafka_outcome.h"

#define NO_PID		22	/* InitProducerId */

static void setup(void)
{
	world_open(1);
	topic_make("t", 1);
}

/* The next answers to Produce. */
#define ANSWER(...)	rd_kafka_mock_push_request_errors(world.cluster,	\
	PRODUCE, sizeof (int[]){ __VA_ARGS__ } / sizeof(int), __VA_ARGS__)

static void topic_error(const char *topic, rd_kafka_resp_err_t err)
{
	rd_kafka_mock_topic_set_error(world.cluster, topic, err);
}

static void broker_down(void)
{
	ck_assert_int_eq(rd_kafka_mock_broker_set_down(world.cluster, 1), 0);
}

static void broker_up(void)
{
	ck_assert_int_eq(rd_kafka_mock_broker_set_up(world.cluster, 1), 0);
}

/* The producer, connected, and its topic known. */
static void settle(void)
{
	hand_over("t", "first");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 1);
}

static void hand_over_many(const char *topic, size_t n)
{
	while (n--)
		hand_over(topic, "v");
}

/* Answers of the broker. */

static const struct {
	rd_kafka_resp_err_t err;
	enum kafka_outcome outcome;
} refusals[] = {
	{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, KAFKA_PERMANENT },
	{ RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, KAFKA_PERMANENT },
	{ RD_KAFKA_RESP_ERR_INVALID_RECORD, KAFKA_PERMANENT },
	{ RD_KAFKA_RESP_ERR_POLICY_VIOLATION, KAFKA_PERMANENT },
	{ RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT, KAFKA_PERMANENT },
	{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, KAFKA_DENIED },
	{ RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, KAFKA_RETRY },
};

/* It fails with its batch; what comes after it does not. */
START_TEST(a_refusal_is_told_of_the_whole_batch)
{
	CONNECT("linger.ms", "50");
	settle();
	ANSWER(refusals[_i].err);
	hand_over_many("t", 3);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[refusals[_i].outcome], 3);
	ck_assert_str_eq(world.error, rd_kafka_err2name(refusals[_i].err));
}
END_TEST

/* Case 45. */
START_TEST(after_a_refusal_others_go_on)
{
	CONNECT("linger.ms", "50");
	settle();
	ANSWER(RD_KAFKA_RESP_ERR_INVALID_RECORD);
	hand_over_many("t", 3);
	UNTIL(ALL_REPORTED);
	hand_over_many("t", 3);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_PERMANENT], 3);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 4);
	ck_assert_uint_eq(world.restarted, 0);
}
END_TEST

static const rd_kafka_resp_err_t passing[] = {
	RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
	RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
	RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
	RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
	RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR,
	RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
	RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER,
	RD_KAFKA_RESP_ERR__TRANSPORT,		/* cuts the connection */
};

START_TEST(what_passes_is_retried_inside)
{
	world_connect();
	settle();
	ANSWER(passing[_i]);
	hand_over_many("t", 3);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 4);
	ck_assert_uint_eq(world.unreachable, 0);
}
END_TEST

/* Topics. */

START_TEST(an_unknown_topic_is_told_and_comes_back)
{
	struct message m = message_of("later", "k", "v");
	const char *error;

	topic_error("later", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	CONNECT("topic.metadata.propagation.max.ms", "500");
	hand_over("later", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_NO_TOPIC], 1);
	ck_assert_int_eq(produce(&m, &error), KAFKA_UNKNOWN_TOPIC);
	ck_assert_str_eq(error, "_UNKNOWN_TOPIC");
	settle();				/* others flow */

	topic_error("later", RD_KAFKA_RESP_ERR_NO_ERROR);
	UNTIL(produce(&m, &error) == KAFKA_TAKEN);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 2);
}
END_TEST

/*
 * librdkafka then refuses at once, for minutes; we let it ask again.
 */
START_TEST(a_denied_topic_is_told_and_comes_back)
{
	struct message m = message_of("t", "k", "v");
	const char *error;

	world_connect();
	settle();
	ANSWER(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	hand_over("t", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_DENIED], 1);
	UNTIL(produce(&m, &error) == KAFKA_TAKEN);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 2);
}
END_TEST

/* No broker. */

START_TEST(an_outage_is_told_once_and_its_end_too)
{
	world_connect();
	UNTIL(world.reached);
	broker_down();
	UNTIL(world.unreachable);
	broker_up();
	UNTIL(world.reached == 2);		/* without any event */
	ck_assert_uint_eq(world.unreachable, 1);
	settle();
	ck_assert_uint_eq(world.reached, 2);
}
END_TEST

START_TEST(a_start_without_kafka_is_told)
{
	broker_down();
	world_connect();
	hand_over("t", "v");
	UNTIL(world.unreachable);
	ck_assert(*world.text);
	ck_assert_uint_eq(world.reached, 0);
	broker_up();
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 1);
	ck_assert_uint_eq(world.reached, 1);
}
END_TEST

/* As brokers do to connections that are idle. */
START_TEST(a_short_cut_is_nobodys_business)
{
	world_connect();
	settle();
	broker_down();
	broker_up();
	hand_over("t", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 2);
	ck_assert_uint_eq(world.unreachable, 0);
	ck_assert_uint_eq(world.reached, 1);
}
END_TEST

START_TEST(what_was_not_sent_in_time_is_not_persisted)
{
	CONNECT("message.timeout.ms", "500");
	settle();
	broker_down();
	UNTIL(world.unreachable);
	hand_over("t", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_RETRY], 1);
	ck_assert_str_eq(world.error, "_MSG_TIMED_OUT");
}
END_TEST

START_TEST(what_was_not_answered_in_time_is_perhaps_persisted)
{
	CONNECT("message.timeout.ms", "500");
	settle();
	rd_kafka_mock_broker_set_rtt(world.cluster, 1, 10000);
	hand_over("t", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_RETRY_MAYBE], 1);
	ck_assert_str_eq(world.error, "_MSG_TIMED_OUT");
}
END_TEST

START_TEST(a_full_queue_is_told_and_ends)
{
	struct message m = message_of("t", "k", "v");
	enum kafka_produced produced;
	const char *error;
	size_t dones;

	broker_down();
	world_connect_to(rd_kafka_mock_cluster_bootstraps(world.cluster), 1,
			 NULL, 0);
	while ((produced = produce(&m, &error)) == KAFKA_TAKEN)
		;
	ck_assert_int_eq(produced, KAFKA_FULL);
	ck_assert_str_eq(error, "_QUEUE_FULL");
	dones = world.dones;
	broker_up();
	UNTIL(world.dones > dones);
	UNTIL(produce(&m, &error) == KAFKA_TAKEN);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], world.produced);
}
END_TEST

/* Stopping. */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void free_quickly(void)
{
	double start = seconds();

	ck_assert(kafka_free(world.kafka));
	world.kafka = NULL;
	ck_assert(seconds() - start < 1.5);
}

START_TEST(a_purge_reports_all_while_no_broker_is_there)
{
	broker_down();
	world_connect();
	hand_over_many("t", 3);
	hand_over_many("u", 3);
	UNTIL(world.unreachable);
	kafka_flush_begin(world.kafka);
	kafka_purge(world.kafka);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_RETRY], 6);
	ck_assert_str_eq(world.error, "_PURGE_QUEUE");
	ck_assert_uint_eq(kafka_outstanding(world.kafka), 0);
	free_quickly();
}
END_TEST

START_TEST(a_purge_reports_what_a_hung_broker_has)
{
	world_connect();
	settle();
	rd_kafka_mock_broker_set_rtt(world.cluster, 1, 10000);
	hand_over("t", "v");
	kafka_purge(world.kafka);
	kafka_purge(world.kafka);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_RETRY_MAYBE] +
			  world.outcomes[KAFKA_RETRY], 1);
	free_quickly();
}
END_TEST

START_TEST(freeing_does_not_wait_for_anybody)
{
	world_connect();
	settle();
	rd_kafka_mock_broker_set_rtt(world.cluster, 1, 10000);
	hand_over_many("t", 10);
	free_quickly();
}
END_TEST

START_TEST(freeing_at_once_is_fine)
{
	broker_down();
	world_connect();
	free_quickly();
}
END_TEST

/* The fatal error, case 57. */

START_TEST(a_fatal_error_is_routine)
{
	CONNECT("linger.ms", "50");
	settle();
	ANSWER(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	hand_over_many("t", 3);
	UNTIL(world.restarted);
	ck_assert(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_RETRY] +
			  world.outcomes[KAFKA_RETRY_MAYBE], 3);
	ck_assert_ptr_nonnull(strstr(world.text, "sequence"));
	hand_over_many("t", 3);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 4);
	ck_assert_uint_eq(world.unreachable, 0);
}
END_TEST

/* Those queued behind it never went out; other topics end as they do. */
START_TEST(what_a_fatal_error_leaves_behind_is_told_apart)
{
	topic_make("slow", 1);
	CONNECT("linger.ms", "50");
	settle();
	topic_error("nowhere", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	hand_over_many("nowhere", 5);		/* waits for its metadata */
	ANSWER(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	hand_over_many("t", 3);
	UNTIL(world.restarted);
	ck_assert(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_RETRY_MAYBE], 3);
	ck_assert_uint_eq(world.outcomes[KAFKA_RETRY], 5);
}
END_TEST

START_TEST(in_between_one_has_to_wait)
{
	struct message m = message_of("t", "k", "v");
	const char *error;
	size_t dones;

	world_connect();
	settle();
	ANSWER(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	UNTIL(produce(&m, &error) == KAFKA_FULL);
	ck_assert_str_eq(error, "_FATAL");
	dones = world.dones;
	UNTIL(world.dones > dones && produce(&m, &error) == KAFKA_TAKEN);
	ck_assert_uint_eq(world.restarted, 1);
	UNTIL(ALL_REPORTED);
}
END_TEST

START_TEST(the_second_fatal_error_in_a_row_takes_longer)
{
	double start;

	world_connect();
	settle();
	ANSWER(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	hand_over("t", "v");
	UNTIL(world.restarted == 1);
	start = seconds();
	ANSWER(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	hand_over("t", "v");
	UNTIL(world.restarted == 2);
	ck_assert(seconds() - start >= 0.9);
	hand_over("t", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 2);
}
END_TEST

/* A producer that fails before it ever had an event. */
START_TEST(a_producer_may_fail_without_any_event)
{
	rd_kafka_mock_push_request_errors(world.cluster, NO_PID, 1,
		RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
	world_connect();
	UNTIL(world.restarted == 1);
	settle();
}
END_TEST

START_TEST(freeing_in_the_middle_of_it_is_fine)
{
	struct message m = message_of("t", "k", "v");
	const char *error;

	world_connect();
	settle();
	ANSWER(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
	UNTIL(produce(&m, &error) == KAFKA_FULL);
	kafka_purge(world.kafka);
	free_quickly();
}
END_TEST

/* What no broker here can be made to say. */
START_TEST(an_error_of_librdkafka_goes_by_the_status)
{
	static const rd_kafka_resp_err_t errors[] = {
		RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, RD_KAFKA_RESP_ERR__FATAL,
		RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, RD_KAFKA_RESP_ERR__TRANSPORT,
		RD_KAFKA_RESP_ERR__DESTROY, RD_KAFKA_RESP_ERR_UNKNOWN,
	};
	size_t i;

	for (i = 0; i < sizeof errors / sizeof *errors; i++) {
		ck_assert_int_eq(kafka_outcome(errors[i],
			RD_KAFKA_MSG_STATUS_NOT_PERSISTED), KAFKA_RETRY);
		ck_assert_int_eq(kafka_outcome(errors[i],
			RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED),
			KAFKA_RETRY_MAYBE);
	}
	ck_assert_int_eq(kafka_outcome(120, RD_KAFKA_MSG_STATUS_NOT_PERSISTED),
			 KAFKA_PERMANENT);
}
END_TEST

static void add_outages(TCase *t)
{
	tcase_add_test(t, an_outage_is_told_once_and_its_end_too);
	tcase_add_test(t, a_start_without_kafka_is_told);
	tcase_add_test(t, a_short_cut_is_nobodys_business);
	tcase_add_test(t, what_was_not_sent_in_time_is_not_persisted);
	tcase_add_test(t, what_was_not_answered_in_time_is_perhaps_persisted);
	tcase_add_test(t, a_full_queue_is_told_and_ends);
	tcase_add_test(t, a_purge_reports_all_while_no_broker_is_there);
	tcase_add_test(t, a_purge_reports_what_a_hung_broker_has);
	tcase_add_test(t, freeing_does_not_wait_for_anybody);
	tcase_add_test(t, freeing_at_once_is_fine);
}

static void add_errors(TCase *t)
{
	tcase_add_loop_test(t, a_refusal_is_told_of_the_whole_batch, 0,
			    sizeof refusals / sizeof *refusals);
	tcase_add_test(t, after_a_refusal_others_go_on);
	tcase_add_loop_test(t, what_passes_is_retried_inside, 0,
			    sizeof passing / sizeof *passing);
	tcase_add_test(t, an_unknown_topic_is_told_and_comes_back);
	tcase_add_test(t, a_denied_topic_is_told_and_comes_back);
	tcase_add_test(t, a_fatal_error_is_routine);
	tcase_add_test(t, what_a_fatal_error_leaves_behind_is_told_apart);
	tcase_add_test(t, in_between_one_has_to_wait);
	tcase_add_test(t, the_second_fatal_error_in_a_row_takes_longer);
	tcase_add_test(t, a_producer_may_fail_without_any_event);
	tcase_add_test(t, freeing_in_the_middle_of_it_is_fine);
	tcase_add_test(t, an_error_of_librdkafka_goes_by_the_status);
}

int main(void)
{
	Suite *s = suite_create("kafka_faults");
	TCase *t = tcase_create("kafka_faults");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, world_close);
	add_errors(t);
	add_outages(t);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
