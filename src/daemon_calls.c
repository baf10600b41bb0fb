/* SPDX-License-Identifier: BSD-2-Clause */

#include "daemon_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/record.h"
#include "failpoint.h"
#include "io/clock.h"

#define SHA_LEN	40

/* In the order of enum ask_kind; a fetch is a claim under a number in use. */
static const char *const script_names[] = {
	[ASK_JOIN] = "join", [ASK_RENEW] = "renew", [ASK_LEAVE] = "leave",
	[ASK_CLAIM] = "claim", [ASK_ADOPT] = "adopt", [ASK_FETCH] = "claim",
	[ASK_SETTLE] = "settle", [ASK_FORGET] = "forget",
	[ASK_WALK] = "walk", [ASK_SCAN] = "scan",
	[ASK_REGISTER] = "register",
};

#define KINDS	(sizeof script_names / sizeof script_names[0])
/* Those that the bridge does not ask for. */
#define CANARY	KINDS
#define GLANCE	(KINDS + 1)
#define SCRIPTS	(KINDS + 2)

/* An argument lies elsewhere, or in `text` at an offset (`text` moves). */
struct arg {
	const char *p;
	size_t at, n;
};

struct calls {
	struct redis *r;
	struct bridge *b;
	struct calls_conf conf;
	struct calls_handlers handlers;
	void *arg;
	char *texts[SCRIPTS];
	char shas[SCRIPTS][SHA_LEN + 1];
	unsigned loading;	/* answers owed */
	bool failed;
	bool glancing;		/* an answer is owed */

	struct arg *args;	/* of the call that is being made */
	struct bytes *argv;
	size_t n, cap;
	struct buf text;
};

struct pending {
	struct calls *c;
	enum ask_kind kind;
	unsigned life;
	struct batch *batch;
};

static const char *name_of(size_t script)
{
	if (script == CANARY)
		return "canary";
	return script == GLANCE ? "glance" : script_names[script];
}

struct calls *calls_new(struct redis *r, struct bridge *b, const struct calls_conf *conf,
			const struct calls_handlers *handlers, void *arg)
{
	struct calls *c = mem_alloc(1, sizeof *c);

	c->r = r;
	c->b = b;
	c->conf = *conf;
	c->handlers = *handlers;
	c->arg = arg;
	for (size_t i = 0; i < SCRIPTS; i++)
		c->texts[i] = script_text(name_of(i), conf->database);
	return c;
}

void calls_free(struct calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < SCRIPTS; i++)
		free(c->texts[i]);
	free(c->args);
	free(c->argv);
	buf_clear(&c->text);
	free(c);
}

/* Arguments ----------------------------------------------------------- */

static struct arg *arg_new(struct calls *c)
{
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 64;
		c->args = mem_resize(c->args, c->cap, sizeof *c->args);
		c->argv = mem_resize(c->argv, c->cap, sizeof *c->argv);
	}
	return &c->args[c->n++];
}

static void arg_bytes(struct calls *c, struct bytes b)
{
	*arg_new(c) = (struct arg){ b.n ? b.p : "", 0, b.n };
}

static void arg_str(struct calls *c, const char *s)
{
	arg_bytes(c, bytes_str(s));
}

/* What was put into `text` since it held `from` bytes. */
static void arg_text(struct calls *c, size_t from)
{
	*arg_new(c) = (struct arg){ NULL, from, c->text.n - from };
}

static void arg_int(struct calls *c, int64_t v)
{
	size_t from = c->text.n;

	buf_int(&c->text, v);
	arg_text(c, from);
}

static void args_lease(struct calls *c)
{
	const struct lease *l = bridge_lease(c->b);

	arg_int(c, l->slot);
	arg_int(c, (int64_t)l->epoch);
	arg_str(c, l->nonce);
}

static void arg_heard(struct calls *c, const struct heard_key *k, usec_t now, bool more)
{
	size_t from = c->text.n;

	buf_int(&c->text, (now - k->at) / USEC_PER_MSEC);
	buf_str(&c->text, k->anyway == HEARD_LISTED ? "-" : k->anyway == HEARD_SURE ? "!" : "");
	buf_str(&c->text, more ? "+" : "");
	arg_text(c, from);
}

static void args_claim(struct calls *c, const struct ask *ask)
{
	usec_t now = clock_now();

	arg_int(c, (int64_t)ask->limit);
	arg_int(c, (int64_t)ask->bytes);
	arg_int(c, ask->hush);
	arg_int(c, ask->window);
	for (size_t i = 0; i < ask->nheard; i++) {
		arg_bytes(c, ask->heard[i].member);
		arg_heard(c, &ask->heard[i], now, ask->more && i + 1 == ask->nheard);
	}
}

/* And how many dead letters are to be kept. */
static void args_burials(struct calls *c, const struct batch *b, size_t keep)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += b->entries[i].state == ENTRY_BURIED;
	arg_int(c, (int64_t)n);
	for (size_t i = 0; n && i < b->n; i++) {
		const struct entry *e = &b->entries[i];
		size_t from = c->text.n;

		if (e->state != ENTRY_BURIED)
			continue;
		arg_bytes(c, e->member);
		event_dead_id(e->member, e->envelope, &c->text);
		arg_text(c, from);
		arg_str(c, e->reason);
	}
	arg_int(c, (int64_t)keep);
}

/* Those that were delivered and wait for their finish. */
static void args_jobs(struct calls *c, const struct batch *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += b->entries[i].job && b->entries[i].state == ENTRY_DONE;
	arg_int(c, (int64_t)n);
	for (size_t i = 0; n && i < b->n; i++) {
		const struct entry *e = &b->entries[i];
		struct envelope env;
		struct record rec = { 0 };

		if (!e->job || e->state != ENTRY_DONE)
			continue;
		/* It could be read when it came. */
		if (envelope_unpack(e->envelope, &env, NULL))
			(void)!record_unpack(env.record, &rec, NULL);
		arg_bytes(c, e->member);
		arg_int(c, (int64_t)rec.birth);
		arg_int(c, rec.attempt);
	}
}

/* The entries that stay, in groups by the batch that they move to. */
static void args_group(struct calls *c, const struct batch *b, size_t first)
{
	const struct entry *e = &b->entries[first];
	uint64_t seq = e->park_seq;
	bool parked = e->state == ENTRY_PARKED;
	size_t n = 0;

	for (size_t i = first; i < b->n; i++)
		n += b->entries[i].park_seq == seq;
	arg_int(c, (int64_t)seq);
	arg_bytes(c, parked ? topic_name(e->topic) : bytes_none);
	arg_int(c, parked ? bridge_redis_ms(c->b, topic_retry_at(e->topic)) : 0);
	arg_int(c, (int64_t)n);
	for (size_t i = first; i < b->n; i++)
		if (b->entries[i].park_seq == seq)
			arg_bytes(c, b->entries[i].member);
}

static void args_groups(struct calls *c, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		uint64_t seq = b->entries[i].park_seq;
		bool first = seq != 0;

		for (size_t j = 0; first && j < i; j++)
			first = b->entries[j].park_seq != seq;
		if (first)
			args_group(c, b, i);
	}
}

static void args_lives(struct calls *c, const struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct entry *e = &b->entries[i];
		struct envelope env;
		struct record rec;

		if (e->state != ENTRY_DONE || !envelope_unpack(e->envelope, &env, NULL) ||
		    !record_unpack(env.record, &rec, NULL))
			continue;
		arg_bytes(c, e->member);
		arg_int(c, (int64_t)rec.birth);
		arg_int(c, env.due);
		if (e->job)
			arg_int(c, rec.attempt);
		else
			arg_str(c, "-");
	}
}

/* The others, and lapse stats, see who is deaf. */
static void arg_instance(struct calls *c, bool deaf)
{
	size_t from = c->text.n;

	buf_str(&c->text, c->conf.instance);
	buf_str(&c->text, deaf ? " deaf" : "");
	arg_text(c, from);
}

/* And the numbers of the stay before, which nobody may use again. */
static void args_join(struct calls *c, const struct lease *l)
{
	arg_str(c, l->nonce);
	arg_int(c, c->conf.lease);
	arg_int(c, l->slot);
	arg_int(c, (int64_t)l->epoch);
	arg_int(c, (int64_t)l->seq);
}

static void args_walk(struct calls *c, const struct walk_step *step)
{
	arg_str(c, step->part);
	arg_str(c, step->cursor);
	arg_int(c, WALK_COUNT);
	arg_int(c, step->repair);
	for (size_t i = 0; i < step->n; i++)
		arg_bytes(c, step->names[i]);
}

static void arg_age(struct calls *c, usec_t at, usec_t now)
{
	if (at == USEC_NEVER)
		arg_str(c, "-");
	else
		arg_int(c, (now - at) / USEC_PER_MSEC);
}

static void args_register(struct calls *c, const struct register_ask *ask)
{
	usec_t now = clock_now();

	for (size_t i = 0; i < ask->n; i++) {
		const struct register_key *k = &ask->keys[i];

		arg_bytes(c, k->member);
		arg_str(c, k->signs);
		if (k->copy)
			arg_int(c, (int64_t)k->max_value);
		else
			arg_str(c, "-");
		arg_age(c, k->expired_at, now);
		arg_age(c, k->set_at, now);
	}
}

static void args_scan(struct calls *c, const struct scan_step *step)
{
	arg_str(c, step->place);
	arg_int(c, SCAN_COUNT);
	arg_bytes(c, step->pattern);
	for (size_t i = 0; i < step->n_dbs; i++)
		arg_int(c, step->dbs[i]);
}

/* Those that need no fence: what they do depends on what they find alone. */
static bool is_free(enum ask_kind kind)
{
	return kind == ASK_JOIN || kind == ASK_WALK || kind == ASK_SCAN ||
	       kind == ASK_REGISTER;
}

static void args_of(struct calls *c, const struct ask *ask)
{
	if (!is_free(ask->kind))
		args_lease(c);
	switch (ask->kind) {
	case ASK_JOIN:
		arg_str(c, c->conf.instance);
		args_join(c, bridge_lease(c->b));
		break;
	case ASK_RENEW:
		arg_int(c, c->conf.lease);
		arg_instance(c, ask->deaf);
		arg_int(c, ask->own);
		break;
	case ASK_LEAVE:
		break;
	case ASK_CLAIM:
	case ASK_FETCH:
		arg_int(c, (int64_t)ask->batch->seq);
		args_claim(c, ask);
		break;
	case ASK_ADOPT:
		arg_int(c, (int64_t)ask->batch->seq);
		arg_int(c, ask->batch->from_slot);
		arg_int(c, (int64_t)ask->batch->from_seq);
		break;
	case ASK_SETTLE:
		arg_int(c, (int64_t)ask->batch->seq);
		args_burials(c, ask->batch, ask->keep);
		args_jobs(c, ask->batch);
		args_groups(c, ask->batch);
		break;
	case ASK_FORGET:
		args_lives(c, ask->batch);
		break;
	case ASK_WALK:
		args_walk(c, ask->walk);
		break;
	case ASK_SCAN:
		args_scan(c, ask->scan);
		break;
	case ASK_REGISTER:
		args_register(c, ask->keys);
		break;
	}
}

/* Replies ------------------------------------------------------------- */

static struct bytes item(const redisReply *reply, size_t i)
{
	const redisReply *r = i < reply->elements ? reply->element[i] : NULL;

	if (!r || (r->type != REDIS_REPLY_STRING && r->type != REDIS_REPLY_STATUS))
		return bytes_none;
	return bytes_of(r->str, (size_t)r->len);
}

static int64_t item_int(const redisReply *reply, size_t i)
{
	struct bytes b = item(reply, i);

	return b.n ? strtoll(b.p, NULL, 10) : 0;	/* hiredis ends it with a NUL */
}

static size_t item_names(const redisReply *reply, size_t from, struct batch_name **names)
{
	size_t n = 0;

	*names = mem_alloc(reply->elements, sizeof **names);
	for (size_t i = from; i < reply->elements; i++) {
		unsigned slot;
		unsigned long long seq;

		if (item(reply, i).n && sscanf(item(reply, i).p, "%9u:%19llu", &slot, &seq) == 2)
			(*names)[n++] = (struct batch_name){ slot, seq };
	}
	return n;
}

static void joined(struct calls *c, unsigned life, const redisReply *reply, usec_t now)
{
	struct batch_name *open;
	size_t n = item_names(reply, 4, &open);

	bridge_joined(c->b, life, item_int(reply, 0), (unsigned)item_int(reply, 1),
		      (uint64_t)item_int(reply, 2), (uint64_t)item_int(reply, 3), open, n, now);
	free(open);
}

static void renewed(struct calls *c, unsigned life, const redisReply *reply, usec_t now)
{
	size_t n = (size_t)item_int(reply, 1), orphans;
	unsigned *slots;
	usec_t *left;
	struct batch_name *names;

	if (n > reply->elements / 3)
		n = reply->elements / 3;
	slots = mem_alloc(n, sizeof *slots);
	left = mem_alloc(n, sizeof *left);
	for (size_t i = 0; i < n; i++) {
		slots[i] = (unsigned)item_int(reply, 2 + 3 * i);
		left[i] = item_int(reply, 3 + 3 * i) * USEC_PER_MSEC;
	}
	orphans = item_names(reply, 2 + 3 * n, &names);
	bridge_renewed(c->b, life, item_int(reply, 0), slots, left, n, names, orphans, now);
	free(names);
	free(left);
	free(slots);
}

static void brought(struct calls *c, struct batch *batch, const redisReply *reply, usec_t now)
{
	size_t n = reply->elements > 7 ? (reply->elements - 7) / 2 : 0;
	const redisReply *list = reply->elements > 3 ? reply->element[3] : NULL;
	size_t n_followed = list && list->type == REDIS_REPLY_ARRAY ? list->elements : 0;
	struct bytes *members = mem_alloc(2 * n + n_followed, sizeof *members);
	struct batch_answer a = {
		.redis = item_int(reply, 0), .next = item_int(reply, 1),
		.absorbed = (uint64_t)item_int(reply, 2),
		.followed = members + 2 * n, .n_followed = n_followed,
		.adopted = (unsigned)item_int(reply, 4),
		.topic = item(reply, 5), .retry = item_int(reply, 6),
		.members = members, .envelopes = members + n, .n = n,
	};

	for (size_t i = 0; i < n; i++) {
		members[i] = item(reply, 7 + 2 * i);
		members[n + i] = item(reply, 8 + 2 * i);
	}
	for (size_t i = 0; i < n_followed; i++)
		members[2 * n + i] = item(list, i);
	bridge_brought(c->b, batch, &a, now);
	free(members);
}

static void settled(struct calls *c, struct batch *batch, const redisReply *reply, usec_t now)
{
	bool gone = bytes_eq(item(reply, 0), BYTES("gone"));

	if (reply->elements > 2)
		bridge_dead(c->b, (size_t)item_int(reply, 1), (size_t)item_int(reply, 2),
			    item(reply, 3));
	bridge_settled(c->b, batch, gone, now);
}

static void walked(struct calls *c, unsigned life, const redisReply *reply, usec_t now)
{
	size_t n = reply->elements > 2 ? (reply->elements - 2) / 3 : 0;
	struct walk_found *found = mem_alloc(n, sizeof *found);
	struct walk_answer a = {
		.cursor = item(reply, 0), .looked = (uint64_t)item_int(reply, 1),
		.found = found, .n = n,
	};

	for (size_t i = 0; i < n; i++)
		found[i] = (struct walk_found){
			item(reply, 2 + 3 * i), item(reply, 3 + 3 * i), item(reply, 4 + 3 * i),
		};
	bridge_walked(c->b, life, &a, now);
	free(found);
}

static void scanned(struct calls *c, unsigned life, const redisReply *reply, usec_t now)
{
	size_t n = reply->elements > 2 ? reply->elements - 2 : 0;
	struct bytes *members = mem_alloc(n, sizeof *members);
	const struct scan_answer a = {
		.place = item(reply, 0), .looked = (uint64_t)item_int(reply, 1),
		.members = members, .n = n,
	};

	for (size_t i = 0; i < n; i++)
		members[i] = item(reply, 2 + i);
	bridge_scanned(c->b, life, &a, now);
	free(members);
}

static void registered(struct calls *c, unsigned life, const redisReply *reply, usec_t now)
{
	const struct register_answer a = {
		.registered = (uint64_t)item_int(reply, 1),
		.moved = (uint64_t)item_int(reply, 2),
		.unregistered = (uint64_t)item_int(reply, 3),
		.cancelled = (uint64_t)item_int(reply, 4),
		.aside = (uint64_t)item_int(reply, 5),
		.evicted = (uint64_t)item_int(reply, 6),
		.dropped = (uint64_t)item_int(reply, 7),
		.bare = (uint64_t)item_int(reply, 8),
	};

	bridge_registered(c->b, life, &a, now);
}

static void refused(struct calls *c, const struct pending *p, const redisReply *reply)
{
	const char *text = reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply";
	enum script_error code = script_error_code(bytes_str(text));

	if (code == SCRIPT_FENCED) {
		bridge_refused(c->b, p->kind, p->life, p->batch, REFUSAL_FENCED, clock_now());
		return;
	}
	bridge_refused(c->b, p->kind, p->life, p->batch, REFUSAL_LATER, clock_now());
	if (code == SCRIPT_NOSCRIPT)
		calls_load(c);
	else
		c->handlers.error(c->arg, script_names[p->kind], code, text);
	if (code == SCRIPT_READONLY || code == SCRIPT_MOVED)
		redis_drop(c->r, REDIS_LOST, text);
}

static void answered(struct calls *c, const struct pending *p, const redisReply *reply)
{
	usec_t now = clock_now();

	switch (p->kind) {
	case ASK_JOIN:
		joined(c, p->life, reply, now);
		break;
	case ASK_RENEW:
		renewed(c, p->life, reply, now);
		break;
	case ASK_LEAVE:
		bridge_left(c->b, p->life);
		break;
	case ASK_CLAIM:
	case ASK_ADOPT:
	case ASK_FETCH:
		brought(c, p->batch, reply, now);
		break;
	case ASK_SETTLE:
		settled(c, p->batch, reply, now);
		break;
	case ASK_FORGET:
		bridge_forgot(c->b, p->batch, (uint64_t)item_int(reply, 0), now);
		break;
	case ASK_WALK:
		walked(c, p->life, reply, now);
		break;
	case ASK_SCAN:
		scanned(c, p->life, reply, now);
		break;
	case ASK_REGISTER:
		registered(c, p->life, reply, now);
		break;
	}
}

static void on_answer(void *arg, void *priv, redisReply *reply)
{
	struct pending *p = priv;

	(void)arg;
	failpoint(script_names[p->kind], ".answer");
	if (!reply)
		bridge_refused(p->c->b, p->kind, p->life, p->batch, REFUSAL_LOST, clock_now());
	else if (reply->type != REDIS_REPLY_ARRAY)
		refused(p->c, p, reply);
	else
		answered(p->c, p, reply);
	failpoint(script_names[p->kind], ".done");
	free(p);
}

/* The command in `args`, with one key: the prefix. */
static void call_begin(struct calls *c, size_t script)
{
	c->n = 0;
	buf_reset(&c->text);
	arg_str(c, "EVALSHA");
	arg_str(c, c->shas[script]);
	arg_str(c, "1");
	arg_str(c, c->conf.prefix);
}

static bool call_send(struct calls *c, redis_callback *cb, void *priv)
{
	for (size_t i = 0; i < c->n; i++)
		c->argv[i] = bytes_of(c->args[i].p ? c->args[i].p : c->text.p + c->args[i].at,
				      c->args[i].n);
	return redis_call(c->r, c->n, c->argv, cb, priv);
}

void calls_make(struct calls *c, const struct ask *ask)
{
	struct pending *p = mem_alloc(1, sizeof *p);

	*p = (struct pending){ c, ask->kind, ask->life, ask->batch };
	failpoint(script_names[ask->kind], ".ask");
	call_begin(c, ask->kind);
	args_of(c, ask);
	if (!call_send(c, on_answer, p)) {
		bridge_refused(c->b, ask->kind, ask->life, ask->batch, REFUSAL_LOST,
			       clock_now());
		free(p);
		return;
	}
#ifdef LAPSED_FAILPOINTS
	redis_flush(c->r);
#endif
	failpoint(script_names[ask->kind], ".sent");
}

/* The canary ---------------------------------------------------------- */

struct canary_call {
	struct calls *c;
	calls_canary_answer *cb;
};

static void on_canary(void *arg, void *priv, redisReply *reply)
{
	struct canary_call *p = priv;

	(void)arg;
	if (reply && reply->type == REDIS_REPLY_ARRAY)
		p->cb(p->c->arg, item_int(reply, 0) == 1, item_int(reply, 1) == 1);
	free(p);
}

void calls_canary(struct calls *c, unsigned db, const char *name, msec_t ttl,
		  calls_canary_answer *cb)
{
	struct canary_call *p = mem_alloc(1, sizeof *p);

	*p = (struct canary_call){ c, cb };
	call_begin(c, CANARY);
	arg_int(c, db);
	arg_str(c, name);
	arg_int(c, ttl);
	if (!call_send(c, on_canary, p))
		free(p);
}

/* The glance ---------------------------------------------------------- */

struct glance_call {
	struct calls *c;
	calls_glance_row *row;
	calls_glance_end *end;
};

static void on_glance(void *arg, void *priv, redisReply *reply)
{
	struct glance_call *p = priv;
	struct calls *c = p->c;

	(void)arg;
	c->glancing = false;
	if (reply && reply->type == REDIS_REPLY_ARRAY) {
		for (size_t i = 0; i + 2 < reply->elements; i += 3)
			p->row(c->arg, (unsigned)item_int(reply, i),
			       (uint64_t)item_int(reply, i + 1), (uint64_t)item_int(reply, i + 2));
		p->end(c->arg);
	}
	free(p);
}

bool calls_glancing(const struct calls *c)
{
	return c->glancing;
}

void calls_glance(struct calls *c, uint64_t serial, const struct glance_counts *add, unsigned keys,
		  calls_glance_row *row, calls_glance_end *end)
{
	const struct lease *l = bridge_lease(c->b);
	struct glance_call *p = mem_alloc(1, sizeof *p);

	*p = (struct glance_call){ c, row, end };
	call_begin(c, GLANCE);
	arg_int(c, l->slot);
	arg_int(c, (int64_t)l->epoch);
	arg_int(c, (int64_t)serial);
	arg_int(c, (int64_t)add->heard);
	arg_int(c, (int64_t)add->found);
	arg_int(c, (int64_t)add->inferred);
	arg_int(c, keys);
	c->glancing = call_send(c, on_glance, p);
	if (!c->glancing)
		free(p);
}

/* Loading ------------------------------------------------------------- */

struct load {
	struct calls *c;
	size_t kind;
};

static void on_loaded(void *arg, void *priv, redisReply *reply)
{
	struct load l = *(struct load *)priv;
	struct calls *c = l.c;
	const char *error = NULL;

	(void)arg;
	free(priv);
	c->loading--;
	if (!reply)
		return;		/* the connection is down, which is told elsewhere */
	if (reply->type == REDIS_REPLY_STRING && reply->len == SHA_LEN)
		memcpy(c->shas[l.kind], reply->str, SHA_LEN);
	else
		error = reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply";
	if (error && !c->failed) {
		c->failed = true;
		c->handlers.loaded(c->arg, error);
	}
	if (c->loading == 0 && !c->failed)
		c->handlers.loaded(c->arg, NULL);
}

void calls_load(struct calls *c)
{
	if (c->loading)
		return;
	c->failed = false;
	for (size_t i = 0; i < SCRIPTS; i++) {
		struct bytes argv[] = { BYTES("SCRIPT"), BYTES("LOAD"), bytes_str(c->texts[i]) };
		struct load *l = mem_alloc(1, sizeof *l);

		*l = (struct load){ c, i };
		if (redis_call(c->r, 3, argv, on_loaded, l))
			c->loading++;
		else
			free(l);
	}
}
