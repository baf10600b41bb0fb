/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * watch - the verb that follows topics in Kafka, and shows what falls due.
 *
 * It reads every partition of every topic from its end on, by itself: no
 * consumer group, so nothing is left at the brokers, and no right to groups is
 * needed.  A topic that does not exist yet is looked for again, and read from
 * its beginning once it is there.
 */
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdlib.h>

#include "cli/arrival.h"
#include "cli/cli.h"
#include "cli/value.h"
#include "conf.h"
#include "core/event.h"
#include "core/mem.h"
#include "core/record.h"
#include "core/route.h"

#define POLL_MS		200
#define METADATA_MS	5000
#define LOOK_AGAIN_MS	1000

struct followed {
	char *topic;
	rd_kafka_topic_t *handle;
	int partitions;		/* 0: it does not exist */
};

struct watch {
	struct cli *cli;
	rd_kafka_t *kafka;
	rd_kafka_queue_t *queue;
	struct followed *topics;
	size_t n;
	bool begun;		/* what appears from now on is new */
	uint64_t wanted, seen;	/* wanted 0: no end */
	struct arrival arrival;
	char trouble[256];	/* what the brokers' trouble is, once for each */
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* Which topics ---------------------------------------------------------- */

static void follow(struct watch *w, struct bytes topic)
{
	for (size_t i = 0; i < w->n; i++)
		if (bytes_eq(topic, bytes_str(w->topics[i].topic)))
			return;
	w->topics = mem_resize(w->topics, w->n + 1, sizeof(*w->topics));
	w->topics[w->n++] = (struct followed){ .topic = mem_copy(topic) };
}

static bool choose_topics(struct watch *w, const struct conf *conf, struct err *err)
{
	const struct args *a = &w->cli->args;

	for (size_t i = 0; i < a->n_words; i++) {
		struct bytes topic = bytes_str(a->word[i]);

		if (!topic_valid(topic))
			return err_set(err, "\"%s\" is no name of a Kafka topic", a->word[i]);
		follow(w, topic);
	}
	for (size_t i = 0; w->n == 0 && i < routes_count(conf->routes); i++)
		follow(w, routes_at(conf->routes, i)->topic);
	return w->n > 0 || err_set(err, "no route names a topic: TOPIC is needed");
}

/* The brokers ----------------------------------------------------------- */

static void no_log(const rd_kafka_t *kafka, int level, const char *facility, const char *text)
{
	(void)kafka;
	(void)level;
	(void)facility;
	(void)text;
}

/* Those of a producer are passed over by a consumer. */
static rd_kafka_conf_t *settings(const struct conf *conf)
{
	rd_kafka_conf_t *rc = rd_kafka_conf_new();
	char ignored[256];

	for (size_t i = 0; i < conf->n_kafka; i++)
		rd_kafka_conf_set(rc, conf->kafka[i].name, conf->kafka[i].value, ignored,
			sizeof(ignored));
	rd_kafka_conf_set_log_cb(rc, no_log);
	return rc;
}

static bool connect_kafka(struct watch *w, const struct conf *conf, struct err *err)
{
	rd_kafka_conf_t *rc = settings(conf);
	char why[256];

	w->kafka = rd_kafka_new(RD_KAFKA_CONSUMER, rc, why, sizeof(why));
	if (!w->kafka) {
		rd_kafka_conf_destroy(rc);
		return err_set(err, "librdkafka: %s", why);
	}
	w->queue = rd_kafka_queue_new(w->kafka);
	for (size_t i = 0; i < w->n; i++)
		w->topics[i].handle = rd_kafka_topic_new(w->kafka, w->topics[i].topic, NULL);
	return true;
}

/*
 * Where to read from: asked for now, since RD_KAFKA_OFFSET_END would be looked
 * up at some later time, and what comes until then would be missed.
 */
static bool end_of(struct watch *w, const struct followed *t, int64_t *end, struct err *err)
{
	int64_t low;
	rd_kafka_resp_err_t e = rd_kafka_query_watermark_offsets(w->kafka, t->topic,
		t->partitions, &low, end, METADATA_MS);

	return !e || err_set(err, "Kafka: %s", rd_kafka_err2str(e));
}

/* Partitions that come later are read as well, from their beginning. */
static bool follow_partitions(struct watch *w, struct followed *t, int partitions, struct err *err)
{
	for (; t->partitions < partitions; t->partitions++) {
		int64_t from = RD_KAFKA_OFFSET_BEGINNING;

		if (!w->begun && !end_of(w, t, &from, err))
			return false;
		rd_kafka_consume_start_queue(t->handle, t->partitions, from, w->queue);
	}
	return true;
}

/* False when no broker answers. */
static bool look_at(struct watch *w, struct followed *t, struct err *err)
{
	const struct rd_kafka_metadata *m;
	rd_kafka_resp_err_t e = rd_kafka_metadata(w->kafka, 0, t->handle, &m, METADATA_MS);
	bool done = true;

	if (e)
		return err_set(err, "Kafka: %s", rd_kafka_err2str(e));
	if (m->topic_cnt == 1 && !m->topics[0].err)
		done = follow_partitions(w, t, m->topics[0].partition_cnt, err);
	rd_kafka_metadata_destroy(m);
	return done;
}

static bool look_at_all(struct watch *w, struct err *err)
{
	for (size_t i = 0; i < w->n; i++) {
		if (!look_at(w, &w->topics[i], err))
			return false;
		if (!w->begun && w->topics[i].partitions == 0)
			cli_note("there is no topic %s yet", w->topics[i].topic);
	}
	w->begun = true;
	return true;
}

/* One record ------------------------------------------------------------ */

static void json_attribute(struct json *j, const char *name, struct bytes value)
{
	if (value.p)
		out_json_bytes(j, name, value);
}

static void tell_json(const rd_kafka_message_t *m, const struct arrival *a, msec_t sent)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "topic");
	json_cstr(&j, rd_kafka_topic_name(m->rkt));
	json_key(&j, "partition");
	json_int(&j, m->partition);
	json_key(&j, "offset");
	json_int(&j, m->offset);
	json_attribute(&j, "ce_id", a->ce_id);
	json_attribute(&j, "id", a->subject);
	if (a->due >= 0) {
		out_json_time(&j, "due", a->due);
		json_key(&j, "lateness_ms");
		json_int(&j, sent - a->due);
	}
	json_attribute(&j, "attempt", a->attempt);
	json_attribute(&j, "trigger", a->trigger);
	out_json_bytes(&j, "payload", a->payload);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void text_attribute(struct bytes value, int width)
{
	if (!value.p)
		value = BYTES("-");
	printf("%-*.*s  ", width, (int)(value.n < 64 ? value.n : 64), value.p);
}

static void tell_text(const struct watch *w, const rd_kafka_message_t *m, const struct arrival *a,
		      msec_t sent)
{
	struct bytes id = a->subject.p ? a->subject : a->ce_id;
	char time[OUT_TIME], late[OUT_SPAN] = "-";

	if (w->seen == 0)
		printf("%-24s  %-8s  %-7s  %-8s  %-24s  %s\n", "DUE", "LATE", "ATTEMPT", "TRIGGER",
			"TOPIC", "ID OR KEY");
	if (a->due >= 0)
		out_span(sent > a->due ? sent - a->due : 0, late);
	printf("%-24s  %-8s  ", a->due >= 0 ? out_time(a->due, time) : "-", late);
	text_attribute(a->attempt, 7);
	text_attribute(a->trigger, 8);
	out_column(bytes_str(rd_kafka_topic_name(m->rkt)), 24);
	out_text(stdout, id.p ? id : BYTES("-"), OUT_SHOWN);
	putchar('\n');
}

static void tell(struct watch *w, const rd_kafka_message_t *m)
{
	msec_t sent = rd_kafka_message_timestamp(m, NULL);

	arrival_read(&w->arrival, m);
	if (w->cli->json)
		tell_json(m, &w->arrival, sent);
	else
		tell_text(w, m, &w->arrival, sent);
	fflush(stdout);
	w->seen++;
}

/* Said once for each kind. */
static void tell_trouble(struct watch *w, const rd_kafka_message_t *m)
{
	const char *text = rd_kafka_err2str(m->err);

	if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF || strcmp(text, w->trouble) == 0)
		return;
	snprintf(w->trouble, sizeof(w->trouble), "%s", text);
	cli_note("%s: %s", rd_kafka_topic_name(m->rkt), text);
}

/* Until it is stopped --------------------------------------------------- */

static bool more(const struct watch *w)
{
	return !stopped && out_open() && (w->wanted == 0 || w->seen < w->wanted);
}

static void run(struct watch *w)
{
	int idle = 0;

	while (more(w)) {
		rd_kafka_message_t *m = rd_kafka_consume_queue(w->queue, POLL_MS);
		struct err ignored;

		rd_kafka_poll(w->kafka, 0);
		if (!m) {
			idle += POLL_MS;
		} else if (m->err) {
			tell_trouble(w, m);
		} else {
			tell(w, m);
		}
		if (m)
			rd_kafka_message_destroy(m);
		if (idle >= LOOK_AGAIN_MS) {
			idle = 0;
			if (!look_at_all(w, &ignored) && !w->trouble[0])
				cli_note("%s", ignored.text);
		}
	}
}

static void watch_clear(struct watch *w)
{
	for (size_t i = 0; i < w->n; i++) {
		struct followed *t = &w->topics[i];

		while (t->handle && t->partitions > 0)
			rd_kafka_consume_stop(t->handle, --t->partitions);
		if (t->handle)
			rd_kafka_topic_destroy(t->handle);
		free(t->topic);
	}
	free(w->topics);
	arrival_clear(&w->arrival);
	if (w->queue)
		rd_kafka_queue_destroy(w->queue);
	if (w->kafka)
		rd_kafka_destroy(w->kafka);
}

static enum status watch(struct watch *w)
{
	struct err err;

	if (!choose_topics(w, w->cli->conf, &err))
		return cli_usage(w->cli, &err);
	if (!connect_kafka(w, w->cli->conf, &err) || !look_at_all(w, &err))
		return cli_fail(STATUS_FAILED, "%s", err.text);
	signal(SIGINT, stop);
	signal(SIGTERM, stop);
	if (!w->cli->json)
		cli_note("watching %zu topic%s from here on; stop with Ctrl-C", w->n,
			w->n == 1 ? "" : "s");
	run(w);
	return STATUS_DONE;
}

enum status cli_watch(struct cli *cli)
{
	struct conf_source source = { .path = args_value(&cli->args, "config") };
	struct watch w = { .cli = cli };
	enum status status;
	struct err err;

	if (!cli_number(cli, "count", UINT32_MAX, 0, &w.wanted, &err))
		return cli_usage(cli, &err);
	if (!cli_load_conf(cli, &source))
		return STATUS_USAGE;
	status = watch(&w);
	watch_clear(&w);
	return status;
}
