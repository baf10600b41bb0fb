/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * import - the verb that makes events of a sorted set that somebody polled.
 *
 *	ZSCAN KEY --> member, score --> (GET of the payload) --> schedule, nx
 *	                                                             |
 *	                        ZREM KEY member, with --remove <-----+
 *
 * An id that is there already is left alone, so a run that was cut short is
 * simply made again.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/value.h"
#include "core/record.h"

#define PAGE		"500"
#define COMPLAINTS	10
/* A score from here on is of milliseconds: as seconds it is the year 5138. */
#define MS_FROM		1e11
#define LAST_MS		253402300799999.0

struct import {
	struct cli *cli;
	struct bytes key;
	const char *topic;
	const char *prefix;		/* of the ids */
	const char *payload_from;	/* "job:{}"; NULL: the member itself */
	double unit;			/* ms; 0: told by the first score */
	bool yes, remove, tty;
	size_t n, imported, already, skipped;
	msec_t first, last;		/* due */
	struct buf id, source;		/* of the entry of now */
};

/* Input --------------------------------------------------------------- */

static bool read_unit(const struct cli *cli, double *unit, struct err *err)
{
	const char *text = args_value(&cli->args, "unit");

	*unit = 0;
	if (text && strcmp(text, "s") == 0)
		*unit = 1000;
	else if (text && strcmp(text, "ms") == 0)
		*unit = 1;
	else if (text)
		return err_set(err, "--unit must be s or ms, not \"%s\"", text);
	return true;
}

static bool read_arguments(struct import *im, struct err *err)
{
	const struct args *a = &im->cli->args;

	im->topic = args_value(a, "topic");
	im->prefix = args_value(a, "id-prefix") ? args_value(a, "id-prefix") : "";
	im->payload_from = args_value(a, "payload-from");
	im->yes = args_flag(a, "yes");
	im->remove = args_flag(a, "remove");
	im->tty = isatty(STDERR_FILENO) && !im->cli->json;
	if (!cli_name(im->cli, a->word[0], "KEY", &im->key, err)
			|| !read_unit(im->cli, &im->unit, err))
		return false;
	if (!im->topic || !topic_valid(bytes_str(im->topic)))
		return err_set(err, im->topic ? "--topic: \"%s\" is no name of a Kafka topic" :
			"--topic TOPIC is needed", im->topic);
	if (im->payload_from && !strstr(im->payload_from, "{}"))
		return err_set(err, "--payload-from needs {} where the member goes, as in job:{}");
	return true;
}

static redisReply *call3(struct import *im, const char *verb, struct bytes a, struct bytes b,
			 struct err *err)
{
	struct call c = { .n = 0 };
	redisReply *reply;

	call_add(&c, bytes_str(verb));
	call_add(&c, a);
	if (b.p)
		call_add(&c, b);
	reply = link_call(im->cli->link, &c, err);
	call_clear(&c);
	return reply;
}

/* Before anything else: the key is there, and is a sorted set. */
static enum status look_at_key(struct import *im)
{
	struct err err;
	char what[64];
	redisReply *type = link_expect(im->cli->link, call3(im, "TYPE", im->key, bytes_none, &err),
		REDIS_REPLY_STATUS, &err);

	if (!type)
		return cli_failed_call(im->cli, &err);
	snprintf(what, sizeof(what), "is a %s, not a sorted set", type->str);
	if (strcmp(type->str, "none") == 0)
		snprintf(what, sizeof(what), "there is no such key");
	else if (strcmp(type->str, "zset") == 0)
		what[0] = '\0';
	freeReplyObject(type);
	return what[0] ? cli_refuse(im->key, what) : STATUS_DONE;
}

/* One entry ----------------------------------------------------------- */

/* Always true: the next one may do. */
static bool skip(struct import *im, struct bytes member, const char *why)
{
	if (im->skipped++ < COMPLAINTS)
		cli_refuse(member, why);
	return true;
}

static bool due_of(struct import *im, struct bytes score, msec_t *due)
{
	char *end;
	double s = strtod(score.p, &end);

	if (im->unit == 0)
		im->unit = s >= MS_FROM ? 1 : 1000;
	s *= im->unit;
	if (end != score.p + score.n || !(s >= 0 && s <= LAST_MS))
		return false;
	*due = (msec_t)s + (s > (double)(msec_t)s);
	return true;
}

/* Where its payload is, with --payload-from. */
static struct bytes source_of(struct import *im, struct bytes member)
{
	const char *hole = strstr(im->payload_from, "{}");

	buf_reset(&im->source);
	buf_add(&im->source, bytes_of(im->payload_from, (size_t)(hole - im->payload_from)));
	buf_add(&im->source, member);
	buf_str(&im->source, hole + 2);
	return buf_view(&im->source);
}

/* False when the server does not go on. */
static bool store(struct import *im, struct bytes member, msec_t due, struct bytes payload,
		  struct err *err)
{
	struct call c = { .n = 0 };
	char time[CLI_TIME];
	redisReply *reply;

	snprintf(time, sizeof(time), "@%lld", (long long)due);
	call_add(&c, BYTES("1"));
	call_add(&c, bytes_str(im->cli->prefix));
	call_add(&c, buf_view(&im->id));
	call_add(&c, bytes_str(time));
	call_add(&c, bytes_str(im->topic));
	call_add(&c, BYTES(""));
	call_add(&c, payload);
	call_add(&c, BYTES("nx"));
	call_add(&c, BYTES("1"));
	reply = link_script(im->cli->link, "schedule", &c, err);
	call_clear(&c);
	if (!reply && link_code(im->cli->link) == SCRIPT_BADARG)
		return skip(im, member, err->text);
	if (!reply && link_code(im->cli->link) != SCRIPT_EXISTS)
		return false;
	im->imported += reply != NULL;
	im->already += reply == NULL;
	freeReplyObject(reply);
	if (!im->remove)
		return true;
	reply = call3(im, "ZREM", im->key, member, err);
	freeReplyObject(reply);
	return reply != NULL;
}

static bool with_payload(struct import *im, struct bytes member, msec_t due, struct err *err)
{
	redisReply *reply;
	bool go_on = true;

	if (!im->payload_from)
		return !im->yes || store(im, member, due, member, err);
	reply = call3(im, "GET", source_of(im, member), bytes_none, err);
	if (!reply && link_code(im->cli->link) == SCRIPT_WRONGTYPE)
		return skip(im, member, "its payload is not a string");
	if (!reply)
		return false;
	if (reply->type != REDIS_REPLY_STRING)
		skip(im, member, "it has no payload there");
	else if (reply->len > VALUE_PAYLOAD_MAX)
		skip(im, member, "its payload is larger than 1000000 bytes");
	else if (im->yes)
		go_on = store(im, member, due, bytes_of(reply->str, reply->len), err);
	freeReplyObject(reply);
	return go_on;
}

static bool take(struct import *im, struct bytes member, struct bytes score, struct err *err)
{
	msec_t due;

	im->n++;
	buf_reset(&im->id);
	buf_str(&im->id, im->prefix);
	buf_add(&im->id, member);
	if (im->id.n == 0 || im->id.n > RECORD_NAME_MAX)
		return skip(im, member, "an id has 1 to 1024 bytes");
	if (!due_of(im, score, &due))
		return skip(im, member, "its score is no time before the year 10000");
	if (im->first == 0 || due < im->first)
		im->first = due;
	if (due > im->last)
		im->last = due;
	return with_payload(im, member, due, err);
}

/* All of them --------------------------------------------------------- */

static void tell_progress(const struct import *im)
{
	if (im->tty)
		fprintf(stderr, "\r%zu looked at, %zu imported", im->n, im->imported);
}

static redisReply *next_page(struct import *im, const char *cursor, struct err *err)
{
	struct call c = { .n = 0 };
	redisReply *reply;

	call_add(&c, BYTES("ZSCAN"));
	call_add(&c, im->key);
	call_add(&c, bytes_str(cursor));
	call_add(&c, BYTES("COUNT"));
	call_add(&c, BYTES(PAGE));
	reply = link_expect(im->cli->link, link_call(im->cli->link, &c, err),
		REDIS_REPLY_ARRAY, err);
	call_clear(&c);
	return reply;
}

static bool take_all(struct import *im, struct err *err)
{
	char cursor[32] = "0";
	bool go_on = true;

	do {
		redisReply *reply = next_page(im, cursor, err), *page;

		if (!reply)
			return false;
		page = reply->elements == 2 ? reply->element[1] : NULL;
		for (size_t i = 0; page && go_on && i + 1 < page->elements; i += 2)
			go_on = take(im, cli_answer(page, i), cli_answer(page, i + 1), err);
		snprintf(cursor, sizeof(cursor), "%.*s", (int)cli_answer(reply, 0).n,
			cli_answer(reply, 0).p ? cli_answer(reply, 0).p : "0");
		freeReplyObject(reply);
		tell_progress(im);
	} while (go_on && strcmp(cursor, "0") != 0);
	if (im->tty)
		fputc('\n', stderr);
	return go_on;
}

static void tell_json(const struct import *im)
{
	static const char *const names[] = { "entries", "imported", "already_there", "skipped" };
	const size_t counts[] = { im->n, im->imported, im->already, im->skipped };
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "result");
	json_cstr(&j, im->yes ? "imported" : "dry-run");
	for (size_t i = 0; i < 4; i++) {
		json_key(&j, names[i]);
		json_uint(&j, counts[i]);
	}
	if (im->last > 0) {
		out_json_time(&j, "first_due", im->first);
		out_json_time(&j, "last_due", im->last);
	}
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void tell_text(const struct import *im)
{
	char time[OUT_TIME];

	if (im->yes)
		printf("imported %zu of %zu entries, %zu were there already, %zu were skipped\n",
			im->imported, im->n, im->already, im->skipped);
	else
		printf("would import %zu of %zu entries, %zu would be skipped\n",
			im->n - im->skipped, im->n, im->skipped);
	if (im->last > 0) {
		printf("scores are %s: due from %s ", im->unit == 1 ? "milliseconds" : "seconds",
			out_time(im->first, time));
		printf("to %s\n", out_time(im->last, time));
	}
	if (!im->yes)
		puts("nothing was changed: stop whoever polls the set, and add --yes");
}

enum status cli_import(struct cli *cli)
{
	struct import im = { .cli = cli };
	enum status status;
	struct err err;

	if (!read_arguments(&im, &err))
		return cli_usage(cli, &err);
	status = cli_connect(cli);
	if (status == STATUS_DONE)
		status = look_at_key(&im);
	if (status != STATUS_DONE)
		return status;
	if (!take_all(&im, &err)) {
		status = cli_failed_call(cli, &err);
		cli_note("stopped after %zu entries; the same command goes on with the rest", im.n);
	} else if (im.skipped > 0) {
		status = STATUS_REFUSED;
	}
	if (cli->json)
		tell_json(&im);
	else
		tell_text(&im);
	buf_clear(&im.id);
	buf_clear(&im.source);
	return status;
}
