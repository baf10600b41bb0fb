/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/walk.h"

#include <stdio.h>

#include "core/buf.h"
#include "core/units.h"

#define PAGE	100

/* Where the next page begins: `seen` members behind the first of a score. */
struct cursor {
	char score[64];
	size_t seen;
};

static const char *key_of(const struct walk *w, const char *name, struct buf *b)
{
	buf_reset(b);
	buf_printf(b, "%s:%s", w->prefix, name);
	return buf_cstr(b);
}

static redisReply *ask_page(const struct walk *w, struct link *l, const struct cursor *at,
			    size_t count, struct err *err)
{
	struct call c = { .n = 0 };
	struct buf key = { .n = 0 };
	char offset[24], limit[24];
	redisReply *page;

	snprintf(offset, sizeof(offset), "%zu", at->seen);
	snprintf(limit, sizeof(limit), "%zu", count);
	call_add(&c, BYTES("ZRANGEBYSCORE"));
	call_add(&c, bytes_str(key_of(w, w->zset, &key)));
	call_add(&c, bytes_str(at->score));
	call_add(&c, bytes_str(w->max));
	call_add(&c, BYTES("WITHSCORES"));
	call_add(&c, BYTES("LIMIT"));
	call_add(&c, bytes_str(offset));
	call_add(&c, bytes_str(limit));
	page = link_expect(l, link_call(l, &c, err), REDIS_REPLY_ARRAY, err);
	call_clear(&c);
	buf_clear(&key);
	return page;
}

static struct bytes text_of(const redisReply *r)
{
	return r->type == REDIS_REPLY_STRING ? bytes_of(r->str, r->len) : bytes_none;
}

static void ask_values(const struct walk *w, struct link *l, const redisReply *page)
{
	struct buf key = { .n = 0 };

	key_of(w, w->hash, &key);
	for (size_t i = 0; i + 1 < page->elements; i += 2) {
		struct call c = { .n = 0 };

		call_add(&c, BYTES("HGET"));
		call_add(&c, buf_view(&key));
		call_add(&c, text_of(page->element[i]));
		link_send(l, &c);
		call_clear(&c);
	}
	buf_clear(&key);
}

static msec_t time_of(struct bytes score)
{
	struct err ignored;
	uint64_t n;

	return units_number(score, 0, INT64_MAX, &n, &ignored) ? (msec_t)n : 0;
}

/* Takes all answers, also of those that are not visited any more. */
static bool visit_page(const struct walk *w, struct link *l, const redisReply *page,
		       bool *more, struct err *err)
{
	for (size_t i = 0; i + 1 < page->elements; i += 2) {
		redisReply *value = link_receive(l, err);

		if (!value)
			return false;
		if (*more)
			*more = w->visit(w->arg, text_of(page->element[i]),
				time_of(text_of(page->element[i + 1])), text_of(value));
		freeReplyObject(value);
	}
	return true;
}

static void advance(struct cursor *at, const redisReply *page)
{
	for (size_t i = 1; i < page->elements; i += 2) {
		struct bytes score = text_of(page->element[i]);

		if (bytes_eq(score, bytes_str(at->score))) {
			at->seen++;
			continue;
		}
		snprintf(at->score, sizeof(at->score), "%.*s", (int)score.n, score.p);
		at->seen = 1;
	}
}

bool walk_run(const struct walk *w, struct link *l, struct err *err)
{
	struct cursor at = { .score = "-inf" };
	size_t left = w->limit;
	bool more = true, ok = true;

	while (ok && more && left > 0) {
		size_t count = left < PAGE ? left : PAGE;
		redisReply *page = ask_page(w, l, &at, count, err);

		if (!page)
			return false;
		ask_values(w, l, page);
		ok = visit_page(w, l, page, &more, err);
		advance(&at, page);
		left -= page->elements / 2;
		more = more && page->elements / 2 == count;
		freeReplyObject(page);
	}
	return ok;
}
