/* SPDX-License-Identifier: BSD-2-Clause */

/* show - the verb that tells all about one event or watched key. */
#include "cli/subject.h"
#include "core/record.h"

enum kind { KIND_TEXT, KIND_NAME, KIND_NUMBER, KIND_SPAN, KIND_DUE, KIND_BIRTH };

/* What the script answers, what people read, what JSON calls it. */
static const struct field {
	const char *name;
	const char *label;
	const char *json;
	enum kind kind;
} fields[] = {
	{ "state", "state", "state", KIND_TEXT },
	{ "due", "due", "due", KIND_DUE },
	{ "deadline", "deadline", "deadline", KIND_DUE },
	{ "died", "died", "died", KIND_DUE },
	{ "reason", "reason", "reason", KIND_TEXT },
	{ "ce_id", "ce_id", "ce_id", KIND_TEXT },
	{ "attempt", "attempt", "attempt", KIND_NUMBER },
	{ "birth", "stored", "birth_us", KIND_BIRTH },
	{ "ttr", "time to run", "ttr_ms", KIND_SPAN },
	{ "attempts", "attempts", "attempts", KIND_NUMBER },
	{ "backoff", "backoff", "backoff", KIND_TEXT },
	{ "topic", "topic", "topic", KIND_TEXT },
	{ "key", "kafka key", "kafka_key", KIND_NAME },
	{ "type", "type", "type", KIND_TEXT },
	{ "content-type", "content type", "content_type", KIND_TEXT },
	{ "payload", "payload", "payload", KIND_TEXT },
	{ "bytes", "payload bytes", "bytes", KIND_NUMBER },
	{ "record-bytes", "record bytes", "record_bytes", KIND_NUMBER },
	{ "unreadable", "unreadable", "unreadable", KIND_TEXT },
};

static const struct bytes header_prefix = { "header.", 7 };

/* NULL for a header, and for what a newer script may tell. */
static const struct field *field_of(struct bytes name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (bytes_eq(name, bytes_str(fields[i].name)))
			return &fields[i];
	return NULL;
}

static bool is_not_found(const redisReply *reply)
{
	return bytes_eq(cli_answer(reply, 1), BYTES("not-found"));
}

static void json_field(struct json *j, const struct field *f, const redisReply *reply, size_t i)
{
	switch (f->kind) {
	case KIND_DUE:
		out_json_time(j, f->json, cli_answer_number(reply, i, 0));
		return;
	case KIND_NUMBER:
	case KIND_SPAN:
	case KIND_BIRTH:
		json_key(j, f->json);
		json_int(j, cli_answer_number(reply, i, 0));
		return;
	case KIND_TEXT:
	case KIND_NAME:
		out_json_bytes(j, f->json, cli_answer(reply, i));
		return;
	}
}

static void json_headers(struct json *j, const redisReply *reply)
{
	char name[RECORD_NAME_MAX];

	json_key(j, "headers");
	json_object(j);
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		struct bytes n = cli_answer(reply, i);

		if (!bytes_starts(n, header_prefix))
			continue;
		n = bytes_skip(n, header_prefix.n);
		snprintf(name, sizeof(name), "%.*s", (int)n.n, n.p);
		out_json_bytes(j, name, cli_answer(reply, i + 1));
	}
	json_object_end(j);
}

static bool is_job(const redisReply *reply)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (bytes_eq(cli_answer(reply, i), BYTES("ttr")))
			return true;
	return false;
}

/* Attempts that ended, as the script tells them: "1 late 1764505800000 why". */
static void json_history(struct json *j, const redisReply *reply)
{
	if (!is_job(reply))
		return;
	json_key(j, "history");
	json_array(j);
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		int number = 0, at = 0;
		char how[8] = "";
		long long ended = 0;

		if (!bytes_eq(cli_answer(reply, i), BYTES("history")) ||
		    sscanf(reply->element[i + 1]->str, "%d %7s %lld%n", &number, how, &ended,
			   &at) != 3)
			continue;
		json_object(j);
		json_key(j, "attempt");
		json_int(j, number);
		json_key(j, "end");
		json_cstr(j, how);
		out_json_time(j, "ended", ended);
		if (reply->element[i + 1]->len > (size_t)at)
			out_json_bytes(j, "reason",
				       bytes_skip(cli_answer(reply, i + 1), (size_t)at + 1));
		json_object_end(j);
	}
	json_array_end(j);
}

static void text_history(const redisReply *reply, size_t i)
{
	int number = 0, at = 0;
	char how[8] = "", time[OUT_TIME];
	long long ended = 0;

	if (sscanf(reply->element[i]->str, "%d %7s %lld%n", &number, how, &ended, &at) != 3)
		return;
	out_label("attempt");
	printf("%d %s at %s", number, how, out_time(ended, time));
	if (reply->element[i]->len > (size_t)at) {
		fputs(": ", stdout);
		out_text(stdout, bytes_skip(cli_answer(reply, i), (size_t)at + 1), OUT_SHOWN);
	}
	putchar('\n');
}

static void show_json(const struct subject *s, const redisReply *reply)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	subject_json(&j, s);
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		const struct field *f = field_of(cli_answer(reply, i));

		if (f)
			json_field(&j, f, reply, i + 1);
	}
	if (!is_not_found(reply)) {
		json_headers(&j, reply);
		json_history(&j, reply);
	}
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void text_value(struct cli *cli, enum kind kind, const redisReply *reply, size_t i)
{
	struct bytes value = cli_answer(reply, i);
	char time[OUT_TIME], span[OUT_SPAN];
	int64_t number = cli_answer_number(reply, i, 0);
	struct err ignored;
	msec_t now;

	switch (kind) {
	case KIND_TEXT:
	case KIND_NUMBER:
		out_text(stdout, value, OUT_SHOWN);
		break;
	case KIND_NAME:
		out_name(stdout, value);
		break;
	case KIND_SPAN:
		fputs(out_span(number, span), stdout);
		break;
	case KIND_DUE:
		fputs(out_time(number, time), stdout);
		if (link_now(cli->link, &now, &ignored))
			printf(" (%s)", out_from_now(number, now, span));
		break;
	case KIND_BIRTH:
		fputs(out_time(number / 1000, time), stdout);
		break;
	}
	putchar('\n');
}

static void show_text(struct cli *cli, const struct subject *s, const redisReply *reply)
{
	out_label(s->watched ? "watched key" : "id");
	out_name(stdout, s->name);
	putchar('\n');
	if (s->watched) {
		out_label("database");
		printf("%llu\n", (unsigned long long)s->db);
	}
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		struct bytes name = cli_answer(reply, i);
		const struct field *f = field_of(name);

		if (f) {
			out_label(f->label);
			text_value(cli, f->kind, reply, i + 1);
		} else if (bytes_eq(name, BYTES("history"))) {
			text_history(reply, i + 1);
		} else if (bytes_starts(name, header_prefix)) {
			out_label("header");
			name = bytes_skip(name, header_prefix.n);
			out_text(stdout, name, name.n);
			fputs(": ", stdout);
			text_value(cli, KIND_TEXT, reply, i + 1);
		}
	}
}

/*
 * The script looks at some dead letters at a time: on to the older ones while
 * there are any.
 */
static redisReply *look(struct cli *cli, const struct subject *s, struct call *args,
			enum status *status, struct err *err)
{
	redisReply *reply = subject_call(cli, "show", s, args, status, err);
	size_t n = args->n;
	char older[24];

	while (reply && is_not_found(reply) && bytes_eq(cli_answer(reply, 2), BYTES("older"))) {
		struct bytes next = cli_answer(reply, 3);

		snprintf(older, sizeof(older), "%.*s", (int)next.n, next.p);
		freeReplyObject(reply);
		args->n = n;
		call_add(args, BYTES("older"));
		call_add(args, bytes_str(older));
		reply = subject_call(cli, "show", s, args, status, err);
	}
	return reply;
}

static enum status show(struct cli *cli, const struct subject *s, struct call *args)
{
	enum status status;
	struct err err;
	redisReply *reply = look(cli, s, args, &status, &err);

	if (!reply)
		return status == STATUS_DONE ? cli_failed_call(cli, &err) : status;
	if (cli->json)
		show_json(s, reply);
	else if (!is_not_found(reply))
		show_text(cli, s, reply);
	if (is_not_found(reply))
		status = cli_refuse(s->name, "not found");
	freeReplyObject(reply);
	return status;
}

enum status cli_show(struct cli *cli)
{
	struct subject s;
	struct call args = { .n = 0 };
	struct err err;
	enum status status;
	bool watched = args_flag(&cli->args, "watched");

	if (args_flag(&cli->args, "db") && !watched) {
		err_set(&err, "--db is for watched keys: add --watched");
		return cli_usage(cli, &err);
	}
	if (!subject_read(cli, watched, &s, &err))
		return cli_usage(cli, &err);
	s.keys = 1;
	if (watched) {
		call_add(&args, BYTES("watched"));
		call_add(&args, BYTES("1"));
	}
	status = show(cli, &s, &args);
	call_clear(&args);
	return status;
}
