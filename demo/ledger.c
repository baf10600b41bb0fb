/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ledger - the consumer of the demo: prints each record as it arrives, and
 * at the end what was expected against what came.
 *
 *	ledger BOOTSTRAP-SERVERS TOPIC...	(partition 0 of each)
 *
 * Standard input says what to expect, a line each, and is closed when the
 * story is told:
 *
 *	expect GROUP SUBJECT COUNT
 *
 * A record that comes again with the same ce_id is the same event: it is
 * shown, counted apart, and no fault, since that is what at-least-once means.
 * The exit status is 0 only when every subject came exactly as often as it
 * should, and nothing came early.
 */
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_LEN	512
#define SUBJECTS	1024
#define IDS		4096
#define LIMIT_MS	20000	/* how long to wait for what is missing */
#define QUIET_MS	1500	/* and for what should not come */

struct subject {
	char group[64], name[128];
	int expected, came, again;
	double worst;		/* lateness, ms */
};

struct ledger {
	struct subject subjects[SUBJECTS];
	size_t nsubjects;
	char *ids[IDS];
	size_t nids;
	int early;
	double began;
	char line[LINE_MAX_LEN];
	size_t line_len;
	bool told;		/* standard input is closed */
	double quiet_since;
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1e6;
}

static struct subject *subject_get(struct ledger *l, const char *name)
{
	for (size_t i = 0; i < l->nsubjects; i++)
		if (strcmp(l->subjects[i].name, name) == 0)
			return &l->subjects[i];
	if (l->nsubjects == SUBJECTS) {
		fputs("ledger: too many subjects\n", stderr);
		exit(1);
	}
	struct subject *s = &l->subjects[l->nsubjects++];

	snprintf(s->name, sizeof s->name, "%s", name);
	snprintf(s->group, sizeof s->group, "unexpected");
	return s;
}

static void expect_line(struct ledger *l, const char *line)
{
	char group[64], name[128];
	int count;

	if (sscanf(line, "expect %63s %127s %d", group, name, &count) != 3) {
		fprintf(stderr, "ledger: can't read: %s\n", line);
		exit(1);
	}
	struct subject *s = subject_get(l, name);

	snprintf(s->group, sizeof s->group, "%s", group);
	s->expected += count;
}

/* Whatever has come on standard input. */
static void read_expected(struct ledger *l)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	while (!l->told && poll(&p, 1, 0) > 0) {
		char c;

		if (read(STDIN_FILENO, &c, 1) != 1) {
			l->told = true;
			l->quiet_since = now_ms();
		} else if (c == '\n') {
			l->line[l->line_len] = '\0';
			l->line_len = 0;
			expect_line(l, l->line);
		} else if (l->line_len < LINE_MAX_LEN - 1) {
			l->line[l->line_len++] = c;
		}
	}
}

/* False when the id was there before. */
static bool remember(struct ledger *l, const char *id)
{
	for (size_t i = 0; i < l->nids; i++)
		if (strcmp(l->ids[i], id) == 0)
			return false;
	if (l->nids < IDS)
		l->ids[l->nids++] = strdup(id);
	return true;
}

static void header(const rd_kafka_message_t *m, const char *name, char *out, size_t size)
{
	rd_kafka_headers_t *headers;
	const void *value;
	size_t n;

	out[0] = '\0';
	if (rd_kafka_message_headers(m, &headers) ||
	    rd_kafka_header_get_last(headers, name, &value, &n))
		return;
	snprintf(out, size, "%.*s", (int)n, (const char *)value);
}

/* ce_time is always of the form 2026-11-30T12:30:00.000Z. */
static double due_ms(const char *text)
{
	struct tm tm = { 0 };
	int ms = 0;
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	if (!rest || sscanf(rest, ".%3dZ", &ms) != 1)
		return 0;
	return (double)timegm(&tm) * 1000 + ms;
}

static void take(struct ledger *l, const rd_kafka_message_t *m)
{
	char id[256], subject[128], due[64], trigger[32], certainty[32];
	double late;

	header(m, "ce_id", id, sizeof id);
	header(m, "ce_subject", subject, sizeof subject);
	header(m, "ce_time", due, sizeof due);
	header(m, "ce_lapsetrigger", trigger, sizeof trigger);
	header(m, "ce_lapsecertainty", certainty, sizeof certainty);
	late = now_ms() - due_ms(due);

	struct subject *s = subject_get(l, subject);
	bool first = remember(l, id);

	s->came += first;
	s->again += !first;
	l->early += late < 0;
	if (first && late > s->worst)
		s->worst = late;
	l->quiet_since = now_ms();
	printf("  %6.2f s  %-10s %-14s key %-6.*s %7.1f ms late  %s, %s%s\n",
	       (now_ms() - l->began) / 1000, rd_kafka_topic_name(m->rkt), subject,
	       (int)m->key_len, m->key ? (const char *)m->key : "", late, trigger, certainty,
	       first ? "" : "  (sent again, same ce_id)");
}

static bool complete(const struct ledger *l)
{
	for (size_t i = 0; i < l->nsubjects; i++)
		if (l->subjects[i].came < l->subjects[i].expected)
			return false;
	return true;
}

static bool finished(const struct ledger *l)
{
	double quiet = now_ms() - l->quiet_since;

	return l->told && quiet > (complete(l) ? QUIET_MS : LIMIT_MS);
}

static void follow(struct ledger *l, rd_kafka_t *rk)
{
	while (!finished(l)) {
		rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 50);

		read_expected(l);
		if (!m)
			continue;
		if (!m->err)
			take(l, m);
		rd_kafka_message_destroy(m);
		fflush(stdout);
	}
}

/* One row a group, in the order in which they were expected. */
static bool table(const struct ledger *l)
{
	bool good = l->early == 0;

	printf("\n  %-34s %8s %6s %6s %10s\n", "what", "expected", "came", "again", "latest");
	for (size_t i = 0; i < l->nsubjects; i++) {
		const char *group = l->subjects[i].group;
		int expected = 0, came = 0, again = 0;
		double worst = 0;
		bool seen = false, fault = false;

		for (size_t j = 0; j < i; j++)
			seen = seen || strcmp(l->subjects[j].group, group) == 0;
		for (size_t j = i; !seen && j < l->nsubjects; j++) {
			const struct subject *s = &l->subjects[j];

			if (strcmp(s->group, group))
				continue;
			expected += s->expected;
			came += s->came;
			again += s->again;
			worst = s->worst > worst ? s->worst : worst;
			fault = fault || s->came != s->expected;
		}
		if (seen)
			continue;
		printf("  %-34s %8d %6d %6d %7.1f ms%s\n", group, expected, came, again, worst,
		       fault ? "  <-- not as it should be" : "");
		good = good && !fault;
	}
	printf("\n  %s\n", good ? "every record came exactly as often as it should, none early" :
				  "something is wrong");
	return good;
}

static rd_kafka_t *consumer(const char *servers, char **topics, int n)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(n);
	char why[256];
	rd_kafka_t *rk;

	rd_kafka_conf_set(conf, "bootstrap.servers", servers, NULL, 0);
	rd_kafka_conf_set(conf, "group.id", "demo", NULL, 0);
	rd_kafka_conf_set(conf, "fetch.wait.max.ms", "10", NULL, 0);
	rd_kafka_conf_set(conf, "log_level", "3", NULL, 0);
	rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
	if (!rk) {
		fprintf(stderr, "ledger: %s\n", why);
		exit(1);
	}
	for (int i = 0; i < n; i++)
		rd_kafka_topic_partition_list_add(list, topics[i], 0)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_assign(rk, list);
	rd_kafka_topic_partition_list_destroy(list);
	return rk;
}

int main(int argc, char **argv)
{
	struct ledger *l = calloc(1, sizeof *l);
	rd_kafka_t *rk;
	bool good;

	if (argc < 3 || !l) {
		fputs("usage: ledger BOOTSTRAP-SERVERS TOPIC...\n", stderr);
		return 2;
	}
	rk = consumer(argv[1], argv + 2, argc - 2);
	l->began = l->quiet_since = now_ms();
	follow(l, rk);
	good = table(l);
	rd_kafka_consumer_close(rk);
	rd_kafka_destroy(rk);
	for (size_t i = 0; i < l->nids; i++)
		free(l->ids[i]);
	free(l);
	return good ? 0 : 1;
}
