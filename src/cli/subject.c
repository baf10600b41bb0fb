/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/subject.h"

#include "core/record.h"

bool subject_read(struct cli *cli, bool watched, struct subject *s, struct err *err)
{
	s->watched = watched;
	s->keys = watched ? 2 : 1;
	return cli_name(cli, cli->args.word[0], watched ? "KEY" : "ID", &s->name, err)
		&& cli_number(cli, "db", RECORD_DB_MAX, 0, &s->db, err);
}

redisReply *subject_call(struct cli *cli, const char *script, const struct subject *s,
			 const struct call *args, enum status *status, struct err *err)
{
	struct call call = { .n = 0 };
	char db[24];
	redisReply *reply;

	*status = cli->link ? STATUS_DONE : cli_connect(cli);
	if (*status != STATUS_DONE)
		return NULL;
	call_add(&call, bytes_str(s->keys == 2 ? "2" : "1"));
	call_add(&call, bytes_str(cli->prefix));
	call_add(&call, s->name);
	for (size_t i = 0; i < args->n; i++)
		call_add(&call, bytes_of(args->p[i], args->len[i]));
	if (s->watched && s->db > 0) {
		snprintf(db, sizeof(db), "%llu", (unsigned long long)s->db);
		call_add(&call, BYTES("db"));
		call_add(&call, bytes_str(db));
	}
	reply = link_script(cli->link, script, &call, err);
	call_clear(&call);
	return reply;
}

/* Deleting a watched key deletes it whatever becomes of its expiry. */
static const char *const refusals[2][5] = {
	{ "not found", "already on its way to Kafka",
	  "a job that was delivered: lapse touch and lapse fail are for that",
	  "dead; lapse show tells why, and lapse dead drop throws it away",
	  "a job without attempts left, which is about to die" },
	{ "deleted; no expiry of it had been announced",
	  "deleted; its expiry is already on its way to Kafka", "", "", "" },
};
static const char *const found[] = { "not-found", "in-flight", "waiting", "dead", "dying" };

enum status subject_change(struct cli *cli, const char *script, const char *wanted,
			   const struct subject *s, const struct call *args,
			   struct change *change)
{
	enum status status;
	struct err err;
	redisReply *reply = subject_call(cli, script, s, args, &status, &err);
	size_t where = 0;

	if (!reply)
		return status == STATUS_DONE ? cli_failed_call(cli, &err) : status;
	if (bytes_eq(cli_answer(reply, 0), bytes_str(wanted))) {
		struct bytes state = cli_answer(reply, 2);

		change->due = cli_answer_number(reply, 1, 0);
		snprintf(change->state, sizeof(change->state), "%.*s", (int)state.n, state.p);
	} else {
		for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
			if (bytes_eq(cli_answer(reply, 0), bytes_str(found[i])))
				where = i;
		if (cli->json)
			subject_tell_json(s, found[where], -1, NULL, bytes_none);
		status = cli_refuse(s->name, refusals[s->watched][where]);
	}
	freeReplyObject(reply);
	return status;
}

void subject_json(struct json *j, const struct subject *s)
{
	out_json_bytes(j, s->watched ? "key" : "id", s->name);
	if (s->watched) {
		json_key(j, "db");
		json_uint(j, s->db);
	}
}

void subject_tell_json(const struct subject *s, const char *result, msec_t due,
		       const char *state, struct bytes ce_id)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "result");
	json_cstr(&j, result);
	subject_json(&j, s);
	if (due >= 0)
		out_json_time(&j, "due", due);
	if (state) {
		json_key(&j, "state");
		json_cstr(&j, state);
	}
	if (ce_id.n > 0)
		out_json_bytes(&j, "ce_id", ce_id);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

void subject_tell_due(struct cli *cli, const struct subject *s, const char *result,
		      msec_t due, const struct cli_when *when)
{
	char time[OUT_TIME], until[OUT_SPAN];

	printf("%s ", result);
	out_name(stdout, s->name);
	printf("%s %s%s\n", s->watched ? ", expires" : " for", out_time(due, time),
		cli_until(cli, when, due, until));
}

void subject_tell(const struct subject *s, const char *result)
{
	printf("%s ", result);
	out_name(stdout, s->name);
	putchar('\n');
}
