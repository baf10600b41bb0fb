/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bench-consume - reads a topic from its start and judges what it gets.
 *
 *   kafka=HOST:PORT  topic=bench  partitions=4  n=COUNT  letter=e  limit=60
 *   subject=	what stands in front of the id in ce_subject
 *   redis=PATH	  jobs: finish each, and end when the last has been
 *
 * Ends after `n` different events, or after `limit` seconds.  Prints
 *   events, duplicates	  by the number in ce_subject
 *   early		  records made (timestamp of the producer) before they
 *			  were due
 *   lateness_*		  when the record was here, minus ce_time
 *   made_*		  when the record was made, minus ce_time
 *   first_us, last_us	  wall clock of the first and the last record
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/mem.h"
#include "tool.h"

struct seen {
	uint64_t n, events, duplicates, foreign, early;
	unsigned char *got;
	const char *name;
	size_t name_len;
	char letter;
	struct hist lateness, made;
	int64_t first, last;
	redisContext *redis;
	int64_t owed;		/* answers of Redis */
};

static struct bytes header(rd_kafka_headers_t *h, const char *name)
{
	const void *p;
	size_t n;

	if (rd_kafka_header_get_last(h, name, &p, &n) != RD_KAFKA_RESP_ERR_NO_ERROR)
		return bytes_none;
	return bytes_of(p, n);
}

/* 2026-11-30T12:30:00.000Z as ms. */
static int64_t time_of(struct bytes text)
{
	struct tm tm = { 0 };
	int ms;

	if (text.n != 24 ||
	    sscanf(text.p, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) != 7)
		tool_die("a record has no proper ce_time");
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	return timegm(&tm) * INT64_C(1000) + ms;
}

static void answers(struct seen *s, int64_t leave)
{
	for (; s->owed > leave; s->owed--)
		freeReplyObject(tool_reply(s->redis));
}

/* A hundred at a time are on the way. */
static void finish(struct seen *s, rd_kafka_headers_t *h)
{
	struct bytes shard = header(h, "ce_lapseshard"), id = header(h, "ce_id");
	const char *argv[] = { "FCALL", "lapse_finish", "1", shard.p, id.p };
	const size_t lens[] = { 5, 12, 1, shard.n, id.n };

	if (redisAppendCommandArgv(s->redis, 5, argv, lens) != REDIS_OK)
		tool_die("Redis: %s", s->redis->errstr);
	if (++s->owed >= 200)
		answers(s, 100);
}

static void take(struct seen *s, const rd_kafka_message_t *m)
{
	int64_t now = tool_now(), made = rd_kafka_message_timestamp(m, NULL), due;
	rd_kafka_headers_t *h;
	struct bytes subject;
	uint64_t i;

	if (rd_kafka_message_headers(m, &h) != RD_KAFKA_RESP_ERR_NO_ERROR)
		tool_die("a record has no headers");
	subject = header(h, "ce_subject");
	if (subject.n < s->name_len || memcmp(subject.p, s->name, s->name_len) != 0 ||
	    (i = tool_id_number(subject.p + s->name_len, subject.n - s->name_len,
				s->letter)) >= s->n) {
		s->foreign++;
		return;
	}
	if (s->got[i]) {
		s->duplicates++;
		return;
	}
	s->got[i] = 1;
	if (s->redis)
		finish(s, h);
	s->first = s->events++ ? s->first : now;
	s->last = now;
	due = time_of(header(h, "ce_time"));
	s->early += made < due;
	hist_add(&s->lateness, now - due * 1000);
	hist_add(&s->made, (made - due) * 1000);
}

static rd_kafka_t *consumer(char **argv)
{
	const char *const settings[][2] = {
		{ "bootstrap.servers", tool_text(argv, "kafka", NULL) },
		{ "group.id", "bench" }, { "enable.auto.commit", "false" },
		{ "auto.offset.reset", "earliest" }, { "fetch.wait.max.ms", "50" },
		{ "fetch.min.bytes", "1" }, { "fetch.error.backoff.ms", "5" },
		{ "socket.nagle.disable", "true" },
	};
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[400];
	rd_kafka_t *rk;

	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
		if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof why) !=
		    RD_KAFKA_CONF_OK)
			tool_die("%s", why);
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
	if (!rk)
		tool_die("%s", why);
	rd_kafka_poll_set_consumer(rk);
	return rk;
}

static void assign(rd_kafka_t *rk, char **argv)
{
	const char *topic = tool_text(argv, "topic", "bench");
	int n = (int)tool_number(argv, "partitions", 4);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);

	for (int i = 0; i < n; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	if (rd_kafka_assign(rk, list) != RD_KAFKA_RESP_ERR_NO_ERROR)
		tool_die("can't assign %s", topic);
	rd_kafka_topic_partition_list_destroy(list);
}

static void print(const struct seen *s)
{
	printf("{\"events\": %llu, \"duplicates\": %llu, \"foreign\": %llu, \"early\": %llu, "
	       "\"first_us\": %lld, \"last_us\": %lld, ", (unsigned long long)s->events,
	       (unsigned long long)s->duplicates, (unsigned long long)s->foreign,
	       (unsigned long long)s->early, (long long)s->first, (long long)s->last);
	tool_print_hist("lateness", &s->lateness);
	printf(", ");
	tool_print_hist("made", &s->made);
	printf("}\n");
}

int main(int argc, char **argv)
{
	static struct seen s;
	int64_t end = tool_now() + tool_number(argv, "limit", 60) * 1000000;
	rd_kafka_t *rk = consumer(argv);

	(void)argc;
	s.n = (uint64_t)tool_number(argv, "n", 1000);
	s.letter = *tool_text(argv, "letter", "e");
	s.name = tool_text(argv, "subject", "");
	s.name_len = strlen(s.name);
	s.got = mem_alloc(s.n, 1);
	if (*tool_text(argv, "redis", ""))
		s.redis = tool_redis(argv);
	assign(rk, argv);
	while (s.events < s.n && tool_now() < end) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 100);

		if (m && !m->err)
			take(&s, m);
		if (!m && s.redis)
			answers(&s, 0);
		if (m)
			rd_kafka_message_destroy(m);
	}
	if (s.redis) {
		answers(&s, 0);
		s.last = tool_now();
		redisFree(s.redis);
	}
	print(&s);
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
	free(s.got);
	return 0;
}
