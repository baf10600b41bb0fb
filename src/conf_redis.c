/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf_redis.h"

#include <stdlib.h>
#include <string.h>

#include "conf_file.h"
#include "core/bytes.h"
#include "core/mem.h"

#define DEFAULT_PORT	6379

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) % 16 : -1;
}

/* NULL when a % is not followed by two digits, or stands for a NUL. */
static char *percent_decode(struct bytes b)
{
	char *s = mem_copy(b);
	size_t n = 0;

	for (size_t i = 0; i < b.n; i++) {
		s[n] = b.p[i];
		if (b.p[i] == '%') {
			int high = i + 2 < b.n ? hex(b.p[i + 1]) : -1;
			int low = i + 2 < b.n ? hex(b.p[i + 2]) : -1;

			if (high < 0 || low < 0 || high + low == 0) {
				conf_secret_free(s);
				return NULL;
			}
			s[n] = (char)(high << 4 | low);
			i += 2;
		}
		n++;
	}
	s[n] = '\0';
	return s;
}

static bool parse_user(struct bytes b, struct conf_redis_url *u, struct err *e)
{
	const char *colon = memchr(b.p, ':', b.n);
	struct bytes user = bytes_of(b.p, colon ? (size_t)(colon - b.p) : b.n);

	if (user.n && !(u->user = percent_decode(user)))
		return err_set(e, "the user has a %% that is not two hexadecimal digits");
	if (!colon)
		return user.n || err_set(e, "there is no user in front of the @");
	u->password = percent_decode(bytes_skip(b, user.n + 1));
	if (!u->password)
		return err_set(e, "the password has a %% that is not followed by two "
				  "hexadecimal digits; write %%25 for a %%");
	if (!u->password[0])
		return err_set(e, "the password is empty");
	return true;
}

static bool parse_port(struct bytes b, struct conf_redis_url *u, struct err *e)
{
	long port = 0;

	for (size_t i = 0; i < b.n && port <= 65535; i++)
		port = b.p[i] >= '0' && b.p[i] <= '9' ? port * 10 + b.p[i] - '0' : 65536;
	if (port < 1 || port > 65535)
		return err_set(e, "what follows the host is not a port (1 to 65535)");
	u->port = (int)port;
	return true;
}

static bool parse_host(struct bytes b, struct conf_redis_url *u, struct err *e)
{
	bool v6 = b.n && b.p[0] == '[';
	const char *end = v6 ? memchr(b.p, ']', b.n) : memchr(b.p, ':', b.n);
	struct bytes host = v6 ? bytes_skip(b, 1) : b;

	if (v6 && !end)
		return err_set(e, "an IPv6 address has no closing ]");
	if (end)
		host.n = (size_t)(end - host.p);
	if (host.n == 0)
		return err_set(e, "there is no host");
	for (size_t i = 0; i < host.n; i++)
		if (host.p[i] <= ' ' || host.p[i] == 0x7f || strchr("%?#[]\\", host.p[i]))
			return err_set(e, "\"%.*s\" is not a host", (int)host.n, host.p);
	u->host = mem_copy(host);

	struct bytes rest = bytes_of(host.p + host.n, (size_t)(b.p + b.n - host.p) - host.n);

	if (v6)
		rest = bytes_skip(rest, 1);
	if (rest.n == 0)
		return true;
	if (rest.p[0] != ':')
		return err_set(e, "there is something behind the ] of the host");
	return parse_port(bytes_skip(rest, 1), u, e);
}

static bool parse_tcp(struct bytes b, struct conf_redis_url *u, struct err *e)
{
	const char *at = memrchr(b.p, '@', b.n);
	struct bytes host = b;

	if (at) {
		size_t n = (size_t)(at - b.p);

		if (!parse_user(bytes_of(b.p, n), u, e))
			return false;
		host = bytes_skip(b, n + 1);
	}

	const char *slash = memchr(host.p, '/', host.n);

	if (slash && slash + 1 < host.p + host.n)
		return err_set(e, "it names no database: use the options database "
				  "(of lapsed's keys) and databases (of watched keys)");
	if (slash)
		host.n--;
	return parse_host(host, u, e);
}

static bool parse_unix(struct bytes b, struct conf_redis_url *u, struct err *e)
{
	if (b.n < 2 || b.p[0] != '/')
		return err_set(e, "a socket needs its whole path: unix:///run/redis.sock");
	if (b.n > 107)
		return err_set(e, "the path of a socket has at most 107 bytes");
	u->socket = mem_copy(b);
	return true;
}

static bool no_tls(struct bytes b, struct conf_redis_url *u, struct err *e)
{
	return err_set(e, "rediss:// is not supported: the Redis client library has no "
			  "TLS; use a TLS tunnel such as stunnel, and redis:// to it");
}

static const struct scheme {
	const char *prefix;
	bool (*parse)(struct bytes rest, struct conf_redis_url *u, struct err *e);
} schemes[] = {
	{ "redis://", parse_tcp },
	{ "unix://", parse_unix },
	{ "rediss://", no_tls },
};

bool conf_redis_parse_url(const char *url, struct conf_redis_url *u, struct err *e)
{
	struct bytes all = bytes_str(url);

	*u = (struct conf_redis_url){ .port = DEFAULT_PORT };
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		struct bytes prefix = bytes_str(schemes[i].prefix);

		if (!bytes_starts(all, prefix))
			continue;
		if (schemes[i].parse(bytes_skip(all, prefix.n), u, e))
			return true;
		conf_redis_url_clear(u);
		return false;
	}
	return err_set(e, "it begins with neither redis:// nor unix://");
}

void conf_redis_url_clear(struct conf_redis_url *u)
{
	conf_secret_free(u->password);
	free(u->user);
	free(u->host);
	free(u->socket);
	*u = (struct conf_redis_url){ 0 };
}

bool conf_redis_check_url(const char *url, struct err *e)
{
	struct conf_redis_url u;

	if (!conf_redis_parse_url(url, &u, e))
		return false;
	conf_redis_url_clear(&u);
	return true;
}

char *conf_redis_show_url(const char *url)
{
	static const char prefix[] = "redis://";
	char *shown = mem_copy(bytes_str(url));
	char *at = strrchr(shown, '@');
	char *user = shown + sizeof(prefix) - 1;

	if (!at || strncmp(shown, prefix, sizeof(prefix) - 1) != 0)
		return shown;

	char *colon = memchr(user, ':', (size_t)(at - user));

	if (colon)
		memmove(colon, at, strlen(at) + 1);
	return shown;
}
