/* SPDX-License-Identifier: BSD-2-Clause */

/* deed - the verbs that do something to dead letters: dead replay, drop. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/letter.h"

#define PAGE	100

/* What replay and drop do to one letter after another. */
struct deed {
	const char *script;
	const char *done;	/* "replayed" */
	size_t n_done;
	size_t n_refused;
	enum status worst;
};

/*
 * Where the next page of those that died begins: behind the `left` letters of
 * that time of death which we have seen and which are still there.
 */
struct cursor {
	char died[32];
	size_t left;
	msec_t began;		/* what died later is left alone */
};

static void tell_deed(const struct cli *cli, const char *result, struct bytes ce_id,
		      const redisReply *reply)
{
	struct bytes fresh = reply ? cli_answer(reply, 2) : bytes_none;
	struct buf b = { .n = 0 };
	struct json j;

	if (!cli->json) {
		printf("%s ", result);
		out_text(stdout, ce_id, ce_id.n);
		if (fresh.p) {
			fputs(" as ", stdout);
			out_text(stdout, fresh, fresh.n);
		}
		putchar('\n');
		return;
	}
	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "result");
	json_cstr(&j, result);
	out_json_bytes(&j, "ce_id", ce_id);
	if (fresh.p) {
		out_json_bytes(&j, "new_ce_id", fresh);
		out_json_time(&j, "due", cli_answer_number(reply, 1, 0));
	}
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

/* The refusals of the scripts, for JSON. */
static const char *refusal(enum script_error code)
{
	switch (code) {
	case SCRIPT_NOTFOUND:
		return "not-found";
	case SCRIPT_EXISTS:
		return "exists";
	case SCRIPT_BADRECORD:
		return "unreadable";
	default:
		return NULL;
	}
}

/* False when the server does not go on. */
static bool do_one(struct cli *cli, struct deed *d, struct bytes ce_id)
{
	struct call c = { .n = 0 };
	struct err err;
	redisReply *reply;
	const char *refused;

	call_add(&c, BYTES("1"));
	call_add(&c, bytes_str(cli->prefix));
	call_add(&c, ce_id);
	reply = link_script(cli->link, d->script, &c, &err);
	call_clear(&c);
	if (reply) {
		tell_deed(cli, d->done, ce_id, reply);
		freeReplyObject(reply);
		d->n_done++;
		return true;
	}
	refused = refusal(link_code(cli->link));
	if (!refused) {
		d->worst = cli_failed_call(cli, &err);
		return false;
	}
	if (cli->json)
		tell_deed(cli, refused, ce_id, NULL);
	d->worst = cli_fail(STATUS_REFUSED, "%.*s: %s", (int)ce_id.n, ce_id.p, err.text);
	d->n_refused++;
	return true;
}

static redisReply *next_page(struct cli *cli, const struct cursor *at, struct err *err)
{
	char command[512];

	snprintf(command, sizeof(command), "ZRANGEBYSCORE %s:dead %s %lld WITHSCORES LIMIT %zu %d",
		cli->prefix, at->died, (long long)at->began, at->left, PAGE);
	return link_expect(cli->link, link_command(cli->link, command, err),
		REDIS_REPLY_ARRAY, err);
}

/* It is still there: the next page begins behind it. */
static void step_over(struct cursor *at, struct bytes died)
{
	if (!bytes_eq(died, bytes_str(at->died))) {
		snprintf(at->died, sizeof(at->died), "%.*s", (int)died.n, died.p);
		at->left = 0;
	}
	at->left++;
}

static void ask_obituaries(struct cli *cli, const redisReply *page)
{
	struct buf key = { .n = 0 };

	buf_printf(&key, "%s:why", cli->prefix);
	for (size_t i = 0; i < page->elements; i += 2) {
		struct call c = { .n = 0 };

		call_add(&c, BYTES("HGET"));
		call_add(&c, buf_view(&key));
		call_add(&c, cli_answer(page, i));
		link_send(cli->link, &c);
		call_clear(&c);
	}
	buf_clear(&key);
}

/* Which letters of the page are meant. */
static bool choose(struct cli *cli, const struct letter_choice *choice,
		   const redisReply *page, bool chosen[PAGE], struct err *err)
{
	if (!choice->topic && !choice->reason) {
		memset(chosen, true, PAGE * sizeof(chosen[0]));
		return true;
	}
	ask_obituaries(cli, page);
	for (size_t i = 0; i < page->elements / 2; i++) {
		redisReply *why = link_receive(cli->link, err);
		struct letter l;

		if (!why)
			return false;
		letter_read(&l, cli->conf->routes, cli_answer(page, 2 * i), 0,
			why->type == REDIS_REPLY_STRING ? bytes_of(why->str, why->len) :
			bytes_none);
		chosen[i] = letter_chosen(&l, choice);
		freeReplyObject(why);
	}
	return true;
}

/* False when the server does not go on. */
static bool do_page(struct cli *cli, struct deed *d, struct cursor *at,
		    const redisReply *page, const bool chosen[PAGE])
{
	for (size_t i = 0; i < page->elements / 2; i++) {
		size_t done = d->n_done;

		if (chosen[i] && !do_one(cli, d, cli_answer(page, 2 * i)))
			return false;
		if (d->n_done == done)
			step_over(at, cli_answer(page, 2 * i + 1));
	}
	return true;
}

static void do_chosen(struct cli *cli, struct deed *d)
{
	struct letter_choice choice = letter_choice(cli);
	struct cursor at = { .died = "-inf" };
	bool chosen[PAGE];
	struct err err;
	bool more = link_now(cli->link, &at.began, &err);

	if (!more)
		d->worst = cli_failed_call(cli, &err);
	while (more) {
		redisReply *page = next_page(cli, &at, &err);

		if (!page || !choose(cli, &choice, page, chosen, &err)) {
			freeReplyObject(page);
			d->worst = cli_failed_call(cli, &err);
			return;
		}
		more = page->elements > 0 && do_page(cli, d, &at, page, chosen);
		freeReplyObject(page);
	}
	if (!cli->json && d->worst != STATUS_FAILED)
		printf("%s %zu, refused %zu\n", d->done, d->n_done, d->n_refused);
}

/* --all, or those of a topic or reason, and not by name. */
static bool many(const struct cli *cli)
{
	return args_flag(&cli->args, "all") || args_flag(&cli->args, "topic") ||
		args_flag(&cli->args, "reason");
}

static bool check(const struct cli *cli, struct err *err)
{
	bool choice = args_flag(&cli->args, "topic") || args_flag(&cli->args, "reason");

	if (args_flag(&cli->args, "all") && choice)
		return err_set(err, "--all and a choice by --topic or --reason exclude each other");
	if (many(cli) && cli->args.n_words > 0)
		return err_set(err, "CE_ID and %s exclude each other",
			choice ? "--topic or --reason" : "--all");
	return many(cli) || cli->args.n_words > 0 ||
		err_set(err, "CE_ID, --topic, --reason or --all is needed");
}

static enum status do_deed(struct cli *cli, const char *script, const char *done)
{
	struct deed d = { .script = script, .done = done, .worst = STATUS_DONE };
	struct err err;

	if (!check(cli, &err))
		return cli_usage(cli, &err);
	d.worst = cli_connect(cli);
	if (d.worst != STATUS_DONE)
		return d.worst;
	if (many(cli))
		do_chosen(cli, &d);
	for (size_t i = 0; i < cli->args.n_words; i++)
		if (!do_one(cli, &d, bytes_str(cli->args.word[i])))
			break;
	return d.worst;
}

enum status cli_dead_replay(struct cli *cli)
{
	return do_deed(cli, "dead_replay", "replayed");
}

enum status cli_dead_drop(struct cli *cli)
{
	struct err err;

	if (many(cli) && !args_flag(&cli->args, "yes")) {
		err_set(&err, args_flag(&cli->args, "all") ?
			"--all throws every dead letter away for good: add --yes" :
			"that throws all such dead letters away for good: add --yes");
		return cli_usage(cli, &err);
	}
	return do_deed(cli, "dead_drop", "dropped");
}
