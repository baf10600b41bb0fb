/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf.h"
#include "conf_redis.h"
#include "core/glob.h"
#include "core/record.h"
#include "log.h"

#define SECOND	1000
#define MINUTE	(60 * SECOND)
#define HOUR	(60 * MINUTE)
#define MIB	(1024 * 1024)

const char *const conf_section_names[SECTION_COUNT] = {
	[SECTION_LAPSED] = "lapsed",
	[SECTION_REDIS] = "redis",
	[SECTION_KAFKA] = "kafka",
	[SECTION_ROUTE] = "route",
};

static const char *const modes[] = {
	[ROUTE_BINARY] = "binary", [ROUTE_STRUCTURED] = "structured",
	[ROUTE_RAW] = "raw", NULL
};
static const char *const log_formats[] = {
	[LOG_AUTO] = "auto", [LOG_JSON] = "json", [LOG_TEXT] = "text", NULL
};
static const char *const log_levels[] = {
	[LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info",
	[LOG_DEBUG] = "debug", NULL
};
static const char *const values[] = { "none", "copy", NULL };
static const char *const noyes[] = { "no", "yes", NULL };
static const char *const inferreds[] = {
	[ROUTE_EMIT] = "emit", [ROUTE_DROP] = "drop", NULL
};
static const char *const evicteds[] = {
	[ROUTE_EVICTED_DROP] = "drop", [ROUTE_EVICTED_EMIT] = "emit", NULL
};
static const char *const no_yes[] = { "no", "yes", NULL };
static const char *const roles[] = {
	[ROLE_BOTH] = "both", [ROLE_BRIDGE] = "bridge", [ROLE_SWEEPER] = "sweeper", NULL
};
/* The bits of enum route_register, in their order. */
static const char *const registers[] = { "none", "app", "events", "scan", NULL };

/* What a text may hold. */

static bool check_namespace(const char *value, struct err *e)
{
	if (value[strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				"0123456789._-")])
		return err_set(e, "may hold letters, digits and . _ - only");
	return true;
}

static bool check_printable(const char *value, struct err *e)
{
	for (const char *c = value; *c; c++)
		if (*c < ' ' || *c > '~')
			return err_set(e, "may hold printable ASCII only");
	return true;
}

static bool check_word(const char *value, struct err *e)
{
	if (strchr(value, ' '))
		return err_set(e, "may not hold a blank");
	return check_printable(value, e);
}

static bool check_topic(const char *value, struct err *e)
{
	if (!topic_valid(bytes_str(value)))
		return err_set(e, "\"%s\" is not a topic: 1 to 249 of letters, digits "
				  "and . _ -, and neither . nor ..", value);
	return true;
}

/* With places to fill in it is checked with the route's patterns. */
static bool check_topic_template(const char *value, struct err *e)
{
	return strpbrk(value, "{}") || check_topic(value, e);
}

static bool check_pattern(const char *value, struct err *e)
{
	return glob_check(bytes_str(value), e);
}

/* In front of `://`, as brokers write their addresses, it may have a protocol. */
static bool check_protocol(struct bytes protocol, struct err *e)
{
	static const char *const known[] = { "plaintext", "ssl", "sasl_plaintext", "sasl_ssl" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (protocol.n == strlen(known[i])
				&& strncasecmp(protocol.p, known[i], protocol.n) == 0)
			return true;
	return err_set(e, "%.*s is no protocol of Kafka's; a broker is host:port",
		       (int)protocol.n, protocol.p);
}

static bool check_server(struct bytes server, struct err *e)
{
	const char *scheme = memmem(server.p, server.n, "://", 3);

	if (scheme) {
		size_t at = (size_t)(scheme - server.p);

		if (!check_protocol(bytes_of(server.p, at), e))
			return false;
		server = bytes_skip(server, at + 3);
	}

	const char *colon = memrchr(server.p, ':', server.n);
	const char *bracket = memrchr(server.p, ']', server.n);
	int n = (int)server.n;

	if (memchr(server.p, ' ', server.n))
		return err_set(e, "brokers are separated by commas: \"%.*s\"", n, server.p);
	if (!colon || (bracket && bracket > colon))
		return true;
	if (colon == server.p)
		return err_set(e, "\"%.*s\" has no host", n, server.p);

	char *end;
	unsigned long port = strtoul(colon + 1, &end, 10);

	if (end == colon + 1 || end != server.p + server.n || port < 1 || port > 65535)
		return err_set(e, "\"%.*s\" does not end in a port (1 to 65535)",
			       n, server.p);
	return true;
}

static bool check_servers(const char *value, struct err *e)
{
	for (const char *c = value;; c++) {
		size_t n = strcspn(c, ",");
		struct bytes server = bytes_of(c, n);

		while (server.n && server.p[0] == ' ')
			server = bytes_skip(server, 1);
		while (server.n && server.p[server.n - 1] == ' ')
			server.n--;
		if (server.n == 0)
			return err_set(e, "a broker is missing next to a comma");
		if (!check_server(server, e))
			return false;
		c += n;
		if (*c == '\0')
			return true;
	}
}

#define GLOBAL(field)	offsetof(struct conf, field)
#define ROUTE(field)	offsetof(struct conf_route, field)

const struct conf_option conf_options[] = {
	{ SECTION_LAPSED, "namespace", KIND_TEXT, GLOBAL(namespace), "lapse",
	  1, 64, OPTION_TOOL, NULL, check_namespace,
	  "what the names of all keys of lapsed in Redis start with" },
	{ SECTION_LAPSED, "database", KIND_NUMBER, GLOBAL(database), "0",
	  0, RECORD_DB_MAX, OPTION_TOOL, NULL, NULL,
	  "the Redis database that holds them" },
	{ SECTION_LAPSED, "instance", KIND_TEXT, GLOBAL(instance), NULL,
	  1, 255, 0, NULL, check_word,
	  "the name of this process among the others; host:pid unless set" },
	{ SECTION_LAPSED, "source", KIND_TEXT, GLOBAL(source), "lapsed",
	  1, 255, 0, NULL, check_word,
	  "ce_source of every event" },
	{ SECTION_LAPSED, "mode", KIND_CHOICE, GLOBAL(mode), "binary",
	  0, 0, 0, modes, NULL,
	  "how scheduled events are laid out in Kafka" },
	{ SECTION_LAPSED, "role", KIND_CHOICE, GLOBAL(role), "both",
	  0, 0, 0, roles, NULL,
	  "both; or bridge: what is announced and due; or sweeper: what was left over" },
	{ SECTION_LAPSED, "max_inflight", KIND_NUMBER, GLOBAL(max_inflight), "10000",
	  1, 1000000, OPTION_RELOAD, NULL, NULL,
	  "the most events claimed and not yet settled" },
	{ SECTION_LAPSED, "max_inflight_bytes", KIND_SIZE, GLOBAL(max_inflight_bytes), "32m",
	  MIB, 1024LL * MIB, OPTION_RELOAD, NULL, NULL,
	  "the most bytes of such events" },
	{ SECTION_LAPSED, "claim_limit", KIND_NUMBER, GLOBAL(claim_limit), "200",
	  1, 1000, OPTION_RELOAD, NULL, NULL,
	  "the most events per claim, which bounds how long Redis is busy" },
	{ SECTION_LAPSED, "lease", KIND_DURATION, GLOBAL(lease_ms), "10s",
	  SECOND, 10 * MINUTE, 0, NULL, NULL,
	  "how long after its last sign of life an instance counts as dead" },
	{ SECTION_LAPSED, "grace", KIND_DURATION, GLOBAL(grace_ms), "50ms",
	  0, MINUTE, OPTION_RELOAD, NULL, NULL,
	  "how long the next instance waits before it does the work of the first" },
	{ SECTION_LAPSED, "rescan", KIND_DURATION, GLOBAL(rescan_ms), "1h",
	  0, 7 * 24 * HOUR, OPTION_RELOAD, NULL, NULL,
	  "how often register = scan goes through the keyspace; 0: only after a gap" },
	{ SECTION_LAPSED, "scan_rate", KIND_NUMBER, GLOBAL(scan_rate), "10000",
	  100, 10000000, OPTION_RELOAD, NULL, NULL,
	  "keys a second that it looks at" },
	{ SECTION_LAPSED, "sweep_interval", KIND_DURATION, GLOBAL(sweep_interval_ms), "30s",
	  SECOND, HOUR, OPTION_RELOAD, NULL, NULL,
	  "the pause between looks for what nobody announced" },
	{ SECTION_LAPSED, "stop_timeout", KIND_DURATION, GLOBAL(stop_timeout_ms), "10s",
	  0, 10 * MINUTE, OPTION_RELOAD, NULL, NULL,
	  "how long a stop waits for what is in flight" },
	{ SECTION_LAPSED, "park_min", KIND_DURATION, GLOBAL(park_min_ms), "1s",
	  100, HOUR, OPTION_RELOAD, NULL, NULL,
	  "the first pause before a topic that refused is tried again" },
	{ SECTION_LAPSED, "park_max", KIND_DURATION, GLOBAL(park_max_ms), "60s",
	  100, 24 * HOUR, OPTION_RELOAD, NULL, NULL,
	  "the longest such pause" },
	{ SECTION_LAPSED, "dead_letter_topic", KIND_TEXT, GLOBAL(dead_topic), NULL,
	  1, 4096, OPTION_RELOAD, NULL, check_topic,
	  "the Kafka topic that gets what can't be delivered; none unless set" },
	{ SECTION_LAPSED, "max_dead", KIND_NUMBER, GLOBAL(max_dead), "0",
	  0, 1000000000, OPTION_RELOAD, NULL, NULL,
	  "the most dead letters in Redis before a warning; 0 for no limit" },
	{ SECTION_LAPSED, "drop_dead", KIND_CHOICE, GLOBAL(drop_dead), "no",
	  0, 0, OPTION_RELOAD, noyes, NULL,
	  "whether the oldest dead letters are dropped when there are more" },
	{ SECTION_LAPSED, "stats_interval", KIND_DURATION, GLOBAL(stats_interval_ms), "10s",
	  0, 24 * HOUR, OPTION_RELOAD, NULL, NULL,
	  "the pause between two stats lines in the log; 0 for none" },
	{ SECTION_LAPSED, "log_format", KIND_CHOICE, GLOBAL(log_format), "auto",
	  0, 0, 0, log_formats, NULL,
	  "auto is text when stderr is a terminal, and json otherwise" },
	{ SECTION_LAPSED, "log_level", KIND_CHOICE, GLOBAL(log_level), "info",
	  0, 0, OPTION_RELOAD, log_levels, NULL,
	  "the least important lines that are logged" },

	{ SECTION_REDIS, "url", KIND_TEXT, GLOBAL(redis_url), "redis://localhost:6379",
	  1, 1024, OPTION_TOOL, NULL, conf_redis_check_url,
	  "redis://[user@]host[:port] or unix:///path of the socket" },
	{ SECTION_REDIS, "username", KIND_TEXT, GLOBAL(redis_username), NULL,
	  1, 255, OPTION_TOOL, NULL, NULL,
	  "the ACL user, where the url has none" },
	{ SECTION_REDIS, "password_file", KIND_TEXT, GLOBAL(redis_password_file), NULL,
	  1, 4095, OPTION_TOOL, NULL, NULL,
	  "the file that holds the user's password" },
	{ SECTION_REDIS, "databases", KIND_DATABASES, GLOBAL(databases), "0",
	  0, RECORD_DB_MAX, OPTION_TOOL, NULL, NULL,
	  "the databases with watched keys, such as 0 or 0,3; * for all" },
	{ SECTION_REDIS, "connect_timeout", KIND_DURATION, GLOBAL(connect_timeout_ms), "5s",
	  100, 5 * MINUTE, OPTION_TOOL, NULL, NULL,
	  "how long a connection may take to come about" },

	{ SECTION_REDIS, "answer_timeout", KIND_DURATION, GLOBAL(answer_timeout_ms), "3s",
	  500, 5 * MINUTE, 0, NULL, NULL,
	  "how old an unanswered call may be before the connection counts as dead" },
	{ SECTION_REDIS, "set_notify", KIND_CHOICE, GLOBAL(set_notify), "no",
	  0, 0, 0, no_yes, NULL,
	  "whether lapsed may CONFIG SET notify-keyspace-events when it lacks letters" },

	{ SECTION_KAFKA, "bootstrap.servers", KIND_TEXT, GLOBAL(kafka_servers), NULL,
	  1, 4096, OPTION_REQUIRED, NULL, check_servers,
	  "brokers to ask for the others, as host:port, separated by commas" },
	{ SECTION_KAFKA, "password_file", KIND_TEXT, GLOBAL(kafka_password_file), NULL,
	  1, 4095, 0, NULL, NULL,
	  "the file that holds sasl.password" },

	{ SECTION_ROUTE, "pattern", KIND_PATTERNS, ROUTE(patterns), NULL,
	  1, GLOB_MAX, OPTION_RELOAD | OPTION_REQUIRED, NULL, check_pattern,
	  "the watched keys, as in Redis' KEYS; may be given several times" },
	{ SECTION_ROUTE, "exclude", KIND_PATTERNS, ROUTE(excludes), NULL,
	  1, GLOB_MAX, OPTION_RELOAD, NULL, check_pattern,
	  "keys that the patterns match and that are not meant; several times" },
	{ SECTION_ROUTE, "register", KIND_BITS, ROUTE(registers), "app,none",
	  0, 0, OPTION_RELOAD, registers, NULL,
	  "how lapsed learns of a key's time to live" },
	{ SECTION_ROUTE, "databases", KIND_DATABASES, ROUTE(databases), "*",
	  0, RECORD_DB_MAX, OPTION_RELOAD, NULL, NULL,
	  "only keys of these, such as 0 or 0,3; * for all that are watched" },
	{ SECTION_ROUTE, "topic", KIND_TEXT, ROUTE(topic), NULL,
	  1, 4096, OPTION_RELOAD | OPTION_REQUIRED, NULL, check_topic_template,
	  "template of the Kafka topic" },
	{ SECTION_ROUTE, "topics", KIND_PATTERNS, ROUTE(topics), NULL,
	  1, 249, OPTION_RELOAD, NULL, check_pattern,
	  "topics that may come of it; several times; needed if topic depends on the key" },
	{ SECTION_ROUTE, "dead_letter_topic", KIND_TEXT, ROUTE(dead_topic), NULL,
	  1, 4096, OPTION_RELOAD, NULL, check_topic,
	  "the topic that gets what can't be delivered; that of [lapsed] unless set" },
	{ SECTION_ROUTE, "key", KIND_TEXT, ROUTE(key), "{key}",
	  1, 1024, OPTION_RELOAD, NULL, NULL,
	  "template of the Kafka key" },
	{ SECTION_ROUTE, "value", KIND_CHOICE, ROUTE(value), "copy",
	  0, 0, OPTION_RELOAD, values, NULL,
	  "whether the record carries the value that the key had" },
	{ SECTION_ROUTE, "max_value", KIND_SIZE, ROUTE(max_value), "64k",
	  0, 1000000, OPTION_RELOAD, NULL, NULL,
	  "a larger value is not copied (events)" },
	{ SECTION_ROUTE, "refresh", KIND_CHOICE, ROUTE(refresh), "no",
	  0, 0, OPTION_RELOAD, no_yes, NULL,
	  "whether the value is copied again when it is written to (events)" },
	{ SECTION_ROUTE, "evicted", KIND_CHOICE, ROUTE(evicted), "drop",
	  0, 0, OPTION_RELOAD, evicteds, NULL,
	  "what becomes of a key that Redis evicts (events)" },
	{ SECTION_ROUTE, "inferred", KIND_CHOICE, ROUTE(inferred), "emit",
	  0, 0, OPTION_RELOAD, inferreds, NULL,
	  "what becomes of a key that was gone without a word" },
	{ SECTION_ROUTE, "mode", KIND_CHOICE, ROUTE(mode), "binary",
	  0, 0, OPTION_RELOAD, modes, NULL,
	  "how the record is laid out" },
	{ SECTION_ROUTE, "content_type", KIND_TEXT, ROUTE(content_type), NULL,
	  1, 255, OPTION_RELOAD, NULL, check_printable,
	  "content-type of the value" },
	{ SECTION_ROUTE, "type", KIND_TEXT, ROUTE(type), NULL,
	  1, 255, OPTION_RELOAD, NULL, check_word,
	  "template of ce_type, instead of io.lapsed.expired" },
	{ SECTION_ROUTE, "subject", KIND_TEXT, ROUTE(subject), NULL,
	  1, 1024, OPTION_RELOAD, NULL, check_word,
	  "template of ce_subject, instead of {key}" },
};

const size_t conf_n_options = sizeof(conf_options) / sizeof(conf_options[0]);

static_assert(sizeof(conf_options) / sizeof(conf_options[0]) <= CONF_OPTIONS_MAX,
	      "the origins have room for every option");

size_t conf_option_index(const struct conf_option *o)
{
	return (size_t)(o - conf_options);
}

const struct conf_option *conf_option_find(enum conf_section section, const char *name)
{
	for (size_t i = 0; i < conf_n_options; i++)
		if (conf_options[i].section == section &&
		    strcmp(conf_options[i].name, name) == 0)
			return &conf_options[i];
	return NULL;
}
