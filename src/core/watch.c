/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define PAUSE_MIN	(50 * USEC_PER_MSEC)
#define PAUSE_MAX	(5 * USEC_PER_SEC)
#define BUCKETS		16384	/* a power of two */

struct list {
	struct watch_key *first, **end;
	size_t n;
};

struct watch {
	size_t max_keys, max_bytes;
	size_t bytes;
	size_t found;
	struct list gathered, asked;
	bool owed;		/* an answer is */
	bool lossy;
	usec_t pause, pause_until;
	struct watch_key *buckets[BUCKETS];	/* of what is gathered */
};

/* Every way in which a key can come, go or get another end (Redis 6.2 to 8,
 * Valkey).  UNLINK and GETDEL publish `del`, SET ... EX `set` and `expire`. */
static const struct {
	struct bytes event;
	enum watch_sign sign;
} signs[] = {
	{ { "set", 3 }, WATCH_SET },
	{ { "expire", 6 }, WATCH_TTL },
	{ { "del", 3 }, WATCH_DELETED },
	{ { "persist", 7 }, WATCH_TTL },
	{ { "rename_from", 11 }, WATCH_DELETED },
	{ { "rename_to", 9 }, WATCH_SET },
	{ { "move_from", 9 }, WATCH_DELETED },
	{ { "move_to", 7 }, WATCH_SET },
	{ { "copy_to", 7 }, WATCH_SET },
	{ { "restore", 7 }, WATCH_SET },
	{ { "evicted", 7 }, WATCH_EVICTED },
};

#define SIGNS	(sizeof signs / sizeof signs[0])

enum watch_sign watch_sign(struct bytes event, bool written)
{
	/* Those of a hash's fields, and those that tell nothing of a key. */
	static const struct bytes others[] = {
		{ "hexpired", 8 }, { "hexpire", 7 }, { "hpersist", 8 }, { "new", 3 },
		{ "keymiss", 7 }, { "overwritten", 11 }, { "type_changed", 12 },
	};

	if (bytes_eq(event, BYTES("expired")))
		return WATCH_EXPIRED;
	for (size_t i = 0; i < SIGNS; i++)
		if (bytes_eq(event, signs[i].event))
			return signs[i].sign;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (bytes_eq(event, others[i]))
			return WATCH_NOTHING;
	return written ? WATCH_WRITTEN : WATCH_NOTHING;
}

struct bytes watch_event(size_t i)
{
	return i < SIGNS ? signs[i].event : bytes_none;
}

static void list_init(struct list *l)
{
	*l = (struct list){ NULL, &l->first, 0 };
}

static void list_add(struct list *l, struct watch_key *k)
{
	k->next = NULL;
	*l->end = k;
	l->end = &k->next;
	l->n++;
}

static struct watch_key *list_take(struct list *l)
{
	struct watch_key *k = l->first;

	l->first = k->next;
	if (!l->first)
		l->end = &l->first;
	l->n--;
	return k;
}

struct watch *watch_new(size_t max_keys, size_t max_bytes)
{
	struct watch *w = mem_alloc(1, sizeof *w);

	w->max_keys = max_keys;
	w->max_bytes = max_bytes;
	list_init(&w->gathered);
	list_init(&w->asked);
	return w;
}

static void key_free(struct watch *w, struct watch_key *k)
{
	w->bytes -= k->member.n;
	w->found -= k->found;
	free(k);
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	while (w->gathered.n)
		key_free(w, list_take(&w->gathered));
	while (w->asked.n)
		key_free(w, list_take(&w->asked));
	free(w);
}

/* FNV-1a with a final mix. */
static struct watch_key **bucket_of(struct watch *w, struct bytes b)
{
	uint64_t x = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < b.n; i++)
		x = (x ^ (unsigned char)b.p[i]) * UINT64_C(0x100000001b3);
	return &w->buckets[(x ^ x >> 29) & (BUCKETS - 1)];
}

static struct watch_key *find(struct watch *w, struct bytes member)
{
	struct watch_key *k = *bucket_of(w, member);

	while (k && !bytes_eq(k->member, member))
		k = k->chain;
	return k;
}

static void chain_in(struct watch *w, struct watch_key *k)
{
	struct watch_key **bucket = bucket_of(w, k->member);

	k->chain = *bucket;
	*bucket = k;
}

static void chain_out(struct watch *w, struct watch_key *k)
{
	struct watch_key **at = bucket_of(w, k->member);

	while (*at != k)
		at = &(*at)->chain;
	*at = k->chain;
}

static struct watch_key *key_add(struct watch *w, struct bytes member, usec_t now)
{
	struct watch_key *k;
	char *bytes;

	if (w->gathered.n + w->asked.n >= w->max_keys || w->bytes + member.n > w->max_bytes) {
		w->lossy = true;
		return NULL;
	}
	k = mem_alloc(1, sizeof *k + member.n);
	bytes = (char *)(k + 1);
	memcpy(bytes, member.p, member.n);
	k->member = bytes_of(bytes, member.n);
	k->at = now;
	k->expired_at = USEC_NEVER;
	w->bytes += member.n;
	list_add(&w->gathered, k);
	chain_in(w, k);
	return k;
}

/* This ended a life, or began another: then the one before is over too. */
static bool ends(enum watch_sign sign)
{
	return sign == WATCH_SET || sign == WATCH_EXPIRED || sign == WATCH_DELETED ||
	       sign == WATCH_EVICTED;
}

static void found(struct watch *w, struct watch_key *k)
{
	w->found += !k->found;
	k->found = true;
}

bool watch_hear(struct watch *w, struct bytes member, enum watch_sign sign, usec_t now)
{
	struct watch_key *k = find(w, member);

	if (!k)
		k = key_add(w, member, now);
	if (!k)
		return false;
	if (sign != WATCH_EXPIRED)
		k->look = true;
	if (sign == WATCH_FOUND)
		found(w, k);
	if (sign == WATCH_WRITTEN || sign == WATCH_FOUND || ends(sign)) {
		k->set = true;
		k->set_at = now;
	}
	if (!ends(sign))
		return true;
	if (sign == WATCH_EXPIRED)
		k->expired_at = now;
	k->last = sign;
	return true;
}

const struct watch_key *watch_next(struct watch *w, usec_t gather, size_t limit, usec_t now)
{
	if (w->owed || now < w->pause_until)
		return NULL;
	while (w->gathered.n && w->asked.n < limit && w->gathered.first->at + gather <= now) {
		struct watch_key *k = list_take(&w->gathered);

		chain_out(w, k);
		/* An expiry alone is a claim's affair. */
		if (k->look)
			list_add(&w->asked, k);
		else
			key_free(w, k);
	}
	w->owed = w->asked.n > 0;
	return w->asked.first;
}

void watch_done(struct watch *w)
{
	w->owed = false;
	w->pause = w->pause_until = 0;
	while (w->asked.n)
		key_free(w, list_take(&w->asked));
}

/* What was heard meanwhile comes behind what was asked. */
static void join(struct watch *w, const struct watch_key *older, struct watch_key *newer)
{
	if (older->found)
		found(w, newer);
	if (newer->expired_at == USEC_NEVER)
		newer->expired_at = older->expired_at;
	if (newer->last == WATCH_NOTHING)
		newer->last = older->last;
	newer->look = true;
	if (older->set && !newer->set) {
		newer->set = true;
		newer->set_at = older->set_at;
	}
}

/* The list's keys go in front of those that were heard of since. */
static void gather_again(struct watch *w, struct list *front)
{
	if (!front->n)
		return;
	*front->end = w->gathered.first;
	if (!w->gathered.n)
		w->gathered.end = front->end;
	w->gathered.first = front->first;
	w->gathered.n += front->n;
}

void watch_lost(struct watch *w, usec_t now)
{
	struct list front;

	if (!w->owed)
		return;
	w->owed = false;
	w->pause = w->pause ? 2 * w->pause : PAUSE_MIN;
	if (w->pause > PAUSE_MAX)
		w->pause = PAUSE_MAX;
	w->pause_until = now + w->pause;
	list_init(&front);
	while (w->asked.n) {
		struct watch_key *k = list_take(&w->asked);
		struct watch_key *newer = find(w, k->member);

		if (newer) {
			join(w, k, newer);
			key_free(w, k);
		} else {
			list_add(&front, k);
			chain_in(w, k);
		}
	}
	gather_again(w, &front);
}

usec_t watch_deadline(const struct watch *w, usec_t gather)
{
	usec_t at;

	if (w->owed || !w->gathered.n)
		return USEC_NEVER;
	at = w->gathered.first->at + gather;
	return at > w->pause_until ? at : w->pause_until;
}

bool watch_lossy(struct watch *w)
{
	bool lossy = w->lossy;

	w->lossy = false;
	return lossy;
}

size_t watch_waiting(const struct watch *w)
{
	return w->gathered.n + w->asked.n;
}

size_t watch_found(const struct watch *w)
{
	return w->found;
}
