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
#define PREFIX	"lapse:{0}"

struct holder {
	char slot[8], epoch[24], nonce[24];
	uint64_t seq;
	unsigned joins;
};

struct open_batch {
	unsigned holder;
	uint64_t seq;
	char members[MEMBERS][48];
	size_t n;
};

struct player {
	struct sides *sides;
	uint64_t seed, accepted;
	struct holder holders[HOLDERS];
	struct open_batch open[OPEN];
	size_t nopen;
	char dead[4][96];
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

static void play_schedule(struct player *p)
{
	begin(p, "schedule", 1);
	arg_id(p);
	arg_when(p);
	ONE_OF(p, "t0", "t1", "t0", "t1", "bad topic", "");
	ONE_OF(p, "", "key", "\x01\xff");
	ONE_OF(p, "payload", "", "poison", "\n");
	if (below(p, 4) == 0) {
		ONE_OF(p, "nx", "type", "content-type", "header.a", "header.ce_x", "what");
		ONE_OF(p, "1", "text/plain", "");
	}
	if (below(p, 8) == 0) {
		ONE_OF(p, "header.b", "header.a", "type");
		arg(p, "value");
	}
	go(p);
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
	for (size_t i = 7; i + 1 < r->n && b->n < MEMBERS; i += 2)
		snprintf(b->members[b->n++], sizeof b->members[0], "%s", text(r, i));
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
			arg(p, "%d", (int)below(p, 300));
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
	arg(p, "0");
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
	go(p);
}

static void play_walk(struct player *p)
{
	begin(p, "walk", 1);
	ONE_OF(p, "due", "rec", "open", "dead", "why", "seen", "slots");
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

void player_act(struct player *p)
{
	uint64_t what = below(p, 100);

	if (below(p, 40) == 0)
		sides_oom(p->sides, below(p, 3) == 0);
	if (what < 18)
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
