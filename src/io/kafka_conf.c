/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/kafka_conf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"

/*
 * What librdkafka's own defaults are not meant for: a few events a second that
 * are to arrive within milliseconds.
 */
static const struct kafka_setting defaults[] = {
	{ "client.id", "lapsed" },
	/*
	 * Anything above 0 costs a millisecond more, as librdkafka's threads
	 * then wait in whole ones; under load a batch grows while the one
	 * before it is on its way.
	 */
	{ "linger.ms", "0" },
	/* events without a key; twice the linger otherwise */
	{ "sticky.partitioning.linger.ms", "10" },
	/* small requests must not wait for the acknowledgement of others */
	{ "socket.nagle.disable", "true" },
	{ "socket.keepalive.enable", "true" },
	/* a broker that hangs holds its partitions no longer than this */
	{ "socket.timeout.ms", "15000" },
	{ "message.timeout.ms", "30000" },
	/* back soon after an outage, however long it was */
	{ "reconnect.backoff.max.ms", "1000" },
	/* a new topic spreads faster; one that is not there holds up others */
	{ "topic.metadata.propagation.max.ms", "2000" },
	/* payload of 1,000,000 bytes, key and headers; what brokers take */
	{ "message.max.bytes", "1048576" },
	/* the partition of a key is the one that Java's clients choose */
	{ "partitioner", "murmur2_random" },
	{ "log.thread.name", "false" },
	/* 2.5 and later tell the broker about themselves unless told not to */
	{ "enable.metrics.push", "false" },
	{ NULL, NULL }
};

/* What the promises rest on, or the program itself. */
static const struct {
	const char *name;
	const char *why;
} fixed[] = {
	{ "acks", "it is always all: nothing may be lost" },
	{ "request.required.acks", "it is always all: nothing may be lost" },
	{ "enable.idempotence", "it is always true: order is kept" },
	{ "transactional.id", "transactions are not used" },
	{ "enable.gapless.guarantee", "one refused event would stop all others" },
	{ "queuing.strategy", "it is always fifo: order is kept" },
	{ "delivery.report.only.error", "each event needs its report" },
	{ "queue.buffering.max.messages", "it follows from max_inflight" },
	{ "log.queue", "the log goes through lapsed" },
	{ "enabled_events", "the program sets it" },
	{ "opaque", "the program sets it" },
	{ "interceptors", "the program sets it" },
	{ "ssl_engine_callback_data", "the program sets it" },
	{ "default_topic_conf", "the program sets it" },
};

const struct kafka_setting *kafka_defaults(void)
{
	return defaults;
}

static bool is_callback(const char *name)
{
	size_t n = strlen(name);

	return n > 3 && strcmp(name + n - 3, "_cb") == 0;
}

static bool refused(const char *name, struct err *e)
{
	size_t i;

	for (i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		if (strcmp(name, fixed[i].name) == 0)
			return !err_set(e, "%s can't be set: %s", name,
					fixed[i].why);
	}
	return is_callback(name) &&
	       !err_set(e, "%s can't be set: the program sets it", name);
}

static bool set(rd_kafka_conf_t *rc, const char *name, const char *value,
		struct err *e)
{
	char why[400];

	switch (rd_kafka_conf_set(rc, name, value, why, sizeof why)) {
	case RD_KAFKA_CONF_OK:
		return true;
	case RD_KAFKA_CONF_UNKNOWN:
		return err_set(e, "librdkafka %s has no setting %s",
			       kafka_version(), name);
	default:
		/* librdkafka may call it by another of its names */
		return err_set(e, "%s: %s", name, why);
	}
}

static bool set_users(rd_kafka_conf_t *rc, const char *name, const char *value,
		      struct err *e)
{
	return !refused(name, e) && set(rc, name, value, e);
}

bool kafka_check(const char *name, const char *value, struct err *e)
{
	rd_kafka_conf_t *rc = rd_kafka_conf_new();
	bool ok = set_users(rc, name, value, e);

	rd_kafka_conf_destroy(rc);
	return ok;
}

/* librdkafka's lines go through its queue; this is for those without one. */
static void no_log(const rd_kafka_t *rk, int level, const char *facility,
		   const char *text)
{
}

static bool set_ours(rd_kafka_conf_t *rc, const struct kafka_conf *conf,
		     struct err *e)
{
	size_t n = conf->max_inflight + KAFKA_HEADROOM;
	char max[32];

	snprintf(max, sizeof max, "%zu", n < INT_MAX ? n : INT_MAX);
	rd_kafka_conf_set_log_cb(rc, no_log);
	rd_kafka_conf_set_events(rc, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR |
				     RD_KAFKA_EVENT_LOG);
	return set(rc, "enable.idempotence", "true", e) &&
	       set(rc, "acks", "all", e) &&
	       set(rc, "queue.buffering.max.messages", max, e) &&
	       set(rc, "queue.buffering.max.kbytes", "2147483647", e) &&
	       set(rc, "log.queue", "true", e);
}

rd_kafka_conf_t *kafka_conf_build(const struct kafka_conf *conf, struct err *e)
{
	rd_kafka_conf_t *rc = rd_kafka_conf_new();
	const struct kafka_setting *s;
	bool ok = true;
	size_t i;

	for (s = defaults; s->name; s++)
		(void)set(rc, s->name, s->value, NULL);
	for (i = 0; ok && i < conf->nsettings; i++)
		ok = set_users(rc, conf->settings[i].name,
			       conf->settings[i].value, e);
	if (ok && set_ours(rc, conf, e))
		return rc;
	rd_kafka_conf_destroy(rc);
	return NULL;
}

const char *kafka_version(void)
{
	return rd_kafka_version_str();
}
