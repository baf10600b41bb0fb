/* SPDX-License-Identifier: BSD-2-Clause */

#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "core/mem.h"
#include "io/script.h"

#define SCRIPTS	64

/* Lua's small pieces of memory, most of which live for one run. */
#define PIECE	16
#define PIECES	32		/* sizes, in steps of PIECE */
#define BLOCK	(64 << 10)

struct piece {
	struct piece *next;
};

struct pool {
	struct piece *unused[PIECES + 1];
	struct piece *blocks;
};

struct host {
	lua_State *lua;
	struct pool pool;
	struct store *store;
	int database;
	struct {
		char name[32];
		int ref;
	} scripts[SCRIPTS];
	size_t nscripts;
};

static struct host *self(lua_State *lua)
{
	struct host *h;

	lua_getfield(lua, LUA_REGISTRYINDEX, "host");
	h = lua_touserdata(lua, -1);
	lua_pop(lua, 1);
	return h;
}

/* Replies to Lua and back, as Redis converts them. */

static void push_table(lua_State *lua, const char *field, struct bytes text)
{
	lua_newtable(lua);
	lua_pushlstring(lua, text.p, text.n);
	lua_setfield(lua, -2, field);
}

static void push_reply(lua_State *lua, const struct reply *r)
{
	switch (r->kind) {
	case REPLY_NIL:
		lua_pushboolean(lua, 0);
		break;
	case REPLY_INT:
		lua_pushnumber(lua, (double)r->integer);
		break;
	case REPLY_STR:
		lua_pushlstring(lua, r->str.p, r->str.n);
		break;
	case REPLY_STATUS:
		push_table(lua, "ok", r->str);
		break;
	case REPLY_ERROR:
		push_table(lua, "err", r->str);
		break;
	case REPLY_ARRAY:
		lua_newtable(lua);
		for (size_t i = 0; i < r->n; i++) {
			push_reply(lua, &r->items[i]);
			lua_rawseti(lua, -2, (int)i + 1);
		}
		break;
	}
}

static void take_text(lua_State *lua, struct reply *out, enum reply_kind kind)
{
	size_t n;
	const char *p = lua_tolstring(lua, -1, &n);

	out->kind = kind;
	out->str = bytes_of(mem_copy(bytes_of(p, n)), n);
}

static bool take_field(lua_State *lua, const char *field, struct reply *out,
		       enum reply_kind kind)
{
	bool found;

	lua_getfield(lua, -1, field);
	found = lua_isstring(lua, -1);
	if (found)
		take_text(lua, out, kind);
	lua_pop(lua, 1);
	return found;
}

static void take_reply(lua_State *lua, struct reply *out);

static void take_array(lua_State *lua, struct reply *out)
{
	size_t n = lua_objlen(lua, -1);

	out->kind = REPLY_ARRAY;
	out->items = mem_alloc(n, sizeof *out->items);
	out->n = n;
	for (size_t i = 0; i < n; i++) {
		lua_rawgeti(lua, -1, (int)i + 1);
		take_reply(lua, &out->items[i]);
		lua_pop(lua, 1);
	}
}

static void take_reply(lua_State *lua, struct reply *out)
{
	*out = (struct reply){ 0 };
	switch (lua_type(lua, -1)) {
	case LUA_TNUMBER:
		out->kind = REPLY_INT;
		out->integer = (int64_t)lua_tonumber(lua, -1);
		break;
	case LUA_TSTRING:
		take_text(lua, out, REPLY_STR);
		break;
	case LUA_TBOOLEAN:
		if (lua_toboolean(lua, -1)) {
			out->kind = REPLY_INT;
			out->integer = 1;
		}
		break;
	case LUA_TTABLE:
		if (!take_field(lua, "err", out, REPLY_ERROR) &&
		    !take_field(lua, "ok", out, REPLY_STATUS))
			take_array(lua, out);
		break;
	default:
		break;
	}
}

/* The redis table ------------------------------------------------------ */

static void call_store(lua_State *lua, struct reply *r)
{
	size_t argc = (size_t)lua_gettop(lua);
	struct bytes *argv = mem_alloc(argc, sizeof *argv);

	for (size_t i = 0; i < argc; i++) {
		size_t n;
		const char *p = lua_tolstring(lua, (int)i + 1, &n);

		if (!p) {
			fprintf(stderr, "host: argument %zu is no string\n", i);
			abort();
		}
		argv[i] = bytes_of(p, n);
	}
	store_call(self(lua)->store, argc, argv, r);
	free(argv);
}

static int redis_pcall(lua_State *lua)
{
	struct reply r;

	call_store(lua, &r);
	push_reply(lua, &r);
	reply_clear(&r);
	return 1;
}

static int redis_call_(lua_State *lua)
{
	struct reply r;
	bool failed;

	call_store(lua, &r);
	failed = r.kind == REPLY_ERROR;
	push_reply(lua, &r);
	reply_clear(&r);
	return failed ? lua_error(lua) : 1;
}

static int redis_error_reply(lua_State *lua)
{
	size_t n;
	const char *p = luaL_checklstring(lua, 1, &n);

	push_table(lua, "err", bytes_of(p, n));
	return 1;
}

static int redis_status_reply(lua_State *lua)
{
	size_t n;
	const char *p = luaL_checklstring(lua, 1, &n);

	push_table(lua, "ok", bytes_of(p, n));
	return 1;
}

/* The struct library: big-endian unsigned integers, and strings. ------- */

static size_t width(const char **fmt, size_t without)
{
	size_t n = 0;
	bool any = false;

	while (**fmt >= '0' && **fmt <= '9') {
		n = 10 * n + (size_t)(*(*fmt)++ - '0');
		any = true;
	}
	return any ? n : without;
}

static void pack_int(luaL_Buffer *b, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		luaL_addchar(b, (char)(v >> (8 * (size - 1 - i))));
}

static int struct_pack(lua_State *lua)
{
	const char *fmt = luaL_checkstring(lua, 1);
	luaL_Buffer b;
	int arg = 2;

	luaL_buffinit(lua, &b);
	while (*fmt) {
		char c = *fmt++;
		size_t n;
		const char *p;

		if (c == '>')
			continue;
		if (c == 'I') {
			size_t size = width(&fmt, 4);

			pack_int(&b, (uint64_t)luaL_checknumber(lua, arg++), size);
		} else if (c == 'c') {
			size_t size = width(&fmt, 1);

			p = luaL_checklstring(lua, arg++, &n);
			luaL_addlstring(&b, p, size ? size : n);
		} else {
			return luaL_error(lua, "struct format %c", c);
		}
	}
	luaL_pushresult(&b);
	return 1;
}

static int struct_unpack(lua_State *lua)
{
	const char *fmt = luaL_checkstring(lua, 1);
	size_t n, at;
	const char *p = luaL_checklstring(lua, 2, &n);
	int pushed = 0;

	at = (size_t)luaL_optinteger(lua, 3, 1) - 1;
	while (*fmt) {
		char c = *fmt++;
		size_t size;

		if (c == '>')
			continue;
		size = width(&fmt, c == 'I' ? 4 : 1);
		if (at + size > n)
			return luaL_error(lua, "data string too short");
		if (c == 'I') {
			uint64_t v = 0;

			for (size_t i = 0; i < size; i++)
				v = v << 8 | (unsigned char)p[at + i];
			lua_pushnumber(lua, (double)v);
		} else {
			lua_pushlstring(lua, p + at, size);
		}
		at += size;
		pushed++;
	}
	lua_pushnumber(lua, (double)at + 1);
	return pushed + 1;
}

/* Memory ---------------------------------------------------------------- */

static void *piece_new(struct pool *p, size_t size)
{
	struct piece *piece = p->unused[size];

	if (!piece) {
		char *block = mem_alloc(1, BLOCK);

		((struct piece *)block)->next = p->blocks;
		p->blocks = (struct piece *)block;
		for (size_t at = PIECE; at + size * PIECE <= BLOCK; at += size * PIECE) {
			piece = (struct piece *)(block + at);
			piece->next = p->unused[size];
			p->unused[size] = piece;
		}
		piece = p->unused[size];
	}
	p->unused[size] = piece->next;
	return piece;
}

static void piece_free(struct pool *p, void *old, size_t size)
{
	struct piece *piece = old;

	piece->next = p->unused[size];
	p->unused[size] = piece;
}

/* As Lua wants it; what is large goes the usual way. */
static void *allocate(void *arg, void *old, size_t was, size_t n)
{
	struct pool *p = arg;
	size_t from = (was + PIECE - 1) / PIECE, to = (n + PIECE - 1) / PIECE;
	void *fresh = NULL;

	if (from == to && old && n)
		return from > PIECES ? mem_resize(old, n, 1) : old;
	if (n)
		fresh = to > PIECES ? mem_alloc(n, 1) : piece_new(p, to);
	if (old && was && n)
		memcpy(fresh, old, was < n ? was : n);
	if (old && was && from > PIECES)
		free(old);
	else if (old && was)
		piece_free(p, old, from);
	return fresh;
}

/* The host ------------------------------------------------------------- */

struct host *host_new(unsigned version, int database)
{
	static const luaL_Reg redis[] = {
		{ "call", redis_call_ }, { "pcall", redis_pcall },
		{ "error_reply", redis_error_reply }, { "status_reply", redis_status_reply },
		{ NULL, NULL },
	};
	static const luaL_Reg structs[] = {
		{ "pack", struct_pack }, { "unpack", struct_unpack }, { NULL, NULL },
	};
	struct host *h = mem_alloc(1, sizeof *h);

	h->database = database;
	h->lua = lua_newstate(allocate, &h->pool);
	lua_gc(h->lua, LUA_GCSETPAUSE, 400);
	luaL_openlibs(h->lua);
	luaL_register(h->lua, "redis", redis);
	if (version) {
		lua_pushnumber(h->lua, version);
		lua_setfield(h->lua, -2, "REDIS_VERSION_NUM");
	}
	luaL_register(h->lua, "struct", structs);
	lua_pushlightuserdata(h->lua, h);
	lua_setfield(h->lua, LUA_REGISTRYINDEX, "host");
	lua_settop(h->lua, 0);
	return h;
}

void host_free(struct host *h)
{
	if (!h)
		return;
	lua_close(h->lua);
	for (struct piece *block = h->pool.blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	free(h);
}

/*
 * A function that runs the script, for which its own functions are made once
 * and not in each run.  Redis does so for the scripts of applications alone;
 * since none keeps anything from one run to the next (compare would see it),
 * it is all the same.
 */
static bool load(struct host *h, const char *name)
{
	static const char mark[] = "\nreturn lapse_";
	char *text = script_text(name, h->database), *end = NULL, *whole;
	size_t size;
	bool ok;

	for (char *p = text; p && (p = strstr(p, mark)); p++)
		end = p;
	if (!end) {
		free(text);
		return false;
	}
	size = strlen(text) + 64;
	whole = mem_alloc(1, size);
	snprintf(whole, size, "%.*s\nreturn function() %s end", (int)(end - text), text, end + 1);
	ok = !luaL_loadbuffer(h->lua, whole, strlen(whole), name) && !lua_pcall(h->lua, 0, 1, 0);
	free(whole);
	free(text);
	return ok;
}

static int compile(struct host *h, const char *name)
{

	for (size_t i = 0; i < h->nscripts; i++)
		if (strcmp(h->scripts[i].name, name) == 0)
			return h->scripts[i].ref;
	if (h->nscripts == SCRIPTS || !load(h, name)) {
		fprintf(stderr, "host: script %s does not compile\n", name);
		abort();
	}
	snprintf(h->scripts[h->nscripts].name, sizeof h->scripts[0].name, "%s", name);
	h->scripts[h->nscripts].ref = luaL_ref(h->lua, LUA_REGISTRYINDEX);
	return h->scripts[h->nscripts++].ref;
}

static void set_list(lua_State *lua, const char *name, const struct bytes *list, size_t n)
{
	lua_createtable(lua, (int)n, 0);
	for (size_t i = 0; i < n; i++) {
		lua_pushlstring(lua, list[i].n ? list[i].p : "", list[i].n);
		lua_rawseti(lua, -2, (int)i + 1);
	}
	lua_setglobal(lua, name);
}

void host_run(struct host *h, struct store *s, const char *name, size_t nkeys,
	      size_t argc, const struct bytes *argv, struct reply *out)
{
	int ref = compile(h, name);

	h->store = s;
	store_begin(s);
	set_list(h->lua, "KEYS", argv, nkeys);
	set_list(h->lua, "ARGV", argv + nkeys, argc - nkeys);
	lua_rawgeti(h->lua, LUA_REGISTRYINDEX, ref);
	if (lua_pcall(h->lua, 0, 1, 0) && !lua_istable(h->lua, -1)) {
		fprintf(stderr, "host: script %s: %s\n", name, lua_tostring(h->lua, -1));
		abort();
	}
	take_reply(h->lua, out);
	lua_settop(h->lua, 0);
}
