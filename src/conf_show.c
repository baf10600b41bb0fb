/* SPDX-License-Identifier: BSD-2-Clause */

/* What is done with a loaded configuration: shown, checked, compared. */
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "conf_file.h"
#include "conf_finish.h"
#include "conf_kafka.h"
#include "conf_report.h"
#include "conf_table.h"
#include "core/buf.h"
#include "core/mem.h"
#include "io/kafka.h"

#define EXIT_CONF	2

/* Dump. */

static void print_origin(const struct conf *c, const struct conf_origin *o, struct buf *out)
{
	switch (o->kind) {
	case ORIGIN_DEFAULT:
		buf_str(out, "default");
		break;
	case ORIGIN_FILE:
		buf_printf(out, "%s:%d", c->private->path, o->line);
		break;
	case ORIGIN_ENVIRONMENT:
	case ORIGIN_ARGUMENT:
		buf_str(out, o->name);
		break;
	}
}

static void print_option(const struct conf *c, const struct conf_option *o,
			 const void *base, const struct conf_origin *origins, struct buf *out)
{
	size_t before;

	buf_printf(out, "# %s\n", o->help);
	before = out->n;
	buf_printf(out, "%s = ", o->name);

	size_t value = out->n;

	conf_option_print(o, base, out);
	if (out->n > value) {
		buf_str(out, "\t; ");
		print_origin(c, &origins[conf_option_index(o)], out);
	} else {
		out->n = before;
		buf_printf(out, "# %s is not set", o->name);
	}
	buf_byte(out, '\n');
}

static void print_section(const struct conf *c, enum conf_section section,
			  const void *base, const struct conf_origin *origins, struct buf *out)
{
	for (size_t i = 0; i < conf_n_options; i++)
		if (conf_options[i].section == section)
			print_option(c, &conf_options[i], base, origins, out);
}

static bool overridden(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->n_kafka; i++)
		if (strcmp(c->kafka[i].name, name) == 0)
			return true;
	return false;
}

static void print_properties(const struct conf *c, struct buf *out)
{
	for (size_t i = 0; i < c->n_kafka; i++) {
		const struct conf_property *p = &c->kafka[i];

		if (p->secret) {
			buf_printf(out, "# %s = (hidden)\n", p->name);
		} else if (p->line) {
			buf_printf(out, "%s = ", p->name);
			conf_text_print(p->value, out);
			buf_printf(out, "\t; %s:%d\n", c->private->path, p->line);
		}
	}
	for (const struct kafka_setting *s = kafka_defaults(); s->name; s++)
		if (!overridden(c, s->name))
			buf_printf(out, "# %s = %s\t; lapsed's default\n", s->name, s->value);
}

void conf_dump(const struct conf *c, FILE *out)
{
	const struct conf_private *p = c->private;
	struct buf b = { 0 };

	for (int i = 0; i < SECTION_ROUTE; i++) {
		buf_printf(&b, "%s[%s]\n", i ? "\n" : "", conf_section_names[i]);
		print_section(c, (enum conf_section)i, c, p->origins, &b);
		if (i == SECTION_REDIS && c->redis_password)
			buf_str(&b, "# the password is (hidden)\n");
		if (i == SECTION_KAFKA)
			print_properties(c, &b);
	}
	for (size_t i = 0; i < p->n_routes; i++) {
		buf_printf(&b, "\n[route %s]\n", p->routes[i].name);
		print_section(c, SECTION_ROUTE, &p->routes[i], p->routes[i].origins, &b);
	}
	fwrite(b.p, 1, b.n, out);
	buf_clear(&b);
}

/* Reload. */

#define SAY(report, severity, ...)	conf_say(report, severity, NULL, NULL, __VA_ARGS__)

static void note_option(const struct conf_option *o, const struct conf *running,
			const struct conf *fresh, struct conf_report *report)
{
	struct buf from = { 0 }, to = { 0 };
	const char *section = conf_section_names[o->section];

	conf_option_print(o, running, &from);
	conf_option_print(o, fresh, &to);
	if (o->flags & OPTION_RELOAD)
		SAY(report, CONF_CHANGE, "[%s] %s: %s -> %s", section, o->name,
		    buf_cstr(&from), buf_cstr(&to));
	else
		SAY(report, CONF_WARNING, "[%s] %s stays %s; %s takes a restart", section,
		    o->name, from.n ? buf_cstr(&from) : "unset",
		    to.n ? buf_cstr(&to) : "unsetting it");
	buf_clear(&from);
	buf_clear(&to);
}

static void diff_options(const struct conf *running, struct conf *fresh,
			 struct conf_report *report)
{
	for (size_t i = 0; i < conf_n_options; i++) {
		const struct conf_option *o = &conf_options[i];

		if (o->section == SECTION_ROUTE || conf_option_same(o, running, fresh))
			continue;
		note_option(o, running, fresh, report);
		if (o->flags & OPTION_RELOAD)
			continue;
		conf_option_copy(o, fresh, running);
		fresh->private->origins[i] = running->private->origins[i];
	}
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void keep_text(char **fresh, const char *running)
{
	conf_secret_free(*fresh);
	*fresh = running ? mem_copy(bytes_str(running)) : NULL;
}

static void diff_redis(const struct conf *running, struct conf *fresh,
		       struct conf_report *report)
{
	if (!same_text(running->redis_password, fresh->redis_password))
		SAY(report, CONF_WARNING, "[redis] the password stays; a new one takes a restart");
	keep_text(&fresh->redis_host, running->redis_host);
	keep_text(&fresh->redis_socket, running->redis_socket);
	keep_text(&fresh->redis_password, running->redis_password);
	fresh->redis_port = running->redis_port;
}

/* Says which properties of `a` are not the same in `b`. */
static void diff_properties(const struct conf *a, const struct conf *b, bool both,
			    struct conf_report *report)
{
	for (size_t i = 0; i < a->n_kafka; i++) {
		const struct conf_property *p = &a->kafka[i], *q = NULL;

		for (size_t j = 0; j < b->n_kafka && !q; j++)
			if (strcmp(p->name, b->kafka[j].name) == 0)
				q = &b->kafka[j];
		if (strcmp(p->name, "bootstrap.servers") == 0)
			continue;	/* an option as well, and told of as one */
		if (!q || (both && strcmp(p->value, q->value) != 0))
			SAY(report, CONF_WARNING, "[kafka] %s stays as it is; a change takes "
			    "a restart", p->name);
	}
}

static void diff_kafka(const struct conf *running, struct conf *fresh,
		       struct conf_report *report)
{
	diff_properties(running, fresh, true, report);
	diff_properties(fresh, running, false, report);
	conf_properties_copy(fresh, running);
}

static const struct conf_route *route_named(const struct conf *c, const char *name, size_t *at)
{
	for (*at = 0; *at < c->private->n_routes; ++*at)
		if (strcmp(c->private->routes[*at].name, name) == 0)
			return &c->private->routes[*at];
	return NULL;
}

static bool same_route(const struct conf_route *a, const struct conf_route *b)
{
	for (size_t i = 0; i < conf_n_options; i++)
		if (conf_options[i].section == SECTION_ROUTE &&
		    !conf_option_same(&conf_options[i], a, b))
			return false;
	return true;
}

static void diff_routes(const struct conf *running, const struct conf *fresh,
			struct conf_report *report)
{
	size_t before = 0, at;
	bool moved = false;

	for (size_t i = 0; i < fresh->private->n_routes; i++) {
		const struct conf_route *r = &fresh->private->routes[i];
		const struct conf_route *old = route_named(running, r->name, &at);

		if (!old)
			SAY(report, CONF_CHANGE, "route %s: new", r->name);
		else if (!same_route(r, old))
			SAY(report, CONF_CHANGE, "route %s: changed", r->name);
		if (old && at < before)
			moved = true;
		if (old)
			before = at;
	}
	if (moved)
		SAY(report, CONF_CHANGE, "the routes are in another order");
	for (size_t i = 0; i < running->private->n_routes; i++)
		if (!route_named(fresh, running->private->routes[i].name, &at))
			SAY(report, CONF_CHANGE, "route %s: gone", running->private->routes[i].name);
}

void conf_reload_diff(const struct conf *running, struct conf *fresh,
		      struct conf_report *report)
{
	bool renamed = strcmp(running->namespace, fresh->namespace) != 0;

	diff_options(running, fresh, report);
	diff_redis(running, fresh, report);
	diff_kafka(running, fresh, report);
	diff_routes(running, fresh, report);
	if (renamed)
		conf_finish_routes(fresh);
}

/* The programs that do nothing else. */

static struct conf *load_and_tell(const struct conf_source *source)
{
	struct conf_report report = { 0 };
	struct conf *c = conf_load(source, &report);
	struct err e;

	if (c && !source->tool && !conf_kafka_try(c, &e)) {
		conf_say(&report, CONF_MISTAKE, source->path, NULL, "[kafka] %s", e.text);
		conf_free(c);
		c = NULL;
	}
	conf_report_print(&report, "", stderr);
	conf_report_clear(&report);
	return c;
}

/* What did not fit may have been lost long before the last line. */
static int told_all(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	perror("lapsed: standard output");
	return EXIT_FAILURE;
}

int conf_check_main(const struct conf_source *source)
{
	struct conf *c = load_and_tell(source);

	if (!c)
		return EXIT_CONF;

	size_t n = routes_count(c->routes);

	printf("%s: good, with %zu route%s\n", source->path ? source->path : "configuration",
	       n, n == 1 ? "" : "s");
	conf_free(c);
	return told_all();
}

int conf_dump_main(const struct conf_source *source)
{
	struct conf *c = load_and_tell(source);

	if (!c)
		return EXIT_CONF;
	conf_dump(c, stdout);
	conf_free(c);
	return told_all();
}
