/* SPDX-License-Identifier: BSD-2-Clause */

/* dead - the verbs that look at dead letters: dead list, show. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/letter.h"
#include "cli/tally.h"
#include "cli/walk.h"

#define LIMIT	100

struct list {
	const struct routes *routes;
	struct letter_choice choice;
	struct tally *tally;	/* NULL: they are listed, not counted */
	bool json;
	size_t n, limit;
	bool more;		/* there are more than `limit` */
};

static void list_one(struct list *list, const struct letter *l)
{
	if (list->json) {
		letter_json(l, false);
	} else {
		if (list->n == 0)
			letter_line_head();
		letter_line(l);
	}
}

static bool visit(void *arg, struct bytes ce_id, msec_t died, struct bytes value)
{
	struct list *list = arg;
	struct letter l;

	letter_read(&l, list->routes, ce_id, died, value);
	if (!letter_chosen(&l, &list->choice))
		return true;
	if (list->n == list->limit) {
		list->more = true;
		return false;
	}
	if (list->tally)
		tally_add(list->tally, l.topic, l.readable ? l.reason :
			bytes_str(l.why.text), died);
	else
		list_one(list, &l);
	list->n++;
	return out_open();
}

static bool list_options(struct cli *cli, struct list *list, struct err *err)
{
	uint64_t limit;

	if (!cli_limit(cli, LIMIT, &limit, err))
		return false;
	list->limit = (size_t)limit;
	if (!args_flag(&cli->args, "summary"))
		return true;
	list->limit = SIZE_MAX;
	return !args_flag(&cli->args, "limit") ||
		err_set(err, "--summary counts them all: --limit makes no sense with it");
}

static enum status list_end(struct cli *cli, const struct list *list)
{
	bool all = !list->choice.topic && !list->choice.reason;

	if (list->tally)
		tally_print(list->tally, list->json);
	if (list->n == 0 && !list->json)
		cli_note(all ? "there are no dead letters" : "there are no such dead letters");
	if (list->more && all)
		return cli_tell_rest(cli, "dead", "+inf", list->n, LIMIT);
	if (list->more && !args_flag(&cli->args, "limit"))
		cli_note("these are the first %zu; --limit N lists more", list->n);
	return STATUS_DONE;
}

enum status cli_dead_list(struct cli *cli)
{
	struct list list = { .json = cli->json, .choice = letter_choice(cli) };
	struct walk walk = {
		.zset = "dead", .hash = "why", .max = "+inf", .limit = SIZE_MAX,
		.visit = visit, .arg = &list,
	};
	struct err err;
	enum status status;

	if (!list_options(cli, &list, &err))
		return cli_usage(cli, &err);
	status = cli_connect(cli);
	if (status != STATUS_DONE)
		return status;
	list.routes = cli->conf->routes;
	if (args_flag(&cli->args, "summary"))
		list.tally = tally_new();
	walk.prefix = cli->prefix;
	status = walk_run(&walk, cli->link, &err) ? list_end(cli, &list) :
		cli_failed_call(cli, &err);
	tally_free(list.tally);
	return status;
}

/* What `command` says of the letter in `<prefix>:<key>`; NULL as from link_call(). */
static redisReply *look_up(struct cli *cli, struct bytes command, const char *key,
			   struct bytes ce_id, struct err *err)
{
	struct call c = { .n = 0 };
	struct buf name = { .n = 0 };
	redisReply *reply;

	buf_printf(&name, "%s:%s", cli->prefix, key);
	call_add(&c, command);
	call_add(&c, buf_view(&name));
	call_add(&c, ce_id);
	reply = link_call(cli->link, &c, err);
	call_clear(&c);
	buf_clear(&name);
	return reply;
}

static enum status no_such_letter(const char *ce_id)
{
	return cli_fail(STATUS_REFUSED, "%s: no dead letter has this ce_id", ce_id);
}

static enum status show_letter(struct cli *cli, const char *ce_id, const redisReply *why,
			       const redisReply *died)
{
	struct letter l;

	if (why->type != REDIS_REPLY_STRING)
		return no_such_letter(ce_id);
	letter_read(&l, cli->conf->routes, bytes_str(ce_id),
		died->type == REDIS_REPLY_STRING ? strtoll(died->str, NULL, 10) : 0,
		bytes_of(why->str, why->len));
	if (cli->json)
		letter_json(&l, true);
	else
		letter_text(&l);
	return STATUS_DONE;
}

enum status cli_dead_show(struct cli *cli)
{
	const char *ce_id = cli->args.word[0];
	enum status status = cli_connect(cli);
	redisReply *why, *died = NULL;
	struct err err;

	if (status != STATUS_DONE)
		return status;
	why = look_up(cli, BYTES("HGET"), "why", bytes_str(ce_id), &err);
	if (why)
		died = look_up(cli, BYTES("ZSCORE"), "dead", bytes_str(ce_id), &err);
	status = died ? show_letter(cli, ce_id, why, died) : cli_failed_call(cli, &err);
	freeReplyObject(why);
	freeReplyObject(died);
	return status;
}
