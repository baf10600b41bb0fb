/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "conf_file.h"
#include "conf_finish.h"
#include "conf_kafka.h"
#include "conf_redis.h"
#include "conf_report.h"
#include "conf_table.h"
#include "core/mem.h"
#include "core/suggest.h"

#define ROUTES_MAX	1000
#define ROUTE_NAME_MAX	40
#define PROPERTIES_MAX	500
#define NAME_BYTES	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Where the options that come next belong. */
enum place {
	PLACE_NOWHERE,		/* no section yet */
	PLACE_SKIP,		/* a section that is unknown, or not wanted */
	PLACE_SECTION,
};

struct loading {
	struct conf *conf;
	struct conf_report *report;	/* one of the next two */
	struct conf_report *told;
	struct conf_report unsaid;	/* what the tool passes over */
	bool tool;
	enum place place;
	enum conf_section section;	/* PLACE_SECTION */
};

#define SAY(l, severity, origin, ...) \
	conf_say((l)->report, severity, (l)->conf->private->path, origin, __VA_ARGS__)

static struct conf_origin at_line(int line)
{
	return (struct conf_origin){ .kind = ORIGIN_FILE, .line = line };
}

/* Defaults of one section, or all but those of routes. */
static void set_defaults(void *base, bool route)
{
	for (size_t i = 0; i < conf_n_options; i++) {
		const struct conf_option *o = &conf_options[i];
		struct err e;

		if ((o->section == SECTION_ROUTE) != route || !o->fallback)
			continue;

		bool ok = conf_option_parse(o, base, o->fallback, &e);

		assert(ok);
	}
}

/* Sections. */

static struct conf_route *current_route(struct loading *l)
{
	struct conf_private *p = l->conf->private;

	return &p->routes[p->n_routes - 1];
}

static bool route_name_ok(struct loading *l, const struct conf_origin *at, const char *name)
{
	const struct conf_private *p = l->conf->private;

	if (!*name) {
		SAY(l, CONF_MISTAKE, at, "a route needs a name: [route NAME]");
		return false;
	}
	if (strlen(name) > ROUTE_NAME_MAX || name[strspn(name, NAME_BYTES)]) {
		SAY(l, CONF_MISTAKE, at, "the name of a route has 1 to %d letters, digits "
		    "and . _ -", ROUTE_NAME_MAX);
		return false;
	}
	for (size_t i = 0; i < p->n_routes; i++) {
		if (strcmp(p->routes[i].name, name) == 0) {
			SAY(l, CONF_MISTAKE, at, "route %s stands there twice; the first "
			    "is in line %d", name, p->routes[i].line);
			return false;
		}
	}
	return true;
}

static void begin_route(struct loading *l, int line, const char *name)
{
	struct conf_private *p = l->conf->private;
	struct conf_origin at = at_line(line);

	if (!route_name_ok(l, &at, name))
		return;
	if (p->n_routes == ROUTES_MAX) {
		SAY(l, CONF_MISTAKE, &at, "there are more than %d routes", ROUTES_MAX);
		return;
	}
	p->routes = mem_resize(p->routes, p->n_routes + 1, sizeof(*p->routes));

	struct conf_route *r = &p->routes[p->n_routes++];

	*r = (struct conf_route){ .line = line, .name = mem_copy(bytes_str(name)) };
	set_defaults(r, true);
	l->place = PLACE_SECTION;
	l->section = SECTION_ROUTE;
}

static void unknown_section(struct loading *l, int line, const char *name)
{
	struct conf_origin at = at_line(line);
	char word[CONF_NAME_MAX + 1];

	if (l->tool)
		return;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, " "), name);

	const char *best = suggest_of(word, conf_section_names, SECTION_COUNT);

	if (best)
		SAY(l, CONF_MISTAKE, &at, "unknown section [%s]; did you mean [%s%s]?",
		    name, best, strcmp(best, "route") == 0 ? " NAME" : "");
	else
		SAY(l, CONF_MISTAKE, &at, "unknown section [%s]; there are [lapsed], "
		    "[redis], [kafka] and [route NAME]", name);
}

static void got_section(void *arg, int line, const char *name)
{
	struct loading *l = arg;
	const char *blank = strchr(name, ' ');

	l->place = PLACE_SKIP;
	l->report = l->told;
	if (strcmp(name, "route") == 0 || strncmp(name, "route ", 6) == 0) {
		if (l->tool)
			l->report = &l->unsaid;
		begin_route(l, line, blank ? blank + 1 + strspn(blank + 1, " ") : "");
		return;
	}
	for (int i = 0; i < SECTION_ROUTE; i++) {
		if (strcmp(name, conf_section_names[i]) == 0) {
			l->place = l->tool && i == SECTION_KAFKA ? PLACE_SKIP : PLACE_SECTION;
			l->section = (enum conf_section)i;
			return;
		}
	}
	unknown_section(l, line, name);
}

/* Options. */

static void set_option(struct loading *l, const struct conf_option *o, void *base,
		       struct conf_origin *origins, struct conf_origin from,
		       const char *value)
{
	struct conf_origin *origin = &origins[conf_option_index(o)];
	struct err e;

	if (from.kind == ORIGIN_FILE && origin->kind == ORIGIN_FILE &&
	    o->kind != KIND_PATTERNS) {
		SAY(l, CONF_MISTAKE, &from, "%s stands there twice; the first is in line %d",
		    o->name, origin->line);
		return;
	}
	*origin = from;
	if (!*value)
		SAY(l, CONF_MISTAKE, &from, "%s has no value", o->name);
	else if (!conf_option_parse(o, base, value, &e))
		SAY(l, CONF_MISTAKE, &from, "%s: %s", o->name, e.text);
}

static void unknown_option(struct loading *l, const struct conf_origin *at,
			   const char *name)
{
	struct suggest s = suggest_for(name);
	const char *section = conf_section_names[l->section];

	for (size_t i = 0; i < conf_n_options; i++)
		if (conf_options[i].section == l->section)
			suggest_offer(&s, conf_options[i].name);
	if (s.best) {
		SAY(l, CONF_MISTAKE, at, "unknown option %s; did you mean %s?", name, s.best);
		return;
	}
	for (size_t i = 0; i < conf_n_options; i++) {
		if (strcmp(conf_options[i].name, name) == 0) {
			SAY(l, CONF_MISTAKE, at, "unknown option %s in [%s]; it belongs to "
			    "[%s]", name, section, conf_section_names[conf_options[i].section]);
			return;
		}
	}
	SAY(l, CONF_MISTAKE, at, "unknown option %s in [%s]", name, section);
}

static void add_property(struct loading *l, int line, const char *name, const char *value)
{
	struct conf *c = l->conf;
	struct conf_origin at = at_line(line);
	struct err e;

	for (size_t i = 0; i < c->n_kafka; i++) {
		if (strcmp(c->kafka[i].name, name) == 0) {
			SAY(l, CONF_MISTAKE, &at, "%s stands there twice; the first is in "
			    "line %d", name, c->kafka[i].line);
			return;
		}
	}
	if (c->n_kafka == PROPERTIES_MAX) {
		SAY(l, CONF_MISTAKE, &at, "there are more than %d properties", PROPERTIES_MAX);
		return;
	}
	if (!conf_kafka_check(name, value, &e))
		SAY(l, CONF_MISTAKE, &at, "%s", e.text);
	conf_properties_add(c, name, value, line);
}

static void got_option(void *arg, int line, const char *name, const char *value)
{
	struct loading *l = arg;
	struct conf_origin at = at_line(line);

	if (l->place == PLACE_NOWHERE && !l->tool)
		SAY(l, CONF_MISTAKE, &at, "%s stands in front of the first [section]", name);
	if (l->place != PLACE_SECTION)
		return;

	const struct conf_option *o = conf_option_find(l->section, name);

	if (!o && l->section == SECTION_KAFKA)
		add_property(l, line, name, value);
	else if (!o)
		unknown_option(l, &at, name);
	else if (o->section == SECTION_ROUTE)
		set_option(l, o, current_route(l), current_route(l)->origins, at, value);
	else if (!l->tool || o->flags & OPTION_TOOL)
		set_option(l, o, l->conf, l->conf->private->origins, at, value);
}

static void got_mistake(void *arg, int line, const char *text)
{
	struct loading *l = arg;
	struct conf_origin at = at_line(line);

	SAY(l, CONF_MISTAKE, &at, "%s", text);
}

/* Sources, the weakest first. */

static bool load_file(struct loading *l)
{
	static const struct conf_file_handlers handlers = {
		got_section, got_option, got_mistake
	};
	struct buf text = { 0 };
	struct err e;
	bool ok = conf_file_read(l->conf->private->path, CONF_FILE_MAX, &text, &e);

	if (ok)
		conf_file_parse(buf_view(&text), &handlers, l);
	else
		SAY(l, CONF_MISTAKE, NULL, "can't read the configuration: %s", e.text);
	if (text.p)
		explicit_bzero(text.p, text.n);
	buf_clear(&text);
	l->report = l->told;
	conf_report_clear(&l->unsaid);
	return ok;
}

static void override(struct loading *l, const struct conf_origin *from,
		     enum conf_section section, const char *name, const char *value)
{
	if (value && *value)
		set_option(l, conf_option_find(section, name), l->conf,
			   l->conf->private->origins, *from, value);
}

static void load_environment(struct loading *l)
{
	static const struct conf_origin url = {
		.kind = ORIGIN_ENVIRONMENT, .name = "LAPSED_REDIS_URL"
	}, servers = {
		.kind = ORIGIN_ENVIRONMENT, .name = "LAPSED_KAFKA_BOOTSTRAP_SERVERS"
	};

	override(l, &url, SECTION_REDIS, "url", getenv(url.name));
	if (!l->tool)
		override(l, &servers, SECTION_KAFKA, "bootstrap.servers", getenv(servers.name));
}

static void load_arguments(struct loading *l, const struct conf_source *source)
{
	static const struct conf_origin url = {
		.kind = ORIGIN_ARGUMENT, .name = "--redis"
	}, namespace = {
		.kind = ORIGIN_ARGUMENT, .name = "--namespace"
	};
	struct conf_redis_url u = { 0 };
	struct err e;

	if (source->redis_url && conf_redis_parse_url(source->redis_url, &u, &e) && u.password)
		SAY(l, CONF_MISTAKE, &url, "everyone on this machine can read a password "
		    "given here; use LAPSED_REDIS_PASSWORD or password_file");
	conf_redis_url_clear(&u);
	override(l, &url, SECTION_REDIS, "url", source->redis_url);
	override(l, &namespace, SECTION_LAPSED, "namespace", source->namespace);
}

struct conf *conf_load(const struct conf_source *source, struct conf_report *report)
{
	struct conf *c = mem_alloc(1, sizeof(*c));
	struct loading l = { .conf = c, .report = report, .told = report,
			     .tool = source->tool };

	c->private = mem_alloc(1, sizeof(*c->private));
	if (source->path)
		c->private->path = mem_copy(bytes_str(source->path));
	set_defaults(c, false);
	if (!source->path || load_file(&l)) {
		load_environment(&l);
		load_arguments(&l, source);
		conf_finish(c, source->tool, report);
	}
	if (report->mistakes == 0)
		return c;
	conf_free(c);
	return NULL;
}

static void clear_options(void *base, bool route)
{
	for (size_t i = 0; i < conf_n_options; i++)
		if ((conf_options[i].section == SECTION_ROUTE) == route)
			conf_option_clear(&conf_options[i], base);
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	clear_options(c, false);
	for (size_t i = 0; i < c->private->n_routes; i++) {
		clear_options(&c->private->routes[i], true);
		free(c->private->routes[i].name);
	}
	conf_properties_clear(c);
	free(c->redis_host);
	free(c->redis_socket);
	conf_secret_free(c->redis_password);
	routes_free(c->routes);
	free(c->private->routes);
	free(c->private->path);
	free(c->private);
	free(c);
}
