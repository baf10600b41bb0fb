/* SPDX-License-Identifier: BSD-2-Clause */

#include "conf.h"

#include <librdkafka/rdkafka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "unit.h"

static char folder[64];
static char path[128];
static struct conf *conf;
static struct conf_report report;

static void setup(void)
{
	strcpy(folder, "/tmp/lapsed-conf.XXXXXX");
	ck_assert(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/lapsed.conf", folder);
	unsetenv("LAPSED_REDIS_URL");
	unsetenv("LAPSED_REDIS_PASSWORD");
	unsetenv("LAPSED_KAFKA_BOOTSTRAP_SERVERS");
}

static void teardown(void)
{
	char command[128];

	conf_free(conf);
	conf = NULL;
	conf_report_clear(&report);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	ck_assert_int_eq(system(command), 0);
}

/* A file beside the configuration; its path is valid until the next call. */
static const char *make_file(const char *name, struct bytes content, mode_t mode)
{
	static char file[192];
	FILE *f;

	snprintf(file, sizeof file, "%s/%s", folder, name);
	f = fopen(file, "w");
	ck_assert(f);
	ck_assert_uint_eq(fwrite(content.p, 1, content.n, f), content.n);
	fclose(f);
	ck_assert_int_eq(chmod(file, mode), 0);
	return file;
}

static void load_bytes(struct bytes text, bool tool)
{
	struct conf_source source = { .path = path, .tool = tool };

	make_file("lapsed.conf", text, 0600);
	conf_free(conf);
	conf_report_clear(&report);
	conf = conf_load(&source, &report);
	ck_assert_msg(!conf == (report.mistakes > 0), "mistakes and no mistakes");
}

static void load(const char *text)
{
	load_bytes(bytes_str(text), false);
}

#define KAFKA	"[kafka]\nbootstrap.servers = localhost:9092\n"

/* All that the report says, folder left out; freed by the next call. */
static const char *told(void)
{
	static char *text;
	size_t n;
	char *at;

	free(text);
	FILE *f = open_memstream(&text, &n);

	conf_report_print(&report, "", f);
	fclose(f);
	while ((at = strstr(text, folder)))
		memmove(at, at + strlen(folder) + 1, strlen(at + strlen(folder) + 1) + 1);
	return text;
}

static const char *dumped(void)
{
	static char *text;
	size_t n;

	free(text);
	FILE *f = open_memstream(&text, &n);

	conf_dump(conf, f);
	fclose(f);
	return text;
}

static const char *property(const char *name)
{
	for (size_t i = 0; i < conf->n_kafka; i++)
		if (strcmp(conf->kafka[i].name, name) == 0)
			return conf->kafka[i].value;
	return NULL;
}

#define ck_assert_good()	ck_assert_msg(conf != NULL, "%s", told())

START_TEST(the_least_configuration_has_defaults)
{
	load(KAFKA);
	ck_assert_good();
	ck_assert_str_eq(told(), "");
	ck_assert_str_eq(conf->namespace, "lapse");
	ck_assert_int_eq(conf->database, 0);
	ck_assert_str_eq(conf->source, "lapsed");
	ck_assert_int_eq(conf->max_inflight, 10000);
	ck_assert_int_eq(conf->max_inflight_bytes, 32 << 20);
	ck_assert_int_eq(conf->claim_limit, 200);
	ck_assert_int_eq(conf->lease_ms, 10000);
	ck_assert_int_eq(conf->grace_ms, 50);
	ck_assert_int_eq(conf->sweep_interval_ms, 30000);
	ck_assert_int_eq(conf->stop_timeout_ms, 10000);
	ck_assert_int_eq(conf->park_min_ms, 1000);
	ck_assert_int_eq(conf->park_max_ms, 60000);
	ck_assert_int_eq(conf->stats_interval_ms, 10000);
	ck_assert_int_eq(conf->log_level, LOG_INFO);
	ck_assert_int_eq(conf->log_format, LOG_AUTO);
	ck_assert_str_eq(conf->redis_host, "localhost");
	ck_assert_int_eq(conf->redis_port, 6379);
	ck_assert_ptr_null(conf->redis_socket);
	ck_assert_ptr_null(conf->redis_username);
	ck_assert_ptr_null(conf->redis_password);
	ck_assert_uint_eq(conf->databases.n, 1);
	ck_assert_uint_eq(conf->databases.db[0], 0);
	ck_assert_str_eq(property("bootstrap.servers"), "localhost:9092");
	ck_assert_uint_eq(routes_count(conf->routes), 0);
}
END_TEST

START_TEST(the_instance_is_host_and_pid)
{
	char pid[32];

	load(KAFKA);
	ck_assert_good();
	snprintf(pid, sizeof pid, ":%ld", (long)getpid());
	ck_assert_has(conf->instance, pid);
	load("[lapsed]\ninstance = blue\n" KAFKA);
	ck_assert_good();
	ck_assert_str_eq(conf->instance, "blue");
}
END_TEST

START_TEST(every_option_is_taken)
{
	const struct route *r;

	load("[lapsed]\nnamespace = my.app\ndatabase = 5\nmax_inflight = 20000\n"
	     "max_inflight_bytes = 64m\nclaim_limit = 100\nlease = 1m\ngrace = 0\n"
	     "mode = structured\nlog_format = json\nlog_level = debug\n"
	     "[redis]\nurl = redis://10.0.0.1:7000\ndatabases = 3, 0\nconnect_timeout = 1s\n"
	     "[kafka]\nbootstrap.servers = a:1, b:2\nlinger.ms = 0.1\n"
	     "[route one]\npattern = a:*\npattern = b:*:c\ntopic = t\nkey = {1}\n"
	     "register = none\nvalue = none\ninferred = drop\nmode = raw\n"
	     "content_type = application/json; charset=utf-8\ntype = com.example.x\n"
	     "databases = 3,0\nexclude = a:x\nexclude = a:y*\nmax_value = 1k\nevicted = emit\nrefresh = yes\n");
	ck_assert_good();
	ck_assert_str_eq(told(), "");
	ck_assert_int_eq(conf->database, 5);
	ck_assert_int_eq(conf->lease_ms, 60000);
	ck_assert_int_eq(conf->grace_ms, 0);
	ck_assert_int_eq(conf->mode, ROUTE_STRUCTURED);
	ck_assert_str_eq(conf->redis_host, "10.0.0.1");
	ck_assert_int_eq(conf->redis_port, 7000);
	ck_assert_uint_eq(conf->databases.n, 2);
	ck_assert_uint_eq(conf->databases.db[0], 0);
	ck_assert_uint_eq(conf->databases.db[1], 3);
	ck_assert_str_eq(property("linger.ms"), "0.1");
	ck_assert_str_eq(property("bootstrap.servers"), "a:1, b:2");
	ck_assert_uint_eq(routes_count(conf->routes), 1);
	r = routes_at(conf->routes, 0);
	ck_assert_text(r->name, "one");
	ck_assert_uint_eq(r->npatterns, 2);
	ck_assert_text(r->patterns[1], "b:*:c");
	ck_assert_uint_eq(r->registers, ROUTE_NOTICE);
	ck_assert(!r->copy);
	ck_assert_uint_eq(r->ndbs, 2);
	ck_assert_uint_eq(r->dbs[1], 3);
	ck_assert_int_eq(r->inferred, ROUTE_DROP);
	ck_assert_uint_eq(r->nexcludes, 2);
	ck_assert_text(r->excludes[1], "a:y*");
	ck_assert_uint_eq(r->max_value, 1024);
	ck_assert_int_eq(r->evicted, ROUTE_EVICTED_EMIT);
	ck_assert(r->refresh);
	ck_assert_int_eq(r->mode, ROUTE_RAW);
	ck_assert_text(r->content_type, "application/json; charset=utf-8");
	ck_assert_text(r->type, "com.example.x");
}
END_TEST

START_TEST(a_route_has_defaults)
{
	const struct route *r;

	load(KAFKA "[route one]\npattern = a:*\ntopic = t\n");
	ck_assert_good();
	r = routes_at(conf->routes, 0);
	ck_assert_uint_eq(r->registers, ROUTE_APP | ROUTE_NOTICE);
	ck_assert(r->copy && !r->ndbs);
	ck_assert_text(r->key, "{key}");
	ck_assert_int_eq(r->inferred, ROUTE_EMIT);
	ck_assert_uint_eq(r->max_value, 65536);
	ck_assert_int_eq(r->evicted, ROUTE_EVICTED_DROP);
	ck_assert(!r->refresh);
	ck_assert_int_eq(r->mode, ROUTE_BINARY);
}
END_TEST

START_TEST(our_own_keys_match_no_route)
{
	load("[lapsed]\nnamespace = mine\n" KAFKA "[route all]\npattern = *\ntopic = t\n");
	ck_assert_good();
	ck_assert_ptr_null(routes_match(conf->routes, 0, BYTES("mine:{0}:due"), NULL));
	ck_assert_ptr_nonnull(routes_match(conf->routes, 0, BYTES("lapse:{0}:due"), NULL));
}
END_TEST

/* One mistake each: the text, what is said of it. */
static const struct {
	const char *text;
	const char *says;
} mistakes[] = {
	/* names */
	{ "[lapsed]\nmax_inflght = 1\n" KAFKA,
	  "lapsed.conf:2: unknown option max_inflght; did you mean max_inflight?\n" },
	{ "[lapsed]\nquux = 1\n" KAFKA, "lapsed.conf:2: unknown option quux in [lapsed]\n" },
	{ "[lapsed]\npattern = x\n" KAFKA,
	  "lapsed.conf:2: unknown option pattern in [lapsed]; it belongs to [route]\n" },
	{ "[route a]\npatern = x\npattern = a\ntopic = t\n" KAFKA,
	  "lapsed.conf:2: unknown option patern; did you mean pattern?\n" },
	{ KAFKA "[redi]\n", "lapsed.conf:3: unknown section [redi]; did you mean [redis]?\n" },
	{ KAFKA "[rout x]\ntopic = t\n",
	  "lapsed.conf:3: unknown section [rout x]; did you mean [route NAME]?\n" },
	{ KAFKA "[orders]\n", "lapsed.conf:3: unknown section [orders]; there are [lapsed], "
	  "[redis], [kafka] and [route NAME]\n" },
	{ "lease = 1s\n" KAFKA, "lapsed.conf:1: lease stands in front of the first [section]\n" },
	{ KAFKA "[route]\n", "lapsed.conf:3: a route needs a name: [route NAME]\n" },
	{ KAFKA "[route a b]\n", "lapsed.conf:3: the name of a route has 1 to 40 letters, "
	  "digits and . _ -\n" },
	/* twice */
	{ "[lapsed]\nlease = 1s\nlease = 2s\n" KAFKA,
	  "lapsed.conf:3: lease stands there twice; the first is in line 2\n" },
	{ "[lapsed]\nlease = 1s\n" KAFKA "[lapsed]\nlease = 1s\n",
	  "lapsed.conf:6: lease stands there twice; the first is in line 2\n" },
	{ KAFKA "linger.ms = 1\nlinger.ms = 2\n",
	  "lapsed.conf:4: linger.ms stands there twice; the first is in line 3\n" },
	{ KAFKA "[route a]\npattern = a\ntopic = t\n[route a]\n",
	  "lapsed.conf:6: route a stands there twice; the first is in line 3\n" },
	{ KAFKA "[route a]\npattern = a\npattern = a\ntopic = t\n",
	  "lapsed.conf:5: pattern: a stands there twice\n" },
	/* values */
	{ "[lapsed]\nlease = 10\n" KAFKA, "lapsed.conf:2: lease: \"10\" is not a duration such "
	  "as 250ms, 10s, 30m, 2h or 7d\n" },
	{ "[lapsed]\nlease = 11m\n" KAFKA,
	  "lapsed.conf:2: lease: 11m is out of range (1s to 10m)\n" },
	{ "[lapsed]\nmax_inflight = 0\n" KAFKA,
	  "lapsed.conf:2: max_inflight: \"0\" is not a number from 1 to 1000000\n" },
	{ "[lapsed]\nmax_inflight = ten\n" KAFKA,
	  "lapsed.conf:2: max_inflight: \"ten\" is not a number from 1 to 1000000\n" },
	{ "[lapsed]\nmax_inflight_bytes = 1k\n" KAFKA,
	  "lapsed.conf:2: max_inflight_bytes: 1k is out of range (1m to 1g)\n" },
	{ "[lapsed]\nlog_level = all\n" KAFKA,
	  "lapsed.conf:2: log_level: \"all\" is none of error, warn, info, debug\n" },
	{ "[lapsed]\nnamespace = a{b}\n" KAFKA,
	  "lapsed.conf:2: namespace: may hold letters, digits and . _ - only\n" },
	{ "[lapsed]\nnamespace =\n" KAFKA, "lapsed.conf:2: namespace has no value\n" },
	{ "[lapsed]\nnamespace = ; x\n" KAFKA, "lapsed.conf:2: namespace has no value\n" },
	{ "[lapsed]\ninstance = a b\n" KAFKA, "lapsed.conf:2: instance: may not hold a blank\n" },
	{ "[lapsed]\nsource = \"a\\tb\"\n" KAFKA,
	  "lapsed.conf:2: source: may hold printable ASCII only\n" },
	{ "[lapsed]\npark_min = 5s\npark_max = 4s\n" KAFKA,
	  "lapsed.conf:2: park_min is more than park_max\n" },
	/* redis */
	{ "[redis]\nurl = http://x\n" KAFKA,
	  "lapsed.conf:2: url: it begins with neither redis:// nor unix://\n" },
	{ "[redis]\nurl = redis://h:0\n" KAFKA,
	  "lapsed.conf:2: url: what follows the host is not a port (1 to 65535)\n" },
	{ "[redis]\nurl = redis://h:\n" KAFKA,
	  "lapsed.conf:2: url: what follows the host is not a port (1 to 65535)\n" },
	{ "[redis]\nurl = redis://:6379\n" KAFKA, "lapsed.conf:2: url: there is no host\n" },
	{ "[redis]\nurl = redis://h/3\n" KAFKA, "lapsed.conf:2: url: it names no database: use "
	  "the options database (of lapsed's keys) and databases (of watched keys)\n" },
	{ "[redis]\nurl = rediss://h\n" KAFKA, "lapsed.conf:2: url: rediss:// is not supported: "
	  "the Redis client library has no TLS; use a TLS tunnel such as stunnel, and redis:// "
	  "to it\n" },
	{ "[redis]\nurl = unix://run/x\n" KAFKA, "lapsed.conf:2: url: a socket needs its whole "
	  "path: unix:///run/redis.sock\n" },
	{ "[redis]\nurl = redis://u:%zz@h\n" KAFKA, "lapsed.conf:2: url: the password has a % "
	  "that is not followed by two hexadecimal digits; write %25 for a %\n" },
	{ "[redis]\nurl = redis://[::1\n" KAFKA,
	  "lapsed.conf:2: url: an IPv6 address has no closing ]\n" },
	{ "[redis]\nurl = redis://a@h\nusername = b\n" KAFKA,
	  "lapsed.conf:3: username is not the user of the url\n" },
	{ "[redis]\ndatabases = 0,x\n" KAFKA,
	  "lapsed.conf:2: databases: \"x\" is not a number from 0 to 2147483647\n" },
	{ "[redis]\ndatabases = 3,3\n" KAFKA, "lapsed.conf:2: databases: 3 stands there twice\n" },
	{ "[redis]\ndatabases = 1,,2\n" KAFKA,
	  "lapsed.conf:2: databases: \"\" is not a number from 0 to 2147483647\n" },
	{ "[redis]\npassword_file = /nowhere/at/all\n" KAFKA,
	  "lapsed.conf:2: password_file /nowhere/at/all: No such file or directory\n" },
	{ "[redis]\npassword_file = /\n" KAFKA,
	  "lapsed.conf:2: password_file /: Is a directory\n" },
	/* kafka */
	{ "[kafka]\n", "lapsed.conf: [kafka] has no bootstrap.servers, such as "
	  "localhost:9092\n" },
	{ "", "lapsed.conf: [kafka] has no bootstrap.servers, such as localhost:9092\n" },
	{ "[kafka]\nbootstrap.servers = a:b\n", "lapsed.conf:2: bootstrap.servers: \"a:b\" does "
	  "not end in a port (1 to 65535)\n" },
	{ "[kafka]\nbootstrap.servers = a:1,,b:1\n",
	  "lapsed.conf:2: bootstrap.servers: a broker is missing next to a comma\n" },
	{ "[kafka]\nbootstrap.servers = a:1 b:1\n", "lapsed.conf:2: bootstrap.servers: brokers "
	  "are separated by commas: \"a:1 b:1\"\n" },
	{ "[kafka]\nbootstrap.servers = :9092\n",
	  "lapsed.conf:2: bootstrap.servers: \":9092\" has no host\n" },
	{ "[kafka]\nbootstrap.servers = a:1, http://b:9092\n", "lapsed.conf:2: bootstrap.servers: "
	  "http is no protocol of Kafka's; a broker is host:port\n" },
	{ "[kafka]\nbootstrap.servers = SSL://:9092\n",
	  "lapsed.conf:2: bootstrap.servers: \":9092\" has no host\n" },
	{ KAFKA "metadata.broker.list = a:1\n", "lapsed.conf:3: metadata.broker.list can't be "
	  "set: it is called bootstrap.servers here\n" },
	{ KAFKA "group.id = x\n", "lapsed.conf:3: group.id can't be set: it is for consumers, "
	  "and lapsed only produces\n" },
	{ KAFKA "password_file = /nowhere\n",
	  "lapsed.conf:3: password_file /nowhere: No such file or directory\n" },
	/* routes */
	{ KAFKA "[route a]\ntopic = t\n", "lapsed.conf:3: route a has no pattern\n" },
	{ KAFKA "[route a]\npattern = x\n", "lapsed.conf:3: route a has no topic\n" },
	{ KAFKA "[route a]\npattern = x\ntopic = a b\n", "lapsed.conf:5: topic: \"a b\" is not a "
	  "topic: 1 to 249 of letters, digits and . _ -, and neither . nor ..\n" },
	{ KAFKA "[route a]\npattern = x\ntopic = ..\n", "lapsed.conf:5: topic: \"..\" is not a "
	  "topic: 1 to 249 of letters, digits and . _ -, and neither . nor ..\n" },
	{ KAFKA "[route a]\npattern = x\ntopic = t\nexclude = [\n",
	  "lapsed.conf:6: exclude: the [ at byte 1 is never closed (write \\[ for a bracket)\n" },
	{ KAFKA "[route a]\npattern = x\ntopic = t\nregister = ap\n",
	  "lapsed.conf:6: register: \"ap\" is none of none, app, events, scan\n" },
	/* the file itself */
	{ KAFKA "linger.ms\n", "lapsed.conf:3: neither [section] nor name = value\n" },
	{ KAFKA "[redis\n", "lapsed.conf:3: a section has no closing ]\n" },
	{ KAFKA "[redis] x\n", "lapsed.conf:3: there is something behind the ] of a section\n" },
	{ KAFKA "= x\n", "lapsed.conf:3: there is no name in front of the =\n" },
	{ KAFKA "a:b = x\n", "lapsed.conf:3: a name consists of letters, digits and . _ -\n" },
	{ KAFKA "client.id = \"x\n", "lapsed.conf:3: a quoted value has no closing \"\n" },
	{ KAFKA "client.id = \"x\" y\n",
	  "lapsed.conf:3: there is something behind the closing \" of a value\n" },
	{ KAFKA "client.id = \"\\x\"\n",
	  "lapsed.conf:3: after a \\ in quotes comes one of \" \\ n t\n" },
	{ KAFKA "client.id = a\001b\n",
	  "lapsed.conf:3: a control character; is this a text file?\n" },
};

START_TEST(a_mistake_is_named)
{
	load(mistakes[_i].text);
	ck_assert_ptr_null(conf);
	ck_assert_str_eq(told(), mistakes[_i].says);
}
END_TEST

/* Where another module has the words. */
static const struct {
	const char *text;
	const char *parts[3];
} wordings[] = {
	{ KAFKA "linger.m = 1\n", { "lapsed.conf:3: ", "linger.m;", "did you mean linger.ms?" } },
	{ KAFKA "batch.siz = 1\n", { "lapsed.conf:3: ", "batch.siz", "did you mean batch.size?" } },
	{ KAFKA "message.timeout.m = 1\n", { "lapsed.conf:3: ", "did you mean message.timeout.ms?" } },
	{ KAFKA "linger.ms = soon\n", { "lapsed.conf:3: ", "linger.ms", "Invalid value" } },
	{ KAFKA "acks = 1\n", { "lapsed.conf:3: ", "acks can't be set", "nothing may be lost" } },
	{ KAFKA "enable.idempotence = false\n", { "lapsed.conf:3: ", "can't be set: " } },
	{ KAFKA "transactional.id = x\n", { "lapsed.conf:3: ", "can't be set: " } },
	{ KAFKA "dr_msg_cb = x\n", { "lapsed.conf:3: ", "can't be set: " } },
	{ KAFKA "queue.buffering.max.messages = 5\n", { "lapsed.conf:3: ", "max_inflight" } },
	{ KAFKA "queue.buffering.max.kbytes = 5\n", { "lapsed.conf:3: ", "max_inflight_bytes" } },
	{ KAFKA "[route a]\npattern = a[\ntopic = t\n", { "lapsed.conf:4: pattern: " } },
	{ KAFKA "[route a]\npattern = a:*\ntopic = t\nkey = {2}\n",
	  { "lapsed.conf:6: key: ", "{2}" } },
	{ KAFKA "[route a]\nkey = {2}\npattern = *:*\npattern = b:*\ntopic = t\n",
	  { "lapsed.conf:4: key: ", "{2}" } },
	{ KAFKA "[route a]\npattern = a\ntopic = t\nkey = {nope}\n", { "lapsed.conf:6: key: " } },
	{ KAFKA "[route a]\npattern = a*\npattern = b\ntopic = t-{1}\ntopics = t-*\n",
	  { "lapsed.conf:6: topic: ", "{1}" } },
	{ KAFKA "[route a]\npattern = a*\ntopic = t\ntype = {2}\n",
	  { "lapsed.conf:6: type: {2} " } },
	{ KAFKA "[route a]\npattern = a*\ntopic = t\nsubject = {key\n",
	  { "lapsed.conf:6: subject: a { " } },
	{ KAFKA "[route a]\npattern = a*\ntopic = t-{1}\n",
	  { "lapsed.conf:3: route a", "topics has to say which" } },
};

START_TEST(a_mistake_of_another_module_is_passed_on)
{
	load(wordings[_i].text);
	ck_assert_ptr_null(conf);
	ck_assert_uint_eq(report.mistakes, 1);
	for (size_t i = 0; i < 3 && wordings[_i].parts[i]; i++)
		ck_assert_has(told(), wordings[_i].parts[i]);
}
END_TEST

START_TEST(an_unknown_property_names_the_version)
{
	load(KAFKA "quuxify = 1\n");
	ck_assert_ptr_null(conf);
	ck_assert_has(told(), rd_kafka_version_str());
	ck_assert_has(told(), "quuxify");
	ck_assert_ptr_null(strstr(told(), "did you mean"));
}
END_TEST

START_TEST(all_mistakes_come_at_once_and_in_order)
{
	load("[route a]\npattern = x\n[lapsed]\nlease = 1\nnope = 2\n[kafka]\nacks = 0\n"
	     "[redis]\nurl = x\n");
	ck_assert_ptr_null(conf);
	ck_assert_uint_eq(report.mistakes, 6);
	for (size_t i = 1; i < report.n; i++)
		ck_assert(report.notes[i].line == 0 ||
			  report.notes[i - 1].line <= report.notes[i].line);
	ck_assert_has(told(), "lapsed.conf:1: route a has no topic");
	ck_assert_has(told(), "lapsed.conf:4: lease");
	ck_assert_has(told(), "lapsed.conf:5: unknown option nope");
	ck_assert_has(told(), "lapsed.conf:7: acks");
	ck_assert_has(told(), "lapsed.conf:9: url");
	ck_assert_has(told(), "lapsed.conf: [kafka] has no bootstrap.servers");
}
END_TEST

START_TEST(what_a_wrong_section_holds_is_not_held_against_it)
{
	load(KAFKA "[lapse]\nlease = 1\nfoo = bar\n[redis\nurl = 3\n");
	ck_assert_uint_eq(report.mistakes, 2);
}
END_TEST

START_TEST(mistakes_have_an_end)
{
	char text[40000] = "[lapsed]\n";
	size_t n = strlen(text);

	for (int i = 0; i < 3000; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "x%d = 1\n", i);
	load(text);
	ck_assert_uint_eq(report.mistakes, 3001);
	ck_assert_uint_le(report.n, 101);
	ck_assert_has(told(), "... and 2901 more mistakes\n");
}
END_TEST

/* Warnings: the configuration can be used. */
static const struct {
	const char *text;
	const char *says;
} warnings[] = {
	{ KAFKA "[route a]\npattern = a:*\ntopic = t\n[route b]\npattern = *:b\ntopic = u\n",
	  "warning: lapsed.conf:6: route b: a key that matches route a (line 3) as well goes "
	  "there, as it comes first\n" },
	{ "[redis]\nurl = redis://u:p@h\n" KAFKA, "warning: lapsed.conf:2: there is a password "
	  "in the url; password_file would keep it out of this file\n" },
	{ KAFKA "sasl.password = x\n", "warning: lapsed.conf:3: sasl.password stands in this "
	  "file; password_file would keep it out\n" },
	{ "[lapsed]\nclaim_limit = 20\nmax_inflight = 10\n" KAFKA, "warning: lapsed.conf:2: "
	  "claim_limit is more than max_inflight, which is what counts then\n" },
	{ KAFKA "[route a]\npattern = a\ntopic = t\ndatabases = 0,4\n", "warning: lapsed.conf:3: "
	  "route a is for database 4, which is not among the watched databases\n" },
	{ KAFKA "[route a]\npattern = a:*\ntopic = t\n[route b]\npattern = b:*\ntopic = u\n", "" },
	{ "[redis]\ndatabases = *\n" KAFKA "[route a]\npattern = a\ntopic = t\ndatabases = 4\n"
	  "[route b]\npattern = a\ntopic = t\ndatabases = 5\n", "" },
};

START_TEST(a_warning_is_given)
{
	load(warnings[_i].text);
	ck_assert_good();
	ck_assert_str_eq(told(), warnings[_i].says);
}
END_TEST

START_TEST(the_first_of_two_routes_wins)
{
	load(KAFKA "[route a]\npattern = a:*\ntopic = t\n[route b]\npattern = *:b\ntopic = u\n");
	ck_assert_good();
	ck_assert_text(routes_match(conf->routes, 0, BYTES("a:b"), NULL)->name, "a");
	ck_assert_text(routes_match(conf->routes, 0, BYTES("x:b"), NULL)->name, "b");
}
END_TEST

/* How lines are read. */
static const struct {
	const char *text;
	const char *id;
} values[] = {
	{ KAFKA "client.id = a;b\n", "a;b" },
	{ KAFKA "client.id = a ; b\n", "a" },
	{ KAFKA "client.id = a\t; b\n", "a" },
	{ KAFKA "client.id = a # b\n", "a # b" },
	{ KAFKA "client.id = \"a ; b\" ; c\n", "a ; b" },
	{ KAFKA "client.id = \"a \\\"b\\\" \\\\ \\n\"\n", "a \"b\" \\ \n" },
	{ KAFKA "client.id = a=b:c\n", "a=b:c" },
	{ KAFKA "\t  client.id\t=  a  \r\n", "a" },
	{ KAFKA "client.id =a", "a" },
	{ "\xef\xbb\xbf" KAFKA "client.id = \xc3\xa9\n", "\xc3\xa9" },
	{ KAFKA "; x\n#y = z\n   # z\n\nclient.id = a\n  b.c = d ; not a continuation\n", NULL },
};

START_TEST(a_value_is_read)
{
	load(values[_i].text);
	if (values[_i].id) {
		ck_assert_good();
		ck_assert_str_eq(property("client.id"), values[_i].id);
	} else {
		ck_assert_uint_eq(report.mistakes, 1);
		ck_assert_has(told(), "lapsed.conf:8: ");
	}
}
END_TEST

START_TEST(lines_may_be_long_but_not_endless)
{
	char text[10000];

	snprintf(text, sizeof text, KAFKA "client.id = %0*d\n", 8000, 7);
	load(text);
	ck_assert_good();
	ck_assert_uint_eq(strlen(property("client.id")), 8000);
	snprintf(text, sizeof text, KAFKA "client.id = %0*d\n", 8200, 7);
	load(text);
	ck_assert_str_eq(told(), "lapsed.conf:3: a line is longer than 8192 bytes\n");
	snprintf(text, sizeof text, KAFKA "%0*d = 1\n", 50, 7);
	load(text);
	ck_assert_str_eq(told(), "lapsed.conf:3: the name of an option is longer than 49 bytes\n");
	snprintf(text, sizeof text, KAFKA "[route %0*d]\n", 60, 7);
	load(text);
	ck_assert_str_eq(told(), "lapsed.conf:3: the name of a section is longer than 49 bytes\n");
}
END_TEST

START_TEST(a_nul_is_a_mistake)
{
	load_bytes(BYTES(KAFKA "client.id = a\0b\n"), false);
	ck_assert_str_eq(told(), "lapsed.conf:3: a control character; is this a text file?\n");
}
END_TEST

START_TEST(a_file_that_is_none_is_said_so)
{
	struct conf_source source = { .path = "/nowhere.conf" };

	ck_assert_ptr_null(conf_load(&source, &report));
	ck_assert_str_eq(told(), "/nowhere.conf: can't read the configuration: "
			 "No such file or directory\n");
	conf_report_clear(&report);
	source.path = "/tmp";
	ck_assert_ptr_null(conf_load(&source, &report));
	ck_assert_str_eq(told(), "/tmp: can't read the configuration: Is a directory\n");
	conf_report_clear(&report);
	source.path = "/dev/zero";
	ck_assert_ptr_null(conf_load(&source, &report));
	ck_assert_has(told(), "more than 1048576 bytes");
}
END_TEST

/* Redis. */

static const struct {
	const char *url;
	const char *host;
	int port;
	const char *socket, *user, *password;
	const char *shown;
} urls[] = {
	{ "redis://h", "h", 6379, NULL, NULL, NULL, "redis://h" },
	{ "redis://h/", "h", 6379, NULL, NULL, NULL, "redis://h/" },
	{ "redis://h:1", "h", 1, NULL, NULL, NULL, "redis://h:1" },
	{ "redis://u@h:1", "h", 1, NULL, "u", NULL, "redis://u@h:1" },
	{ "redis://u:p@h", "h", 6379, NULL, "u", "p", "redis://u@h" },
	{ "redis://:p@h", "h", 6379, NULL, NULL, "p", "redis://@h" },
	{ "redis://u:p%40%3A%2f@h", "h", 6379, NULL, "u", "p@:/", "redis://u@h" },
	{ "redis://u:p@:/x@h:7", "h", 7, NULL, "u", "p@:/x", "redis://u@h:7" },
	{ "redis://[::1]", "::1", 6379, NULL, NULL, NULL, "redis://[::1]" },
	{ "redis://u:p@[fe80::1]:7", "fe80::1", 7, NULL, "u", "p", "redis://u@[fe80::1]:7" },
	{ "unix:///run/a:b@c.sock", NULL, 6379, "/run/a:b@c.sock", NULL, NULL,
	  "unix:///run/a:b@c.sock" },
};

static void same_or_none(const char *got, const char *expected)
{
	if (expected)
		ck_assert_str_eq(got, expected);
	else
		ck_assert_ptr_null(got);
}

START_TEST(a_url_is_taken_apart)
{
	setenv("LAPSED_REDIS_URL", urls[_i].url, 1);
	load(KAFKA);
	ck_assert_good();
	same_or_none(conf->redis_host, urls[_i].host);
	ck_assert_int_eq(conf->redis_port, urls[_i].port);
	same_or_none(conf->redis_socket, urls[_i].socket);
	same_or_none(conf->redis_username, urls[_i].user);
	same_or_none(conf->redis_password, urls[_i].password);
	ck_assert_str_eq(conf->redis_url, urls[_i].shown);
	ck_assert_str_eq(told(), "");
}
END_TEST

static void load_with_password_file(struct bytes content, mode_t mode, const char *more)
{
	char text[512];
	const char *file = make_file("redis.password", content, mode);

	snprintf(text, sizeof text, "[redis]\npassword_file = %s\n%s" KAFKA, file, more);
	load(text);
}

START_TEST(a_password_comes_from_a_file)
{
	load_with_password_file(BYTES("s3cret word\n"), 0600, "username = u\n");
	ck_assert_good();
	ck_assert_str_eq(told(), "");
	ck_assert_str_eq(conf->redis_password, "s3cret word");
	load_with_password_file(BYTES("s3cret\r\n"), 0644, "");
	ck_assert_good();
	ck_assert_str_eq(conf->redis_password, "s3cret");
	ck_assert_has(told(), "can be read by everyone");
}
END_TEST

START_TEST(a_password_file_may_be_no_good)
{
	char big[5000];

	load_with_password_file(BYTES("\n"), 0600, "");
	ck_assert_has(told(), "redis.password: is empty");
	load_with_password_file(BYTES("a\0b"), 0600, "");
	ck_assert_has(told(), "redis.password: holds a NUL byte");
	memset(big, 'x', sizeof big);
	load_with_password_file(bytes_of(big, sizeof big), 0600, "");
	ck_assert_has(told(), "redis.password: more than 4096 bytes");
	if (geteuid() != 0) {
		load_with_password_file(BYTES("x"), 0, "");
		ck_assert_has(told(), "redis.password: Permission denied");
	}
}
END_TEST

START_TEST(there_is_one_password)
{
	load_with_password_file(BYTES("x"), 0600, "url = redis://u:p@h\n");
	ck_assert_ptr_null(conf);
	ck_assert_has(told(), "there are two passwords");
	load_with_password_file(BYTES("x"), 0600, KAFKA "sasl.password = y\n[redis]\n");
	ck_assert_ptr_null(conf);
	setenv("LAPSED_REDIS_URL", "redis://v:q@h2", 1);
	load_with_password_file(BYTES("x"), 0600, "username = u\n");
	ck_assert_good();
	ck_assert_str_eq(conf->redis_username, "v");
	ck_assert_str_eq(conf->redis_password, "q");
	setenv("LAPSED_REDIS_PASSWORD", "best", 1);
	load_with_password_file(BYTES("x"), 0600, "username = u\n");
	ck_assert_good();
	ck_assert_str_eq(conf->redis_password, "best");
}
END_TEST

START_TEST(the_password_of_kafka_comes_from_a_file)
{
	char text[512];
	const char *file = make_file("kafka.password", BYTES("k3y\n"), 0600);

	snprintf(text, sizeof text, KAFKA "password_file = %s\nsasl.username = u\n", file);
	load(text);
	ck_assert_good();
	ck_assert_str_eq(property("sasl.password"), "k3y");
	ck_assert_ptr_null(strstr(dumped(), "k3y"));
	strcat(text, "sasl.password = z\n");
	load(text);
	ck_assert_has(told(), "there are two passwords");
}
END_TEST

/* Other sources. */

START_TEST(the_environment_beats_the_file)
{
	setenv("LAPSED_REDIS_URL", "redis://elsewhere:7", 1);
	setenv("LAPSED_KAFKA_BOOTSTRAP_SERVERS", "k:1", 1);
	load("[redis]\nurl = redis://here\n" KAFKA);
	ck_assert_good();
	ck_assert_str_eq(conf->redis_host, "elsewhere");
	ck_assert_str_eq(property("bootstrap.servers"), "k:1");
	ck_assert_has(dumped(), "url = redis://elsewhere:7\t; LAPSED_REDIS_URL\n");
	load("");
	ck_assert_good();
}
END_TEST

START_TEST(a_mistake_in_the_environment_is_said_to_be_there)
{
	setenv("LAPSED_REDIS_URL", "redis://h:x", 1);
	load(KAFKA);
	ck_assert_str_eq(told(), "LAPSED_REDIS_URL: url: what follows the host is not a port "
			 "(1 to 65535)\n");
}
END_TEST

START_TEST(no_password_is_quoted)
{
	static const char *const texts[] = {
		"[redis]\nurl = redis://u:hunter2@h:x\n" KAFKA,
		"[redis]\nurl = redis://u:hunter2@h/1\n" KAFKA,
		"[redis]\nurl = redis://u:hunter2\n" KAFKA,
		"[redis]\nurl = redis://u:hunter2%z@h\n" KAFKA,
		"[redis]\nurl = http://u:hunter2@h\n" KAFKA,
		KAFKA "ssl.key.password = hunter2\nssl.key.password = hunter2\n",
	};

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		load(texts[i]);
		ck_assert_ptr_null(conf);
		ck_assert_ptr_null(strstr(told(), "hunter2"));
	}
}
END_TEST

START_TEST(the_tool_needs_redis_only)
{
	struct conf_source source = { .tool = true, .redis_url = "redis://u@h:8",
				      .namespace = "n" };

	load_bytes(BYTES("[lapsed]\nnamespace = x\nlease = nonsense\n[redis]\nurl = redis://r\n"
			 "[kafka]\nacks = 0\n[route a]\n[foo]\n"), true);
	ck_assert_good();
	ck_assert_str_eq(conf->namespace, "x");
	ck_assert_str_eq(conf->redis_host, "r");
	conf_free(conf);
	conf = conf_load(&source, &report);
	ck_assert_good();
	ck_assert_str_eq(conf->namespace, "n");
	ck_assert_str_eq(conf->redis_host, "h");
	ck_assert_str_eq(conf->redis_username, "u");
}
END_TEST

START_TEST(the_tool_takes_the_routes_it_can_use)
{
	load_bytes(BYTES("[route a]\npattern = a*\ntopic = ta\n[route b]\npattern = b*\n"
			 "[route c c]\n[route a]\npattern = c*\nfoo = 1\ntopic = ?\n"
			 "[redis]\nurl = redis://r\n"), true);
	ck_assert_good();
	ck_assert_str_eq(conf->redis_host, "r");
	ck_assert_uint_eq(routes_count(conf->routes), 1);
	ck_assert_bytes(routes_at(conf->routes, 0)->topic, BYTES("ta"));
	load_bytes(BYTES("[route a]\n[redis]\nurl = nonsense\n"), true);
	ck_assert_ptr_null(conf);
}
END_TEST

START_TEST(dead_letters_have_topics)
{
	load("[lapsed]\ndead_letter_topic = dead\nmax_dead = 10\ndrop_dead = yes\n" KAFKA
	     "[route a]\npattern = a*\ntopic = t\ndead_letter_topic = a-dead\n"
	     "[route b]\npattern = b*\ntopic = t\n");
	ck_assert_good();
	ck_assert_str_eq(conf->dead_topic, "dead");
	ck_assert_int_eq(conf->max_dead, 10);
	ck_assert_int_eq(conf->drop_dead, 1);
	ck_assert_bytes(routes_at(conf->routes, 0)->dead_topic, BYTES("a-dead"));
	ck_assert_uint_eq(routes_at(conf->routes, 1)->dead_topic.n, 0);
	load(KAFKA);
	ck_assert_good();
	ck_assert_ptr_null(conf->dead_topic);
	ck_assert_int_eq(conf->drop_dead, 0);
	load("[lapsed]\ndead_letter_topic = a b\n" KAFKA);
	ck_assert_has(told(), "dead_letter_topic: \"a b\" is not a topic");
	load("[lapsed]\ndrop_dead = yes\n" KAFKA
	     "[route a]\npattern = a*\ntopic = t\ndead_letter_topic = t\n");
	ck_assert_has(told(), "drop_dead does nothing without max_dead");
	ck_assert_has(told(), "route a has its topic for dead letters as well");
}
END_TEST

START_TEST(an_argument_holds_no_password)
{
	struct conf_source source = { .tool = true, .redis_url = "redis://u:hunter2@h" };

	conf = conf_load(&source, &report);
	ck_assert_ptr_null(conf);
	ck_assert_has(told(), "--redis: everyone on this machine can read a password given here");
	ck_assert_ptr_null(strstr(told(), "hunter2"));
}
END_TEST

/* What is done with it. */

#define FULL	"[lapsed]\nlease = 5s\n[redis]\nurl = redis://u:hunter2@h\n" KAFKA \
		"client.id = \"a ; b\"\nssl.key.password = hunter3\n" \
		"[route a]\npattern = \"x ; y\"\npattern = a:*\ntopic = t\n"

START_TEST(a_dump_says_where_values_are_from)
{
	load(FULL);
	ck_assert_good();
	ck_assert_has(dumped(), "namespace = lapse\t; default\n");
	ck_assert_has(dumped(), "lease = 5s\t; ");
	ck_assert_has(dumped(), "lapsed.conf:2\n");
	ck_assert_has(dumped(), "# ssl.key.password = (hidden)\n");
	ck_assert_has(dumped(), "# the password is (hidden)\n");
	ck_assert_ptr_null(strstr(dumped(), "hunter"));
}
END_TEST

/* `text` without comments behind values. */
static char *values_only(const char *text)
{
	char *out = strdup(text);

	for (char *at; (at = strstr(out, "\t; "));) {
		char *end = strchr(at, '\n');

		memmove(at, end, strlen(end) + 1);
	}
	return out;
}

START_TEST(a_dump_is_a_configuration)
{
	char *first, *second;

	unsetenv("LAPSED_REDIS_URL");
	load(FULL);
	ck_assert_good();
	first = values_only(dumped());
	load(dumped());
	ck_assert_good();
	ck_assert_str_eq(property("client.id"), "a ; b");
	ck_assert_text(routes_at(conf->routes, 0)->patterns[0], "x ; y");
	second = values_only(dumped());
	*strstr(first, "# the password is") = '\0';
	*strstr(second, "\n[kafka]") = '\0';
	ck_assert_str_eq(second, first);
	free(first);
	free(second);
}
END_TEST

static struct conf *running;

/* `before` is running, and a reload finds `after`. */
static void reload(const char *before, const char *after)
{
	load(before);
	ck_assert_good();
	running = conf;
	conf = NULL;
	load(after);
	ck_assert_good();
	conf_report_clear(&report);
	conf_reload_diff(running, conf, &report);
	conf_free(running);
}

START_TEST(a_reload_changes_what_can_change)
{
	reload("[lapsed]\nmax_inflight = 10000\n" KAFKA
	       "[route a]\npattern = a:*\ntopic = t\n[route b]\npattern = b:*\ntopic = t\n",
	       "[lapsed]\nmax_inflight = 600\nlog_level = debug\n" KAFKA
	       "[route a]\npattern = a:*\ntopic = u\n[route c]\npattern = c:*\ntopic = t\n");
	ck_assert_str_eq(told(), "[lapsed] max_inflight: 10000 -> 600\n"
			 "[lapsed] log_level: info -> debug\n"
			 "route a: changed\nroute c: new\nroute b: gone\n");
	ck_assert_int_eq(conf->max_inflight, 600);
	ck_assert_ptr_nonnull(routes_named(conf->routes, BYTES("c")));
}
END_TEST

START_TEST(a_reload_keeps_what_can_not)
{
	reload("[redis]\nurl = redis://u:p@old:1\n" KAFKA "linger.ms = 1\nclient.id = x\n"
	       "[route a]\npattern = *\ntopic = t\n",
	       "[lapsed]\nnamespace = other\nlease = 3s\n[redis]\nurl = redis://v:q@new:2\n"
	       "databases = 1,2\n[kafka]\nbootstrap.servers = k:1\nlinger.ms = 2\nretries = 5\n"
	       "[route a]\npattern = *\ntopic = t\n");
	ck_assert_str_eq(told(),
		"warning: [lapsed] namespace stays lapse; other takes a restart\n"
		"warning: [lapsed] lease stays 10s; 3s takes a restart\n"
		"warning: [redis] url stays redis://u@old:1; redis://v@new:2 takes a restart\n"
		"warning: [redis] username stays u; v takes a restart\n"
		"warning: [redis] databases stays 0; 1,2 takes a restart\n"
		"warning: [kafka] bootstrap.servers stays localhost:9092; k:1 takes a restart\n"
		"warning: [redis] the password stays; a new one takes a restart\n"
		"warning: [kafka] linger.ms stays as it is; a change takes a restart\n"
		"warning: [kafka] client.id stays as it is; a change takes a restart\n"
		"warning: [kafka] retries stays as it is; a change takes a restart\n");
	ck_assert_str_eq(conf->namespace, "lapse");
	ck_assert_int_eq(conf->lease_ms, 10000);
	ck_assert_str_eq(conf->redis_host, "old");
	ck_assert_str_eq(conf->redis_password, "p");
	ck_assert_uint_eq(conf->databases.n, 1);
	ck_assert_str_eq(property("linger.ms"), "1");
	ck_assert_str_eq(property("bootstrap.servers"), "localhost:9092");
	ck_assert_ptr_null(routes_match(conf->routes, 0, BYTES("lapse:{0}:due"), NULL));
	ck_assert_ptr_nonnull(routes_match(conf->routes, 0, BYTES("other:{0}:due"), NULL));
}
END_TEST

START_TEST(a_reload_of_the_same_says_nothing)
{
	reload(FULL, FULL);
	ck_assert_str_eq(told(), "");
	reload("[route a]\npattern = a\ntopic = t\n[route b]\npattern = b\ntopic = t\n" KAFKA,
	       "[route b]\npattern = b\ntopic = t\n[route a]\npattern = a\ntopic = t\n" KAFKA);
	ck_assert_str_eq(told(), "the routes are in another order\n");
}
END_TEST

START_TEST(a_check_exits_with_what_it_found)
{
	struct conf_source source = { .path = path };

	make_file("lapsed.conf", BYTES(KAFKA), 0600);
	ck_assert_int_eq(conf_check_main(&source), 0);
	ck_assert_int_eq(conf_dump_main(&source), 0);
	make_file("lapsed.conf", BYTES(KAFKA "x = y\n"), 0600);
	ck_assert_int_eq(conf_check_main(&source), 2);
	ck_assert_int_eq(conf_dump_main(&source), 2);
	/* each property is fine, together they are not */
	make_file("lapsed.conf", BYTES(KAFKA "max.in.flight = 6\n"), 0600);
	ck_assert_int_eq(conf_check_main(&source), 2);
	make_file("lapsed.conf", BYTES(KAFKA "security.protocol = ssl\n"
				       "ssl.ca.location = /nowhere\n"), 0600);
	ck_assert_int_eq(conf_check_main(&source), 2);
}
END_TEST

START_TEST(the_mock_cluster_needs_no_broker)
{
	load("[kafka]\ntest.mock.num.brokers = 1\n");
	ck_assert_good();
}
END_TEST

static TCase *add_case(Suite *s, const char *name)
{
	TCase *tc = tcase_create(name);

	tcase_add_checked_fixture(tc, setup, teardown);
	suite_add_tcase(s, tc);
	return tc;
}

static void add_mistakes(Suite *s)
{
	TCase *tc = add_case(s, "mistakes");

	tcase_add_loop_test(tc, a_mistake_is_named, 0, COUNT_OF(mistakes));
	tcase_add_loop_test(tc, a_mistake_of_another_module_is_passed_on, 0, COUNT_OF(wordings));
	tcase_add_test(tc, an_unknown_property_names_the_version);
	tcase_add_test(tc, all_mistakes_come_at_once_and_in_order);
	tcase_add_test(tc, what_a_wrong_section_holds_is_not_held_against_it);
	tcase_add_test(tc, mistakes_have_an_end);
	tcase_add_loop_test(tc, a_warning_is_given, 0, COUNT_OF(warnings));
	tcase_add_test(tc, the_first_of_two_routes_wins);
	tcase_add_test(tc, a_nul_is_a_mistake);
	tcase_add_test(tc, a_file_that_is_none_is_said_so);
	tcase_add_test(tc, no_password_is_quoted);
}

static void add_values(Suite *s)
{
	TCase *tc = add_case(s, "values");

	tcase_add_test(tc, the_least_configuration_has_defaults);
	tcase_add_test(tc, the_instance_is_host_and_pid);
	tcase_add_test(tc, every_option_is_taken);
	tcase_add_test(tc, a_route_has_defaults);
	tcase_add_test(tc, our_own_keys_match_no_route);
	tcase_add_loop_test(tc, a_value_is_read, 0, COUNT_OF(values));
	tcase_add_test(tc, lines_may_be_long_but_not_endless);
	tcase_add_loop_test(tc, a_url_is_taken_apart, 0, COUNT_OF(urls));
	tcase_add_test(tc, a_password_comes_from_a_file);
	tcase_add_test(tc, a_password_file_may_be_no_good);
	tcase_add_test(tc, there_is_one_password);
	tcase_add_test(tc, the_password_of_kafka_comes_from_a_file);
	tcase_add_test(tc, the_environment_beats_the_file);
	tcase_add_test(tc, a_mistake_in_the_environment_is_said_to_be_there);
	tcase_add_test(tc, the_tool_needs_redis_only);
	tcase_add_test(tc, the_tool_takes_the_routes_it_can_use);
	tcase_add_test(tc, dead_letters_have_topics);
	tcase_add_test(tc, an_argument_holds_no_password);
	tcase_add_test(tc, the_mock_cluster_needs_no_broker);
}

static void add_uses(Suite *s)
{
	TCase *tc = add_case(s, "uses");

	tcase_add_test(tc, a_dump_says_where_values_are_from);
	tcase_add_test(tc, a_dump_is_a_configuration);
	tcase_add_test(tc, a_reload_changes_what_can_change);
	tcase_add_test(tc, a_reload_keeps_what_can_not);
	tcase_add_test(tc, a_reload_of_the_same_says_nothing);
	tcase_add_test(tc, a_check_exits_with_what_it_found);
}

int main(void)
{
	Suite *s = suite_create("conf");

	add_mistakes(s);
	add_values(s);
	add_uses(s);
	return unit_run(s);
}
