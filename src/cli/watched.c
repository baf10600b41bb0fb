/* SPDX-License-Identifier: BSD-2-Clause */

/* watched - the verbs that change a watched key: setex, del. */
#include "cli/subject.h"
#include "cli/value.h"
#include "core/route.h"

static bool read_ttl(const struct cli *cli, struct cli_when *when, struct err *err)
{
	struct err why;

	if (!value_duration(cli->args.word[1], &when->in, &why))
		return err_set(err, "DURATION: %s", why.text);
	if (when->in == 0)
		return err_set(err, "DURATION: a key needs more time to live than 0");
	snprintf(when->text, sizeof(when->text), "+%lld", (long long)when->in);
	return true;
}

static bool read_value(struct cli *cli, struct bytes *value, struct err *err)
{
	const char *text = cli->args.word[2];
	struct buf *room;

	*value = bytes_str(text);
	if (strcmp(text, "-") == 0) {
		room = cli_room(cli);
		if (!value_read(text, room, err))
			return false;
		*value = buf_view(room);
	}
	return value->n <= VALUE_PAYLOAD_MAX || err_set(err, "VALUE holds %zu bytes, and no "
		"more than %d are allowed", value->n, VALUE_PAYLOAD_MAX);
}

/* Only a configuration with routes knows; without one, nothing is said. */
static void warn_of_no_route(const struct cli *cli, const struct subject *s)
{
	const struct routes *routes = cli->conf->routes;

	if (routes && routes_count(routes) > 0
			&& !routes_match(routes, (unsigned)s->db, s->name, NULL))
		cli_note("warning: no route of %s takes this key: lapsed would bury its "
			"expiry as a dead letter", args_value(&cli->args, "config"));
}

static enum status setex(struct cli *cli, const struct subject *s,
			 const struct cli_when *when, const struct call *args)
{
	enum status status;
	struct err err;
	redisReply *reply = subject_call(cli, "setex", s, args, &status, &err);
	const char *result;
	msec_t due;

	if (!reply)
		return status == STATUS_DONE ? cli_failed_call(cli, &err) : status;
	result = bytes_eq(cli_answer(reply, 0), BYTES("replaced")) ? "replaced" : "set";
	due = cli_answer_number(reply, 1, 0);
	if (cli->json)
		subject_tell_json(s, result, due, NULL, cli_answer(reply, 2));
	else
		subject_tell_due(cli, s, result, due, when);
	freeReplyObject(reply);
	warn_of_no_route(cli, s);
	return STATUS_DONE;
}

enum status cli_setex(struct cli *cli)
{
	struct subject s;
	struct cli_when when;
	struct bytes value;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;

	if (!subject_read(cli, true, &s, &err) || !read_ttl(cli, &when, &err)
			|| !read_value(cli, &value, &err))
		return cli_usage(cli, &err);
	call_add(&args, bytes_str(when.text));
	call_add(&args, value);
	if (args_flag(&cli->args, "no-copy")) {
		call_add(&args, BYTES("copy"));
		call_add(&args, BYTES("0"));
	}
	status = setex(cli, &s, &when, &args);
	call_clear(&args);
	return status;
}

enum status cli_del(struct cli *cli)
{
	struct subject s;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;
	struct change change;

	if (!subject_read(cli, true, &s, &err))
		return cli_usage(cli, &err);
	status = subject_change(cli, "del", "cancelled", &s, &args, &change);
	if (status != STATUS_DONE)
		return status;
	if (cli->json)
		subject_tell_json(&s, "cancelled", change.due, NULL, bytes_none);
	else
		subject_tell(&s, "deleted");
	return STATUS_DONE;
}
