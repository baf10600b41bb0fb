/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"

#define SECRET_MAX	4096
#define NAME_BYTES	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static bool read_all(int fd, size_t max, struct buf *out, struct err *e)
{
	size_t from = out->n;

	for (;;) {
		buf_reserve(out, 4096);

		ssize_t got = read(fd, out->p + out->n, out->cap - out->n);

		if (got == 0)
			return true;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(e, "%s", strerror(errno));
		out->n += (size_t)got;
		if (out->n - from > max)
			return err_set(e, "more than %zu bytes", max);
	}
}

static bool open_read(const char *path, size_t max, struct buf *out,
		      struct stat *st, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_set(e, "%s", strerror(errno));

	bool ok = true;

	if (fstat(fd, st) < 0)
		ok = err_set(e, "%s", strerror(errno));
	else if (S_ISDIR(st->st_mode))
		ok = err_set(e, "%s", strerror(EISDIR));
	ok = ok && read_all(fd, max, out, e);
	close(fd);
	return ok;
}

bool conf_file_read(const char *path, size_t max, struct buf *out, struct err *e)
{
	struct stat st;

	return open_read(path, max, out, &st, e);
}

static char *secret_of(struct bytes b, struct err *e)
{
	if (b.n && b.p[b.n - 1] == '\n')
		b.n--;
	if (b.n && b.p[b.n - 1] == '\r')
		b.n--;
	if (b.n == 0)
		err_set(e, "is empty");
	else if (memchr(b.p, '\0', b.n))
		err_set(e, "holds a NUL byte");
	else
		return mem_copy(b);
	return NULL;
}

char *conf_secret_read(const char *path, bool *open, struct err *e)
{
	struct buf b = { 0 };
	struct stat st;
	char *secret = NULL;

	/* All at once, so that no reallocation leaves a copy behind. */
	buf_reserve(&b, 2 * SECRET_MAX + 4096);
	if (open_read(path, SECRET_MAX, &b, &st, e)) {
		secret = secret_of(buf_view(&b), e);
		*open = S_ISREG(st.st_mode) && (st.st_mode & S_IROTH);
	}
	explicit_bzero(b.p, b.n);
	buf_clear(&b);
	return secret;
}

void conf_secret_free(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

/* Where inih is, and what it was not shown. */
struct reading {
	struct bytes rest;
	int line;
	bool section_bad;	/* its options can't be told from others */
	char name[CONF_NAME_MAX + 1];
	char value[CONF_LINE_MAX + 1];
	const struct conf_file_handlers *h;
	void *arg;
};

static void mistake(struct reading *r, const char *text)
{
	r->h->mistake(r->arg, r->line, text);
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct bytes trim(struct bytes b)
{
	while (b.n && blank(b.p[0]))
		b = bytes_skip(b, 1);
	while (b.n && blank(b.p[b.n - 1]))
		b.n--;
	return b;
}

static bool comment_or_empty(struct bytes b)
{
	return b.n == 0 || b.p[0] == ';' || b.p[0] == '#';
}

static struct bytes next_line(struct reading *r)
{
	const char *end = memchr(r->rest.p, '\n', r->rest.n);
	size_t n = end ? (size_t)(end - r->rest.p) : r->rest.n;
	struct bytes line = bytes_of(r->rest.p, n);

	r->rest = bytes_skip(r->rest, end ? n + 1 : n);
	r->line++;
	return trim(line);
}

static bool has_control(struct bytes b)
{
	for (size_t i = 0; i < b.n; i++)
		if ((unsigned char)b.p[i] < ' ' && b.p[i] != '\t')
			return true;
	return false;
}

/* `b` begins behind the opening quote. */
static bool unquote(struct reading *r, struct bytes b)
{
	static const char escapes[] = "\"\\nt", meanings[] = "\"\\\n\t";
	size_t n = 0, i = 0;

	for (; i < b.n && b.p[i] != '"'; i++) {
		char c = b.p[i];

		if (c == '\\') {
			const char *at = ++i < b.n ? strchr(escapes, b.p[i]) : NULL;

			if (!at) {
				mistake(r, "after a \\ in quotes comes one of \" \\ n t");
				return false;
			}
			c = meanings[at - escapes];
		}
		r->value[n++] = c;
	}
	r->value[n] = '\0';
	if (i == b.n) {
		mistake(r, "a quoted value has no closing \"");
		return false;
	}

	struct bytes after = trim(bytes_skip(b, i + 1));

	if (after.n == 0 || after.p[0] == ';')
		return true;
	mistake(r, "there is something behind the closing \" of a value");
	return false;
}

static bool take_value(struct reading *r, struct bytes b)
{
	b = trim(b);
	if (b.n && b.p[0] == '"')
		return unquote(r, bytes_skip(b, 1));
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] == ';' && (i == 0 || blank(b.p[i - 1])))
			b.n = i;
	b = trim(b);
	if (b.n)
		memcpy(r->value, b.p, b.n);
	r->value[b.n] = '\0';
	return true;
}

/* Makes the line that inih sees, in `out`; false when it is to see none. */
static bool take_section(struct reading *r, struct bytes line, char *out, int room)
{
	const char *end = memchr(line.p, ']', line.n);
	struct bytes name = bytes_none;

	r->section_bad = true;
	if (!end) {
		mistake(r, "a section has no closing ]");
		return false;
	}
	name = trim(bytes_of(line.p + 1, (size_t)(end - line.p) - 1));
	if (!comment_or_empty(trim(bytes_skip(line, (size_t)(end - line.p) + 1)))) {
		mistake(r, "there is something behind the ] of a section");
		return false;
	}
	if (name.n > CONF_NAME_MAX) {
		mistake(r, "the name of a section is longer than 49 bytes");
		return false;
	}
	r->section_bad = false;
	snprintf(out, (size_t)room, "[%.*s]\n", (int)name.n, name.p);
	snprintf(r->name, sizeof(r->name), "%.*s", (int)name.n, name.p);
	r->h->section(r->arg, r->line, r->name);
	return true;
}

static bool take_option(struct reading *r, struct bytes line, char *out, int room)
{
	const char *eq = memchr(line.p, '=', line.n);

	if (!eq) {
		mistake(r, "neither [section] nor name = value");
		return false;
	}

	struct bytes name = trim(bytes_of(line.p, (size_t)(eq - line.p)));

	if (name.n == 0 || name.n > CONF_NAME_MAX) {
		mistake(r, name.n ? "the name of an option is longer than 49 bytes"
				  : "there is no name in front of the =");
		return false;
	}
	snprintf(r->name, sizeof(r->name), "%.*s", (int)name.n, name.p);
	if (r->name[strspn(r->name, NAME_BYTES)]) {
		mistake(r, "a name consists of letters, digits and . _ -");
		return false;
	}
	snprintf(out, (size_t)room, "%s=x\n", r->name);
	return take_value(r, bytes_skip(line, (size_t)(eq - line.p) + 1));
}

static bool take_line(struct reading *r, struct bytes line, char *out, int room)
{
	if (comment_or_empty(line))
		return false;
	if (line.n > CONF_LINE_MAX)
		mistake(r, "a line is longer than 8192 bytes");
	else if (has_control(line))
		mistake(r, "a control character; is this a text file?");
	else if (line.p[0] == '[')
		return take_section(r, line, out, room);
	else if (!r->section_bad)
		return take_option(r, line, out, room);
	return false;
}

/* inih's fgets(): shows it the lines that it can't misread. */
static char *read_line(char *out, int room, void *stream)
{
	struct reading *r = stream;

	while (r->rest.n)
		if (take_line(r, next_line(r), out, room))
			return out;
	return NULL;
}

static int got_option(void *user, const char *section, const char *name,
		      const char *value)
{
	struct reading *r = user;

	r->h->option(r->arg, r->line, name, r->value);
	return 1;
}

void conf_file_parse(struct bytes text, const struct conf_file_handlers *h,
		     void *arg)
{
	struct reading *r = mem_alloc(1, sizeof(*r));

	r->rest = text;
	r->h = h;
	r->arg = arg;
	if (bytes_starts(text, BYTES("\xef\xbb\xbf")))
		r->rest = bytes_skip(text, 3);
	ini_parse_stream(read_line, r, got_option, r);
	explicit_bzero(r->value, sizeof(r->value));
	free(r);
}
