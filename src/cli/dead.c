/* SPDX-License-Identifier: BSD-2-Clause */

/* dead - the verbs for dead letters: dead list, show, replay, drop. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/entry.h"
#include "cli/walk.h"
#include "core/mem.h"

#define LIMIT	100
#define PAGE	100

/* One dead letter, taken apart. */
struct letter {
	struct bytes ce_id;
	msec_t died;
	bool readable;		/* the obituary is; what is below is only then set */
	struct bytes reason;
	bool enveloped;		/* `due` could be read */
	msec_t due;
	struct entry entry;
	struct err why;		/* it is not readable */
};

static void letter_read(struct letter *l, struct bytes ce_id, msec_t died, struct bytes value)
{
	struct obituary o;
	struct envelope e = { .due = 0 };

	*l = (struct letter){ .ce_id = ce_id, .died = died };
	l->readable = obituary_unpack(value, &o, &l->why);
	if (!l->readable)
		return;
	l->reason = o.reason;
	l->enveloped = envelope_unpack(o.envelope, &e, &l->why);
	l->due = e.due;
	entry_read(&l->entry, o.member, e.record);
	if (!l->enveloped) {
		l->entry.state = ENTRY_UNREADABLE;
		l->entry.why = l->why;
	}
}

static void letter_json(const struct letter *l, bool all)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	out_json_bytes(&j, "ce_id", l->ce_id);
	out_json_time(&j, "died", l->died);
	if (l->readable) {
		out_json_bytes(&j, "reason", l->reason);
		if (l->enveloped)
			out_json_time(&j, "due", l->due);
		entry_json(&j, &l->entry, all);
	} else {
		json_key(&j, "unreadable");
		json_cstr(&j, l->why.text);
	}
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void letter_line(const struct letter *l)
{
	char time[OUT_TIME];

	printf("%s  ", out_time(l->died, time));
	out_column(l->readable ? entry_topic(&l->entry) : BYTES("(unreadable)"), 24);
	out_text(stdout, l->ce_id, l->ce_id.n);
	fputs("  ", stdout);
	if (l->readable)
		out_text(stdout, l->reason, l->reason.n);
	putchar('\n');
}

static void letter_text(const struct letter *l)
{
	char time[OUT_TIME];

	out_label("ce_id");
	out_text(stdout, l->ce_id, l->ce_id.n);
	putchar('\n');
	out_label("died");
	puts(out_time(l->died, time));
	out_label(l->readable ? "reason" : "unreadable");
	if (l->readable)
		out_text(stdout, l->reason, l->reason.n);
	else
		fputs(l->why.text, stdout);
	putchar('\n');
	if (l->enveloped) {
		out_label("due");
		puts(out_time(l->due, time));
	}
	if (l->readable)
		entry_text(&l->entry);
}

struct list {
	bool json;
	size_t n;
};

static bool visit(void *arg, struct bytes ce_id, msec_t died, struct bytes value)
{
	struct list *list = arg;
	struct letter l;

	letter_read(&l, ce_id, died, value);
	if (list->json) {
		letter_json(&l, false);
	} else {
		if (list->n == 0)
			printf("%-24s  %-24s  %s\n", "DIED", "TOPIC", "CE_ID AND REASON");
		letter_line(&l);
	}
	list->n++;
	return out_open();
}

enum status cli_dead_list(struct cli *cli)
{
	struct list list = { .json = cli->json };
	struct walk walk = {
		.zset = "dead", .hash = "why", .max = "+inf", .visit = visit, .arg = &list,
	};
	struct err err;
	uint64_t limit;
	enum status status;

	if (!cli_limit(cli, LIMIT, &limit, &err))
		return cli_usage(cli, &err);
	status = cli_connect(cli);
	if (status != STATUS_DONE)
		return status;
	walk.prefix = cli->prefix;
	walk.limit = (size_t)limit;
	if (!walk_run(&walk, cli->link, &err))
		return cli_failed_call(cli, &err);
	if (list.n == 0 && !cli->json)
		cli_note("there are no dead letters");
	return cli_tell_rest(cli, "dead", "+inf", list.n, LIMIT);
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
	letter_read(&l, bytes_str(ce_id),
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

/* What replay and drop do to one letter after another. */
struct deed {
	const char *script;
	const char *done;	/* "replayed" */
	size_t n_done;
	size_t n_refused;
	enum status worst;
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

/* The next letters that had died when we began, past those that were refused. */
static redisReply *next_letters(struct cli *cli, const struct deed *d, msec_t began,
				struct err *err)
{
	char command[512];

	snprintf(command, sizeof(command), "ZRANGEBYSCORE %s:dead -inf %lld LIMIT %zu %d",
		cli->prefix, (long long)began, d->n_refused, PAGE);
	return link_expect(cli->link, link_command(cli->link, command, err),
		REDIS_REPLY_ARRAY, err);
}

static bool do_page(struct cli *cli, struct deed *d, const redisReply *page)
{
	for (size_t i = 0; i < page->elements; i++)
		if (!do_one(cli, d, cli_answer(page, i)))
			return false;
	return true;
}

static void do_all(struct cli *cli, struct deed *d)
{
	struct err err;
	msec_t began;
	bool more = link_now(cli->link, &began, &err);

	if (!more)
		d->worst = cli_failed_call(cli, &err);
	while (more) {
		redisReply *page = next_letters(cli, d, began, &err);

		if (!page) {
			d->worst = cli_failed_call(cli, &err);
			return;
		}
		more = page->elements > 0 && do_page(cli, d, page);
		freeReplyObject(page);
	}
	if (!cli->json && d->worst != STATUS_FAILED)
		printf("%s %zu, refused %zu\n", d->done, d->n_done, d->n_refused);
}

static enum status do_deed(struct cli *cli, const char *script, const char *done)
{
	struct deed d = { .script = script, .done = done, .worst = STATUS_DONE };
	bool all = args_flag(&cli->args, "all");
	struct err err;

	if (all == (cli->args.n_words > 0)) {
		err_set(&err, all ? "CE_ID and --all exclude each other"
			: "CE_ID or --all is needed");
		return cli_usage(cli, &err);
	}
	d.worst = cli_connect(cli);
	if (d.worst != STATUS_DONE)
		return d.worst;
	if (all)
		do_all(cli, &d);
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

	if (args_flag(&cli->args, "all") && !args_flag(&cli->args, "yes")) {
		err_set(&err, "--all throws every dead letter away for good: add --yes");
		return cli_usage(cli, &err);
	}
	return do_deed(cli, "dead_drop", "dropped");
}
