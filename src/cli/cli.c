/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/value.h"
#include "conf_file.h"
#include "core/mem.h"
#include "core/record.h"
#include "core/units.h"

/* Standard output first, so that the two come in order. */
__attribute__((format(printf, 1, 0)))
static void complain(const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	fflush(stdout);
	fputs("lapse: ", stderr);
	out_text(stderr, bytes_str(text), sizeof(text));
	fputc('\n', stderr);
}

enum status cli_fail(enum status status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
	return status;
}

void cli_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain(fmt, ap);
	va_end(ap);
}

enum status cli_refuse(struct bytes name, const char *what)
{
	fflush(stdout);
	fputs("lapse: ", stderr);
	out_name(stderr, name);
	fprintf(stderr, ": %s\n", what);
	return STATUS_REFUSED;
}

enum status cli_usage(const struct cli *cli, const struct err *err)
{
	return cli_fail(STATUS_USAGE, "%s: %s", cli->args.verb->name, err->text);
}

static bool has_password(const char *url)
{
	static const char scheme[] = "redis://";
	const char *at = strrchr(url, '@');

	if (!at || strncmp(url, scheme, strlen(scheme)) != 0)
		return false;
	url += strlen(scheme);
	return memchr(url, ':', (size_t)(at - url)) != NULL;
}

/*
 * A password in the URL of the command line is taken, though everyone on this
 * machine can read it there; it goes the way of the environment, where a
 * password is nothing special.
 */
static const char *url_from_arguments(const struct args *args)
{
	const char *url = args_value(args, "redis");

	if (!url || !has_password(url))
		return url;
	cli_note("warning: everyone can see a password on the command line; "
		"use LAPSED_REDIS_PASSWORD or --password-file");
	if (setenv("LAPSED_REDIS_URL", url, 1) != 0)
		abort();
	return NULL;
}

/* An empty one is mostly a shell variable that was not set. */
static bool none_is_empty(const struct args *args, struct err *err)
{
	static const char *const names[] = { "config", "redis", "namespace", "password-file" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = args_value(args, names[i]);

		if (value && !*value)
			return err_set(err, "--%s is empty", names[i]);
	}
	return true;
}

static bool password_from_file(struct cli *cli, struct err *err)
{
	const char *path = args_value(&cli->args, "password-file");
	bool open = false;
	char *password;
	struct err why;

	if (!path)
		return true;
	password = conf_secret_read(path, &open, &why);
	if (!password)
		return err_set(err, "--password-file: %s: %s", path, why.text);
	if (open)
		cli_note("warning: everyone may read %s", path);
	conf_secret_free(cli->conf->redis_password);
	cli->conf->redis_password = password;
	return true;
}

bool cli_load_conf(struct cli *cli, const struct conf_source *source)
{
	struct conf_report report = { .n = 0 };

	cli->conf = conf_load(source, &report);
	conf_report_print(&report, "lapse: ", stderr);
	conf_report_clear(&report);
	return cli->conf != NULL;
}

static enum status load_conf(struct cli *cli)
{
	struct conf_source source = {
		.path = args_value(&cli->args, "config"),
		.tool = true,
		.namespace = args_value(&cli->args, "namespace"),
	};
	uint64_t database;
	struct err err;

	if (!none_is_empty(&cli->args, &err))
		return cli_usage(cli, &err);
	source.redis_url = url_from_arguments(&cli->args);
	if (!cli_load_conf(cli, &source))
		return STATUS_USAGE;
	if (!password_from_file(cli, &err)
			|| !cli_number(cli, "database", RECORD_DB_MAX,
				(uint64_t)cli->conf->database, &database, &err))
		return cli_usage(cli, &err);
	cli->conf->database = (int64_t)database;
	return STATUS_DONE;
}

enum status cli_connect(struct cli *cli)
{
	struct buf prefix = { .n = 0 };
	struct err err;
	enum status status = load_conf(cli);

	if (status != STATUS_DONE)
		return status;
	buf_printf(&prefix, "%s:{0}", cli->conf->namespace);
	buf_cstr(&prefix);
	cli->prefix = prefix.p;
	cli->link = link_open(cli->conf, &err);
	if (!cli->link)
		return cli_fail(STATUS_FAILED, "%s", err.text);
	return STATUS_DONE;
}

enum status cli_failed_call(const struct cli *cli, const struct err *err)
{
	if (link_code(cli->link) == SCRIPT_BADARG)
		return cli_usage(cli, err);
	return cli_fail(STATUS_FAILED, "%s", err->text);
}

struct buf *cli_room(struct cli *cli)
{
	cli->room = mem_resize(cli->room, cli->n_rooms + 1, sizeof(*cli->room));
	cli->room[cli->n_rooms] = mem_alloc(1, sizeof(struct buf));
	return cli->room[cli->n_rooms++];
}

bool cli_name(struct cli *cli, const char *text, const char *what, struct bytes *name,
	      struct err *err)
{
	struct err why;

	if (value_name(text, args_flag(&cli->args, "encoded"), cli_room(cli), name, &why))
		return true;
	return err_set(err, "%s: %s", what, why.text);
}

bool cli_number(const struct cli *cli, const char *option, uint64_t max,
		uint64_t fallback, uint64_t *n, struct err *err)
{
	const char *text = args_value(&cli->args, option);
	struct err why;

	*n = fallback;
	if (!text || units_number(bytes_str(text), 0, max, n, &why))
		return true;
	return err_set(err, "--%s: %s", option, why.text);
}

bool cli_limit(const struct cli *cli, uint64_t fallback, uint64_t *n, struct err *err)
{
	if (!cli_number(cli, "limit", INT32_MAX, fallback, n, err))
		return false;
	return *n > 0 || err_set(err, "--limit: at least 1 has to be listed");
}

enum status cli_tell_rest(struct cli *cli, const char *zset, const char *max, size_t listed,
			  size_t fallback)
{
	char command[512];
	struct err err;
	redisReply *count;

	if (listed < fallback || args_flag(&cli->args, "limit") || !out_open())
		return STATUS_DONE;
	snprintf(command, sizeof(command), "ZCOUNT %s:%s -inf %s", cli->prefix, zset, max);
	count = link_command(cli->link, command, &err);
	if (!count)
		return cli_failed_call(cli, &err);
	if (count->type == REDIS_REPLY_INTEGER && count->integer > (long long)listed)
		cli_note("these are the first %zu of %lld; --limit N lists more",
			listed, count->integer);
	freeReplyObject(count);
	return STATUS_DONE;
}

bool cli_when(const struct cli *cli, struct cli_when *when, struct err *err)
{
	const char *in = args_value(&cli->args, "in"), *at = args_value(&cli->args, "at");
	struct err why;
	msec_t t;

	if (!in == !at)
		return err_set(err, in ? "--in and --at exclude each other"
			: "one of --in DURATION and --at TIME is needed");
	when->in = -1;
	if (in) {
		if (!value_duration(in, &when->in, &why))
			return err_set(err, "--in: %s", why.text);
		snprintf(when->text, sizeof(when->text), "+%lld", (long long)when->in);
		return true;
	}
	if (!value_time(at, &t, &why))
		return err_set(err, "--at: %s", why.text);
	snprintf(when->text, sizeof(when->text), "@%lld", (long long)t);
	return true;
}

const char *cli_until(struct cli *cli, const struct cli_when *when, msec_t due,
		      char out[OUT_SPAN])
{
	char span[OUT_SPAN];
	struct err ignored;
	msec_t now;

	if (when->in > 0)
		snprintf(out, OUT_SPAN, " (in %.24s)", units_duration_text(when->in, span));
	else if (when->in == 0)
		snprintf(out, OUT_SPAN, " (now)");
	else if (link_now(cli->link, &now, &ignored))
		snprintf(out, OUT_SPAN, " (%.40s)", out_from_now(due > now ? due : now, now, span));
	else
		out[0] = '\0';
	return out;
}

struct bytes cli_answer(const redisReply *reply, size_t i)
{
	if (reply->type != REDIS_REPLY_ARRAY || i >= reply->elements
			|| reply->element[i]->type != REDIS_REPLY_STRING)
		return bytes_none;
	return bytes_of(reply->element[i]->str, reply->element[i]->len);
}

int64_t cli_answer_number(const redisReply *reply, size_t i, int64_t missing)
{
	struct bytes text = cli_answer(reply, i);
	struct err ignored;
	uint64_t n;

	return units_number(text, 0, INT64_MAX, &n, &ignored) ? (int64_t)n : missing;
}
