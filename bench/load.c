/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bench-load - fills Redis, as fast as it goes or at a given rate.
 *
 *   redis=PATH  n=COUNT  first=0  letter=e  payload=128  topic=bench
 *   prefix=lapse:{0}  depth=200
 *   key=1          0: scheduled events have no Kafka key; else it is their id
 *   min=0 max=0    due so many ms from now; each draws its own between them
 *   rate=0         events a second; 0: no pause
 *   how=
 *     schedule  FCALL lapse_schedule for each
 *     bulk      FCALL lapse_schedule_bulk for each 200; with ttr=MS, jobs; with
 *               at=MS (since 1970), all due then
 *     setex     FCALL lapse_setex for each: a watched key
 *     plain     ZADD and HSET for each, of the same bytes: what `schedule` is
 *               compared with
 *     direct    the same in large pieces, to get a backlog quickly
 *     keys      SET with a TTL: keys that are no business of ours
 *     set       the same, of keys that an application might have: stem=watched:
 *               stands in front of the number; with twin=1 each has a twin of
 *               the same TTL, plain:<due ms>:<number>, which nobody watches
 *
 * Events are named by letter and number (tool_id), watched keys "watched:" and
 * that, other keys "other:" and that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/mem.h"
#include "core/record.h"
#include "tool.h"

#define ARGS_MAX	2048
#define PIECE		400	/* events of one command of `direct` */
#define BULK		200	/* and of `bulk` */

struct load {
	redisContext *c;
	const char *prefix, *topic, *how;
	char due_key[128], rec_key[128];
	char *payload;
	size_t npayload;
	uint64_t first, n;
	char letter;
	int64_t min, max, rate, depth, key, at, twin;
	const char *ttr, *stem;
	uint64_t random;
	/* the command being made */
	const char *argv[ARGS_MAX];
	size_t argvlen[ARGS_MAX];
	int argc;
	struct buf text;	/* reserved, so that pointers into it stay */
	int64_t owed;		/* answers */
};

static void arg(struct load *l, const char *p, size_t n)
{
	l->argv[l->argc] = p;
	l->argvlen[l->argc++] = n;
}

static void word(struct load *l, const char *s)
{
	arg(l, s, strlen(s));
}

static void text_since(struct load *l, size_t from)
{
	arg(l, l->text.p + from, l->text.n - from);
}

static void send(struct load *l)
{
	if (redisAppendCommandArgv(l->c, l->argc, l->argv, l->argvlen) != REDIS_OK)
		tool_die("Redis: %s", l->c->errstr);
	l->owed++;
	l->argc = 0;
	l->text.n = 0;
}

static void collect(struct load *l, int64_t leave)
{
	for (; l->owed > leave; l->owed--)
		freeReplyObject(tool_reply(l->c));
}

static int64_t delay(struct load *l)
{
	l->random = l->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return l->min + (int64_t)((l->random >> 33) % (uint64_t)(l->max - l->min + 1));
}

static void due_time(struct load *l)
{
	size_t from = l->text.n;

	buf_byte(&l->text, l->at ? '@' : '+');
	buf_int(&l->text, l->at ? l->at : delay(l));
	text_since(l, from);
}

static void schedule(struct load *l, const char *id)
{
	word(l, "FCALL");
	word(l, "lapse_schedule");
	word(l, "1");
	word(l, l->prefix);
	arg(l, id, TOOL_ID_LEN);
	due_time(l);
	word(l, l->topic);
	arg(l, id, l->key ? TOOL_ID_LEN : 0);
	arg(l, l->payload, l->npayload);
	send(l);
}

static void bulk(struct load *l)
{
	for (uint64_t i = 0; i < l->n; i += BULK) {
		uint64_t n = l->n - i < BULK ? l->n - i : BULK;

		word(l, "FCALL");
		word(l, "lapse_schedule_bulk");
		word(l, "1");
		word(l, l->prefix);
		for (uint64_t k = l->first + i; k < l->first + i + n; k++) {
			char id[TOOL_ID_LEN + 1];
			size_t from = l->text.n;

			word(l, l->ttr ? "7" : "5");
			tool_id(id, l->letter, k);
			buf_add(&l->text, bytes_of(id, TOOL_ID_LEN));
			text_since(l, from);
			due_time(l);
			word(l, l->topic);
			word(l, "");
			arg(l, l->payload, l->npayload);
			if (l->ttr) {
				word(l, "ttr");
				word(l, l->ttr);
			}
		}
		send(l);
		collect(l, 4);
	}
}

static void setex(struct load *l, const char *id)
{
	size_t from = l->text.n;

	word(l, "FCALL");
	word(l, "lapse_setex");
	word(l, "2");
	word(l, l->prefix);
	buf_str(&l->text, "watched:");
	buf_str(&l->text, id);
	text_since(l, from);
	from = l->text.n;
	buf_int(&l->text, delay(l));
	text_since(l, from);
	arg(l, l->payload, l->npayload);
	send(l);
}

/* SET, with the TTL as `unit` (PX or PXAT) says. */
static void key(struct load *l, const char *name, const char *id, const char *unit, int64_t ttl)
{
	size_t from = l->text.n;

	word(l, "SET");
	buf_str(&l->text, name);
	buf_str(&l->text, id);
	text_since(l, from);
	arg(l, l->payload, l->npayload);
	word(l, unit);
	from = l->text.n;
	buf_int(&l->text, ttl);
	text_since(l, from);
	send(l);
}

static void key_and_twin(struct load *l, const char *id)
{
	int64_t ttl = delay(l), due = tool_now() / 1000 + ttl;
	char name[64];

	key(l, l->stem, id, "PX", ttl);
	if (!l->twin)
		return;
	snprintf(name, sizeof name, "plain:%lld:", (long long)due);
	key(l, name, id, "PXAT", due);
}

static void member(struct load *l, uint64_t i)
{
	char id[TOOL_ID_LEN + 1];
	size_t from = l->text.n;

	tool_id(id, l->letter, i);
	buf_str(&l->text, "s:");
	buf_str(&l->text, id);
	text_since(l, from);
}

static void zadd(struct load *l, uint64_t first, uint64_t n, int64_t now)
{
	word(l, "ZADD");
	word(l, l->due_key);
	for (uint64_t i = first; i < first + n; i++) {
		size_t from = l->text.n;

		buf_int(&l->text, now / 1000 + delay(l));
		text_since(l, from);
		member(l, i);
	}
	send(l);
}

static void hset(struct load *l, uint64_t first, uint64_t n, int64_t now)
{
	word(l, "HSET");
	word(l, l->rec_key);
	for (uint64_t i = first; i < first + n; i++) {
		char id[TOOL_ID_LEN + 1];
		struct record r = {
			.birth = (uint64_t)now, .topic = bytes_str(l->topic),
			.key = l->key ? bytes_of(id, TOOL_ID_LEN) : bytes_none,
			.payload = bytes_of(l->payload, l->npayload),
		};
		size_t from;

		tool_id(id, l->letter, i);
		member(l, i);
		from = l->text.n;
		if (!record_pack(&r, &l->text, NULL))
			tool_die("a record has no room");
		text_since(l, from);
	}
	send(l);
}

static void direct(struct load *l, int64_t now)
{
	for (uint64_t i = 0; i < l->n; i += PIECE) {
		uint64_t n = l->n - i < PIECE ? l->n - i : PIECE;

		zadd(l, l->first + i, n, now);
		hset(l, l->first + i, n, now);
		collect(l, 8);
	}
}

static void one(struct load *l, uint64_t i)
{
	char id[TOOL_ID_LEN + 1];

	tool_id(id, l->letter, i);
	if (strcmp(l->how, "schedule") == 0) {
		schedule(l, id);
	} else if (strcmp(l->how, "setex") == 0) {
		setex(l, id);
	} else if (strcmp(l->how, "keys") == 0) {
		key(l, "other:", id, "PX", delay(l));
	} else if (strcmp(l->how, "set") == 0) {
		key_and_twin(l, id);
	} else if (strcmp(l->how, "plain") == 0) {
		int64_t now = tool_now();

		zadd(l, i, 1, now);
		hset(l, i, 1, now);
	} else {
		tool_die("how=%s is none that I know", l->how);
	}
}

static void one_by_one(struct load *l, int64_t start)
{
	for (uint64_t i = 0; i < l->n; i++) {
		if (l->rate) {
			int64_t at = start + (int64_t)i * 1000000 / l->rate;

			if (tool_now() < at) {
				collect(l, 0);
				tool_sleep_until(at);
			}
		}
		one(l, l->first + i);
		/* Half a window at a time: fewer, larger writes. */
		if (l->owed >= l->depth)
			collect(l, l->rate ? 0 : l->depth / 2);
	}
}

int main(int argc, char **argv)
{
	struct load l = {
		.c = tool_redis(argv), .prefix = tool_text(argv, "prefix", "lapse:{0}"),
		.topic = tool_text(argv, "topic", "bench"), .how = tool_text(argv, "how", NULL),
		.npayload = (size_t)tool_number(argv, "payload", 128),
		.first = (uint64_t)tool_number(argv, "first", 0),
		.n = (uint64_t)tool_number(argv, "n", 1000),
		.letter = *tool_text(argv, "letter", "e"),
		.min = tool_number(argv, "min", 0), .max = tool_number(argv, "max", 0),
		.rate = tool_number(argv, "rate", 0), .key = tool_number(argv, "key", 1),
		.depth = tool_number(argv, "depth", 200), .at = tool_number(argv, "at", 0),
		.ttr = tool_text(argv, "ttr", ""), .stem = tool_text(argv, "stem", "watched:"),
		.twin = tool_number(argv, "twin", 0),
	};
	int64_t start;

	(void)argc;
	if (!*l.ttr)
		l.ttr = NULL;
	if (l.max < l.min)
		l.max = l.min;
	l.payload = tool_payload(l.npayload);
	snprintf(l.due_key, sizeof l.due_key, "%s:due", l.prefix);
	snprintf(l.rec_key, sizeof l.rec_key, "%s:rec", l.prefix);
	buf_reserve(&l.text, PIECE * (l.npayload + 512));
	start = tool_now();
	if (strcmp(l.how, "direct") == 0)
		direct(&l, start);
	else if (strcmp(l.how, "bulk") == 0)
		bulk(&l);
	else
		one_by_one(&l, start);
	collect(&l, 0);
	putchar('{');
	tool_print_run(l.n, tool_now() - start);
	puts("}");
	redisFree(l.c);
	free(l.payload);
	buf_clear(&l.text);
	return 0;
}
