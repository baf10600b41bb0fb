/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bench-expired - how late Redis itself tells of keys that expire.
 *
 *   redis=PATH  n=COUNT
 *
 * Listens for the expiry of the keys plain:<due ms>:<number>, and ends when
 * `n` of them were heard or its input does.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

/* Now and then in a burst the input is looked at all the same. */
#define BURST	1000

static bool heard(struct hist *h, const redisReply *r)
{
	const char *key;

	if (r->type != REDIS_REPLY_ARRAY || r->elements != 3 || !r->element[2]->str)
		return false;
	key = r->element[2]->str;
	if (strncmp(key, "plain:", 6) != 0)
		return false;
	hist_add(h, tool_now() - strtoll(key + 6, NULL, 10) * 1000);
	return true;
}

/* Takes what has arrived. */
static uint64_t take(redisContext *c, struct hist *h)
{
	uint64_t n = 0;
	void *reply = NULL;

	for (int i = 0; i < BURST; i++) {
		if (redisReaderGetReply(c->reader, &reply) != REDIS_OK)
			tool_die("Redis: %s", c->errstr);
		if (!reply)
			break;
		n += heard(h, reply);
		freeReplyObject(reply);
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct hist hist;
	redisContext *c = tool_redis(argv);
	struct pollfd files[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN }, { .fd = c->fd, .events = POLLIN },
	};
	uint64_t n = 0, all = (uint64_t)tool_number(argv, "n", 1000);

	(void)argc;
	redisAppendCommand(c, "SUBSCRIBE __keyevent@0__:expired");
	freeReplyObject(tool_reply(c));
	while (n < all) {
		if (poll(files, 2, -1) < 0 || files[0].revents)
			break;
		if (files[1].revents && redisBufferRead(c) != REDIS_OK)
			tool_die("Redis: %s", c->errstr);
		n += take(c, &hist);
	}
	printf("{\"events\": %llu, ", (unsigned long long)n);
	tool_print_hist("lateness", &hist);
	puts("}");
	redisFree(c);
	return 0;
}
