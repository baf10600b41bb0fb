/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * kafka_world - a mock cluster, a producer on a loop, and what it reported.
 *
 * For the tests of io/kafka.  Each test runs in a process of its own, so there
 * is one world.
 */
#ifndef LAPSED_TESTS_KAFKA_WORLD_H
#define LAPSED_TESTS_KAFKA_WORLD_H

#include "io/kafka.h"

#include <check.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX	60000
#define LIMIT		20.	/* seconds that anything may take */
#define PRODUCE		0	/* Kafka's numbers of requests */

struct world {
	struct ev_loop *loop;
	rd_kafka_t *host;		/* what the mock cluster lives in */
	rd_kafka_mock_cluster_t *cluster;
	struct kafka *kafka;
	size_t produced;		/* events; their opaque is 1, 2, ... */

	size_t reports;
	size_t outcomes[KAFKA_NOUTCOMES];
	char of[EVENTS_MAX + 1];	/* 0 or 1 + outcome, by opaque */
	size_t order[EVENTS_MAX];	/* opaques as they were reported */
	char error[64];			/* the last one's */
	size_t dones;			/* reports_done() */
	size_t reached, unreachable, restarted;
	char text[512];			/* of the last state */
	size_t lines;			/* of log */
};

static struct world world;

static void on_report(void *arg, void *opaque, enum kafka_outcome outcome,
		      const char *error)
{
	struct world *w = arg;
	size_t i = (size_t)opaque;

	ck_assert_uint_ge(i, 1);
	ck_assert_uint_le(i, w->produced);
	ck_assert_msg(!w->of[i], "event %zu is reported twice", i);
	ck_assert((outcome == KAFKA_ACKED) == !error);
	w->of[i] = (char)(1 + outcome);
	w->order[w->reports++] = i;
	w->outcomes[outcome]++;
	snprintf(w->error, sizeof w->error, "%s", error ? error : "");
}

static void on_reports_done(void *arg)
{
	struct world *w = arg;

	w->dones++;
}

static void on_state(void *arg, enum kafka_state state, const char *text)
{
	struct world *w = arg;

	ck_assert_ptr_nonnull(text);
	snprintf(w->text, sizeof w->text, "%s", text);
	w->reached += state == KAFKA_REACHED;
	w->unreachable += state == KAFKA_UNREACHABLE;
	w->restarted += state == KAFKA_RESTARTED;
}

static void on_log(void *arg, int level, const char *facility, const char *text)
{
	struct world *w = arg;

	w->lines++;
	if (getenv("KAFKA_LOG"))
		printf("%d %s %s\n", level, facility, text);
}

static const struct kafka_handlers handlers = {
	on_report, on_reports_done, on_state, on_log
};

struct limit {
	ev_timer timer;
	ev_tstamp end;
	const char *condition;
};

static inline void on_tick(struct ev_loop *loop, ev_timer *w, int revents)
{
	const struct limit *l = (const struct limit *)w;

	if (ev_now(loop) > l->end)
		ck_abort_msg("waited for %s, in vain; %zu of %zu reported, "
			     "last %s %s", l->condition, world.reports,
			     world.produced, world.error, world.text);
}

/* Runs the loop until then; looks every few milliseconds at the least. */
#define UNTIL(condition_) do {						\
	struct limit limit_ = { .condition = #condition_ };		\
	ev_now_update(world.loop);					\
	limit_.end = ev_now(world.loop) + LIMIT;			\
	ev_timer_init(&limit_.timer, on_tick, 0.005, 0.005);		\
	ev_timer_start(world.loop, &limit_.timer);			\
	while (!(condition_))						\
		ev_run(world.loop, EVRUN_ONCE);				\
	ev_timer_stop(world.loop, &limit_.timer);			\
} while (0)

/* The cluster, without a producer. */
static inline void world_open(int brokers)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();

	world.loop = ev_loop_new(EVFLAG_AUTO);
	rd_kafka_conf_set(conf, "log_level", "2", NULL, 0);
	world.host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
	world.cluster = rd_kafka_mock_cluster_new(world.host, brokers);
	ck_assert_ptr_nonnull(world.cluster);
}

static inline void world_connect_to(const char *servers, size_t max_inflight,
				    const struct kafka_setting *more,
				    size_t nmore)
{
	struct kafka_setting all[16] = { { "bootstrap.servers", servers } };
	struct kafka_conf conf = { all, nmore + 1, max_inflight, 3 };
	struct err e;

	if (nmore)
		memcpy(all + 1, more, nmore * sizeof *more);
	world.kafka = kafka_new(world.loop, &conf, &handlers, &world, &e);
	ck_assert_msg(world.kafka, "%s", e.text);
}

/* A producer with these settings: CONNECT("linger.ms", "5"). */
#define CONNECT(...) do {						\
	const struct kafka_setting more_[] = { { __VA_ARGS__ } };	\
	world_connect_to(rd_kafka_mock_cluster_bootstraps(world.cluster), 0, \
			 more_, sizeof more_ / sizeof *more_);		\
} while (0)

static inline void world_connect(void)
{
	world_connect_to(rd_kafka_mock_cluster_bootstraps(world.cluster), 0,
			 NULL, 0);
}

/* The cluster ends with the process: closing it takes up to a second. */
static inline void world_close(void)
{
	if (world.kafka)
		ck_assert(kafka_free(world.kafka));
	if (world.loop)
		ev_loop_destroy(world.loop);
}

static inline void topic_make(const char *name, int partitions)
{
	ck_assert_int_eq(rd_kafka_mock_topic_create(world.cluster, name,
						    partitions, 1), 0);
}

/* An event with headers, which is how they all are. */
static inline struct message message_of(const char *topic, const char *key,
					const char *value)
{
	struct message m = { .topic = bytes_str(topic), .key = bytes_str(key),
			     .value = bytes_str(value), .nheaders = 2 };

	m.headers[0] = (struct header){ BYTES("ce_id"), BYTES("s:1@1.0") };
	m.headers[1] = (struct header){ BYTES("ce_time"), BYTES("") };
	return m;
}

static inline enum kafka_produced produce(const struct message *m,
					  const char **error)
{
	enum kafka_produced produced;

	ck_assert_uint_lt(world.produced, EVENTS_MAX);
	produced = kafka_produce(world.kafka, m, KAFKA_BORROW,
				 (void *)(world.produced + 1), error);
	ck_assert((produced == KAFKA_TAKEN) == !*error);
	if (produced == KAFKA_TAKEN)
		world.produced++;
	return produced;
}

/* One that is taken. */
static inline void hand_over(const char *topic, const char *value)
{
	struct message m = message_of(topic, "k", value);
	const char *error;

	ck_assert_int_eq(produce(&m, &error), KAFKA_TAKEN);
}

#define ALL_REPORTED	(world.reports == world.produced)

#endif
