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

static void add_number(struct cli *cli, struct call *args, const char *name, int64_t n)
{
	struct buf *room = cli_room(cli);

	buf_printf(room, "%lld", (long long)n);
	call_add(args, bytes_str(name));
	call_add(args, buf_view(room));
}

/* FIRST:FACTOR:MOST, two durations and a number. */
static bool add_backoff(struct cli *cli, struct call *args, const char *text, struct err *err)
{
	size_t n = strcspn(text, ":"), m = text[n] ? strcspn(text + n + 1, ":") : 0;
	int64_t first, most;
	struct buf *room;
	char head[32];

	if (!text[n] || !text[n + 1 + m] || n >= sizeof(head))
		return err_set(err, "--backoff takes FIRST:FACTOR:MOST, as 1s:2:1m, not \"%s\"", text);
	snprintf(head, sizeof(head), "%.*s", (int)n, text);
	if (!value_duration(head, &first, err) || !value_duration(text + n + m + 2, &most, err))
		return false;
	room = cli_room(cli);
	buf_printf(room, "%lld:%.*s:%lld", (long long)first, (int)m, text + n + 1,
		   (long long)most);
	call_add(args, BYTES("backoff"));
	call_add(args, buf_view(room));
	return true;
}

/* What makes a job of it. */
static bool read_terms(struct cli *cli, struct call *args, struct err *err)
{
	const char *ttr = args_value(&cli->args, "ttr");
	const char *attempts = args_value(&cli->args, "attempts");
	const char *backoff = args_value(&cli->args, "backoff");
	int64_t ms;

	if (!ttr)
		return (!attempts && !backoff) ||
			err_set(err, "--attempts and --backoff need --ttr");
	if (!value_duration(ttr, &ms, err))
		return false;
	add_number(cli, args, "ttr", ms);
	if (attempts) {
		call_add(args, BYTES("attempts"));
		call_add(args, bytes_str(attempts));
	}
	return !backoff || add_backoff(cli, args, backoff, err);
}

/* --if-due-before as the script takes it. */
static bool read_limit(struct cli *cli, struct call *args, struct err *err)
{
	const char *text = args_value(&cli->args, "if-due-before");
	struct buf *room;
	msec_t at;

	if (!text)
		return true;
	if (!value_time(text, &at, err))
		return false;
	room = cli_room(cli);
	buf_printf(room, "@%lld", (long long)at);
	call_add(args, BYTES("if_due_before"));
	call_add(args, buf_view(room));
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
	return read_terms(cli, args, err) && read_limit(cli, args, err);
}

static enum status schedule_failed(struct cli *cli, const struct subject *s,
				   const struct err *err)
{
	if (link_code(cli->link) != SCRIPT_EXISTS)
		return cli_failed_call(cli, err);
	if (cli->json)
		subject_tell_json(s, "exists", -1, NULL, bytes_none);
	return cli_refuse(s->name, args_flag(&cli->args, "if-due-before") ?
		"exists already, and is not due before that time" :
		"exists already: it is pending, on its way to Kafka or waiting");
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
		subject_tell_json(s, result, due, NULL, cli_answer(reply, 2));
	else
		subject_tell_due(cli, s, result, due, when);
	freeReplyObject(reply);
	return STATUS_DONE;
}

/* --file takes the place of the ID, which is needed otherwise. */
static bool from_file(const struct cli *cli, bool *file, struct err *err)
{
	*file = args_flag(&cli->args, "file");
	if (*file && cli->args.n_words > 0)
		return err_set(err, "--file and ID exclude each other");
	return *file || cli->args.n_words > 0 || err_set(err, "ID or --file is needed");
}

enum status cli_schedule(struct cli *cli)
{
	struct subject s;
	struct cli_when when;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;
	bool file;

	if (!from_file(cli, &file, &err))
		return cli_usage(cli, &err);
	if (file)
		return cli_bulk(cli, "schedule_bulk");
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
	struct change change;

	if (!subject_read(cli, false, &s, &err) || !cli_when(cli, &when, &err))
		return cli_usage(cli, &err);
	call_add(&args, bytes_str(when.text));
	status = subject_change(cli, "reschedule", "rescheduled", &s, &args, &change);
	call_clear(&args);
	if (status != STATUS_DONE)
		return status;
	if (cli->json)
		subject_tell_json(&s, "rescheduled", change.due, NULL, bytes_none);
	else
		subject_tell_due(cli, &s, "rescheduled", change.due, &when);
	return STATUS_DONE;
}

/* Where it was, unless that is where most are. */
static void tell_cancelled(const struct subject *s, const char *state)
{
	fputs("cancelled ", stdout);
	out_name(stdout, s->name);
	printf(strcmp(state, "scheduled") == 0 ? "\n" : ", which was %s\n", state);
}

enum status cli_cancel(struct cli *cli)
{
	struct subject s;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;
	struct change change;
	bool file;

	if (!from_file(cli, &file, &err))
		return cli_usage(cli, &err);
	if (file)
		return cli_bulk(cli, "cancel_bulk");
	if (!subject_read(cli, false, &s, &err))
		return cli_usage(cli, &err);
	status = subject_change(cli, "cancel", "cancelled", &s, &args, &change);
	if (status != STATUS_DONE)
		return status;
	if (cli->json)
		subject_tell_json(&s, "cancelled", change.due, change.state, bytes_none);
	else
		tell_cancelled(&s, change.state);
	return STATUS_DONE;
}
