/* SPDX-License-Identifier: BSD-2-Clause */

/* What the producer does while all is well; test_kafka_faults has the rest. */
#include "kafka_world.h"

static void setup(void)
{
	world_open(1);
	topic_make("t", 1);
}

/* Reading back. */

static rd_kafka_t *consumer_new(const char *topic)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_partition_list_t *parts;
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers",
			  rd_kafka_mock_cluster_bootstraps(world.cluster),
			  NULL, 0);
	rd_kafka_conf_set(conf, "group.id", "g", NULL, 0);
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, NULL, 0);
	ck_assert_ptr_nonnull(rk);
	parts = rd_kafka_topic_partition_list_new(1);
	rd_kafka_topic_partition_list_add(parts, topic, 0)->offset =
		RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, parts);
	rd_kafka_topic_partition_list_destroy(parts);
	return rk;
}

static rd_kafka_message_t *consume(rd_kafka_t *rk)
{
	rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, (int)LIMIT * 1000);

	ck_assert_ptr_nonnull(m);
	ck_assert_msg(!m->err, "%s", rd_kafka_message_errstr(m));
	return m;
}

static void check_header(const rd_kafka_message_t *m, size_t i,
			 const char *name, const char *value)
{
	rd_kafka_headers_t *all;
	const char *got_name;
	const void *got;
	size_t n;

	ck_assert_int_eq(rd_kafka_message_headers(m, &all), 0);
	ck_assert_int_eq(rd_kafka_header_get_all(all, i, &got_name, &got, &n),
			 0);
	ck_assert_str_eq(got_name, name);
	ck_assert_uint_eq(n, strlen(value));
	ck_assert_mem_eq(got, value, n);
}

START_TEST(an_event_arrives_whole)
{
	struct message m = message_of("t", NULL, NULL);
	rd_kafka_message_t *got;
	rd_kafka_t *consumer;
	const char *error;

	m.key = BYTES("a\0b");
	m.value = BYTES("\0value\n");
	world_connect();
	ck_assert_int_eq(produce(&m, &error), KAFKA_TAKEN);
	ck_assert_uint_eq(kafka_outstanding(world.kafka), 1);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 1);
	ck_assert_uint_eq(kafka_outstanding(world.kafka), 0);

	consumer = consumer_new("t");
	got = consume(consumer);
	ck_assert(bytes_eq(bytes_of(got->key, got->key_len), m.key));
	ck_assert(bytes_eq(bytes_of(got->payload, got->len), m.value));
	check_header(got, 0, "ce_id", "s:1@1.0");
	check_header(got, 1, "ce_time", "");
	rd_kafka_message_destroy(got);
	rd_kafka_destroy(consumer);
}
END_TEST

START_TEST(nothing_is_not_the_same_as_empty)
{
	struct message m = message_of("t", NULL, NULL);
	rd_kafka_message_t *got;
	rd_kafka_t *consumer;
	const char *error;

	m.nheaders = 0;
	world_connect();
	ck_assert_int_eq(produce(&m, &error), KAFKA_TAKEN);
	m.key = BYTES("");
	ck_assert_int_eq(produce(&m, &error), KAFKA_TAKEN);
	UNTIL(ALL_REPORTED);

	consumer = consumer_new("t");
	got = consume(consumer);
	ck_assert_ptr_null(got->key);
	ck_assert_ptr_nonnull(got->payload);
	ck_assert_uint_eq(got->len, 0);
	rd_kafka_message_destroy(got);
	got = consume(consumer);
	ck_assert_ptr_nonnull(got->key);
	ck_assert_uint_eq(got->key_len, 0);
	rd_kafka_message_destroy(got);
	rd_kafka_destroy(consumer);
}
END_TEST

START_TEST(events_arrive_in_order)
{
	static char values[5000][8];
	rd_kafka_message_t *got;
	rd_kafka_t *consumer;
	size_t i, n = sizeof values / sizeof *values;

	world_connect();
	for (i = 0; i < n; i++) {
		snprintf(values[i], sizeof values[i], "%zu", i);
		hand_over("t", values[i]);
	}
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], n);
	for (i = 0; i < n; i++)
		ck_assert_uint_eq(world.order[i], i + 1);

	consumer = consumer_new("t");
	for (i = 0; i < n; i++) {
		got = consume(consumer);
		ck_assert(bytes_eq(bytes_of(got->payload, got->len),
				   bytes_str(values[i])));
		rd_kafka_message_destroy(got);
	}
	rd_kafka_destroy(consumer);
}
END_TEST

/* A value that changes before it is sent shows whose memory it is. */
START_TEST(a_value_is_borrowed_or_copied)
{
	char value[] = "before";
	struct message m = message_of("t", "k", value);
	rd_kafka_message_t *got;
	rd_kafka_t *consumer;
	const char *error;

	CONNECT("linger.ms", "300");
	ck_assert_int_eq(produce(&m, &error), KAFKA_TAKEN);
	ck_assert_int_eq(kafka_produce(world.kafka, &m, KAFKA_COPY, (void *)2,
				       &error), KAFKA_TAKEN);
	world.produced++;
	memcpy(value, "after!", 6);
	UNTIL(ALL_REPORTED);

	consumer = consumer_new("t");
	got = consume(consumer);
	ck_assert_mem_eq(got->payload, "after!", 6);
	rd_kafka_message_destroy(got);
	got = consume(consumer);
	ck_assert_mem_eq(got->payload, "before", 6);
	rd_kafka_message_destroy(got);
	rd_kafka_destroy(consumer);
}
END_TEST

START_TEST(a_burst_is_told_once)
{
	size_t i;

	CONNECT("linger.ms", "50");
	for (i = 0; i < 100; i++)
		hand_over("t", "v");
	UNTIL(world.dones);
	ck_assert_uint_eq(world.reports, 100);
	ck_assert_uint_eq(world.dones, 1);
}
END_TEST

/*
 * Case 64: the loop does not run while tens of thousands of reports pile up; a full
 * eventfd must not hold up librdkafka's threads.  Then they come in portions.
 */
START_TEST(reports_wait_for_a_loop_that_is_busy)
{
	rd_kafka_t *consumer;
	size_t i, n = 20000;

	world_connect_to(rd_kafka_mock_cluster_bootstraps(world.cluster), n,
			 NULL, 0);
	for (i = 0; i < n; i++)
		hand_over("t", "v");
	consumer = consumer_new("t");
	for (i = 0; i < n; i++)
		rd_kafka_message_destroy(consume(consumer));
	rd_kafka_destroy(consumer);
	ck_assert_uint_eq(world.reports, 0);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], n);
	ck_assert_uint_ge(world.dones, n / 4096);
}
END_TEST

START_TEST(kafka_is_reached_without_any_event)
{
	world_connect();
	UNTIL(world.reached);
	ck_assert_uint_eq(world.unreachable, 0);
	ck_assert(*world.text);
}
END_TEST

START_TEST(a_warm_topic_is_ready)
{
	world_connect();
	kafka_warm(world.kafka, BYTES("t"));
	UNTIL(world.reached);
	hand_over("t", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 1);
}
END_TEST

START_TEST(a_flush_does_not_wait_for_company)
{
	CONNECT("linger.ms", "29000");
	hand_over("t", "v");
	kafka_flush_begin(world.kafka);
	kafka_flush_begin(world.kafka);
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 1);
}
END_TEST

START_TEST(topics_are_limited)
{
	struct message m = message_of("t4", "k", "v");
	const char *error;

	world_connect();
	hand_over("t1", "v");
	hand_over("t2", "v");
	hand_over("t3", "v");
	ck_assert_int_eq(produce(&m, &error), KAFKA_UNKNOWN_TOPIC);
	ck_assert_str_eq(error, "TOO_MANY_TOPICS");
	hand_over("t2", "v");
	UNTIL(ALL_REPORTED);
	ck_assert_uint_eq(world.outcomes[KAFKA_ACKED], 4);
}
END_TEST

START_TEST(what_is_too_large_is_refused_at_once)
{
	static char value[2000];
	struct message m = message_of("t", "k", NULL);
	const char *error;

	CONNECT("message.max.bytes", "1500");
	m.value = bytes_of(value, sizeof value);
	ck_assert_int_eq(produce(&m, &error), KAFKA_TOO_LARGE);
	ck_assert_str_eq(error, "MSG_SIZE_TOO_LARGE");
	m.value.n = 1000;
	ck_assert_int_eq(produce(&m, &error), KAFKA_TAKEN);
	UNTIL(ALL_REPORTED);
}
END_TEST

/* Settings. */

START_TEST(our_defaults_are_valid)
{
	const struct kafka_setting *s;
	struct err e;

	for (s = kafka_defaults(); s->name; s++) {
		if (strcmp(s->name, "enable.metrics.push") == 0)
			continue;	/* not in every version */
		ck_assert_msg(kafka_check(s->name, s->value, &e), "%s", e.text);
	}
}
END_TEST

START_TEST(a_wrong_setting_is_told)
{
	struct kafka_setting bad = { "linger.ms", "never" };
	struct kafka_conf conf = { &bad, 1, 0, 0 };
	struct err e;

	ck_assert(kafka_check("linger.ms", "5", &e));
	ck_assert(!kafka_check("linger.ms", "never", &e));
	ck_assert_ptr_nonnull(strstr(e.text, "linger.ms"));
	ck_assert(!kafka_check("lingerms", "5", &e));
	ck_assert_ptr_nonnull(strstr(e.text, "lingerms"));
	ck_assert_ptr_nonnull(strstr(e.text, kafka_version()));
	ck_assert(!kafka_check("acks", "1", &e));
	ck_assert(!kafka_check("dr_msg_cb", "x", &e));
	e.text[0] = '\0';
	ck_assert_ptr_null(kafka_new(world.loop, &conf, &handlers, &world, &e));
	ck_assert(*e.text);
}
END_TEST

/* Settings that are valid one by one, but not together. */
START_TEST(what_librdkafka_refuses_is_told)
{
	struct kafka_setting bad[] = {
		{ "bootstrap.servers", "127.0.0.1:9" },
		{ "security.protocol", "ssl" },
		{ "ssl.ca.location", "/nowhere/ca.pem" },
	};
	struct kafka_conf conf = { bad, 3, 0, 0 };
	struct err e;

	e.text[0] = '\0';
	ck_assert_ptr_null(kafka_new(world.loop, &conf, &handlers, &world, &e));
	ck_assert(*e.text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kafka");
	TCase *t = tcase_create("kafka");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, world_close);
	tcase_add_test(t, an_event_arrives_whole);
	tcase_add_test(t, nothing_is_not_the_same_as_empty);
	tcase_add_test(t, events_arrive_in_order);
	tcase_add_test(t, a_value_is_borrowed_or_copied);
	tcase_add_test(t, a_burst_is_told_once);
	tcase_add_test(t, reports_wait_for_a_loop_that_is_busy);
	tcase_add_test(t, kafka_is_reached_without_any_event);
	tcase_add_test(t, a_warm_topic_is_ready);
	tcase_add_test(t, a_flush_does_not_wait_for_company);
	tcase_add_test(t, topics_are_limited);
	tcase_add_test(t, what_is_too_large_is_refused_at_once);
	tcase_add_test(t, our_defaults_are_valid);
	tcase_add_test(t, a_wrong_setting_is_told);
	tcase_add_test(t, what_librdkafka_refuses_is_told);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
