/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf_redis - the URL of a Redis server, taken apart.
 *
 *	redis://[user[:password]@]host[:port][/]	[::1] for IPv6
 *	unix:///path
 *
 * User and password may be percent-encoded.  Private to conf*.c.
 */
#ifndef LAPSED_CONF_REDIS_H
#define LAPSED_CONF_REDIS_H

#include "core/err.h"

struct conf_redis_url {
	char *user;		/* NULL: none given; the same below */
	char *password;
	char *host;		/* NULL for a socket */
	int port;		/* 6379 unless given */
	char *socket;
};

/* On failure `u` is empty.  `e` never quotes the password. */
bool conf_redis_parse_url(const char *url, struct conf_redis_url *u,
			  struct err *e) MUST_CHECK;
void conf_redis_url_clear(struct conf_redis_url *u);

/* The same as a check of the option table. */
bool conf_redis_check_url(const char *url, struct err *e);

/* The URL without its password; to be freed by the caller. */
char *conf_redis_show_url(const char *url);

#endif
