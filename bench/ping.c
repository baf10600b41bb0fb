/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bench-ping - how long a PING takes while others are at work.
 *
 *   redis=PATH  every=2	ms
 *
 * Ends when its input does.
 */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "tool.h"

int main(int argc, char **argv)
{
	static struct hist hist;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int every = (int)tool_number(argv, "every", 2);
	redisContext *c = tool_redis(argv);

	(void)argc;
	while (poll(&input, 1, every) == 0) {
		int64_t start = tool_now();

		redisAppendCommand(c, "PING");
		freeReplyObject(tool_reply(c));
		hist_add(&hist, tool_now() - start);
	}
	putchar('{');
	tool_print_hist("ping", &hist);
	puts("}");
	redisFree(c);
	return 0;
}
