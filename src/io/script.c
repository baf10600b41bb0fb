/* SPDX-License-Identifier: BSD-2-Clause */
#include "io/script.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "core/buf.h"
#include "lua/lua_sources.h"

/* What the library holds. */
static const char *const functions[] = {
	"lapse_schedule",
	"lapse_cancel",
	"lapse_reschedule",
	"lapse_finish",
	"lapse_touch",
	"lapse_fail",
	"lapse_schedule_bulk",
	"lapse_cancel_bulk",
	"lapse_setex",
	"lapse_del",
	"lapse_show",
	"lapse_stats",
};

#define N_FUNCTIONS	(sizeof(functions) / sizeof(functions[0]))
#define MAX_LIBS	16

/* Library files in the order in which they were first asked for. */
struct libs {
	const struct lua_source *file[MAX_LIBS];
	size_t n;
};

static const struct lua_source *source_find(struct bytes name)
{
	for (const struct lua_source *s = lua_sources; s->name; s++)
		if (bytes_eq(bytes_str(s->name), name))
			return s;
	return NULL;
}

static void libs_add(struct libs *libs, const struct lua_source *file)
{
	for (size_t i = 0; i < libs->n; i++)
		if (libs->file[i] == file)
			return;
	assert(libs->n < MAX_LIBS);
	libs->file[libs->n++] = file;
}

/* Where the words behind `head` stand in the script; empty without any. */
static const char *head_line(const struct lua_source *script, const char *head)
{
	const char *p = strstr(script->text, head);

	return p ? p + strlen(head) : "";
}

/* The next word of a line, which moves behind it; bytes_none at its end. */
static struct bytes next_word(const char **line)
{
	const char *word = *line + strspn(*line, " ");
	size_t n = strcspn(word, " \n");

	*line = word + n;
	return n > 0 ? bytes_of(word, n) : bytes_none;
}

/* The files that a script uses; false if one of them does not exist. */
static bool libs_add_uses(struct libs *libs, const struct lua_source *script)
{
	const char *line = head_line(script, "-- uses:");
	struct bytes word;

	while ((word = next_word(&line)).p) {
		const struct lua_source *file = source_find(word);

		if (!file)
			return false;
		libs_add(libs, file);
	}
	return true;
}

/* Not printf: texts are long, and what is put together must be all there. */
static void put_file(struct buf *b, const struct lua_source *file)
{
	buf_str(b, file->text);
	buf_byte(b, '\n');
}

static void put_libs(struct buf *b, const struct libs *libs)
{
	for (size_t i = 0; i < libs->n; i++)
		put_file(b, libs->file[i]);
}

/* To be freed by the caller. */
static char *text_of(struct buf *b)
{
	(void)buf_cstr(b);
	return b->p;
}

char *script_text(const char *name, int database)
{
	const struct lua_source *script = source_find(bytes_str(name));
	struct libs libs = { .n = 0 };
	struct buf b = { .n = 0 };

	if (!script || !libs_add_uses(&libs, script))
		return NULL;
	buf_printf(&b, "local NSDB = %d\n", database);
	put_libs(&b, &libs);
	put_file(&b, script);
	buf_printf(&b, "return lapse_%s(KEYS, ARGV)\n", name);
	return text_of(&b);
}

static void put_registration(struct buf *b, const char *name, const struct lua_source *script)
{
	const char *line = head_line(script, "-- flags:");
	struct bytes flag;

	buf_printf(b, "redis.register_function{ function_name = '%s', callback = %s, "
		"flags = {", name, name);
	while ((flag = next_word(&line)).p)
		buf_printf(b, " '%.*s',", (int)flag.n, flag.p);
	buf_str(b, " } }\n");
}

char *script_library(int database)
{
	const struct lua_source *script[N_FUNCTIONS];
	struct libs libs = { .n = 0 };
	struct buf b = { .n = 0 };

	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		script[i] = source_find(bytes_str(functions[i] + strlen("lapse_")));
		assert(script[i]);
		if (!libs_add_uses(&libs, script[i]))
			assert(!"a script uses a file that is not embedded");
	}
	buf_printf(&b, "#!lua name=lapse\nlocal NSDB = %d\n", database);
	put_libs(&b, &libs);
	for (size_t i = 0; i < N_FUNCTIONS; i++)
		put_file(&b, script[i]);
	for (size_t i = 0; i < N_FUNCTIONS; i++)
		put_registration(&b, functions[i], script[i]);
	return text_of(&b);
}

const char *script_function(size_t i)
{
	return i < N_FUNCTIONS ? functions[i] : NULL;
}

static const char *const codes[] = {
	[SCRIPT_ERR] = "ERR",
	[SCRIPT_NOSCRIPT] = "NOSCRIPT",
	[SCRIPT_LOADING] = "LOADING",
	[SCRIPT_BUSY] = "BUSY",
	[SCRIPT_MASTERDOWN] = "MASTERDOWN",
	[SCRIPT_CLUSTERDOWN] = "CLUSTERDOWN",
	[SCRIPT_TRYAGAIN] = "TRYAGAIN",
	[SCRIPT_READONLY] = "READONLY",
	[SCRIPT_MOVED] = "MOVED",
	[SCRIPT_ASK] = "ASK",
	[SCRIPT_OOM] = "OOM",
	[SCRIPT_MISCONF] = "MISCONF",
	[SCRIPT_NOREPLICAS] = "NOREPLICAS",
	[SCRIPT_NOAUTH] = "NOAUTH",
	[SCRIPT_WRONGPASS] = "WRONGPASS",
	[SCRIPT_NOPERM] = "NOPERM",
	[SCRIPT_CROSSSLOT] = "CROSSSLOT",
	[SCRIPT_WRONGTYPE] = "WRONGTYPE",
	[SCRIPT_BADARG] = "LAPSE_BADARG",
	[SCRIPT_EXISTS] = "LAPSE_EXISTS",
	[SCRIPT_NOTFOUND] = "LAPSE_NOTFOUND",
	[SCRIPT_STALE] = "LAPSE_STALE",
	[SCRIPT_UNSURE] = "LAPSE_UNSURE",
	[SCRIPT_BADRECORD] = "LAPSE_BADRECORD",
	[SCRIPT_FENCED] = "LAPSE_FENCED",
};

/* Sentences that stand where Redis gives no code of its own. */
static const struct {
	const char *text;
	enum script_error code;
} sentences[] = {
	{ "The user executing the script can't", SCRIPT_NOPERM },
	{ "ACL failure in script", SCRIPT_NOPERM },
	{ "against a read only replica", SCRIPT_READONLY },
};

static size_t word_length(struct bytes text)
{
	const char *space = memchr(text.p, ' ', text.n);

	return space ? (size_t)(space - text.p) : text.n;
}

static enum script_error code_of_word(struct bytes word)
{
	for (size_t i = 1; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (bytes_eq(word, bytes_str(codes[i])))
			return (enum script_error)i;
	return SCRIPT_ERR;
}

/*
 * The first code we know behind a `-`, or behind a place in the script such as
 * "@user_script:5:".
 */
static enum script_error code_within(struct bytes text)
{
	bool behind_place = false;

	while (text.n > 0) {
		size_t n = word_length(text);
		bool dash = text.p[0] == '-';
		enum script_error code = SCRIPT_ERR;

		if (dash || behind_place)
			code = code_of_word(bytes_of(text.p + dash, n - dash));
		if (code != SCRIPT_ERR)
			return code;
		behind_place = n > 0 && text.p[n - 1] == ':';
		text = bytes_skip(text, n < text.n ? n + 1 : n);
	}
	return SCRIPT_ERR;
}

enum script_error script_error_code(struct bytes reply)
{
	enum script_error code;

	if (reply.n == 0)
		return SCRIPT_ERR;
	code = code_of_word(bytes_of(reply.p, word_length(reply)));
	if (code == SCRIPT_ERR)
		code = code_within(reply);
	for (size_t i = 0; code == SCRIPT_ERR
			&& i < sizeof(sentences) / sizeof(sentences[0]); i++)
		if (memmem(reply.p, reply.n, sentences[i].text, strlen(sentences[i].text)))
			code = sentences[i].code;
	return code;
}

const char *script_error_name(enum script_error code)
{
	return codes[code];
}
