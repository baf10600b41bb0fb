/* SPDX-License-Identifier: BSD-2-Clause */

#include "store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/glob.h"
#include "core/mem.h"
#include "dict.h"

enum kind { KIND_STRING, KIND_HASH, KIND_ZSET };

struct object {
	enum kind kind;
	int64_t expires;	/* ms since the epoch; -1: never */
	struct bytes string;	/* owned */
	struct dict dict;
	struct item **sorted;	/* of a sorted set, by score and member */
	size_t cap;
};

struct store {
	struct dict dbs[STORE_DBS];
	size_t db;
	int64_t us;
	bool oom, written;
	store_publish *publish;
	void *arg;
};

struct call {
	struct store *s;
	size_t argc;
	const struct bytes *argv;
	struct reply *out;
};

/* Replies -------------------------------------------------------------- */

void reply_clear(struct reply *r)
{
	for (size_t i = 0; i < r->n; i++)
		reply_clear(&r->items[i]);
	free(r->items);
	free((char *)r->str.p);
	*r = (struct reply){ 0 };
}

static void reply_int(struct reply *r, int64_t v)
{
	r->kind = REPLY_INT;
	r->integer = v;
}

static void reply_bytes(struct reply *r, enum reply_kind kind, struct bytes b)
{
	r->kind = kind;
	r->str = bytes_of(mem_copy(b), b.n);
}

static void reply_str(struct reply *r, struct bytes b)
{
	reply_bytes(r, REPLY_STR, b);
}

static void reply_error(struct reply *r, const char *text)
{
	reply_bytes(r, REPLY_ERROR, bytes_str(text));
}

static void reply_ok(struct reply *r)
{
	reply_bytes(r, REPLY_STATUS, BYTES("OK"));
}

static struct reply *reply_add(struct reply *r)
{
	r->kind = REPLY_ARRAY;
	r->items = mem_resize(r->items, r->n + 1, sizeof *r->items);
	r->items[r->n] = (struct reply){ 0 };
	return &r->items[r->n++];
}

/* Redis prints integers as such and other doubles with 17 digits. */
static struct bytes score_text(double score, char *room, size_t size)
{
	int n = score == floor(score) && fabs(score) < 1e17 ?
		snprintf(room, size, "%.0f", score) : snprintf(room, size, "%.17g", score);

	return bytes_of(room, (size_t)n);
}

static void reply_score(struct reply *r, double score)
{
	char room[64];

	reply_str(r, score_text(score, room, sizeof room));
}

/* Objects -------------------------------------------------------------- */

static void object_free(struct object *o)
{
	dict_clear(&o->dict);
	free(o->sorted);
	free((char *)o->string.p);
	free(o);
}

static int item_cmp(const struct item *a, double score, struct bytes member)
{
	size_t n = a->key.n < member.n ? a->key.n : member.n;
	int c;

	if (a->score != score)
		return a->score < score ? -1 : 1;
	c = n ? memcmp(a->key.p, member.p, n) : 0;
	return c ? c : (a->key.n > member.n) - (a->key.n < member.n);
}

/* Where (score, member) is, or would be. */
static size_t rank_of(const struct object *o, double score, struct bytes member)
{
	size_t low = 0, high = o->dict.n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (item_cmp(o->sorted[mid], score, member) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool zset_remove(struct object *o, struct bytes member)
{
	struct item *it = dict_get(&o->dict, member);
	size_t at;

	if (!it)
		return false;
	at = rank_of(o, it->score, member);
	memmove(o->sorted + at, o->sorted + at + 1, (o->dict.n - at - 1) * sizeof *o->sorted);
	return dict_remove(&o->dict, member);
}

static bool zset_add(struct object *o, double score, struct bytes member)
{
	bool existed = zset_remove(o, member), fresh;
	size_t at = rank_of(o, score, member), n = o->dict.n;
	struct item *it;

	if (n == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 8;
		o->sorted = mem_resize(o->sorted, o->cap, sizeof *o->sorted);
	}
	it = dict_put(&o->dict, member, &fresh);
	it->score = score;
	memmove(o->sorted + at + 1, o->sorted + at, (n - at) * sizeof *o->sorted);
	o->sorted[at] = it;
	return !existed;
}

/* Keys ----------------------------------------------------------------- */

static void drop_key(struct store *s, size_t db, struct bytes key)
{
	struct item *it = dict_get(&s->dbs[db], key);

	object_free(it->object);
	dict_remove(&s->dbs[db], key);
}

static void keyevent(struct store *s, size_t db, const char *event, struct bytes key)
{
	char channel[64];
	int n = snprintf(channel, sizeof channel, "__keyevent@%zu__:%s", db, event);

	s->publish(s->arg, bytes_of(channel, (size_t)n), key);
}

static void event(const struct call *c, const char *name)
{
	keyevent(c->s, c->s->db, name, c->argv[1]);
}

/* `key` may be that of the item. */
static void end_key(struct store *s, size_t db, struct bytes key, const char *how)
{
	char *name = mem_copy(key);

	drop_key(s, db, bytes_of(name, key.n));
	keyevent(s, db, how, bytes_of(name, key.n));
	free(name);
}

static void expire_key(struct store *s, size_t db, struct bytes key)
{
	end_key(s, db, key, "expired");
}

static bool overdue(const struct store *s, const struct object *o)
{
	return o->expires >= 0 && s->us / 1000 > o->expires;
}

/* NULL when there is none, or none any more. */
static struct object *look(struct store *s, struct bytes key)
{
	struct item *it = dict_get(&s->dbs[s->db], key);

	if (!it)
		return NULL;
	if (!overdue(s, it->object))
		return it->object;
	expire_key(s, s->db, key);
	return NULL;
}

static struct object *make(struct store *s, struct bytes key, enum kind kind)
{
	struct object *o = look(s, key);
	struct item *it;
	bool fresh;

	if (o)
		return o;
	o = mem_alloc(1, sizeof *o);
	o->kind = kind;
	o->expires = -1;
	it = dict_put(&s->dbs[s->db], key, &fresh);
	it->object = o;
	return o;
}

/* NULL and an error when the key holds another kind; NULL when there is none. */
static struct object *typed(struct call *c, enum kind kind)
{
	struct object *o = look(c->s, c->argv[1]);

	if (!o || o->kind == kind)
		return o;
	reply_error(c->out, "WRONGTYPE Operation against a key holding the wrong kind of value");
	return NULL;
}

/* True when a write that takes memory may go on. */
static bool may_grow(struct call *c)
{
	if (!c->s->oom || c->s->written)
		return true;
	reply_error(c->out, "OOM command not allowed when used memory > 'maxmemory'.");
	return false;
}

static void emptied(struct call *c, struct object *o)
{
	if (o->dict.n == 0)
		drop_key(c->s, c->s->db, c->argv[1]);
}

static int64_t number(struct bytes b)
{
	char room[32];

	snprintf(room, sizeof room, "%.*s", (int)(b.n < 31 ? b.n : 31), b.p);
	return strtoll(room, NULL, 10);
}

static double bound(struct bytes b, bool *exclusive)
{
	char room[64];

	*exclusive = b.n && b.p[0] == '(';
	if (*exclusive)
		b = bytes_skip(b, 1);
	snprintf(room, sizeof room, "%.*s", (int)(b.n < 63 ? b.n : 63), b.p);
	return strtod(room, NULL);	/* "-inf" and "+inf" too */
}

static bool is_word(struct bytes b, const char *word)
{
	return b.n == strlen(word) && strncasecmp(b.p, word, b.n) == 0;
}

/* Commands -------------------------------------------------------------- */

static void cmd_time(struct call *c)
{
	char room[32];
	int n = snprintf(room, sizeof room, "%lld", (long long)(c->s->us / 1000000));

	reply_str(reply_add(c->out), bytes_of(room, (size_t)n));
	n = snprintf(room, sizeof room, "%lld", (long long)(c->s->us % 1000000));
	reply_str(reply_add(c->out), bytes_of(room, (size_t)n));
}

static void cmd_select(struct call *c)
{
	int64_t db = number(c->argv[1]);

	if (db < 0 || db >= STORE_DBS) {
		reply_error(c->out, "ERR DB index is out of range");
		return;
	}
	c->s->db = (size_t)db;
	reply_ok(c->out);
}

static void cmd_dbsize(struct call *c)
{
	reply_int(c->out, (int64_t)c->s->dbs[c->s->db].n);
}

static void cmd_exists(struct call *c)
{
	int64_t n = 0;

	for (size_t i = 1; i < c->argc; i++)
		n += look(c->s, c->argv[i]) != NULL;
	reply_int(c->out, n);
}

static void cmd_pexpiretime(struct call *c)
{
	struct object *o = look(c->s, c->argv[1]);

	reply_int(c->out, o ? o->expires : -2);
}

static void cmd_pttl(struct call *c)
{
	struct object *o = look(c->s, c->argv[1]);

	if (!o || o->expires < 0)
		reply_int(c->out, o ? -1 : -2);
	else
		reply_int(c->out, o->expires - c->s->us / 1000);
}

static void cmd_set(struct call *c)
{
	struct object *o;

	if (!may_grow(c))
		return;
	if (look(c->s, c->argv[1]))
		drop_key(c->s, c->s->db, c->argv[1]);
	o = make(c->s, c->argv[1], KIND_STRING);
	o->string = bytes_of(mem_copy(c->argv[2]), c->argv[2].n);
	if (c->argc == 5 && is_word(c->argv[3], "PX"))
		o->expires = c->s->us / 1000 + number(c->argv[4]);
	else if (c->argc == 5 && is_word(c->argv[3], "PXAT"))
		o->expires = number(c->argv[4]);
	c->s->written = true;
	event(c, "set");
	if (o->expires >= 0)
		event(c, "expire");
	reply_ok(c->out);
}

static void cmd_get(struct call *c)
{
	struct object *o = typed(c, KIND_STRING);

	if (o)
		reply_str(c->out, o->string);
}

static void cmd_persist(struct call *c)
{
	struct object *o = look(c->s, c->argv[1]);

	reply_int(c->out, o && o->expires >= 0);
	if (o && o->expires >= 0)
		event(c, "persist");
	if (o)
		o->expires = -1;
}

static void cmd_pexpireat(struct call *c)
{
	struct object *o = look(c->s, c->argv[1]);

	reply_int(c->out, o != NULL);
	if (o && number(c->argv[2]) <= c->s->us / 1000) {
		end_key(c->s, c->s->db, c->argv[1], "del");
	} else if (o) {
		o->expires = number(c->argv[2]);
		event(c, "expire");
	}
}

static void cmd_unlink(struct call *c)
{
	int64_t n = 0;

	for (size_t i = 1; i < c->argc; i++)
		if (look(c->s, c->argv[i])) {
			end_key(c->s, c->s->db, c->argv[i], "del");
			n++;
		}
	c->s->written = true;
	reply_int(c->out, n);
}

static void cmd_getdel(struct call *c)
{
	struct object *o = typed(c, KIND_STRING);

	if (!o)
		return;
	reply_str(c->out, o->string);
	end_key(c->s, c->s->db, c->argv[1], "del");
}

static void cmd_rename(struct call *c)
{
	struct object *o = look(c->s, c->argv[1]);
	struct item *it;
	bool fresh;

	if (!o) {
		reply_error(c->out, "ERR no such key");
		return;
	}
	if (bytes_eq(c->argv[1], c->argv[2])) {
		reply_ok(c->out);
		return;
	}
	if (look(c->s, c->argv[2]))
		drop_key(c->s, c->s->db, c->argv[2]);
	dict_remove(&c->s->dbs[c->s->db], c->argv[1]);
	it = dict_put(&c->s->dbs[c->s->db], c->argv[2], &fresh);
	it->object = o;
	c->s->written = true;
	event(c, "rename_from");
	keyevent(c->s, c->s->db, "rename_to", c->argv[2]);
	reply_ok(c->out);
}

static void cmd_flushdb(struct call *c)
{
	struct dict *d = &c->s->dbs[c->s->db];

	while (d->first)
		drop_key(c->s, c->s->db, d->first->key);
	reply_ok(c->out);
}

static void cmd_type(struct call *c)
{
	static const char *const names[] = { "string", "hash", "zset" };
	struct object *o = look(c->s, c->argv[1]);

	reply_bytes(c->out, REPLY_STATUS, bytes_str(o ? names[o->kind] : "none"));
}

static void cmd_strlen(struct call *c)
{
	struct object *o = typed(c, KIND_STRING);

	if (c->out->kind != REPLY_ERROR)
		reply_int(c->out, o ? (int64_t)o->string.n : 0);
}

static void cmd_append(struct call *c)
{
	struct object *o = may_grow(c) ? typed(c, KIND_STRING) : NULL;
	struct buf value = { 0 };

	if (c->out->kind == REPLY_ERROR)
		return;
	o = make(c->s, c->argv[1], KIND_STRING);
	buf_add(&value, o->string);
	buf_add(&value, c->argv[2]);
	free((char *)o->string.p);
	o->string = bytes_of(mem_copy(buf_view(&value)), value.n);
	buf_clear(&value);
	c->s->written = true;
	event(c, "append");
	reply_int(c->out, (int64_t)o->string.n);
}

/* Of INFO only the keyspace. */
static void cmd_info(struct call *c)
{
	struct buf text = { 0 };

	buf_str(&text, "# Keyspace\r\n");
	for (size_t i = 0; i < STORE_DBS; i++)
		if (c->s->dbs[i].n)
			buf_printf(&text, "db%zu:keys=%zu,expires=0,avg_ttl=0\r\n", i,
				   c->s->dbs[i].n);
	reply_str(c->out, buf_view(&text));
	buf_clear(&text);
}

/* SCAN ------------------------------------------------------------------- */

static uint32_t place_of(struct bytes key)
{
	uint32_t x = 2166136261u;

	for (size_t i = 0; i < key.n; i++)
		x = (x ^ (unsigned char)key.p[i]) * 16777619u;
	return (x ^ x >> 15) | 1;	/* 0 is the beginning, and the end */
}

static int by_place(const void *a, const void *b)
{
	uint32_t x = place_of((*(struct item *const *)a)->key);
	uint32_t y = place_of((*(struct item *const *)b)->key);

	return (x > y) - (x < y);
}

/* Those from `place` on, in order; the caller frees. */
static struct item **items_from(struct dict *d, int64_t place, size_t *n)
{
	struct item **items = mem_alloc(d->n + 1, sizeof *items);

	*n = 0;
	for (struct item *it = d->first; it; it = it->next)
		if (place_of(it->key) >= place)
			items[(*n)++] = it;
	qsort(items, *n, sizeof *items, by_place);
	return items;
}

/* An eighth of what is asked for, so that a pass of few keys has steps, too. */
static void cmd_scan(struct call *c)
{
	struct dict *d = &c->s->dbs[c->s->db];
	struct bytes pattern = bytes_none;
	size_t n, i, count = 10;
	struct item **items = items_from(d, number(c->argv[1]), &n);
	struct reply *cursor = reply_add(c->out), *list = reply_add(c->out);
	char room[16];

	for (i = 2; i + 1 < c->argc; i += 2) {
		if (is_word(c->argv[i], "COUNT"))
			count = (size_t)number(c->argv[i + 1]) / 8 + 1;
		else
			pattern = c->argv[i + 1];
	}
	list->kind = REPLY_ARRAY;
	for (i = 0; i < n && (i < count || place_of(items[i]->key) == place_of(items[i - 1]->key)); i++)
		if (!pattern.n || glob_match(pattern, items[i]->key, NULL))
			reply_str(reply_add(list), items[i]->key);
	snprintf(room, sizeof room, "%u", i < n ? place_of(items[i]->key) : 0);
	cursor = &c->out->items[0];
	reply_str(cursor, bytes_str(room));
	free(items);
	/* Who is overdue expires as it is met. */
	n = 0;
	for (i = 0; i < list->n; i++) {
		if (look(c->s, list->items[i].str))
			list->items[n++] = list->items[i];
		else
			reply_clear(&list->items[i]);
	}
	list->n = n;
}

static void cmd_hget(struct call *c)
{
	struct object *o = typed(c, KIND_HASH);
	struct item *it = o ? dict_get(&o->dict, c->argv[2]) : NULL;

	if (it)
		reply_str(c->out, it->value);
}

static void cmd_hexists(struct call *c)
{
	struct object *o = typed(c, KIND_HASH);

	if (c->out->kind != REPLY_ERROR)
		reply_int(c->out, o && dict_get(&o->dict, c->argv[2]));
}

static void cmd_hmget(struct call *c)
{
	struct object *o = typed(c, KIND_HASH);

	for (size_t i = 2; c->out->kind != REPLY_ERROR && i < c->argc; i++) {
		struct item *it = o ? dict_get(&o->dict, c->argv[i]) : NULL;
		struct reply *r = reply_add(c->out);

		if (it)
			reply_str(r, it->value);
	}
}

static void cmd_hset(struct call *c)
{
	struct object *o = may_grow(c) ? typed(c, KIND_HASH) : NULL;
	int64_t added = 0;
	bool fresh;

	if (c->out->kind == REPLY_ERROR)
		return;
	o = make(c->s, c->argv[1], KIND_HASH);
	for (size_t i = 2; i + 1 < c->argc; i += 2) {
		item_set_value(dict_put(&o->dict, c->argv[i], &fresh), c->argv[i + 1]);
		added += fresh;
	}
	c->s->written = true;
	event(c, "hset");
	reply_int(c->out, added);
}

static void cmd_hdel(struct call *c)
{
	struct object *o = typed(c, KIND_HASH);
	int64_t n = 0;

	if (c->out->kind == REPLY_ERROR)
		return;
	for (size_t i = 2; o && i < c->argc; i++)
		n += dict_remove(&o->dict, c->argv[i]);
	if (o)
		emptied(c, o);
	c->s->written = true;
	reply_int(c->out, n);
}

static void cmd_hlen(struct call *c)
{
	struct object *o = typed(c, KIND_HASH);

	if (c->out->kind != REPLY_ERROR)
		reply_int(c->out, o ? (int64_t)o->dict.n : 0);
}

static void cmd_hstrlen(struct call *c)
{
	struct object *o = typed(c, KIND_HASH);
	struct item *it = o ? dict_get(&o->dict, c->argv[2]) : NULL;

	if (c->out->kind != REPLY_ERROR)
		reply_int(c->out, it ? (int64_t)it->value.n : 0);
}

static void walk(struct call *c, bool keys, bool values)
{
	struct object *o = typed(c, KIND_HASH);

	if (c->out->kind == REPLY_ERROR)
		return;
	c->out->kind = REPLY_ARRAY;
	for (struct item *it = o ? o->dict.first : NULL; it; it = it->next) {
		if (keys)
			reply_str(reply_add(c->out), it->key);
		if (values)
			reply_str(reply_add(c->out), it->value);
	}
}

static void cmd_hkeys(struct call *c)
{
	walk(c, true, false);
}

static void cmd_hgetall(struct call *c)
{
	walk(c, true, true);
}

/* All in one step, as Redis does for small hashes. */
static void cmd_hscan(struct call *c)
{
	struct reply *cursor = reply_add(c->out);
	struct reply *items = reply_add(c->out);
	struct object *o = look(c->s, c->argv[1]);

	cursor = &c->out->items[0];
	reply_str(cursor, BYTES("0"));
	items->kind = REPLY_ARRAY;
	for (struct item *it = o ? o->dict.first : NULL; it; it = it->next) {
		reply_str(reply_add(items), it->key);
		reply_str(reply_add(items), it->value);
	}
}

static void cmd_zadd(struct call *c)
{
	struct object *o = may_grow(c) ? typed(c, KIND_ZSET) : NULL;
	bool only = is_word(c->argv[2], "XX"), fresh = is_word(c->argv[2], "NX"), exclusive;
	int64_t added = 0;

	if (c->out->kind == REPLY_ERROR)
		return;
	if (!o && !only)
		o = make(c->s, c->argv[1], KIND_ZSET);
	for (size_t i = only || fresh ? 3 : 2; o && i + 1 < c->argc; i += 2)
		if ((!only && !fresh) || !dict_get(&o->dict, c->argv[i + 1]) == fresh)
			added += zset_add(o, bound(c->argv[i], &exclusive), c->argv[i + 1]);
	c->s->written = true;
	reply_int(c->out, added);
}

static void cmd_zrem(struct call *c)
{
	struct object *o = typed(c, KIND_ZSET);
	int64_t n = 0;

	if (c->out->kind == REPLY_ERROR)
		return;
	for (size_t i = 2; o && i < c->argc; i++)
		n += zset_remove(o, c->argv[i]);
	if (o)
		emptied(c, o);
	c->s->written = true;
	reply_int(c->out, n);
}

static void cmd_zscore(struct call *c)
{
	struct object *o = typed(c, KIND_ZSET);
	struct item *it = o ? dict_get(&o->dict, c->argv[2]) : NULL;

	if (it)
		reply_score(c->out, it->score);
}

static void cmd_zcard(struct call *c)
{
	struct object *o = typed(c, KIND_ZSET);

	if (c->out->kind != REPLY_ERROR)
		reply_int(c->out, o ? (int64_t)o->dict.n : 0);
}

static void reply_item(struct reply *out, const struct item *it, bool scores)
{
	reply_str(reply_add(out), it->key);
	if (scores)
		reply_score(reply_add(out), it->score);
}

static void cmd_zrange(struct call *c)
{
	struct object *o = typed(c, KIND_ZSET);
	int64_t from = number(c->argv[2]), to = number(c->argv[3]);
	bool scores = c->argc > 4 && is_word(c->argv[4], "WITHSCORES");

	if (c->out->kind == REPLY_ERROR)
		return;
	c->out->kind = REPLY_ARRAY;
	if (o && to < 0)
		to += (int64_t)o->dict.n;
	if (o && from < 0)
		from = from + (int64_t)o->dict.n > 0 ? from + (int64_t)o->dict.n : 0;
	for (int64_t i = from; o && i <= to && i < (int64_t)o->dict.n; i++)
		reply_item(c->out, o->sorted[i], scores);
}

struct range {
	double low, high;
	bool open_low, open_high;
};

static struct range range_of(const struct bytes *from)
{
	struct range r;

	r.low = bound(from[0], &r.open_low);
	r.high = bound(from[1], &r.open_high);
	return r;
}

/* The first that is not below the range. */
static size_t range_first(const struct object *o, const struct range *r)
{
	size_t low = 0, high = o->dict.n;

	while (low < high) {
		size_t mid = (low + high) / 2;
		double score = o->sorted[mid]->score;

		if (r->open_low ? score <= r->low : score < r->low)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool range_has(const struct range *r, double score)
{
	return r->open_high ? score < r->high : score <= r->high;
}

static void cmd_zrangebyscore(struct call *c)
{
	struct object *o = typed(c, KIND_ZSET);
	int64_t skip = 0, limit = INT64_MAX;
	bool scores = false;
	struct range r;

	if (c->out->kind == REPLY_ERROR)
		return;
	for (size_t i = 4; i < c->argc; i++) {
		scores = scores || is_word(c->argv[i], "WITHSCORES");
		if (is_word(c->argv[i], "LIMIT")) {
			skip = number(c->argv[i + 1]);
			limit = number(c->argv[i + 2]);
		}
	}
	r = range_of(c->argv + 2);
	c->out->kind = REPLY_ARRAY;
	for (size_t i = o ? range_first(o, &r) : 0; o && i < o->dict.n; i++) {
		if (!range_has(&r, o->sorted[i]->score))
			break;
		if (skip-- > 0)
			continue;
		if (limit-- <= 0)
			break;
		reply_item(c->out, o->sorted[i], scores);
	}
}

static void cmd_zscan(struct call *c)
{
	struct object *o = typed(c, KIND_ZSET);
	struct reply *items;

	if (c->out->kind == REPLY_ERROR)
		return;
	reply_str(reply_add(c->out), BYTES("0"));
	items = reply_add(c->out);
	items->kind = REPLY_ARRAY;
	for (size_t i = 0; o && i < o->dict.n; i++)
		reply_item(items, o->sorted[i], true);
}

static void cmd_zcount(struct call *c)
{
	struct object *o = typed(c, KIND_ZSET);
	struct range r = range_of(c->argv + 2);
	size_t i = o ? range_first(o, &r) : 0;
	int64_t n = 0;

	for (; o && i < o->dict.n && range_has(&r, o->sorted[i]->score); i++)
		n++;
	if (c->out->kind != REPLY_ERROR)
		reply_int(c->out, n);
}

static void cmd_publish(struct call *c)
{
	c->s->publish(c->s->arg, c->argv[1], c->argv[2]);
	reply_int(c->out, 0);
}

static const struct {
	const char *name;
	size_t min;
	void (*f)(struct call *);
} commands[] = {
	{ "TIME", 1, cmd_time }, { "SELECT", 2, cmd_select }, { "DBSIZE", 1, cmd_dbsize },
	{ "EXISTS", 2, cmd_exists }, { "PEXPIRETIME", 2, cmd_pexpiretime },
	{ "PTTL", 2, cmd_pttl }, { "SET", 3, cmd_set }, { "GET", 2, cmd_get },
	{ "PERSIST", 2, cmd_persist }, { "PEXPIREAT", 3, cmd_pexpireat },
	{ "DEL", 2, cmd_unlink }, { "UNLINK", 2, cmd_unlink }, { "RENAME", 3, cmd_rename },
	{ "GETDEL", 2, cmd_getdel }, { "FLUSHDB", 1, cmd_flushdb }, { "TYPE", 2, cmd_type },
	{ "STRLEN", 2, cmd_strlen }, { "APPEND", 3, cmd_append }, { "INFO", 2, cmd_info },
	{ "SCAN", 2, cmd_scan },
	{ "HEXISTS", 3, cmd_hexists }, { "HGET", 3, cmd_hget }, { "HMGET", 3, cmd_hmget }, { "HSET", 4, cmd_hset },
	{ "HDEL", 3, cmd_hdel }, { "HLEN", 2, cmd_hlen }, { "HSTRLEN", 3, cmd_hstrlen },
	{ "HKEYS", 2, cmd_hkeys }, { "HGETALL", 2, cmd_hgetall }, { "HSCAN", 3, cmd_hscan },
	{ "ZADD", 4, cmd_zadd }, { "ZREM", 3, cmd_zrem }, { "ZSCORE", 3, cmd_zscore },
	{ "ZCARD", 2, cmd_zcard }, { "ZRANGE", 4, cmd_zrange }, { "ZCOUNT", 4, cmd_zcount },
	{ "ZSCAN", 3, cmd_zscan },
	{ "ZRANGEBYSCORE", 4, cmd_zrangebyscore }, { "PUBLISH", 3, cmd_publish },
};

void store_call(struct store *s, size_t argc, const struct bytes *argv, struct reply *out)
{
	*out = (struct reply){ 0 };
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (!is_word(argv[0], commands[i].name))
			continue;
		if (argc < commands[i].min)
			reply_error(out, "ERR wrong number of arguments");
		else
			commands[i].f(&(struct call){ s, argc, argv, out });
		return;
	}
	reply_error(out, "ERR unknown command");
}

/* The whole ------------------------------------------------------------- */

struct store *store_new(store_publish *publish, void *arg)
{
	struct store *s = mem_alloc(1, sizeof *s);

	s->publish = publish;
	s->arg = arg;
	return s;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < STORE_DBS; i++) {
		for (struct item *it = s->dbs[i].first; it; it = it->next)
			object_free(it->object);
		dict_clear(&s->dbs[i]);
	}
	free(s);
}

static struct object *object_clone(const struct object *o)
{
	struct object *copy = mem_alloc(1, sizeof *copy);
	bool fresh;

	copy->kind = o->kind;
	copy->expires = o->expires;
	if (o->kind == KIND_STRING)
		copy->string = bytes_of(mem_copy(o->string), o->string.n);
	for (struct item *it = o->dict.first; it; it = it->next) {
		if (o->kind == KIND_ZSET)
			zset_add(copy, it->score, it->key);
		else
			item_set_value(dict_put(&copy->dict, it->key, &fresh), it->value);
	}
	return copy;
}

struct store *store_clone(const struct store *s)
{
	struct store *copy = store_new(s->publish, s->arg);
	bool fresh;

	copy->us = s->us;
	for (size_t i = 0; i < STORE_DBS; i++)
		for (struct item *it = s->dbs[i].first; it; it = it->next)
			dict_put(&copy->dbs[i], it->key, &fresh)->object =
				object_clone(it->object);
	return copy;
}

void store_set_time(struct store *s, int64_t us)
{
	s->us = us;
}

int64_t store_time(const struct store *s)
{
	return s->us;
}

void store_set_oom(struct store *s, bool oom)
{
	s->oom = oom;
}

void store_begin(struct store *s)
{
	s->db = 0;
	s->written = false;
}

void store_expire(struct store *s, size_t n)
{
	for (size_t i = 0; i < STORE_DBS; i++)
		for (struct item *it = s->dbs[i].first, *next; it && n; it = next) {
			next = it->next;
			if (!overdue(s, it->object))
				continue;
			expire_key(s, i, it->key);
			n--;
		}
}

bool store_evict(struct store *s, unsigned db, struct bytes key)
{
	struct item *it = dict_get(&s->dbs[db], key);

	if (!it || overdue(s, it->object))
		return false;
	end_key(s, db, key, "evicted");
	return true;
}

void store_each_overdue(const struct store *s, store_overdue *f, void *arg)
{
	for (unsigned i = 0; i < STORE_DBS; i++)
		for (struct item *it = s->dbs[i].first; it; it = it->next)
			if (overdue(s, it->object))
				f(arg, i, it->key);
}

size_t store_keys(const struct store *s)
{
	size_t n = 0;

	for (size_t i = 0; i < STORE_DBS; i++)
		n += s->dbs[i].n;
	return n;
}

static int by_key(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a;

	return item_cmp(x, x->score, (*(struct item *const *)b)->key);
}

static void dump_items(const struct dict *d, struct buf *out, bool scores)
{
	struct item **items = mem_alloc(d->n, sizeof *items);
	size_t n = 0;
	char room[64];

	for (struct item *it = d->first; it; it = it->next)
		items[n++] = it;
	qsort(items, n, sizeof *items, by_key);
	for (size_t i = 0; i < n; i++) {
		buf_str(out, "  ");
		buf_add(out, items[i]->key);
		buf_str(out, " = ");
		buf_add(out, scores ? score_text(items[i]->score, room, sizeof room) :
				      items[i]->value);
		buf_byte(out, '\n');
	}
	free(items);
}

void store_dump(struct store *s, struct buf *out)
{
	for (size_t i = 0; i < STORE_DBS; i++) {
		struct item **keys = mem_alloc(s->dbs[i].n, sizeof *keys);
		size_t n = 0;

		for (struct item *it = s->dbs[i].first; it; it = it->next)
			if (!overdue(s, it->object))
				keys[n++] = it;
		qsort(keys, n, sizeof *keys, by_key);
		for (size_t j = 0; j < n; j++) {
			const struct object *o = keys[j]->object;

			buf_printf(out, "%zu ", i);
			buf_add(out, keys[j]->key);
			buf_printf(out, " %d %lld\n", o->kind, (long long)o->expires);
			if (o->kind == KIND_STRING) {
				buf_str(out, "  ");
				buf_add(out, o->string);
				buf_byte(out, '\n');
			}
			dump_items(&o->dict, out, o->kind == KIND_ZSET);
		}
		free(keys);
	}
}
