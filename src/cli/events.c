/* SPDX-License-Identifier: BSD-2-Clause */

/* events - the verbs for scheduled events: schedule, reschedule, cancel. */
#include "cli/subject.h"
#include "cli/value.h"
#include "core/record.h"

/* Nothing, the text of --data, or what a file or standard input holds. */
static bool read_data(struct cli *cli, struct bytes *data, struct err *err)
{
	const char *text = args_value(&cli->args, "data");
	const char *path = args_value(&cli->args, "data-file");
	struct buf *room;

	if (text && path)
		return err_set(err, "--data and --data-file exclude each other");
	if (text && strcmp(text, "-") == 0)
		path = text;
	if (path) {
		room = cli_room(cli);
		if (!value_read(path, room, err))
			return false;
		*data = buf_view(room);
		return true;
	}
	*data = text ? bytes_str(text) : BYTES("");
	if (data->n > VALUE_PAYLOAD_MAX)
		return err_set(err, "--data holds %zu bytes, and no more than %d are allowed",
			data->n, VALUE_PAYLOAD_MAX);
	return true;
}

static bool read_topic(const struct cli *cli, struct bytes *topic, struct err *err)
{
	const char *text = args_value(&cli->args, "topic");

	if (!text)
		return err_set(err, "--topic TOPIC is needed");
	*topic = bytes_str(text);
	return topic_valid(*topic) || err_set(err, "--topic: Kafka allows 1 to %d of "
		"A-Za-z0-9._- as a topic, and not . or ..; not \"%s\"", RECORD_TOPIC_MAX, text);
}

/* What the script takes behind the id. */
static bool read_event(struct cli *cli, const struct cli_when *when, struct call *args,
		       struct err *err)
{
	const char *key_text = args_value(&cli->args, "key");
	struct bytes topic, key = bytes_none, data;

	if (!read_topic(cli, &topic, err) || !read_data(cli, &data, err))
		return false;
	if (key_text && !cli_name(cli, key_text, "--key", &key, err))
		return false;
	call_add(args, bytes_str(when->text));
	call_add(args, topic);
	call_add(args, key);
	call_add(args, data);
	return true;
}

/* NAME=VALUE becomes the option `header.NAME` and its value. */
static bool add_header(struct cli *cli, struct call *args, const char *text, struct err *err)
{
	size_t n = strcspn(text, "=");
	struct buf *name;

	if (!text[n] || n == 0)
		return err_set(err, "--header takes NAME=VALUE, not \"%s\"", text);
	name = cli_room(cli);
	buf_str(name, "header.");
	buf_add(name, bytes_of(text, n));
	call_add(args, buf_view(name));
	call_add(args, bytes_str(text + n + 1));
	return true;
}

/* The options of the script, which checks what is in them. */
static bool read_options(struct cli *cli, struct call *args, struct err *err)
{
	static const char *const plain[] = { "type", "content-type" };

	if (args_flag(&cli->args, "nx")) {
		call_add(args, BYTES("nx"));
		call_add(args, BYTES("1"));
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		const char *value = args_value(&cli->args, plain[i]);

		if (value) {
			call_add(args, bytes_str(plain[i]));
			call_add(args, bytes_str(value));
		}
	}
	for (size_t i = 0; i < cli->args.n_given; i++) {
		const struct given *g = &cli->args.given[i];

		if (strcmp(g->option->name, "header") == 0
				&& !add_header(cli, args, g->value, err))
			return false;
	}
	return true;
}

static enum status schedule_failed(struct cli *cli, const struct subject *s,
				   const struct err *err)
{
	if (link_code(cli->link) != SCRIPT_EXISTS)
		return cli_failed_call(cli, err);
	if (cli->json)
		subject_tell_json(s, "exists", -1, bytes_none);
	return cli_refuse(s->name, "exists already: it is pending or on its way to Kafka");
}

static enum status schedule(struct cli *cli, const struct subject *s,
			    const struct cli_when *when, const struct call *args)
{
	enum status status;
	struct err err;
	redisReply *reply = subject_call(cli, "schedule", s, args, &status, &err);
	const char *result;
	msec_t due;

	if (!reply)
		return status == STATUS_DONE ? schedule_failed(cli, s, &err) : status;
	result = bytes_eq(cli_answer(reply, 0), BYTES("replaced")) ? "replaced" : "scheduled";
	due = cli_answer_number(reply, 1, 0);
	if (cli->json)
		subject_tell_json(s, result, due, cli_answer(reply, 2));
	else
		subject_tell_due(cli, s, result, due, when);
	freeReplyObject(reply);
	return STATUS_DONE;
}

enum status cli_schedule(struct cli *cli)
{
	struct subject s;
	struct cli_when when;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;

	if (subject_read(cli, false, &s, &err) && cli_when(cli, &when, &err)
			&& read_event(cli, &when, &args, &err)
			&& read_options(cli, &args, &err))
		status = schedule(cli, &s, &when, &args);
	else
		status = cli_usage(cli, &err);
	call_clear(&args);
	return status;
}

enum status cli_reschedule(struct cli *cli)
{
	struct subject s;
	struct cli_when when;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;
	msec_t due;

	if (!subject_read(cli, false, &s, &err) || !cli_when(cli, &when, &err))
		return cli_usage(cli, &err);
	call_add(&args, bytes_str(when.text));
	status = subject_change(cli, "reschedule", "rescheduled", &s, &args, &due);
	call_clear(&args);
	if (status != STATUS_DONE)
		return status;
	if (cli->json)
		subject_tell_json(&s, "rescheduled", due, bytes_none);
	else
		subject_tell_due(cli, &s, "rescheduled", due, &when);
	return STATUS_DONE;
}

enum status cli_cancel(struct cli *cli)
{
	struct subject s;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;
	msec_t due;

	if (!subject_read(cli, false, &s, &err))
		return cli_usage(cli, &err);
	status = subject_change(cli, "cancel", "cancelled", &s, &args, &due);
	if (status != STATUS_DONE)
		return status;
	if (cli->json)
		subject_tell_json(&s, "cancelled", due, bytes_none);
	else
		subject_tell(&s, "cancelled");
	return STATUS_DONE;
}
