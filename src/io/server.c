/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/server.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The value of `name:` in INFO's lines, without its line end. */
static struct bytes field(struct bytes info, const char *name)
{
	size_t len = strlen(name);

	while (info.n) {
		const char *end = memchr(info.p, '\n', info.n);
		size_t line = end ? (size_t)(end - info.p) : info.n;

		if (line > len && info.p[len] == ':' && memcmp(info.p, name, len) == 0) {
			struct bytes value = bytes_of(info.p + len + 1, line - len - 1);

			if (value.n && value.p[value.n - 1] == '\r')
				value.n--;
			return value;
		}
		info = bytes_skip(info, end ? line + 1 : line);
	}
	return bytes_none;
}

static unsigned number_of(const char *version)
{
	unsigned major = 0, minor = 0, patch = 0;

	if (sscanf(version, "%3u.%3u.%3u", &major, &minor, &patch) < 1)
		return 0;
	return major * 10000 + minor * 100 + patch;
}

void server_info(struct bytes info, struct server_info *s)
{
	struct bytes redis = field(info, "redis_version");
	struct bytes valkey = field(info, "valkey_version");
	char text[32];

	memset(s, 0, sizeof *s);
	snprintf(text, sizeof text, "%.*s", (int)redis.n, redis.n ? redis.p : "");
	s->number = number_of(text);
	s->valkey = valkey.n > 0;
	if (s->valkey)
		redis = valkey;
	snprintf(s->version, sizeof s->version, "%.*s", (int)redis.n, redis.n ? redis.p : "");
	s->cluster = bytes_eq(field(info, "redis_mode"), BYTES("cluster")) ||
		     bytes_eq(field(info, "server_mode"), BYTES("cluster")); /* Valkey */
}

static bool has(struct bytes flags, char letter)
{
	return flags.n && memchr(flags.p, letter, flags.n);
}

void server_notify_missing(struct bytes flags, const char *needed, char *missing)
{
	for (; *needed; needed++)
		if (!has(flags, *needed) && (*needed == 'E' || !has(flags, 'A')))
			*missing++ = *needed;
	*missing = '\0';
}

bool server_keyevent(struct bytes channel, unsigned *db, struct bytes *event)
{
	static const struct bytes head = { "__keyevent@", 11 }, tail = { "__:", 3 };
	uint64_t n = 0;
	size_t digits = 0;

	if (!bytes_starts(channel, head))
		return false;
	channel = bytes_skip(channel, head.n);
	while (digits < channel.n && digits < 10 && channel.p[digits] >= '0' &&
	       channel.p[digits] <= '9')
		n = 10 * n + (uint64_t)(channel.p[digits++] - '0');
	if (digits == 0 || n > INT32_MAX || !bytes_starts(bytes_skip(channel, digits), tail))
		return false;
	*db = (unsigned)n;
	*event = bytes_skip(channel, digits + tail.n);
	return event->n > 0;
}
