/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bench-produce - a bare librdkafka producer with the records and settings of
 * lapsed, as fast as it and the broker go.
 *
 *   kafka=HOST:PORT  topic=bench  n=COUNT  payload=128  window=10000  letter=e
 *   set=NAME:VALUE,...   more settings
 *   rate=0               events a second; 0: no pause
 *
 * Prints also how long each took from being handed over to its report.
 *
 * The first record is made by the code that lapsed makes its records with;
 * for the others only the id is changed, in place.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "core/mem.h"
#include "io/kafka.h"
#include "io/kafka_conf.h"
#include "tool.h"

#define SETTINGS_MAX	32

struct run {
	rd_kafka_t *rk;
	rd_kafka_topic_t *rkt;
	rd_kafka_queue_t *queue;
	int64_t outstanding, failed;
	struct hist took;
	struct event event;
	struct buf entry;
	struct event_room room;
	struct message m;
	char *ids[3];		/* where the id stands in it: ce_id, subject, key */
};

static size_t settings(char **argv, struct kafka_setting *s)
{
	char *text = mem_copy(bytes_str(tool_text(argv, "set", "")));
	size_t n = 0;

	s[n++] = (struct kafka_setting){ "bootstrap.servers", tool_text(argv, "kafka", NULL) };
	for (char *at = strtok(text, ","); at && n < SETTINGS_MAX; at = strtok(NULL, ",")) {
		char *colon = strchr(at, ':');

		if (!colon)
			tool_die("set=%s: no colon", at);
		*colon = '\0';
		s[n++] = (struct kafka_setting){ at, colon + 1 };
	}
	return n;
}

static void open_producer(struct run *run, char **argv)
{
	struct kafka_setting s[SETTINGS_MAX];
	struct kafka_conf conf = { .settings = s };
	struct err err;
	rd_kafka_conf_t *rc;
	char why[400];

	conf.nsettings = settings(argv, s);
	conf.max_inflight = (size_t)tool_number(argv, "window", 10000);
	rc = kafka_conf_build(&conf, &err);
	if (!rc)
		tool_die("%s", err.text);
	run->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rc, why, sizeof why);
	if (!run->rk)
		tool_die("%s", why);
	rd_kafka_set_log_queue(run->rk, NULL);
	run->queue = rd_kafka_queue_get_main(run->rk);
	run->rkt = rd_kafka_topic_new(run->rk, tool_text(argv, "topic", "bench"), NULL);
}

/* The same bytes as bench-load stores, claimed and built as lapsed does. */
static void make_template(struct run *run, char **argv)
{
	static const struct event_conf conf = { { "lapsed", 6 }, { "lapse:{0}", 9 } };
	const char *topic = tool_text(argv, "topic", "bench");
	size_t n = (size_t)tool_number(argv, "payload", 128);
	char id[TOOL_ID_LEN + 1];
	struct record r = { .birth = (uint64_t)tool_now(), .topic = bytes_str(topic) };
	struct envelope env = { tool_now() / 1000, CERTAINTY_SCHEDULED, bytes_none };
	struct buf record = { 0 };
	struct bytes member;
	struct err err;

	tool_id(id, *tool_text(argv, "letter", "e"), 0);
	r.key = bytes_of(mem_copy(bytes_str(id)), TOOL_ID_LEN);
	r.payload = bytes_of(tool_payload(n), n);
	if (!record_pack(&r, &record, &err))
		tool_die("%s", err.text);
	env.record = buf_view(&record);
	envelope_pack(&env, &run->entry);
	buf_printf(&record, "s:%s", id);
	member = bytes_of(record.p + env.record.n, TOOL_ID_LEN + 2);
	if (!event_read(&run->event, NULL, member, buf_view(&run->entry), &err) ||
	    !event_build(&run->event, &conf, TRIGGER_SWEEP, &run->room, &run->m, &err))
		tool_die("%s", err.text);
	run->ids[0] = (char *)run->m.headers[1].value.p + 2;
	run->ids[1] = (char *)run->m.headers[5].value.p;
	run->ids[2] = (char *)run->m.key.p;
	for (size_t i = 0; i < 3; i++)
		if (memcmp(run->ids[i], id, TOOL_ID_LEN) != 0)
			tool_die("the id is not where it is expected");
}

/* Waits at most so long for the first report. */
static void reports(struct run *run, int timeout_ms)
{
	rd_kafka_event_t *event;

	while ((event = rd_kafka_queue_poll(run->queue, timeout_ms))) {
		const rd_kafka_message_t *m;
		int64_t now = tool_now();

		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR)
			while ((m = rd_kafka_event_message_next(event))) {
				run->outstanding--;
				run->failed += m->err != 0;
				hist_add(&run->took, now - (int64_t)(intptr_t)m->_private);
			}
		rd_kafka_event_destroy(event);
		timeout_ms = 0;
	}
}

static bool produce(struct run *run)
{
	const struct message *m = &run->m;
	rd_kafka_headers_t *h = rd_kafka_headers_new(m->nheaders);
	rd_kafka_vu_t part[] = {
		{ .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = run->rkt },
		{ .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { (void *)m->value.p, m->value.n } },
		{ .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { (void *)m->key.p, m->key.n } },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = 0 },
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = (void *)(intptr_t)tool_now() },
		{ .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = h },
	};
	rd_kafka_error_t *error;

	for (size_t i = 0; i < m->nheaders; i++)
		rd_kafka_header_add(h, m->headers[i].name.p, (ssize_t)m->headers[i].name.n,
				    m->headers[i].value.p, (ssize_t)m->headers[i].value.n);
	error = rd_kafka_produceva(run->rk, part, sizeof part / sizeof part[0]);
	if (!error) {
		run->outstanding++;
		return true;
	}
	rd_kafka_error_destroy(error);
	rd_kafka_headers_destroy(h);
	return false;
}

/* Takes reports until it is time for the next record. */
static void pace(struct run *run, int64_t at)
{
	int64_t left;

	while ((left = at - tool_now()) > 0) {
		reports(run, (int)(left / 1000));
		if (left < 1000)
			tool_sleep_until(tool_now() + (left < 50 ? left : 50));
	}
}

int main(int argc, char **argv)
{
	uint64_t n = (uint64_t)tool_number(argv, "n", 1000);
	int64_t window = tool_number(argv, "window", 10000), start;
	int64_t rate = tool_number(argv, "rate", 0);
	char letter = *tool_text(argv, "letter", "e");
	static struct run run;

	(void)argc;
	kafka_tune_malloc();
	make_template(&run, argv);
	open_producer(&run, argv);
	while (!produce(&run) || run.outstanding < 1)
		;
	while (run.outstanding)		/* connected, and the topic is known */
		reports(&run, 100);
	hist_reset(&run.took);
	start = tool_now();
	for (uint64_t i = 1; i < n; i++) {
		char id[TOOL_ID_LEN + 1];

		if (rate)
			pace(&run, start + (int64_t)i * 1000000 / rate);
		tool_id(id, letter, i);
		for (size_t j = 0; j < 3; j++)
			memcpy(run.ids[j], id, TOOL_ID_LEN);
		while (run.outstanding >= window || !produce(&run))
			reports(&run, 100);
		if (i % 256 == 0)
			reports(&run, 0);
	}
	while (run.outstanding)
		reports(&run, 100);
	if (run.failed)
		tool_die("%lld records failed", (long long)run.failed);
	putchar('{');
	tool_print_run(n - 1, tool_now() - start);
	printf(", \"headers\": %zu, ", run.m.nheaders);
	tool_print_hist("took", &run.took);
	puts("}");
	rd_kafka_topic_destroy(run.rkt);
	rd_kafka_queue_destroy(run.queue);
	rd_kafka_destroy(run.rk);
	return 0;
}
