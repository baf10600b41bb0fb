/* SPDX-License-Identifier: BSD-2-Clause */

/* list - the verb that lists what is pending, the next one first. */
#include "cli/cli.h"
#include "cli/entry.h"
#include "cli/value.h"
#include "cli/walk.h"

#define LIMIT	100

struct list {
	bool json;
	msec_t now;
	size_t n;
};

static void line_json(const struct entry *e, msec_t due)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	out_json_time(&j, "due", due);
	entry_json(&j, e, false);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void line_text(const struct list *list, const struct entry *e, msec_t due)
{
	char time[OUT_TIME], span[OUT_SPAN], kind[ENTRY_KIND], bytes[24] = "-";

	if (e->state == ENTRY_READABLE)
		snprintf(bytes, sizeof(bytes), "%zu", e->record.payload.n);
	printf("%s  %-11s  %-8s  %7s  ", out_time(due, time),
		out_from_now(due, list->now, span), entry_kind(e, kind), bytes);
	out_column(entry_topic(e), 24);
	out_name(stdout, entry_name(e));
	putchar('\n');
}

static bool visit(void *arg, struct bytes member, msec_t due, struct bytes record)
{
	struct list *list = arg;
	struct entry e;

	entry_read(&e, member, record);
	if (list->json) {
		line_json(&e, due);
	} else {
		if (list->n == 0)
			printf("%-24s  %-11s  %-8s  %7s  %-24s  %s\n", "DUE", "", "KIND",
				"BYTES", "TOPIC", "ID OR KEY");
		line_text(list, &e, due);
	}
	list->n++;
	return out_open();
}

static enum status list_to(struct cli *cli, const char *max, size_t limit)
{
	struct list list = { .json = cli->json };
	struct walk walk = {
		.prefix = cli->prefix, .zset = "due", .hash = "rec",
		.max = max, .limit = limit, .visit = visit, .arg = &list,
	};
	struct err err;

	if (!link_now(cli->link, &list.now, &err) || !walk_run(&walk, cli->link, &err))
		return cli_failed_call(cli, &err);
	if (list.n == 0 && !cli->json)
		cli_note("nothing is pending");
	return cli_tell_rest(cli, "due", max, list.n, LIMIT);
}

enum status cli_list(struct cli *cli)
{
	const char *before = args_value(&cli->args, "due-before");
	char max[32] = "+inf";
	struct err err, why;
	uint64_t limit;
	msec_t t;
	enum status status;

	if (!cli_limit(cli, LIMIT, &limit, &err))
		return cli_usage(cli, &err);
	if (before) {
		if (!value_time(before, &t, &why)) {
			err_set(&err, "--due-before: %s", why.text);
			return cli_usage(cli, &err);
		}
		snprintf(max, sizeof(max), "(%lld", (long long)t);
	}
	status = cli_connect(cli);
	return status == STATUS_DONE ? list_to(cli, max, (size_t)limit) : status;
}
