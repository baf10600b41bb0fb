/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf_finish.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf_file.h"
#include "conf_kafka.h"
#include "conf_redis.h"
#include "conf_report.h"
#include "conf_table.h"
#include "core/mem.h"
#include "core/template.h"

/* Comparing patterns is quadratic; nobody's own configuration gets here. */
#define OVERLAP_STEPS	100000000

#define SAY(c, report, severity, origin, ...) \
	conf_say(report, severity, (c)->private->path, origin, __VA_ARGS__)

static const struct conf_origin *origin_of(const struct conf *c, enum conf_section section,
					   const char *name)
{
	return &c->private->origins[conf_option_index(conf_option_find(section, name))];
}

/* [lapsed] */

static void finish_instance(struct conf *c)
{
	char host[128] = "";

	if (c->instance)
		return;
	if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
		strcpy(host, "localhost");

	char name[sizeof(host) + 24];

	snprintf(name, sizeof(name), "%s:%ld", host, (long)getpid());
	c->instance = mem_copy(bytes_str(name));
}

static void check_lapsed(struct conf *c, struct conf_report *report)
{
	if (c->park_min_ms > c->park_max_ms)
		SAY(c, report, CONF_MISTAKE, origin_of(c, SECTION_LAPSED, "park_min"),
		    "park_min is more than park_max");
	if (c->claim_limit > c->max_inflight)
		SAY(c, report, CONF_WARNING, origin_of(c, SECTION_LAPSED, "claim_limit"),
		    "claim_limit is more than max_inflight, which is what counts then");
	if (c->grace_ms > c->sweep_interval_ms)
		SAY(c, report, CONF_WARNING, origin_of(c, SECTION_LAPSED, "grace"),
		    "grace is longer than sweep_interval: other instances hardly help");
	if (c->drop_dead && !c->max_dead)
		SAY(c, report, CONF_WARNING, origin_of(c, SECTION_LAPSED, "drop_dead"),
		    "drop_dead does nothing without max_dead");
}

/* Secrets. */

static char *read_secret(struct conf *c, enum conf_section section, const char *path,
			 struct conf_report *report)
{
	const struct conf_origin *at = origin_of(c, section, "password_file");
	struct err e;
	bool open = false;
	char *secret = conf_secret_read(path, &open, &e);

	if (!secret)
		SAY(c, report, CONF_MISTAKE, at, "password_file %s: %s", path, e.text);
	if (open)
		SAY(c, report, CONF_WARNING, at, "password_file %s can be read by everyone "
		    "on this machine; chmod o-r it", path);
	return secret;
}

/* [redis] */

static void finish_user(struct conf *c, struct conf_redis_url *u, struct conf_report *report)
{
	const struct conf_origin *at = origin_of(c, SECTION_REDIS, "url");
	const struct conf_option *username = conf_option_find(SECTION_REDIS, "username");

	if (!u->user)
		return;
	if (c->redis_username && at->kind == ORIGIN_FILE && strcmp(c->redis_username, u->user))
		SAY(c, report, CONF_MISTAKE, &c->private->origins[conf_option_index(username)],
		    "username is not the user of the url");
	free(c->redis_username);
	c->redis_username = u->user;
	u->user = NULL;
	c->private->origins[conf_option_index(username)] = *at;
}

/* The environment, then the url, then the file. */
static void finish_password(struct conf *c, struct conf_redis_url *u,
			    struct conf_report *report)
{
	const struct conf_origin *at = origin_of(c, SECTION_REDIS, "url");
	const char *environment = getenv("LAPSED_REDIS_PASSWORD");

	if (u->password && at->kind == ORIGIN_FILE)
		SAY(c, report, CONF_WARNING, at, "there is a password in the url; "
		    "password_file would keep it out of this file");
	if (u->password && at->kind == ORIGIN_FILE && c->redis_password_file)
		SAY(c, report, CONF_MISTAKE, origin_of(c, SECTION_REDIS, "password_file"),
		    "there are two passwords: one in the url and one in password_file");
	if (environment && *environment) {
		c->redis_password = mem_copy(bytes_str(environment));
	} else if (u->password) {
		c->redis_password = u->password;
		u->password = NULL;
	} else if (c->redis_password_file) {
		c->redis_password = read_secret(c, SECTION_REDIS, c->redis_password_file, report);
	}
}

static void finish_redis(struct conf *c, struct conf_report *report)
{
	struct conf_redis_url u;
	struct err e;

	/* It was parsed once as an option, so it can be parsed. */
	if (!conf_redis_parse_url(c->redis_url, &u, &e))
		return;
	finish_user(c, &u, report);
	finish_password(c, &u, report);
	c->redis_host = u.host;
	c->redis_port = u.port;
	c->redis_socket = u.socket;
	u.host = u.socket = NULL;
	conf_redis_url_clear(&u);

	char *shown = conf_redis_show_url(c->redis_url);

	conf_secret_free(c->redis_url);
	c->redis_url = shown;
}

/* [kafka] */

static const struct conf_property *property(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->n_kafka; i++)
		if (strcmp(c->kafka[i].name, name) == 0)
			return &c->kafka[i];
	return NULL;
}

static void finish_sasl(struct conf *c, struct conf_report *report)
{
	const struct conf_property *password = property(c, "sasl.password");

	if (password) {
		struct conf_origin at = { .kind = ORIGIN_FILE, .line = password->line };

		SAY(c, report, CONF_WARNING, &at, "sasl.password stands in this file; "
		    "password_file would keep it out");
		if (c->kafka_password_file)
			SAY(c, report, CONF_MISTAKE, &at, "there are two passwords: "
			    "sasl.password and the one in password_file");
	} else if (c->kafka_password_file) {
		char *secret = read_secret(c, SECTION_KAFKA, c->kafka_password_file, report);

		if (secret)
			conf_properties_add(c, "sasl.password", secret, 0);
		conf_secret_free(secret);
	}
}

static void finish_kafka(struct conf *c, struct conf_report *report)
{
	const struct conf_origin *at = origin_of(c, SECTION_KAFKA, "bootstrap.servers");

	if (c->kafka_servers)
		conf_properties_add(c, "bootstrap.servers", c->kafka_servers, 0);
	else if (at->kind == ORIGIN_DEFAULT && !property(c, "test.mock.num.brokers"))
		SAY(c, report, CONF_MISTAKE, NULL, "[kafka] has no bootstrap.servers, such "
		    "as localhost:9092");
	finish_sasl(c, report);
}

/* [route NAME] */

static bool has_required(const struct conf *c, const struct conf_route *r,
			 struct conf_report *report)
{
	struct conf_origin at = { .kind = ORIGIN_FILE, .line = r->line };
	bool all = true;

	for (size_t i = 0; i < conf_n_options; i++) {
		const struct conf_option *o = &conf_options[i];

		if (o->section != SECTION_ROUTE || !(o->flags & OPTION_REQUIRED) ||
		    r->origins[i].kind != ORIGIN_DEFAULT)
			continue;
		SAY(c, report, CONF_MISTAKE, &at, "route %s has no %s", r->name, o->name);
		all = false;
	}
	return all;
}

static bool template_ok(const struct conf *c, const struct conf_route *r, const char *name,
			const char *text, struct conf_report *report)
{
	size_t least = GLOB_CAPTURES;
	const struct conf_origin *at =
		&r->origins[conf_option_index(conf_option_find(SECTION_ROUTE, name))];
	struct err e;

	if (!text)
		return true;

	for (size_t i = 0; i < r->patterns.n; i++) {
		size_t n = glob_wildcards(bytes_str(r->patterns.p[i]));

		least = n < least ? n : least;
	}

	struct template *t = template_new(bytes_str(text), least, &e);

	if (!t)
		SAY(c, report, CONF_MISTAKE, at, "%s: %s", name, e.text);
	template_free(t);
	return t;
}

/* Each is told in its own line. */
static bool templates_ok(const struct conf *c, const struct conf_route *r,
			 struct conf_report *report)
{
	bool topic = template_ok(c, r, "topic", r->topic, report);
	bool key = template_ok(c, r, "key", r->key, report);
	bool type = template_ok(c, r, "type", r->type, report);

	return template_ok(c, r, "subject", r->subject, report) && topic && key && type;
}

static bool watched(const struct conf *c, unsigned db)
{
	for (size_t i = 0; i < c->databases.n; i++)
		if (c->databases.db[i] == db)
			return true;
	return c->databases.all;
}

static struct bytes *views(const struct conf_patterns *list)
{
	struct bytes *all = mem_alloc(list->n, sizeof(*all));

	for (size_t i = 0; i < list->n; i++)
		all[i] = bytes_str(list->p[i]);
	return all;
}

static void route_warnings(const struct conf *c, const struct conf_route *r,
			   struct conf_report *report)
{
	struct conf_origin at = { .kind = ORIGIN_FILE, .line = r->line };

	if (r->dead_topic && strcmp(r->dead_topic, r->topic) == 0)
		SAY(c, report, CONF_WARNING, &at, "route %s has its topic for dead letters as "
		    "well: what it refuses it will refuse again", r->name);
	for (size_t i = 0; i < r->databases.n; i++)
		if (!watched(c, r->databases.db[i]))
			SAY(c, report, CONF_WARNING, &at, "route %s is for database %u, which is "
			    "not among the watched databases", r->name, r->databases.db[i]);
}

static void add_route(struct conf *c, const struct conf_route *r, struct conf_report *report)
{
	struct conf_origin at = { .kind = ORIGIN_FILE, .line = r->line };
	struct bytes *patterns = views(&r->patterns), *excludes = views(&r->excludes);
	struct bytes *topics = views(&r->topics);
	struct err e;

	struct route route = {
		.name = bytes_str(r->name),
		.patterns = patterns, .npatterns = r->patterns.n,
		.excludes = excludes, .nexcludes = r->excludes.n,
		.registers = r->registers,
		.dbs = r->databases.db, .ndbs = r->databases.n,
		.topic = bytes_str(r->topic),
		.topics = topics, .ntopics = r->topics.n,
		.dead_topic = bytes_str(r->dead_topic),
		.key = bytes_str(r->key),
		.copy = r->value,
		.max_value = (size_t)r->max_value,
		.refresh = r->refresh,
		.evicted = (enum route_evicted)r->evicted,
		.inferred = (enum route_inferred)r->inferred,
		.mode = (enum route_mode)r->mode,
		.content_type = bytes_str(r->content_type),
		.type = bytes_str(r->type),
		.subject = bytes_str(r->subject),
	};

	if (!routes_add(c->routes, &route, &e))
		SAY(c, report, CONF_MISTAKE, &at, "route %s: %s", r->name, e.text);
	free(patterns);
	free(excludes);
	free(topics);
	route_warnings(c, r, report);
}

static int line_of(const struct conf *c, const struct route *route)
{
	for (size_t i = 0; i < c->private->n_routes; i++)
		if (bytes_eq(bytes_str(c->private->routes[i].name), route->name))
			return c->private->routes[i].line;
	return 0;
}

static size_t cost(const struct route *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->npatterns; i++)
		n += r->patterns[i].n;
	return n;
}

/* The first earlier route that takes keys from route `i`. */
static void find_overlap(const struct conf *c, size_t i, size_t *steps,
			 struct conf_report *report)
{
	const struct route *later = routes_at(c->routes, i);

	for (size_t j = 0; j < i && *steps < OVERLAP_STEPS; j++) {
		const struct route *first = routes_at(c->routes, j);
		struct conf_origin at = { .kind = ORIGIN_FILE, .line = line_of(c, later) };

		*steps += cost(first) * cost(later);
		if (!route_overlaps(first, later))
			continue;
		SAY(c, report, CONF_WARNING, &at, "route %.*s: a key that matches route %.*s "
		    "(line %d) as well goes there, as it comes first",
		    (int)later->name.n, later->name.p, (int)first->name.n, first->name.p,
		    line_of(c, first));
		return;
	}
}

static void find_overlaps(const struct conf *c, struct conf_report *report)
{
	size_t steps = 0;

	for (size_t i = 1; i < routes_count(c->routes); i++)
		find_overlap(c, i, &steps, report);
	if (steps >= OVERLAP_STEPS)
		SAY(c, report, CONF_WARNING, NULL, "there are too many patterns to tell "
		    "which routes can match the same key");
}

static void add_routes(struct conf *c, struct conf_report *report)
{
	char own[128];

	snprintf(own, sizeof(own), "%s:{", c->namespace);
	routes_free(c->routes);
	c->routes = routes_new(bytes_str(own));
	for (size_t i = 0; i < c->private->n_routes; i++) {
		const struct conf_route *r = &c->private->routes[i];

		if (has_required(c, r, report) && r->topic && r->patterns.n &&
		    templates_ok(c, r, report))
			add_route(c, r, report);
	}
}

void conf_finish_routes(struct conf *c)
{
	struct conf_report told = { 0 };

	add_routes(c, &told);
	conf_report_clear(&told);
}

void conf_finish(struct conf *c, bool tool, struct conf_report *report)
{
	finish_instance(c);
	finish_redis(c, report);
	if (tool) {
		conf_finish_routes(c);
		return;
	}
	check_lapsed(c, report);
	finish_kafka(c, report);
	add_routes(c, report);
	find_overlaps(c, report);
}
