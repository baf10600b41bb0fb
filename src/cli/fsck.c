/* SPDX-License-Identifier: BSD-2-Clause */

/* fsck - the verb that looks for structures that disagree, and repairs them. */
#include "cli/cli.h"

/* In an order in which one repair leaves nothing for a part before it. */
static const struct part {
	const char *name;
	const char *count;	/* of a step */
} parts[] = {
	{ "keys", "1000" }, { "epoch", "200" }, { "open", "200" }, { "dead", "200" },
	{ "why", "200" }, { "due", "200" }, { "rec", "200" },
};

struct fsck {
	struct cli *cli;
	bool repair;
	uint64_t looked, found, repaired;
};

static redisReply *ask_step(const struct fsck *f, const struct part *part, struct bytes cursor,
			    struct err *err)
{
	struct call c = { .n = 0 };
	redisReply *reply;

	call_add(&c, BYTES("1"));
	call_add(&c, bytes_str(f->cli->prefix));
	call_add(&c, bytes_str(part->name));
	call_add(&c, cursor);
	call_add(&c, bytes_str(part->count));
	call_add(&c, f->repair ? BYTES("1") : BYTES("0"));
	reply = link_script(f->cli->link, "walk", &c, err);
	call_clear(&c);
	return reply;
}

static void tell_json(struct bytes kind, struct bytes name, struct bytes done)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	out_json_bytes(&j, "finding", kind);
	out_json_bytes(&j, "name", name);
	if (done.n > 0) {
		out_json_bytes(&j, "done", done);
	} else {
		json_key(&j, "done");
		json_null(&j);
	}
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void tell_text(struct bytes kind, struct bytes name, struct bytes done)
{
	out_column(kind, 18);
	out_name(stdout, name);
	if (done.n > 0) {
		fputs(": ", stdout);
		out_text(stdout, done, done.n);
	}
	putchar('\n');
}

static void take_findings(struct fsck *f, const redisReply *reply)
{
	int64_t looked = cli_answer_number(reply, 1, 0);

	f->looked += (uint64_t)looked;
	for (size_t i = 2; i + 2 < reply->elements; i += 3) {
		struct bytes done = cli_answer(reply, i + 2);

		f->found++;
		f->repaired += done.n > 0;
		(f->cli->json ? tell_json : tell_text)(cli_answer(reply, i),
			cli_answer(reply, i + 1), done);
	}
}

/* False when Redis refused. */
static bool walk_part(struct fsck *f, const struct part *part, struct err *err)
{
	struct buf cursor = { .n = 0 };
	bool more = true, ok = true;

	buf_str(&cursor, "0");
	while (ok && more && out_open()) {
		redisReply *reply = ask_step(f, part, buf_view(&cursor), err);
		struct bytes next;

		ok = reply != NULL;
		if (!ok)
			break;
		take_findings(f, reply);
		next = cli_answer(reply, 0);
		more = next.n > 0 && !bytes_eq(next, BYTES("0"));
		buf_reset(&cursor);
		buf_add(&cursor, next);
		freeReplyObject(reply);
	}
	buf_clear(&cursor);
	return ok;
}

static void sum_json(const struct fsck *f)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "looked_at");
	json_int(&j, (int64_t)f->looked);
	json_key(&j, "found");
	json_int(&j, (int64_t)f->found);
	json_key(&j, "repaired");
	json_int(&j, (int64_t)f->repaired);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void sum_text(const struct fsck *f)
{
	printf("looked at %llu entries: ", (unsigned long long)f->looked);
	if (f->found == 0)
		puts("all is well");
	else
		printf("%llu disagree, %llu repaired\n", (unsigned long long)f->found,
			(unsigned long long)f->repaired);
}

enum status cli_fsck(struct cli *cli)
{
	struct fsck f = { .cli = cli, .repair = args_flag(&cli->args, "repair") };
	enum status status = cli_connect(cli);
	struct err err;

	if (status != STATUS_DONE)
		return status;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!walk_part(&f, &parts[i], &err))
			return cli_failed_call(cli, &err);
	if (cli->json)
		sum_json(&f);
	else
		sum_text(&f);
	if (f.found == f.repaired)
		return STATUS_DONE;
	if (!f.repair)
		return cli_fail(STATUS_FAILED, "lapse fsck --repair repairs what can be repaired");
	return cli_fail(STATUS_FAILED, "some can't be repaired: look at them yourself");
}
