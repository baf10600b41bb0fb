/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * job - the verbs of a consumer for a job that it received (finish, touch,
 * fail), and the one that takes back all of a topic (purge).
 */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/value.h"
#include "core/record.h"

#define PURGE_STEP	"500"

/* "finished s:a@1.0", and what else the answer tells. */
static void tell(const struct cli *cli, struct bytes ce_id, const redisReply *reply)
{
	struct bytes result = cli_answer(reply, 0), next = cli_answer(reply, 2);
	bool touched = bytes_eq(result, BYTES("touched"));
	int64_t at = cli_answer_number(reply, 1, -1);
	char time[OUT_TIME];
	struct buf b = { .n = 0 };
	struct json j;

	if (!cli->json) {
		printf("%.*s %.*s", (int)result.n, result.p, (int)ce_id.n, ce_id.p);
		if (at >= 0)
			printf(touched ? ", until %s" : ", at %s", out_time(at, time));
		if (next.n)
			printf(", as %.*s", (int)next.n, next.p);
		putchar('\n');
		return;
	}
	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "result");
	json_string(&j, result);
	out_json_bytes(&j, "ce_id", ce_id);
	if (at >= 0)
		out_json_time(&j, touched ? "deadline" : "due", at);
	else
		out_json_bytes(&j, "state", cli_answer(reply, 1));
	if (next.n)
		out_json_bytes(&j, "next_ce_id", next);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void tell_stale(struct bytes ce_id)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "result");
	json_cstr(&j, "stale");
	out_json_bytes(&j, "ce_id", ce_id);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static enum status job_one(struct cli *cli, const char *script, struct bytes ce_id,
			   const struct call *more)
{
	struct call c = { .n = 0 };
	struct err err;
	redisReply *reply;

	call_add(&c, BYTES("1"));
	call_add(&c, bytes_str(cli->prefix));
	call_add(&c, ce_id);
	for (size_t i = 0; i < more->n; i++)
		call_add(&c, bytes_of(more->p[i], more->len[i]));
	reply = link_script(cli->link, script, &c, &err);
	call_clear(&c);
	if (reply) {
		tell(cli, ce_id, reply);
		freeReplyObject(reply);
		return STATUS_DONE;
	}
	if (link_code(cli->link) != SCRIPT_STALE)
		return cli_failed_call(cli, &err);
	if (cli->json)
		tell_stale(ce_id);
	return cli_fail(STATUS_REFUSED, "%.*s: %s", (int)ce_id.n, ce_id.p, err.text);
}

/* A usage error is told before a server is asked. */
static bool check_ids(const struct cli *cli, struct err *err)
{
	struct buf room = { .n = 0 };
	struct ce_id id;
	bool ok = true;

	for (size_t i = 0; ok && i < cli->args.n_words; i++)
		ok = ce_id_parse(bytes_str(cli->args.word[i]), &room, &id, err) &&
			(id.member.kind == MEMBER_SCHEDULED ||
			 err_set(err, "only scheduled events have a time to run"));
	buf_clear(&room);
	return ok;
}

/* Every CE_ID that was named; the worst status of all. */
static enum status job_all(struct cli *cli, const char *script, const struct call *more)
{
	enum status worst, status;

	worst = cli_connect(cli);
	for (size_t i = 0; worst != STATUS_FAILED && i < cli->args.n_words; i++) {
		if (worst == STATUS_USAGE)
			break;
		status = job_one(cli, script, bytes_str(cli->args.word[i]), more);
		if (status != STATUS_DONE)
			worst = status;
	}
	return worst;
}

/* The value of --in or --for as `+ms`; true without it. */
static bool read_span(struct cli *cli, const char *option, struct bytes *span, struct err *err)
{
	const char *text = args_value(&cli->args, option);
	struct buf *room;
	int64_t ms;

	*span = bytes_none;
	if (!text)
		return true;
	if (!value_duration(text, &ms, err))
		return false;
	room = cli_room(cli);
	buf_printf(room, "+%lld", (long long)ms);
	*span = buf_view(room);
	return true;
}

enum status cli_finish(struct cli *cli)
{
	const struct call nothing = { .n = 0 };
	struct err err;

	if (!check_ids(cli, &err))
		return cli_usage(cli, &err);
	return job_all(cli, "finish", &nothing);
}

enum status cli_touch(struct cli *cli)
{
	struct call more = { .n = 0 };
	struct bytes span;
	struct err err;
	enum status status;

	if (!check_ids(cli, &err) || !read_span(cli, "for", &span, &err))
		return cli_usage(cli, &err);
	if (span.n)
		call_add(&more, span);
	status = job_all(cli, "touch", &more);
	call_clear(&more);
	return status;
}

enum status cli_fail_job(struct cli *cli)
{
	const char *reason = args_value(&cli->args, "reason");
	struct call more = { .n = 0 };
	struct bytes span;
	struct err err;
	enum status status;

	if (!check_ids(cli, &err) || !read_span(cli, "in", &span, &err))
		return cli_usage(cli, &err);
	call_add(&more, reason ? bytes_str(reason) : BYTES(""));
	if (span.n)
		call_add(&more, span);
	status = job_all(cli, "fail", &more);
	call_clear(&more);
	return status;
}

/* purge --------------------------------------------------------------- */

static void purge_told(const struct cli *cli, const char *topic, uint64_t n, uint64_t flying)
{
	struct buf b = { .n = 0 };
	struct json j;

	if (!cli->json) {
		printf("purged %llu of topic %s\n", (unsigned long long)n, topic);
		if (flying)
			cli_note("%llu are on their way to Kafka", (unsigned long long)flying);
		return;
	}
	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "result");
	json_cstr(&j, "purged");
	json_key(&j, "topic");
	json_cstr(&j, topic);
	json_key(&j, "cancelled");
	json_uint(&j, n);
	json_key(&j, "in_flight");
	json_uint(&j, flying);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static enum status purge(struct cli *cli, const char *topic)
{
	char cursor[64] = "0";
	uint64_t n = 0, flying = 0;
	struct err err;

	do {
		struct call c = { .n = 0 };
		redisReply *reply;

		call_add(&c, BYTES("1"));
		call_add(&c, bytes_str(cli->prefix));
		call_add(&c, bytes_str(topic));
		call_add(&c, bytes_str(cursor));
		call_add(&c, BYTES(PURGE_STEP));
		reply = link_script(cli->link, "purge", &c, &err);
		call_clear(&c);
		if (!reply) {
			cli_note("%llu were cancelled until then", (unsigned long long)n);
			return cli_failed_call(cli, &err);
		}
		snprintf(cursor, sizeof(cursor), "%.*s", (int)cli_answer(reply, 0).n,
			 cli_answer(reply, 0).p);
		n += (uint64_t)cli_answer_number(reply, 2, 0);
		flying += (uint64_t)cli_answer_number(reply, 3, 0);
		freeReplyObject(reply);
	} while (strcmp(cursor, "0") != 0);
	purge_told(cli, topic, n, flying);
	return STATUS_DONE;
}

enum status cli_purge(struct cli *cli)
{
	const char *topic = args_value(&cli->args, "topic");
	enum status status;
	struct err err;

	if (!topic || !topic_valid(bytes_str(topic))) {
		err_set(&err, topic ? "--topic: not a topic of Kafka" : "--topic TOPIC is needed");
		return cli_usage(cli, &err);
	}
	if (!args_flag(&cli->args, "yes")) {
		err_set(&err, "that takes back all that is pending for the topic: add --yes");
		return cli_usage(cli, &err);
	}
	status = cli_connect(cli);
	return status == STATUS_DONE ? purge(cli, topic) : status;
}
