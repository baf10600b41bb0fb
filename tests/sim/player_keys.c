/* SPDX-License-Identifier: BSD-2-Clause */

/* What befalls keys that lapsed only hears of, and the scripts that look at them. */
#include <stdio.h>

#include "compare.h"

#define NAMES	6

static void key(struct player *p)
{
	player_arg(p, "w%d", (int)player_below(p, NAMES));
}

static void one(struct player *p, const char *const *list, size_t n)
{
	player_arg(p, "%s", list[player_below(p, n)]);
}

#define ONE(p, ...) do { \
	static const char *const list_[] = { __VA_ARGS__ }; \
	one(p, list_, sizeof list_ / sizeof list_[0]); \
} while (0)

/* One in three of the past. */
static void end(struct player *p, const struct sides *s)
{
	int64_t ms = sides_ms(s);

	ms += player_below(p, 3) ? 1 + (int64_t)player_below(p, 1500) :
	      -(int64_t)player_below(p, 50);
	player_arg(p, "%lld", (long long)ms);
}

static void play_command(struct player *p, const struct sides *s)
{
	static const struct {
		const char *name;
		int args;	/* 0: the key, 1: and a value, 2: and a field, 3: and an end,
				   4: and another key */
	} commands[] = {
		{ "GETDEL", 0 }, { "TYPE", 0 }, { "STRLEN", 0 }, { "APPEND", 1 }, { "HSET", 2 },
		{ "PEXPIREAT", 3 }, { "PEXPIREAT", 3 }, { "RENAME", 4 }, { "RENAME", 4 },
		{ "UNLINK", 0 }, { "EXISTS", 0 }, { "PERSIST", 0 }, { "HGETALL", 0 },
	};
	size_t i = player_below(p, sizeof commands / sizeof commands[0]);

	player_begin(p, commands[i].name, 0, (unsigned)player_below(p, 3));
	key(p);
	if (commands[i].args == 2)
		ONE(p, "field", "other", "\xff");
	if (commands[i].args == 1 || commands[i].args == 2)
		ONE(p, "value", "", "\"quoted\"\n", "\x80\xff");
	if (commands[i].args == 3)
		end(p, s);
	if (commands[i].args == 4)
		key(p);
	(void)player_go(p, false);
}

static void play_flush(struct player *p)
{
	if (player_below(p, 10))
		return;
	player_begin(p, "FLUSHDB", 0, 1);
	(void)player_go(p, false);
}

static void play_register(struct player *p)
{
	player_begin(p, "register", 1, 0);
	for (uint64_t i = 1 + player_below(p, 4); i; i--) {
		player_arg(p, "k:%d:w%d", (int)player_below(p, 3), (int)player_below(p, NAMES));
		ONE(p, "", "", "d", "v", "ve", "e", "de");
		ONE(p, "-", "100", "100", "8");
		if (player_below(p, 2))
			player_arg(p, "-");
		else
			player_arg(p, "%d", (int)player_below(p, 300));
		if (player_below(p, 2))
			player_arg(p, "-");
		else
			player_arg(p, "%d", (int)player_below(p, 100));
	}
	(void)player_go(p, false);
}

/* A database at a time: both sides go through all of it in one step. */
static void play_scan(struct player *p)
{
	const struct reply *r;
	char place[64] = "";

	for (int steps = 0; steps < 5; steps++) {
		player_begin(p, "scan", 1, 0);
		player_arg(p, "%s", place);
		player_arg(p, "10000");
		ONE(p, "", "w*", "w[0-2]", "?1");
		if (player_below(p, 2)) {
			player_arg(p, "0");
			player_arg(p, "1");
		}
		r = player_go(p, true);
		if (r->kind != REPLY_ARRAY || r->items[0].str.n < 2)
			return;
		snprintf(place, sizeof place, "%s%.40s", player_below(p, 2) ? "=" : "",
			 r->items[0].str.p);
	}
}

void player_keys_act(struct player *p, const struct sides *s)
{
	switch (player_below(p, 8)) {
	case 0:
		play_scan(p);
		break;
	case 1: case 2:
		play_register(p);
		break;
	case 3:
		play_flush(p);
		break;
	default:
		play_command(p, s);
	}
}
