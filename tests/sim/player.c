/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "core/mem.h"

#define HOLDERS	3
#define OPEN	12	/* batches that are remembered */
#define MEMBERS	10
#define TOKENS	8	/* of jobs that are remembered */

struct holder {
	char slot[8], epoch[24], nonce[24];
	uint64_t seq;
	unsigned joins;
};

struct open_batch {
	unsigned holder;
	uint64_t seq;
	char members[MEMBERS][48];
	uint64_t births[MEMBERS];
	unsigned attempts[MEMBERS];
	size_t n;
};

struct player {
	struct sides *sides;
	uint64_t seed, accepted;
	struct holder holders[HOLDERS];
	struct open_batch open[OPEN];
	size_t nopen;
	char dead[4][96];
	char tokens[TOKENS][96];
	size_t ntokens;
	struct call_text call;
	char room[CALL_ARGS][96];	/* of its arguments */
};

struct player *player_new(struct sides *s, uint64_t seed)
{
	struct player *p = mem_alloc(1, sizeof *p);

	p->sides = s;
	p->seed = seed;
	return p;
}

void player_free(struct player *p)
{
	free(p);
}

uint64_t player_accepted(const struct player *p)
{
	return p->accepted;
}

static uint64_t below(struct player *p, uint64_t n)
{
	uint64_t x = p->seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) % n;
}

void player_reset(struct player *p)
{
	memset(p->holders, 0, sizeof p->holders);
	for (size_t i = 0; i < HOLDERS; i++)
		snprintf(p->holders[i].slot, sizeof p->holders[i].slot, "%zu", i);
	p->nopen = 0;
	memset(p->dead, 0, sizeof p->dead);
	memset(p->tokens, 0, sizeof p->tokens);
}

int64_t player_pause(struct player *p)
{
	return below(p, 3) ? (int64_t)below(p, 2000) : (int64_t)below(p, 1500000);
}

/* Calls -------------------------------------------------------------------- */

static void arg(struct player *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void arg(struct player *p, const char *fmt, ...)
{
	size_t i = p->call.argc++;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->room[i], sizeof p->room[i], fmt, ap);
	va_end(ap);
	p->call.argv[i] = bytes_str(p->room[i]);
}

static void begin(struct player *p, const char *name, size_t nkeys)
{
	p->call.argc = 0;
	p->call.unordered = false;
	p->call.db = 0;
	p->call.nkeys = nkeys;
	arg(p, "%s", name);
	if (nkeys)
		arg(p, "%s", PREFIX);
}

static const struct reply *go(struct player *p)
{
	const struct reply *r = both(p->sides, &p->call);

	p->accepted += r->kind != REPLY_ERROR;
	return r;
}

uint64_t player_below(struct player *p, uint64_t n)
{
	return below(p, n);
}

void player_begin(struct player *p, const char *name, size_t nkeys, unsigned db)
{
	begin(p, name, nkeys);
	p->call.db = db;
}

void player_arg(struct player *p, const char *fmt, ...)
{
	char text[sizeof p->room[0]];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	arg(p, "%s", text);
}

const struct reply *player_go(struct player *p, bool unordered)
{
	p->call.unordered = unordered;
	return go(p);
}

static const char *text(const struct reply *r, size_t i)
{
	return r->kind == REPLY_ARRAY && i < r->n ? r->items[i].str.p : "";
}

static void one_of(struct player *p, const char *const *list, size_t n)
{
	arg(p, "%s", list[below(p, n)]);
}

#define ONE_OF(p, ...) do { \
	static const char *const list_[] = { __VA_ARGS__ }; \
	one_of(p, list_, sizeof list_ / sizeof list_[0]); \
} while (0)

static void arg_id(struct player *p)
{
	if (below(p, 20))
		arg(p, "e%d", (int)below(p, 6));
	else
		ONE_OF(p, "", "sp ace", "per%cent", "x\xff\x01", "e0@1.0");
}

static void arg_when(struct player *p)
{
	if (below(p, 20) == 0)
		ONE_OF(p, "", "+", "5", "+1x", "@99999999999999999", "+-1", "@0", "+007");
	else if (below(p, 3))
		arg(p, "+%d", (int)(below(p, 4) * below(p, 1000)));
	else
		arg(p, "@%lld", (long long)sides_ms(p->sides) + (long long)below(p, 2000) - 300);
}

static void arg_db(struct player *p)
{
	if (below(p, 2))
		return;
	arg(p, "db");
	if (below(p, 10))
		arg(p, "%d", (int)below(p, 3));
	else
		ONE_OF(p, "9", "x", "-1", "");
}

/* The application ---------------------------------------------------------- */

static char *new_token(struct player *p)
{
	return p->tokens[p->ntokens++ % TOKENS];
}

static void remember_token(struct player *p, const struct reply *r)
{
	if (*text(r, 2) == 's')
		snprintf(new_token(p), sizeof p->tokens[0], "%s", text(r, 2));
}

static void arg_terms(struct player *p)
{
	arg(p, "ttr");
	if (below(p, 12))
		arg(p, "%d", (int)(1 + below(p, 1500)));
	else
		ONE_OF(p, "0", "604800001", "x", "");
	if (below(p, 2)) {
		arg(p, "attempts");
		ONE_OF(p, "1", "2", "3", "1", "2", "0", "1001");
	}
	if (below(p, 2)) {
		arg(p, "backoff");
		ONE_OF(p, "0:1:0", "100:2:400", "50:1.5:1000", "1:2", "9:1:8", "1:0.5:2");
	}
}

static void args_event(struct player *p)
{
	arg_id(p);
	arg_when(p);
	ONE_OF(p, "t0", "t1", "t0", "t1", "bad topic", "");
	ONE_OF(p, "", "key", "\x01\xff");
	ONE_OF(p, "payload", "", "poison", "\n");
	if (below(p, 4) == 0) {
		ONE_OF(p, "nx", "type", "content-type", "header.a", "header.ce_x", "what");
		ONE_OF(p, "1", "text/plain", "");
	}
	if (below(p, 6) == 0) {
		arg(p, "if_due_before");
		arg_when(p);
	}
	if (below(p, 2))
		arg_terms(p);
	if (below(p, 8) == 0) {
		ONE_OF(p, "header.b", "header.a", "type");
		arg(p, "value");
	}
}

static void play_schedule(struct player *p)
{
	begin(p, "schedule", 1);
	args_event(p);
	remember_token(p, go(p));
}

static void play_schedule_bulk(struct player *p)
{
	const struct reply *r;

	begin(p, "schedule_bulk", 1);
	for (uint64_t n = 1 + below(p, 2); n; n--) {
		size_t before = p->call.argc;

		arg(p, "n");
		args_event(p);
		snprintf(p->room[before], sizeof p->room[0], "%zu",
			 p->call.argc - before - (below(p, 20) ? 1 : 2));
		p->call.argv[before] = bytes_str(p->room[before]);
	}
	r = go(p);
	for (size_t i = 0; r->kind == REPLY_ARRAY && i < r->n; i++)
		remember_token(p, &r->items[i]);
}

static void play_cancel_bulk(struct player *p)
{
	begin(p, "cancel_bulk", 1);
	for (uint64_t n = below(p, 4); n; n--)
		arg_id(p);
	go(p);
}

static void play_purge(struct player *p)
{
	begin(p, "purge", 1);
	ONE_OF(p, "t0", "t1");
	ONE_OF(p, "0", "b", "b", "b1:2", "x");
	ONE_OF(p, "3", "1000", "0");
	go(p);
}

/* A consumer's word on a job, of any attempt. */
static void play_token(struct player *p)
{
	char *token = p->tokens[(p->ntokens + TOKENS - 1 - below(p, TOKENS / 2)) % TOKENS];
	size_t n = strlen(token);
	uint64_t what = below(p, 5);

	begin(p, what < 2 ? "finish" : what < 3 ? "touch" : "fail", 1);
	if (n && below(p, 12))
		arg(p, "%.*s%d", (int)n - 1, token, (int)(token[n - 1] - '0' + below(p, 6) / 5));
	else
		ONE_OF(p, "", "s:e0", "s:e0@1", "s:e0@1.0", "k:0:w0@1.0", "s:%65@1.0", "s:e0@01.x");
	if (what > 2)
		ONE_OF(p, "", "no answer", "\xff\x01");
	if (what >= 2 && below(p, 2))
		ONE_OF(p, "+0", "+1", "+700", "+9999999999", "5", "");
	remember_token(p, go(p));
}

static void play_one_id(struct player *p, const char *name, bool when)
{
	begin(p, name, 1);
	arg_id(p);
	if (when)
		arg_when(p);
	go(p);
}

static void arg_key(struct player *p)
{
	if (below(p, 20))
		arg(p, "w%d", (int)below(p, 6));
	else
		ONE_OF(p, "", PREFIX ":due", "a key\xfe", "w:1");
}

static void play_setex(struct player *p)
{
	begin(p, "setex", 2);
	arg_key(p);
	if (below(p, 6))
		arg(p, "%d", (int)below(p, 1500));
	else
		arg_when(p);
	ONE_OF(p, "value", "", "other");
	arg_db(p);
	if (below(p, 4) == 0) {
		arg(p, "copy");
		ONE_OF(p, "0", "1", "2");
	}
	go(p);
}

static void play_del(struct player *p)
{
	begin(p, "del", 2);
	arg_key(p);
	arg_db(p);
	go(p);
}

static void play_show(struct player *p)
{
	bool watched = below(p, 2);

	begin(p, "show", 1);
	if (watched)
		arg_key(p);
	else
		arg_id(p);
	if (watched) {
		arg(p, "watched");
		arg(p, "1");
		arg_db(p);
	}
	go(p);
}

static void play_stats(struct player *p)
{
	begin(p, "stats", 1);
	go(p);
}

static void play_dead(struct player *p)
{
	begin(p, below(p, 3) ? "dead_replay" : "dead_drop", 1);
	arg(p, "%s", p->dead[below(p, 4)]);
	go(p);
}

/* What the application does behind our back. */
static void play_plain(struct player *p)
{
	uint64_t what = below(p, 8);
	long long later = (long long)sides_ms(p->sides) + 1 + (long long)below(p, 1500);

	static const char *const names[] = {
		"SET", "SET", "PEXPIREAT", "PEXPIREAT", "DEL", "PERSIST", "EXISTS", "DBSIZE",
	};

	begin(p, names[what], 0);
	p->call.db = (unsigned)below(p, 3);
	if (what < 7)
		arg(p, "w%d", (int)below(p, 6));
	if (what < 2) {
		arg(p, "plain");
		if (what == 1)
			arg(p, "PXAT");
	}
	if (what >= 1 && what <= 3)
		arg(p, "%lld", later);
	go(p);
}

/* The daemons --------------------------------------------------------------- */

static struct holder *fenced(struct player *p, const char *name)
{
	struct holder *h = &p->holders[below(p, HOLDERS)];

	begin(p, name, 1);
	arg(p, "%s", h->slot);
	arg(p, "%s", h->epoch);
	arg(p, "%s", below(p, 30) ? h->nonce : "other");
	return h;
}

static void play_join(struct player *p)
{
	uint64_t i = below(p, HOLDERS);
	struct holder *h = &p->holders[i];
	const struct reply *r;

	if (below(p, 4) || !h->joins)
		h->joins++;
	snprintf(h->nonce, sizeof h->nonce, "n%d.%u", (int)i, h->joins);
	begin(p, "join", 1);
	arg(p, "sim%d", (int)i);
	arg(p, "%s", h->nonce);
	arg(p, "%d", (int)below(p, 4000));
	arg(p, "%s", h->slot);
	arg(p, "%s", *h->epoch ? h->epoch : "0");
	arg(p, "%llu", (unsigned long long)h->seq);
	r = go(p);
	if (r->kind != REPLY_ARRAY)
		return;
	snprintf(h->slot, sizeof h->slot, "%s", text(r, 1));
	snprintf(h->epoch, sizeof h->epoch, "%s", text(r, 2));
	h->seq = strtoull(text(r, 3), NULL, 10);
}

static void play_renew(struct player *p)
{
	struct holder *h = fenced(p, "renew");

	arg(p, "%d", (int)below(p, 4000));
	arg(p, "sim%d", (int)(h - p->holders));
	arg(p, "%d", (int)below(p, 2));
	go(p);
}

static void play_leave(struct player *p)
{
	fenced(p, "leave");
	go(p);
}

/* Now and then a number that was used before. */
static uint64_t arg_seq(struct player *p, struct holder *h)
{
	uint64_t seq = below(p, 6) && h->seq ? h->seq + 1 : 1 + below(p, h->seq + 1);

	if (seq > h->seq)
		h->seq = seq;
	arg(p, "%llu", (unsigned long long)seq);
	return seq;
}

/* Birth and attempt in an envelope, 0 without any. */
static void read_token(struct bytes envelope, uint64_t *birth, unsigned *attempt)
{
	const unsigned char *p = (const unsigned char *)envelope.p;

	*birth = *attempt = 0;
	for (size_t i = 11; i < 19 && envelope.n >= 21; i++)
		*birth = *birth << 8 | p[i];
	if (envelope.n >= 21)
		*attempt = (unsigned)p[19] << 8 | p[20];
}

static void remember(struct player *p, const struct holder *h, uint64_t seq,
		     const struct reply *r)
{
	struct open_batch *b = &p->open[p->nopen % OPEN];

	if (r->n <= 7)
		return;
	p->nopen++;
	b->holder = (unsigned)(h - p->holders);
	b->seq = seq;
	b->n = 0;
	for (size_t i = 7; i + 1 < r->n && b->n < MEMBERS; i += 2) {
		snprintf(b->members[b->n], sizeof b->members[0], "%s", text(r, i));
		read_token(r->items[i + 1].str, &b->births[b->n], &b->attempts[b->n]);
		if (*text(r, i) == 's')
			snprintf(new_token(p), sizeof p->tokens[0], "%s@%llu.%u", text(r, i),
				 (unsigned long long)b->births[b->n], b->attempts[b->n]);
		b->n++;
	}
}

static void play_claim(struct player *p)
{
	struct holder *h = fenced(p, "claim");
	uint64_t seq = arg_seq(p, h), heard = below(p, 3);
	const struct reply *r;

	arg(p, "%d", (int)(1 + below(p, 6)));
	arg(p, "%d", (int)(below(p, 3) ? 100000 : 60));
	arg(p, "%d", (int)(100 * below(p, 2)));
	arg(p, "%d", (int)(2000 * below(p, 2)));
	for (uint64_t i = 0; i < heard; i++) {
		arg(p, "k:%d:w%d", (int)below(p, 3), (int)below(p, 6));
		if (below(p, 2))
			arg(p, "-");
		else
			arg(p, "%d%s%s", (int)below(p, 300), below(p, 2) ? "!" : "",
			    i + 1 == heard && below(p, 3) == 0 ? "+" : "");
	}
	r = go(p);
	if (r->kind == REPLY_ARRAY)
		remember(p, h, seq, r);
}

static struct open_batch *some_batch(struct player *p)
{
	static struct open_batch none = { .seq = 1 };
	size_t n = p->nopen < OPEN ? p->nopen : OPEN;

	return n ? &p->open[below(p, n)] : &none;
}

static void play_adopt(struct player *p)
{
	struct holder *h = fenced(p, "adopt");
	struct open_batch *b = some_batch(p);
	uint64_t seq = arg_seq(p, h);
	const struct reply *r;

	arg(p, "%s", p->holders[b->holder].slot);
	arg(p, "%llu", (unsigned long long)b->seq);
	r = go(p);
	if (r->kind == REPLY_ARRAY)
		remember(p, h, seq, r);
}

static void arg_burials(struct player *p, const struct open_batch *b, size_t n)
{
	arg(p, "%zu", n);
	for (size_t i = 0; i < n; i++) {
		char *id = p->dead[below(p, 4)];

		snprintf(id, sizeof p->dead[0], "%.40s@%d.0", b->members[i], (int)below(p, 9));
		arg(p, "%s", b->members[i]);
		arg(p, "%s", id);
		arg(p, "refused");
	}
	arg(p, "%d", (int)(below(p, 3) ? 0 : 1 + below(p, 2)));
}

/* Jobs or not; where those behind them begin. */
static size_t arg_delivered(struct player *p, const struct open_batch *b, size_t from)
{
	size_t n = below(p, b->n - from + 1);

	arg(p, "%zu", n);
	for (size_t i = from; i < from + n; i++) {
		arg(p, "%s", b->members[i]);
		arg(p, "%llu", (unsigned long long)b->births[i]);
		arg(p, "%u", b->attempts[i]);
	}
	return from + n;
}

static void play_settle(struct player *p)
{
	struct open_batch *b = some_batch(p);
	struct holder *h = &p->holders[b->holder];
	size_t bury = b->n ? below(p, b->n + 1) / 2 : 0, at = bury;

	begin(p, "settle", 1);
	arg(p, "%s", h->slot);
	arg(p, "%s", h->epoch);
	arg(p, "%s", h->nonce);
	arg(p, "%llu", (unsigned long long)b->seq);
	arg_burials(p, b, bury);
	at = arg_delivered(p, b, at);
	while (at < b->n && below(p, 2)) {
		size_t n = 1 + below(p, b->n - at);

		arg_seq(p, h);
		ONE_OF(p, "t0", "t1", "");
		arg(p, "%lld", (long long)sides_ms(p->sides) + 500);
		arg(p, "%zu", n);
		for (size_t i = 0; i < n; i++)
			arg(p, "%s", b->members[at + i]);
		at += n;
	}
	go(p);
}

static void play_forget(struct player *p)
{
	const struct open_batch *b = some_batch(p);

	fenced(p, "forget");
	for (uint64_t i = below(p, 3); i; i--) {
		if (below(p, 2))
			arg(p, "s:e%d", (int)below(p, 6));
		else
			arg(p, "k:0:w%d", (int)below(p, 6));
		arg(p, "1");
		arg(p, "%lld", (long long)sides_ms(p->sides) - (long long)below(p, 5));
		ONE_OF(p, "-", "0");
	}
	for (size_t i = 0; i < b->n; i++) {
		arg(p, "%s", b->members[i]);
		arg(p, "%llu", (unsigned long long)b->births[i]);
		arg(p, "%lld", (long long)sides_ms(p->sides));
		arg(p, "%u", b->attempts[i]);
	}
	go(p);
}

static void play_walk(struct player *p)
{
	begin(p, "walk", 1);
	ONE_OF(p, "due", "rec", "wait", "open", "dead", "why", "seen", "slots");
	arg(p, "0");
	arg(p, "100");
	ONE_OF(p, "0", "1");
	go(p);
}

/* Somebody breaks what is ours, for `walk` and the readers of records. */
static void play_break(struct player *p)
{
	begin(p, "HDEL", 0);
	p->call.db = DATABASE;
	ONE_OF(p, PREFIX ":rec", PREFIX ":open", PREFIX ":why");
	ONE_OF(p, "s:e0", "s:e1", "k:0:w0", "0:1", "0:2");
	go(p);
	begin(p, "HSET", 0);
	p->call.db = DATABASE;
	arg(p, PREFIX ":rec");
	ONE_OF(p, "s:e2", "k:0:w1", "k:1:w1");
	ONE_OF(p, "junk", "\x01too short", "\x02of another version");
	go(p);
}

static void play_job(struct player *p)
{
	uint64_t what = below(p, 20);

	if (what < 13)
		play_token(p);
	else if (what < 16)
		play_schedule_bulk(p);
	else if (what < 18)
		play_cancel_bulk(p);
	else
		play_purge(p);
}

void player_act(struct player *p)
{
	uint64_t what = below(p, 125);

	if (below(p, 40) == 0)
		sides_oom(p->sides, below(p, 3) == 0);
	if (below(p, 4) == 0)
		player_keys_act(p, p->sides);
	else if (what >= 100)
		play_job(p);
	else if (what < 18)
		play_schedule(p);
	else if (what < 34)
		play_setex(p);
	else if (what < 42)
		play_one_id(p, what % 2 ? "cancel" : "reschedule", what % 2 == 0);
	else if (what < 46)
		play_del(p);
	else if (what < 52)
		play_show(p);
	else if (what < 62)
		play_plain(p);
	else if (what < 74)
		play_claim(p);
	else if (what < 82)
		play_settle(p);
	else if (what < 86)
		play_adopt(p);
	else if (what < 90)
		play_join(p);
	else
		((void (*[])(struct player *)){
			play_renew, play_leave, play_forget, play_walk, play_dead,
			play_dead, play_stats, play_break, play_renew, play_walk,
		}[what - 90])(p);
}
