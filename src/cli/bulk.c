/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bulk - many events from a file: `schedule --file` reads one JSON object a
 * line, `cancel --file` one id a line (or, with -0, each ended by a NUL).
 *
 *	lines --> batch of LOT --> one call --> an answer each
 *
 * A line that can't be read, or an event that is refused, is told with its
 * number, and the others go on; the status is then 3.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/line.h"
#include "cli/value.h"
#include "core/mem.h"

#define LOT		500	/* events of a call */
#define LOT_BYTES	(4u << 20)
#define COMPLAINTS	20	/* in text; beyond that they are counted */

struct bulk {
	struct cli *cli;
	const char *script;	/* schedule_bulk or cancel_bulk */
	FILE *f;
	int until;		/* what ends an entry */
	int64_t size;		/* of the file, -1 unknown */
	bool tty;		/* somebody sees how far it is */
	uint64_t lines, done, refused;
	struct line line;
	struct buf text;	/* of the lot's arguments, as offsets in `args` */
	struct arg { size_t at, n; } *args;
	size_t n_args, cap;
	uint64_t *numbers;	/* the line of each event of the lot */
	struct arg *ids;	/* and its id */
	size_t n;
};

/* Telling ------------------------------------------------------------- */

static void progress(struct bulk *b, bool last)
{
	long at = ftell(b->f);
	int percent = b->size > 0 && at >= 0 ? (int)(100 * (int64_t)at / b->size) : -1;

	if (!b->tty)
		return;
	if (percent >= 0)
		fprintf(stderr, "\r[%-40.*s] %3d%%  %llu", percent * 40 / 100,
			"########################################", percent,
			(unsigned long long)b->lines);
	else
		fprintf(stderr, "\r%llu", (unsigned long long)b->lines);
	if (last)
		fputc('\n', stderr);
}

/* One refused event or line. */
static void complain(struct bulk *b, uint64_t number, struct bytes id, const char *text)
{
	struct buf out = { .n = 0 };
	struct json j;

	b->refused++;
	if (!b->cli->json) {
		if (b->refused > COMPLAINTS)
			return;
		if (b->tty)
			fputs("\r\033[K", stderr);	/* in place of the bar */
		cli_note("%s%llu: %s", b->until ? "line " : "entry ", (unsigned long long)number, text);
		return;
	}
	json_init(&j, &out);
	json_object(&j);
	json_key(&j, "result");
	json_cstr(&j, "refused");
	json_key(&j, "line");
	json_uint(&j, number);
	if (id.p)
		out_json_bytes(&j, "id", id);
	json_key(&j, "error");
	json_cstr(&j, text);
	json_object_end(&j);
	out_json_line(&out);
	buf_clear(&out);
}

static void accepted(struct bulk *b, struct bytes id, const redisReply *r)
{
	struct buf out = { .n = 0 };
	struct json j;

	b->done++;
	if (!b->cli->json)
		return;
	json_init(&j, &out);
	json_object(&j);
	json_key(&j, "result");
	json_string(&j, cli_answer(r, 0));
	out_json_bytes(&j, "id", id);
	out_json_time(&j, "due", cli_answer_number(r, 1, 0));
	if (strcmp(b->script, "schedule_bulk") == 0)
		out_json_bytes(&j, "ce_id", cli_answer(r, 2));
	json_object_end(&j);
	out_json_line(&out);
	buf_clear(&out);
}

/* Calls --------------------------------------------------------------- */

static void lot_clear(struct bulk *b)
{
	buf_reset(&b->text);
	b->n_args = b->n = 0;
}

static bool was_done(struct bytes word)
{
	return bytes_eq(word, BYTES("scheduled")) || bytes_eq(word, BYTES("replaced")) ||
		bytes_eq(word, BYTES("cancelled"));
}

static void lot_answer(struct bulk *b, size_t i, const redisReply *r)
{
	struct bytes id = bytes_of(b->text.p + b->ids[i].at, b->ids[i].n);

	if (r->type == REDIS_REPLY_ERROR)
		complain(b, b->numbers[i], id, strchr(r->str, ' ') ? strchr(r->str, ' ') + 1 : r->str);
	else if (was_done(cli_answer(r, 0)))
		accepted(b, id, r);
	else						/* not-found, in-flight, dead */
		complain(b, b->numbers[i], id, r->elements ? r->element[0]->str : "no answer");
}

/* Sends what there is. */
static enum status lot_send(struct bulk *b)
{
	struct call c = { .n = 0 };
	struct err err;
	redisReply *reply;

	if (b->n == 0)
		return STATUS_DONE;
	call_add(&c, BYTES("1"));
	call_add(&c, bytes_str(b->cli->prefix));
	for (size_t i = 0; i < b->n_args; i++)
		call_add(&c, bytes_of(b->text.p + b->args[i].at, b->args[i].n));
	reply = link_script(b->cli->link, b->script, &c, &err);
	call_clear(&c);
	if (!reply) {
		progress(b, true);
		cli_note("%llu were done until line %llu", (unsigned long long)b->done,
			 (unsigned long long)b->numbers[0] - 1);
		return cli_failed_call(b->cli, &err);
	}
	for (size_t i = 0; i < b->n && i < reply->elements; i++)
		lot_answer(b, i, reply->element[i]);
	freeReplyObject(reply);
	lot_clear(b);
	progress(b, false);
	return STATUS_DONE;
}

/* Arguments ----------------------------------------------------------- */

static struct arg *arg_add(struct bulk *b, struct bytes value)
{
	if (b->n_args == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 256;
		b->args = mem_resize(b->args, b->cap, sizeof *b->args);
	}
	b->args[b->n_args] = (struct arg){ b->text.n, value.n };
	buf_add(&b->text, value);
	return &b->args[b->n_args++];
}

static void event_begin(struct bulk *b, struct bytes id)
{
	b->numbers[b->n] = b->lines;
	b->ids[b->n++] = *arg_add(b, id);
}

/* What a line says, as text; the first six as schedule takes them. */
struct fields {
	struct bytes id, topic, key, data, in, at;
	struct bytes ttr, attempts, backoff, limit, type, content_type, headers;
	bool nx;
	struct buf room;	/* of decoded base64 */
};

static bool take_base64(struct fields *f, struct bytes from, struct bytes *to)
{
	size_t began = f->room.n;

	if (!line_base64(from, &f->room))
		return false;
	*to = buf_since(&f->room, began);
	return true;
}

/* A text or a number as it stands; `data` and `headers` may be more. */
static bool take_field(struct fields *f, const struct line *l, struct err *err)
{
	const struct {
		const char *name;
		struct bytes *to;
	} known[] = {
		{ "id", &f->id }, { "topic", &f->topic }, { "key", &f->key }, { "data", &f->data },
		{ "in", &f->in }, { "at", &f->at }, { "ttr", &f->ttr },
		{ "attempts", &f->attempts }, { "backoff", &f->backoff },
		{ "if_due_before", &f->limit }, { "type", &f->type },
		{ "content_type", &f->content_type }, { "headers", &f->headers },
	};

	if (bytes_eq(l->name, BYTES("nx"))) {
		f->nx = l->kind == LINE_TRUE;
		return true;
	}
	if (bytes_eq(l->name, BYTES("id_base64")) || bytes_eq(l->name, BYTES("data_base64")))
		return take_base64(f, l->value, l->name.p[0] == 'i' ? &f->id : &f->data) ||
			err_set(err, "%.*s is not base64", (int)l->name.n, l->name.p);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!bytes_eq(l->name, bytes_str(known[i].name)))
			continue;
		if (l->kind != LINE_STRING && l->kind != LINE_NUMBER &&
		    known[i].to != &f->data && known[i].to != &f->headers)
			return err_set(err, "%s must be a string or a number", known[i].name);
		*known[i].to = l->value;
		return true;
	}
	return err_set(err, "there is no member \"%.*s\"", (int)l->name.n, l->name.p);
}

/* "30m", or a number of milliseconds. */
static bool span_ms(struct bytes from, int64_t *ms, struct err *err)
{
	char text[64];
	size_t n;

	/* Longer than any duration; it is refused as it is. */
	snprintf(text, sizeof(text) - strlen("ms"), "%.*s", (int)from.n, from.p);
	n = strspn(text, "0123456789");
	if (n > 0 && !text[n])
		strcpy(text + n, "ms");
	return value_duration(text, ms, err);
}

static bool add_when(struct bulk *b, const struct fields *f, struct err *err)
{
	char text[64];
	int64_t ms;

	if (!f->in.p == !f->at.p)
		return err_set(err, "one of in and at is needed");
	if (f->in.p) {
		if (!span_ms(f->in, &ms, err))
			return false;
		snprintf(text, sizeof(text), "+%lld", (long long)ms);
	} else {
		snprintf(text, sizeof(text), "%.*s", (int)f->at.n, f->at.p);
		if (!value_time(text, &ms, err))
			return false;
		snprintf(text, sizeof(text), "@%lld", (long long)ms);
	}
	arg_add(b, bytes_str(text));
	return true;
}

static void add_option(struct bulk *b, const char *name, struct bytes value)
{
	if (!value.p)
		return;
	arg_add(b, bytes_str(name));
	arg_add(b, value);
}

static bool add_headers(struct bulk *b, struct bytes object, struct err *err)
{
	struct line l = { .at = NULL };
	struct buf name = { .n = 0 };
	bool ok = !object.p || line_open(&l, object, err);

	while (object.p && ok && line_next(&l)) {
		buf_reset(&name);
		buf_str(&name, "header.");
		buf_add(&name, l.name);
		arg_add(b, buf_view(&name));
		arg_add(b, l.value);
	}
	line_clear(&l);
	buf_clear(&name);
	return ok;
}

static bool add_terms(struct bulk *b, const struct fields *f, struct err *err)
{
	char text[64];
	int64_t ms;

	if (f->ttr.p) {
		if (!span_ms(f->ttr, &ms, err))
			return false;
		snprintf(text, sizeof(text), "%lld", (long long)ms);
		add_option(b, "ttr", bytes_str(text));
	}
	add_option(b, "attempts", f->attempts);
	add_option(b, "backoff", f->backoff);
	if (f->limit.p) {
		snprintf(text, sizeof(text), "%.*s", (int)f->limit.n, f->limit.p);
		if (!value_time(text, &ms, err))
			return false;
		snprintf(text, sizeof(text), "@%lld", (long long)ms);
		add_option(b, "if_due_before", bytes_str(text));
	}
	if (f->nx)
		add_option(b, "nx", BYTES("1"));
	add_option(b, "type", f->type);
	add_option(b, "content-type", f->content_type);
	return add_headers(b, f->headers, err);
}

/* The event's arguments behind their number, which is known at last. */
static bool add_event(struct bulk *b, const struct fields *f, struct err *err)
{
	size_t count_at = b->n_args;
	char digits[8];

	if (!f->id.p || !f->topic.p)
		return err_set(err, "id and topic are needed");
	arg_add(b, BYTES("0000"));
	event_begin(b, f->id);
	if (!add_when(b, f, err))
		return false;
	arg_add(b, f->topic);
	arg_add(b, f->key.p ? f->key : BYTES(""));
	arg_add(b, f->data.p ? f->data : BYTES(""));
	if (!add_terms(b, f, err))
		return false;
	snprintf(digits, sizeof(digits), "%04zu", (b->n_args - count_at - 1) % 10000);
	memcpy(b->text.p + b->args[count_at].at, digits, 4);
	return true;
}

static void schedule_line(struct bulk *b, struct bytes text)
{
	size_t args = b->n_args, bytes = b->text.n, n = b->n;
	struct fields f = { .nx = false };
	struct err err;
	bool ok = line_open(&b->line, text, &err);

	while (ok && line_next(&b->line))
		ok = take_field(&f, &b->line, &err);
	if (!ok || !add_event(b, &f, &err)) {
		b->n_args = args;
		b->text.n = bytes;
		b->n = n;
		complain(b, b->lines, bytes_none, err.text);
	}
	buf_clear(&f.room);
}

static void cancel_line(struct bulk *b, struct bytes text)
{
	event_begin(b, text);
}

/* The whole ----------------------------------------------------------- */

static enum status read_all(struct bulk *b)
{
	enum status status = STATUS_DONE;
	char *text = NULL;
	size_t cap = 0;
	ssize_t n;

	while (status == STATUS_DONE && (n = getdelim(&text, &cap, b->until, b->f)) >= 0) {
		size_t len = (size_t)n;

		b->lines++;
		if (len && text[len - 1] == (char)b->until)
			len--;
		if (len == 0)
			continue;
		if (strcmp(b->script, "schedule_bulk") == 0)
			schedule_line(b, bytes_of(text, len));
		else
			cancel_line(b, bytes_of(text, len));
		if (b->n == LOT || b->text.n >= LOT_BYTES)
			status = lot_send(b);
	}
	if (status == STATUS_DONE && ferror(b->f))
		status = cli_fail(STATUS_FAILED, "the file can't be read: %s", strerror(errno));
	free(text);
	return status == STATUS_DONE ? lot_send(b) : status;
}

static void summary(const struct bulk *b)
{
	if (b->cli->json)
		return;
	printf("%s %llu", strcmp(b->script, "schedule_bulk") == 0 ? "scheduled" : "cancelled",
	       (unsigned long long)b->done);
	if (b->refused)
		printf(", refused %llu", (unsigned long long)b->refused);
	putchar('\n');
}

static int64_t size_of(FILE *f)
{
	int64_t size = -1;

	if (fseek(f, 0, SEEK_END) == 0) {
		size = ftell(f);
		rewind(f);
	}
	return size;
}

static enum status bulk_run(struct bulk *b)
{
	enum status status = cli_connect(b->cli);

	if (status != STATUS_DONE)
		return status;
	b->size = size_of(b->f);
	b->tty = isatty(STDERR_FILENO) && !b->cli->json;
	b->numbers = mem_alloc(LOT, sizeof *b->numbers);
	b->ids = mem_alloc(LOT, sizeof *b->ids);
	status = read_all(b);
	if (status == STATUS_DONE) {
		progress(b, true);
		summary(b);
		status = b->refused ? STATUS_REFUSED : STATUS_DONE;
	}
	free(b->numbers);
	free(b->ids);
	free(b->args);
	buf_clear(&b->text);
	line_clear(&b->line);
	return status;
}

enum status cli_bulk(struct cli *cli, const char *script)
{
	const char *path = args_value(&cli->args, "file");
	struct bulk b = {
		.cli = cli, .script = script,
		.until = args_flag(&cli->args, "null") ? '\0' : '\n',
	};
	struct err err;
	enum status status;

	b.f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	if (!b.f) {
		err_set(&err, "--file: %s: %s", path, strerror(errno));
		return cli_usage(cli, &err);
	}
	status = bulk_run(&b);
	if (b.f != stdin)
		fclose(b.f);
	return status;
}
