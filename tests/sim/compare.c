/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * compare - plays the same calls to the store of the simulation and to a real
 * redis-server, and compares every answer, and all keys now and then.
 *
 *	compare [--calls N] [--seed N] [--trace]
 *
 * Time is ours on both sides, far ahead of the server's, and scripts are told
 * it in place of TIME.  So no key ends there by itself: one that is overdue by
 * our clock is given an end in the server's past, and stays until it is looked
 * at, since the active cycle is off.
 */
#include <errno.h>
#include <getopt.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"
#include "core/mem.h"
#include "dict.h"
#include "io/script.h"

#define YEAR_2100	INT64_C(4102444800000000)
#define ROUND		300	/* calls on one set of keys */

/* In front of each script on the server. */
static const char prelude[] =
	"local us = tonumber(table.remove(ARGV))\n"
	"local redis = setmetatable({}, { __index = redis })\n"
	"local real = getmetatable(redis).__index\n"
	"local function call(f, name, key, ...)\n"
	"  if name == 'TIME' then\n"
	"    local s = math.floor(us / 1000000)\n"
	"    return { string.format('%.0f', s), string.format('%.0f', us - s * 1000000) }\n"
	"  elseif name == 'PTTL' then\n"
	"    local at = f('PEXPIRETIME', key)\n"
	"    return at < 0 and at or at - math.floor(us / 1000)\n"
	"  end\n"
	"  if key == nil then return f(name) end\n"
	"  return f(name, key, ...)\n"
	"end\n"
	"redis.call = function(...) return call(real.call, ...) end\n"
	"redis.pcall = function(...) return call(real.pcall, ...) end\n"
	"if ARGV[#ARGV] == 'old' then redis.REDIS_VERSION_NUM = false end\n"
	"table.remove(ARGV)\n";

struct server {
	pid_t pid;
	char dir[64];
	redisContext *c, *events;	/* one that hears of keys */
	struct {
		char name[32], sha[48];
	} scripts[64];
	size_t n;
};

/* The server -------------------------------------------------------------- */

static void give_up(const char *what, const char *why)
{
	fprintf(stderr, "compare: %s: %s\n", what, why);
	exit(1);
}

static redisReply *ask(struct server *s, int argc, const char **argv, const size_t *lens)
{
	redisReply *r = redisCommandArgv(s->c, argc, argv, lens);

	if (!r)
		give_up("redis-server", s->c->errstr);
	return r;
}

static void tell(struct server *s, const char *text)
{
	redisReply *r = redisCommand(s->c, text);

	if (!r || r->type == REDIS_REPLY_ERROR)
		give_up(text, r ? r->str : s->c->errstr);
	freeReplyObject(r);
}

static void stop(struct server *s)
{
	char path[96];

	redisFree(s->c);
	redisFree(s->events);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	snprintf(path, sizeof path, "%s/sock", s->dir);
	unlink(path);
	rmdir(s->dir);
}

/* 6.2 allows DEBUG to everybody, and does not know the option. */
static void run_server(const char *path, bool old)
{
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(126);
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--save", "",
	       "--databases", "4", "--notify-keyspace-events", "AE",
	       "--hash-max-ziplist-entries", "100000", "--hash-max-ziplist-value", "1000000",
	       old ? NULL : "--enable-debug-command", "yes", NULL);
	_exit(127);
}

static bool start(struct server *s, bool old)
{
	char path[96];

	snprintf(s->dir, sizeof s->dir, "/tmp/lapsed-compare.XXXXXX");
	if (!mkdtemp(s->dir))
		give_up(s->dir, strerror(errno));
	snprintf(path, sizeof path, "%s/sock", s->dir);
	s->pid = fork();
	if (s->pid == 0)
		run_server(path, old);
	for (int i = 0; i < 1000 && waitpid(s->pid, NULL, WNOHANG) == 0; i++) {
		s->c = redisConnectUnix(path);
		if (s->c && !s->c->err)
			return true;
		redisFree(s->c);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	rmdir(s->dir);
	return false;
}

static const char *sha_of(struct server *s, const char *name)
{
	struct buf text = { 0 };
	const char *argv[] = { "SCRIPT", "LOAD", NULL };
	char *script;
	redisReply *r;

	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->scripts[i].name, name) == 0)
			return s->scripts[i].sha;
	script = script_text(name, DATABASE);
	if (!script)
		give_up(name, "there is no such script");
	buf_str(&text, prelude);
	buf_str(&text, script);
	argv[2] = buf_cstr(&text);
	r = ask(s, 3, argv, NULL);
	if (r->type != REDIS_REPLY_STRING)
		give_up(name, r->str ? r->str : "can't be loaded");
	snprintf(s->scripts[s->n].name, sizeof s->scripts[0].name, "%s", name);
	snprintf(s->scripts[s->n].sha, sizeof s->scripts[0].sha, "%s", r->str);
	freeReplyObject(r);
	free(script);
	buf_clear(&text);
	return s->scripts[s->n++].sha;
}

/* Answers as text --------------------------------------------------------- */

/* Redis adds to an error where in the script it happened. */
static void write_error(const char *text, struct buf *out)
{
	const char *end = strstr(text, " script: ");

	if (script_error_code(bytes_str(text)) == SCRIPT_OOM)
		text = "OOM", end = NULL;
	buf_str(out, "error ");
	buf_add(out, bytes_of(text, end ? (size_t)(end - text) : strlen(text)));
	buf_byte(out, '\n');
}

static void write_server(const redisReply *r, struct buf *out)
{
	switch (r->type) {
	case REDIS_REPLY_ERROR:
		write_error(r->str, out);
		break;
	case REDIS_REPLY_INTEGER:
		buf_printf(out, "%lld\n", r->integer);
		break;
	case REDIS_REPLY_STRING:
	case REDIS_REPLY_STATUS:
		buf_add(out, bytes_of(r->str, (size_t)r->len));
		buf_byte(out, '\n');
		break;
	case REDIS_REPLY_ARRAY:
		buf_printf(out, "[%zu\n", r->elements);
		for (size_t i = 0; i < r->elements; i++)
			write_server(r->element[i], out);
		break;
	default:
		buf_str(out, "nil\n");
		break;
	}
}

static void write_model(const struct reply *r, struct buf *out)
{
	switch (r->kind) {
	case REPLY_ERROR:
		write_error(r->str.p, out);
		break;
	case REPLY_INT:
		buf_printf(out, "%lld\n", (long long)r->integer);
		break;
	case REPLY_STR:
	case REPLY_STATUS:
		buf_add(out, r->str);
		buf_byte(out, '\n');
		break;
	case REPLY_ARRAY:
		buf_printf(out, "[%zu\n", r->n);
		for (size_t i = 0; i < r->n; i++)
			write_model(&r->items[i], out);
		break;
	case REPLY_NIL:
		buf_str(out, "nil\n");
		break;
	}
}

/* Both sides ---------------------------------------------------------------- */

struct sides {
	struct server server;
	struct buf events, events_there;	/* since the last call, on each side */
	struct store *store;
	struct host *host, *old_host;
	bool trace;
	bool old;		/* scripts are told that this is Redis 6.2 */
	int64_t us;
	uint64_t calls;
	struct buf told;	/* of the last call */
};

struct overdue {
	struct sides *sides;
	struct dict known;	/* `<db> <key>` */
	size_t fresh;
	char *gone;		/* the server has deleted it; owned */
	unsigned gone_db;
	size_t gone_n;
};

static bool note_overdue(struct overdue *o, unsigned db, struct bytes key)
{
	struct buf name = { 0 };
	bool fresh;

	buf_printf(&name, "%u ", db);
	buf_add(&name, key);
	dict_put(&o->known, buf_view(&name), &fresh);
	buf_clear(&name);
	return fresh;
}

static void already(void *arg, unsigned db, struct bytes key)
{
	note_overdue(arg, db, key);
}

static long long size_there(struct server *s)
{
	const char *argv[] = { "DBSIZE" };
	redisReply *r = ask(s, 1, argv, NULL);
	long long n = r->integer;

	freeReplyObject(r);
	return n;
}

static void expire_here(struct sides *s, unsigned db, struct bytes key)
{
	char number[16];
	struct reply r;

	snprintf(number, sizeof number, "%u", db);
	store_begin(s->store);
	store_call(s->store, 2, (struct bytes[]){ BYTES("SELECT"), bytes_str(number) }, &r);
	reply_clear(&r);
	store_call(s->store, 2, (struct bytes[]){ BYTES("EXISTS"), key }, &r);
	reply_clear(&r);
}

/* What is ours is written to as the model does not tell. */
static bool is_told(struct bytes channel, struct bytes text)
{
	return bytes_eq(channel, BYTES(PREFIX ":wake")) ||
	       (bytes_starts(channel, BYTES("__keyevent@")) &&
		!bytes_starts(text, BYTES("lapse:{")));
}

static void note_event(struct buf *to, struct bytes channel, struct bytes text)
{
	if (!is_told(channel, text))
		return;
	buf_add(to, channel);
	buf_byte(to, ' ');
	buf_add(to, text);
	buf_byte(to, '\n');
}

static void on_event(void *arg, struct bytes channel, struct bytes text)
{
	note_event(&((struct sides *)arg)->events, channel, text);
}

static void listen_there(struct server *s)
{
	char path[96];
	redisReply *r;

	snprintf(path, sizeof path, "%s/sock", s->dir);
	s->events = redisConnectUnix(path);
	r = s->events ? redisCommand(s->events, "PSUBSCRIBE *") : NULL;
	if (!r)
		give_up("PSUBSCRIBE", "no answer");
	freeReplyObject(r);
}

/* All that was published before this. */
static void hear_there(struct sides *s)
{
	bool all = false;

	tell(&s->server, "PUBLISH that-is-all .");
	while (!all) {
		redisReply *r;

		if (redisGetReply(s->server.events, (void **)&r) != REDIS_OK)
			give_up("PSUBSCRIBE", s->server.events->errstr);
		all = strcmp(r->element[2]->str, "that-is-all") == 0;
		note_event(&s->events_there,
			   bytes_of(r->element[2]->str, (size_t)r->element[2]->len),
			   bytes_of(r->element[3]->str, (size_t)r->element[3]->len));
		freeReplyObject(r);
	}
}

/*
 * Once only: a second look would delete it.  A server that is held up just then
 * finds the end passed already, and deletes it at once.
 */
static void expire_there(void *arg, unsigned db, struct bytes key)
{
	struct overdue *o = arg;
	char select[32];
	const char *argv[] = { "PEXPIRE", key.p, "1" };
	const size_t lens[] = { 7, key.n, 1 };
	struct server *server = &o->sides->server;
	long long before;

	if (o->gone || !note_overdue(o, db, key))
		return;
	o->fresh++;
	if (o->sides->trace)
		printf("overdue: db %u %.*s\n", db, (int)key.n, key.p);
	snprintf(select, sizeof select, "SELECT %u", db);
	tell(server, select);
	before = size_there(server);
	freeReplyObject(ask(server, 3, argv, lens));
	if (size_there(server) < before) {
		o->gone_db = db;
		o->gone = mem_copy(key);
		o->gone_n = key.n;
	}
}

/* Keys that have become overdue do so on the server, too. */
static void pass_time(struct sides *s, int64_t us)
{
	struct overdue o = { .sides = s };

	store_each_overdue(s->store, already, &o);
	s->us += us;
	store_set_time(s->store, s->us);
	do {
		free(o.gone);
		o.gone = NULL;
		store_each_overdue(s->store, expire_there, &o);
		if (o.gone)
			expire_here(s, o.gone_db, bytes_of(o.gone, o.gone_n));
	} while (o.gone);
	dict_clear(&o.known);
	hear_there(s);
	buf_reset(&s->events);
	buf_reset(&s->events_there);
	if (o.fresh)
		nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
}

static void show(struct bytes b)
{
	for (size_t i = 0; i < b.n; i++) {
		unsigned char c = (unsigned char)b.p[i];

		printf(c == '\n' || (c >= ' ' && c <= '~') ? "%c" : "\\x%02x", c);
	}
}

static void trace(const struct sides *s, const struct call_text *call)
{
	printf("%llu %lld db %u:", (unsigned long long)s->calls, (long long)s->us / 1000,
	       call->db);
	for (size_t i = 0; i < call->argc; i++) {
		putchar(' ');
		show(call->argv[i]);
	}
	putchar('\n');
}

static void differ(struct sides *s, const struct call_text *call, const struct buf *model,
		   const struct buf *server)
{
	printf("call %llu: the store and redis-server differ on\n",
	       (unsigned long long)s->calls);
	for (size_t i = 0; i < call->argc; i++) {
		printf("  ");
		show(call->argv[i]);
		printf("\n");
	}
	printf("--- the store\n");
	show(buf_view(model));
	printf("--- redis-server\n");
	show(buf_view(server));
	stop(&s->server);
	exit(1);
}

static redisReply *on_server(struct sides *s, const struct call_text *call)
{
	const char *argv[CALL_ARGS + 8];
	size_t lens[CALL_ARGS + 8];
	char us[32], nkeys[8];
	int n = 0;

	snprintf(us, sizeof us, "%lld", (long long)s->us);
	snprintf(nkeys, sizeof nkeys, "%zu", call->nkeys);
	if (call->nkeys) {
		argv[n++] = "EVALSHA";
		argv[n++] = sha_of(&s->server, call->argv[0].p);
		argv[n++] = nkeys;
		for (int i = 0; i < n; i++)
			lens[i] = strlen(argv[i]);
	}
	for (size_t i = call->nkeys ? 1 : 0; i < call->argc; i++) {
		argv[n] = call->argv[i].n ? call->argv[i].p : "";
		lens[n++] = call->argv[i].n;
	}
	/* What is past here is to be past there. */
	if (bytes_eq(call->argv[0], BYTES("PEXPIREAT")) &&
	    strtoll(call->argv[2].p, NULL, 10) <= sides_ms(s)) {
		argv[2] = "1";
		lens[2] = 1;
	}
	if (call->nkeys) {
		argv[n] = s->old ? "old" : "new";
		lens[n++] = 3;
		argv[n] = us;
		lens[n++] = strlen(us);
	}
	return ask(&s->server, n, argv, lens);
}

static int by_bytes(const void *a, const void *b);

static int by_text(const void *a, const void *b)
{
	const struct bytes x = ((const struct reply *)a)->str, y = ((const struct reply *)b)->str;
	int c = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);

	return c ? c : (x.n > y.n) - (x.n < y.n);
}

static void put_in_order(struct reply *model, redisReply *server)
{
	if (model->n > 2)
		qsort(model->items + 2, model->n - 2, sizeof *model->items, by_text);
	if (server->elements > 2)
		qsort(server->element + 2, server->elements - 2, sizeof *server->element, by_bytes);
}

static int by_line(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same events are told in the order in which SCAN meets the keys. */
static void lines_in_order(struct buf *b)
{
	char *text = mem_copy(buf_view(b)), *lines[STORE_DBS * 64], *rest = NULL;
	size_t n = 0;

	text[b->n ? b->n - 1 : 0] = '\0';
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		lines[n++] = line;
	qsort(lines, n, sizeof *lines, by_line);
	buf_reset(b);
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%s\n", lines[i]);
	free(text);
}

const struct reply *both(struct sides *s, const struct call_text *call)
{
	static struct reply r;
	struct buf model = { 0 }, server = { 0 };
	char select[32];
	redisReply *h;

	reply_clear(&r);
	s->calls++;
	if (s->trace)
		trace(s, call);
	snprintf(select, sizeof select, "SELECT %u", call->db);
	tell(&s->server, select);
	store_begin(s->store);
	if (call->nkeys) {
		host_run(s->old ? s->old_host : s->host, s->store, call->argv[0].p, call->nkeys,
			 call->argc - 1, call->argv + 1, &r);
	} else {
		struct bytes pick[] = { BYTES("SELECT"), bytes_str(select + 7) };
		struct reply ok;

		store_call(s->store, 2, pick, &ok);
		reply_clear(&ok);
		store_call(s->store, call->argc, call->argv, &r);
	}
	h = on_server(s, call);
	if (call->unordered)
		put_in_order(&r, h);
	write_model(&r, &model);
	write_server(h, &server);
	hear_there(s);
	if (call->unordered) {
		lines_in_order(&s->events);
		lines_in_order(&s->events_there);
	}
	buf_add(&model, buf_view(&s->events));
	buf_add(&server, buf_view(&s->events_there));
	buf_reset(&s->events);
	buf_reset(&s->events_there);
	if (!bytes_eq(buf_view(&model), buf_view(&server)))
		differ(s, call, &model, &server);
	freeReplyObject(h);
	buf_clear(&model);
	buf_clear(&server);
	return &r;
}

int64_t sides_ms(const struct sides *s)
{
	return s->us / 1000;
}

/* All keys ------------------------------------------------------------------ */

static int by_bytes(const void *a, const void *b)
{
	const redisReply *x = *(redisReply *const *)a, *y = *(redisReply *const *)b;
	size_t n = (size_t)(x->len < y->len ? x->len : y->len);
	int c = memcmp(x->str, y->str, n);

	return c ? c : (int)x->len - (int)y->len;
}

struct pair {
	const redisReply *name, *value;
};

static int by_name(const void *a, const void *b)
{
	const redisReply *x = ((const struct pair *)a)->name, *y = ((const struct pair *)b)->name;

	return by_bytes(&x, &y);
}

static void dump_pairs(const redisReply *r, struct buf *out)
{
	struct pair *pairs = mem_alloc(r->elements / 2, sizeof *pairs);

	for (size_t i = 0; i + 1 < r->elements; i += 2)
		pairs[i / 2] = (struct pair){ r->element[i], r->element[i + 1] };
	qsort(pairs, r->elements / 2, sizeof *pairs, by_name);
	for (size_t i = 0; i < r->elements / 2; i++) {
		buf_str(out, "  ");
		buf_add(out, bytes_of(pairs[i].name->str, (size_t)pairs[i].name->len));
		buf_str(out, " = ");
		buf_add(out, bytes_of(pairs[i].value->str, (size_t)pairs[i].value->len));
		buf_byte(out, '\n');
	}
	free(pairs);
}

static redisReply *about(struct server *s, const char *format, const redisReply *key)
{
	redisReply *r = redisCommand(s->c, format, key->str, (size_t)key->len);

	if (!r || r->type == REDIS_REPLY_ERROR)
		give_up(format, r ? r->str : s->c->errstr);
	return r;
}

static void dump_key(struct server *s, unsigned db, const redisReply *key, struct buf *out)
{
	redisReply *type = about(s, "TYPE %b", key), *at = about(s, "PEXPIRETIME %b", key), *r;
	char kind = type->str[0];		/* string, hash, zset */

	buf_printf(out, "%u ", db);
	buf_add(out, bytes_of(key->str, (size_t)key->len));
	buf_printf(out, " %d %lld\n", kind == 's' ? 0 : kind == 'h' ? 1 : 2, at->integer);
	r = about(s, kind == 's' ? "GET %b" : kind == 'h' ? "HGETALL %b" :
		  "ZRANGE %b 0 -1 WITHSCORES", key);
	if (kind == 's') {
		buf_str(out, "  ");
		buf_add(out, bytes_of(r->str, (size_t)r->len));
		buf_byte(out, '\n');
	} else {
		dump_pairs(r, out);
	}
	freeReplyObject(r);
	freeReplyObject(at);
	freeReplyObject(type);
}

static void dump_server(struct server *s, struct buf *out)
{
	for (unsigned db = 0; db < STORE_DBS; db++) {
		char select[32];
		redisReply *keys;

		snprintf(select, sizeof select, "SELECT %u", db);
		tell(s, select);
		keys = redisCommand(s->c, "KEYS *");
		if (!keys)
			give_up("KEYS", s->c->errstr);
		qsort(keys->element, keys->elements, sizeof *keys->element, by_bytes);
		for (size_t i = 0; i < keys->elements; i++)
			dump_key(s, db, keys->element[i], out);
		freeReplyObject(keys);
	}
}

static void compare_keys(struct sides *s)
{
	static const struct call_text what = { .argc = 1, .argv = { BYTES("all keys") } };
	struct buf model = { 0 }, server = { 0 };

	store_dump(s->store, &model);
	dump_server(&s->server, &server);
	if (!bytes_eq(buf_view(&model), buf_view(&server)))
		differ(s, &what, &model, &server);
	buf_clear(&model);
	buf_clear(&server);
}

/* The play ------------------------------------------------------------------ */

void sides_oom(struct sides *s, bool oom)
{
	store_set_oom(s->store, oom);
	tell(&s->server, oom ? "CONFIG SET maxmemory 1" : "CONFIG SET maxmemory 0");
}

static void play(struct sides *s, struct player *p, uint64_t calls)
{
	while (s->calls < calls) {
		uint64_t end = s->calls + ROUND;

		tell(&s->server, "FLUSHALL");
		store_free(s->store);
		s->store = store_new(on_event, s);
		s->old = !s->old;
		player_reset(p);
		while (s->calls < end) {
			pass_time(s, player_pause(p));
			player_act(p);
		}
		sides_oom(s, false);
		compare_keys(s);
	}
}

static void start_any(struct server *s)
{
	if (!start(s, false) && !start(s, true))
		give_up("redis-server", "does not start");
	tell(s, "DEBUG SET-ACTIVE-EXPIRE 0");
	listen_there(s);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "calls", required_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	struct sides s = { .us = YEAR_2100 };
	uint64_t calls = 6000, seed = 1;
	struct player *p;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'c')
			calls = strtoull(optarg, NULL, 10);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (c == 't')
			s.trace = true;
		else
			return 2;
	}
	start_any(&s.server);
	s.host = host_new(0x070000, DATABASE);
	s.old_host = host_new(0, DATABASE);
	p = player_new(&s, seed);
	play(&s, p, calls);
	printf("%llu calls, %llu of them accepted, and no difference\n",
	       (unsigned long long)s.calls, (unsigned long long)player_accepted(p));
	player_free(p);
	host_free(s.host);
	host_free(s.old_host);
	store_free(s.store);
	buf_clear(&s.events);
	buf_clear(&s.events_there);
	stop(&s.server);
	return 0;
}
