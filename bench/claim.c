/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bench-claim - the claim and settle scripts alone, as fast as Redis goes.
 *
 *   redis=PATH  limit=500  depth=4  prefix=lapse:{0}
 *
 * Leases a slot and empties the backlog: claim 1, settle 1, claim 2, settle 2
 * ... with `depth` such pairs under way, so that Redis never waits for us.
 * What was claimed is read and thrown away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/script.h"
#include "tool.h"

struct run {
	redisContext *c;
	const char *prefix;
	char claim[41], settle[41];	/* SHA1 */
	char slot[24], epoch[24], limit[24];
	uint64_t seq, events;
};

#define NONCE	"bench"

static void load_script(redisContext *c, const char *name, char sha[41])
{
	char *text = script_text(name, 0);
	redisReply *r;

	redisAppendCommand(c, "SCRIPT LOAD %s", text);
	r = tool_reply(c);
	snprintf(sha, 41, "%s", r->str);
	freeReplyObject(r);
	free(text);
}

static void join(struct run *run)
{
	char sha[41];
	redisReply *r;

	load_script(run->c, "join", sha);
	redisAppendCommand(run->c, "EVALSHA %s 1 %s bench %s 600000", sha, run->prefix, NONCE);
	r = tool_reply(run->c);
	snprintf(run->slot, sizeof run->slot, "%s", r->element[1]->str);
	snprintf(run->epoch, sizeof run->epoch, "%s", r->element[2]->str);
	run->seq = strtoull(r->element[3]->str, NULL, 10);
	freeReplyObject(r);
}

static void ask(struct run *run)
{
	unsigned long long seq = ++run->seq;

	redisAppendCommand(run->c, "EVALSHA %s 1 %s %s %s %s %llu %s 4194304 100 2000",
			   run->claim, run->prefix, run->slot, run->epoch, NONCE, seq,
			   run->limit);
	redisAppendCommand(run->c, "EVALSHA %s 1 %s %s %s %s %llu 0 0",
			   run->settle, run->prefix, run->slot, run->epoch, NONCE, seq);
}

/* How many entries that pair brought. */
static size_t answer(struct run *run)
{
	redisReply *r = tool_reply(run->c);
	size_t n = (r->elements - 7) / 2;

	freeReplyObject(r);
	freeReplyObject(tool_reply(run->c));
	run->events += n;
	return n;
}

int main(int argc, char **argv)
{
	int64_t depth = tool_number(argv, "depth", 4), start, end;
	struct run run = { .c = tool_redis(argv),
			   .prefix = tool_text(argv, "prefix", "lapse:{0}") };

	(void)argc;
	snprintf(run.limit, sizeof run.limit, "%s", tool_text(argv, "limit", "500"));
	load_script(run.c, "claim", run.claim);
	load_script(run.c, "settle", run.settle);
	join(&run);
	start = end = tool_now();
	for (int64_t i = 0; i < depth; i++)
		ask(&run);
	while (answer(&run) > 0) {
		end = tool_now();
		ask(&run);
	}
	putchar('{');
	tool_print_run(run.events, end - start);
	puts("}");
	redisFree(run.c);
	return 0;
}
