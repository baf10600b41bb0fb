/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * mock-broker - librdkafka's mock cluster as a program.
 *
 * For quick system tests and the demo, where a real broker is not at hand.  It
 * keeps a few megabytes a partition and forgets the oldest; topics without
 * --topic come into being, with four partitions, when somebody asks for them.
 * Prints the bootstrap servers as one line, then serves until its standard
 * input is closed or it is told to end by SIGTERM or SIGINT.
 */
#include <errno.h>
#include <getopt.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
"usage: mock-broker [--brokers N] [--topic NAME:PARTITIONS] ...\n";

static bool number(const char *text, int max, int *n)
{
	char *end;
	long value = strtol(text, &end, 10);

	*n = (int)value;
	return end != text && *end == '\0' && value >= 1 && value <= max;
}

static bool add_topic(rd_kafka_mock_cluster_t *mc, char *spec, int brokers)
{
	char *colon = strrchr(spec, ':');
	int partitions;

	if (!colon || colon == spec || !number(colon + 1, 10000, &partitions)) {
		fprintf(stderr, "mock-broker: not NAME:PARTITIONS: %s\n", spec);
		return false;
	}
	*colon = '\0';
	if (rd_kafka_mock_topic_create(mc, spec, partitions,
				       brokers < 3 ? brokers : 3) == 0)
		return true;
	fprintf(stderr, "mock-broker: can't create topic %s\n", spec);
	return false;
}

/* Returns when standard input is closed, or a signal has arrived. */
static void serve(const sigset_t *signals)
{
	char buffer[4096];
	ssize_t n;

	/* the handler does nothing: read() ends with EINTR */
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	do
		n = read(STDIN_FILENO, buffer, sizeof buffer);
	while (n > 0);
}

static void on_signal(int sig)
{
	(void)close(STDIN_FILENO);	/* should it come before the read() */
}

static rd_kafka_t *client_new(void)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char why[512];
	rd_kafka_t *rk;

	/* the cluster lives in a client, which is used for nothing else */
	rd_kafka_conf_set(conf, "log_level", "3", NULL, 0);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	if (rk)
		return rk;
	rd_kafka_conf_destroy(conf);
	fprintf(stderr, "mock-broker: %s\n", why);
	return NULL;
}

static int run(int brokers, char **topics, size_t ntopics,
	       const sigset_t *signals)
{
	rd_kafka_t *rk = client_new();
	rd_kafka_mock_cluster_t *mc = NULL;
	bool ok;
	size_t i;

	if (rk)
		mc = rd_kafka_mock_cluster_new(rk, brokers);
	ok = mc;
	for (i = 0; ok && i < ntopics; i++)
		ok = add_topic(mc, topics[i], brokers);
	if (ok) {
		ok = printf("%s\n", rd_kafka_mock_cluster_bootstraps(mc)) > 0 &&
		     fflush(stdout) == 0;
		if (ok)
			serve(signals);
	}
	if (mc)
		rd_kafka_mock_cluster_destroy(mc);
	if (rk)
		rd_kafka_destroy(rk);
	return ok ? 0 : 1;
}

/* Threads inherit the mask: signals are for this one only. */
static void catch_signals(sigset_t *signals)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigprocmask(SIG_BLOCK, signals, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "brokers", required_argument, NULL, 'b' },
		{ "topic", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 }
	};
	char **topics = calloc((size_t)argc, sizeof *topics);
	size_t ntopics = 0;
	int brokers = 1, opt, status;
	sigset_t signals;

	while (topics && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			topics[ntopics++] = optarg;
		else if (opt != 'b' || !number(optarg, 100, &brokers))
			break;
	}
	if (!topics || opt != -1 || optind != argc) {
		fputs(usage, stderr);
		free(topics);
		return 2;
	}
	catch_signals(&signals);
	status = run(brokers, topics, ntopics, &signals);
	free(topics);
	return status;
}
