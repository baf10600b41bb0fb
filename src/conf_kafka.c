/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf_kafka.h"

#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "conf_file.h"
#include "core/mem.h"
#include "core/suggest.h"
#include "io/kafka.h"

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

/* Those of consumers would be taken and do nothing. */
static const char *const of_consumers[] = {
	"auto.commit.enable", "auto.commit.interval.ms", "auto.offset.reset",
	"check.crcs", "consume.callback.max.messages",
	"coordinator.query.interval.ms", "enable.auto.commit",
	"enable.auto.offset.store", "enable.partition.eof",
	"fetch.error.backoff.ms", "fetch.max.bytes", "fetch.message.max.bytes",
	"fetch.min.bytes", "fetch.queue.backoff.ms", "fetch.wait.max.ms",
	"group.id", "group.instance.id", "group.protocol", "group.protocol.type",
	"group.remote.assignor", "heartbeat.interval.ms", "isolation.level",
	"max.partition.fetch.bytes", "max.poll.interval.ms",
	"offset.store.method", "offset.store.path",
	"offset.store.sync.interval.ms", "partition.assignment.strategy",
	"queued.max.messages.kbytes", "queued.min.messages", "session.timeout.ms",
};

static const struct {
	const char *name;
	const char *why;
} misplaced[] = {
	{ "metadata.broker.list", "it is called bootstrap.servers here" },
	{ "queue.buffering.max.kbytes", "max_inflight_bytes is the limit" },
	{ "internal.termination.signal", "signals are lapsed's" },
	{ "transaction.timeout.ms", "transactions are not used" },
};

static bool misplaced_ok(const char *name, struct err *e)
{
	for (size_t i = 0; i < COUNT(misplaced); i++)
		if (strcmp(name, misplaced[i].name) == 0)
			return err_set(e, "%s can't be set: %s", name, misplaced[i].why);
	for (size_t i = 0; i < COUNT(of_consumers); i++)
		if (strcmp(name, of_consumers[i]) == 0)
			return err_set(e, "%s can't be set: it is for consumers, and "
					  "lapsed only produces", name);
	return true;
}

/* Names that librdkafka takes and does not list, as it knows them by others. */
static const char *const aliases[] = {
	"acks", "bootstrap.servers", "compression.type", "delivery.timeout.ms",
	"linger.ms", "max.in.flight", "retries", "sasl.mechanism",
};

static void offer_all(struct suggest *s, const char **pairs, size_t n)
{
	for (size_t i = 0; i < n; i += 2)
		suggest_offer(s, pairs[i]);
}

/* Adds the nearest property, if the name is unknown and one is near. */
static void add_suggestion(const char *name, struct err *e)
{
	rd_kafka_conf_t *global = rd_kafka_conf_new();
	rd_kafka_topic_conf_t *topic = rd_kafka_topic_conf_new();
	size_t n_global, n_topic;
	const char **globals = rd_kafka_conf_dump(global, &n_global);
	const char **topics = rd_kafka_topic_conf_dump(topic, &n_topic);
	struct suggest s = suggest_for(name);

	offer_all(&s, globals, n_global);
	offer_all(&s, topics, n_topic);
	for (size_t i = 0; i < COUNT(aliases); i++)
		suggest_offer(&s, aliases[i]);
	if (s.best && strcmp(s.best, name) != 0) {
		struct err base = *e;

		err_set(e, "%.400s; did you mean %s?", base.text, s.best);
	}
	rd_kafka_conf_dump_free(globals, n_global);
	rd_kafka_conf_dump_free(topics, n_topic);
	rd_kafka_topic_conf_destroy(topic);
	rd_kafka_conf_destroy(global);
}

static bool known(const char *name)
{
	rd_kafka_conf_t *global = rd_kafka_conf_new();
	rd_kafka_topic_conf_t *topic = rd_kafka_topic_conf_new();
	size_t n = 0;
	bool yes = rd_kafka_conf_get(global, name, NULL, &n) != RD_KAFKA_CONF_UNKNOWN ||
		   rd_kafka_topic_conf_get(topic, name, NULL, &n) != RD_KAFKA_CONF_UNKNOWN;

	rd_kafka_topic_conf_destroy(topic);
	rd_kafka_conf_destroy(global);
	return yes;
}

bool conf_kafka_check(const char *name, const char *value, struct err *e)
{
	if (!misplaced_ok(name, e))
		return false;
	if (kafka_check(name, value, e))
		return true;
	if (!known(name))
		add_suggestion(name, e);
	else if (conf_kafka_secret(name))
		err_set(e, "librdkafka %s does not take this value of %s",
			rd_kafka_version_str(), name);
	return false;
}

bool conf_kafka_secret(const char *name)
{
	static const char *const parts[] = {
		"password", "secret", ".pem", "passphrase", "oauthbearer.config",
	};

	for (size_t i = 0; i < COUNT(parts); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

static void no_log(const rd_kafka_t *rk, int level, const char *facility,
		   const char *text)
{
}

/* What it can't set was refused before, or is not known to this version. */
static void set(rd_kafka_conf_t *rc, const char *name, const char *value)
{
	char why[512];

	(void)rd_kafka_conf_set(rc, name, value, why, sizeof(why));
}

bool conf_kafka_try(const struct conf *c, struct err *e)
{
	rd_kafka_conf_t *rc = rd_kafka_conf_new();
	char why[400] = "";

	rd_kafka_conf_set_log_cb(rc, no_log);
	for (const struct kafka_setting *s = kafka_defaults(); s->name; s++)
		set(rc, s->name, s->value);
	for (size_t i = 0; i < c->n_kafka; i++)
		if (strcmp(c->kafka[i].name, "bootstrap.servers") != 0)
			set(rc, c->kafka[i].name, c->kafka[i].value);
	set(rc, "enable.idempotence", "true");

	rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rc, why, sizeof(why));

	if (!rk) {
		rd_kafka_conf_destroy(rc);
		return err_set(e, "librdkafka %s: %s", rd_kafka_version_str(), why);
	}
	rd_kafka_destroy(rk);
	return true;
}

void conf_properties_add(struct conf *c, const char *name, const char *value, int line)
{
	c->kafka = mem_resize(c->kafka, c->n_kafka + 1, sizeof(*c->kafka));
	c->kafka[c->n_kafka++] = (struct conf_property){
		.name = mem_copy(bytes_str(name)),
		.value = mem_copy(bytes_str(value)),
		.secret = conf_kafka_secret(name),
		.line = line,
	};
}

void conf_properties_clear(struct conf *c)
{
	for (size_t i = 0; i < c->n_kafka; i++) {
		conf_secret_free(c->kafka[i].value);
		free(c->kafka[i].name);
	}
	free(c->kafka);
	c->kafka = NULL;
	c->n_kafka = 0;
}

void conf_properties_copy(struct conf *to, const struct conf *from)
{
	conf_properties_clear(to);
	for (size_t i = 0; i < from->n_kafka; i++)
		conf_properties_add(to, from->kafka[i].name, from->kafka[i].value,
				    from->kafka[i].line);
}
