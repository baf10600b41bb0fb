/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The application that knows nothing of lapsed: plain commands on keys that
 * some route matches.  Values are `v` and the time when they were written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "lives.h"

struct foreign {
	struct world *w;
};

struct foreign *foreign_new(struct world *w)
{
	struct foreign *f = mem_alloc(1, sizeof *f);

	f->w = w;
	return f;
}

void foreign_free(struct foreign *f)
{
	free(f);
}

bool foreign_routes(struct routes *rs)
{
	for (size_t i = 0; i < KINDS; i++) {
		const struct kind *k = &kinds[i];
		char pattern[4], exclude[4], topic[8];
		struct bytes p, x;
		struct route route = {
			.patterns = &p, .npatterns = 1, .excludes = &x, .nexcludes = 1,
			.registers = (k->events ? ROUTE_EVENTS : 0) | (k->scan ? ROUTE_SCAN : 0),
			.copy = k->copy, .max_value = BIG, .refresh = k->refresh,
			.inferred = k->drop ? ROUTE_DROP : ROUTE_EMIT,
			.evicted = k->emit_evicted ? ROUTE_EVICTED_EMIT : ROUTE_EVICTED_DROP,
		};
		struct err err;

		snprintf(pattern, sizeof pattern, "%c*", k->class.letter);
		snprintf(exclude, sizeof exclude, "?%d", EXCLUDED);
		snprintf(topic, sizeof topic, "topic%zu", i % TOPICS);
		p = bytes_str(pattern);
		x = bytes_str(exclude);
		route.name = p;
		route.topic = bytes_str(topic);
		if (!routes_add(rs, &route, &err))
			return false;
	}
	return true;
}

/* One command; true when Redis says something else than an error, nil or 0. */
static bool did(struct foreign *f, const struct key *k, const char *command_, const char *a,
		const char *b, const char *c)
{
	struct bytes argv[5] = { bytes_str(command_), k->name };
	const char *more[] = { a, b, c };
	size_t argc = 2;
	struct reply r;
	bool done;

	for (size_t i = 0; i < 3 && more[i]; i++)
		argv[argc++] = bytes_str(more[i]);
	command(f->w, k->kind->class.db, argc, argv, &r);
	done = r.kind == REPLY_STATUS || r.kind == REPLY_STR || r.integer > 0;
	trace(f->w, "app %s %s %s %s %s -> %d", command_, k->room, a ? a : "", b ? b : "",
	      c ? c : "", done);
	reply_clear(&r);
	return done;
}

/* Very short, short, or long. */
static int64_t some_ttl(struct world *w)
{
	switch (below(w, FOREIGN, 8)) {
	case 0:
		return 1 + (int64_t)below(w, FOREIGN, 30);
	case 1:
		return 1 + (int64_t)below(w, FOREIGN, 14000);
	default:
		return 1 + (int64_t)below(w, FOREIGN, 2500);
	}
}

static void set(struct foreign *f, struct key *k, bool ttl)
{
	char value[32], at_ms[32];
	int64_t due = redis_ms(f->w) + some_ttl(f->w);

	snprintf(value, sizeof value, "v%lld", (long long)f->w->now);
	snprintf(at_ms, sizeof at_ms, "%lld", (long long)due);
	if (did(f, k, "SET", value, ttl ? "PXAT" : NULL, at_ms))
		lives_set(f->w->lives, k, ttl ? due : 0);
}

static void expire(struct foreign *f, struct key *k, bool past)
{
	int64_t due = redis_ms(f->w) + (past ? 0 : some_ttl(f->w));
	char at_ms[32];

	snprintf(at_ms, sizeof at_ms, "%lld", (long long)due);
	if (!did(f, k, "PEXPIREAT", at_ms, NULL, NULL))
		return;
	if (past)
		lives_delete(f->w->lives, k);
	else
		lives_expire(f->w->lives, k, due);
}

/* Into whichever it is; a hash if there is none. */
static void write(struct foreign *f, struct key *k)
{
	char value[32];

	snprintf(value, sizeof value, "v%lld", (long long)f->w->now);
	if (did(f, k, "HSET", value, value, NULL) || did(f, k, "APPEND", value, NULL, NULL))
		lives_written(f->w->lives, k);
}

static void rename_(struct foreign *f, struct key *k)
{
	struct key *to = lives_key_at(f->w->lives, below(f->w, FOREIGN, KINDS),
				      below(f->w, FOREIGN, KEYS));

	if (to == k || to->kind->class.db != k->kind->class.db)
		return;
	if (did(f, k, "RENAME", to->room, NULL, NULL))
		lives_rename(f->w->lives, k, to);
}

static void delete(struct foreign *f, struct key *k)
{
	static const char *const ways[] = { "DEL", "UNLINK", "GETDEL" };

	if (did(f, k, ways[below(f->w, FOREIGN, 3)], NULL, NULL, NULL))
		lives_delete(f->w->lives, k);
}

static void evict(struct foreign *f, struct key *k)
{
	store_set_time(f->w->store, redis_us(f->w));
	if (store_evict(f->w->store, k->kind->class.db, k->name)) {
		trace(f->w, "evicted %s", k->room);
		lives_evicted(f->w->lives, k);
	}
}

static void flush(struct foreign *f)
{
	const struct bytes argv[] = { BYTES("FLUSHDB") };
	struct reply r;

	command(f->w, 3, 1, argv, &r);
	reply_clear(&r);
	trace(f->w, "app FLUSHDB 3");
	for (size_t i = 0; i < KINDS * KEYS; i++)
		if (kinds[i / KEYS].class.db == 3)
			lives_delete(f->w->lives, lives_key_at(f->w->lives, 0, i));
}

void foreign_act(struct foreign *f)
{
	struct key *k = lives_key_at(f->w->lives, below(f->w, FOREIGN, KINDS),
				     below(f->w, FOREIGN, KEYS));
	uint64_t what = below(f->w, FOREIGN, 200);

	if (what == 0 && !f->w->calm)
		flush(f);
	else if (what < 80)
		set(f, k, true);
	else if (what < 90)
		set(f, k, false);
	else if (what < 120)
		expire(f, k, false);
	else if (what < 126)
		expire(f, k, true);
	else if (what < 136)
		did(f, k, "PERSIST", NULL, NULL, NULL) ? lives_persist(f->w->lives, k) : (void)0;
	else if (what < 152)
		delete(f, k);
	else if (what < 166)
		rename_(f, k);
	else if (what < 182)
		write(f, k);
	else if (what < 186)
		evict(f, k);
	else
		did(f, k, "EXISTS", NULL, NULL, NULL);
}
