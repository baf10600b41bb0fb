/* SPDX-License-Identifier: BSD-2-Clause */

/* stats - the verb that looks at everything once. */
#include "cli/cli.h"
#include "core/units.h"

static const redisReply *value_of(const redisReply *stats, const char *name)
{
	for (size_t i = 0; i + 1 < stats->elements; i += 2)
		if (bytes_eq(cli_answer(stats, i), bytes_str(name)))
			return stats->element[i + 1];
	return NULL;
}

/* -1 when the script does not tell, or says -1. */
static int64_t number_of(const redisReply *stats, const char *name)
{
	const redisReply *value = value_of(stats, name);
	struct err ignored;
	uint64_t n;

	if (!value || value->type != REDIS_REPLY_STRING)
		return -1;
	return units_number(bytes_of(value->str, value->len), 0, INT64_MAX, &n, &ignored)
		? (int64_t)n : -1;
}

/* A table among the values; *n is 0 without one. */
static redisReply *const *rows_of(const redisReply *stats, const char *name, size_t *n)
{
	const redisReply *value = value_of(stats, name);

	*n = value && value->type == REDIS_REPLY_ARRAY ? value->elements : 0;
	return *n ? value->element : NULL;
}

static void json_number(struct json *j, const char *name, int64_t value)
{
	json_key(j, name);
	if (value < 0)
		json_null(j);
	else
		json_int(j, value);
}

/* The columns of a table, as JSON and as text have them. */
struct column {
	const char *name;
	bool number;
};

static void json_table(struct json *j, const redisReply *stats, const char *from,
		       const char *to, const struct column *columns, size_t n_columns)
{
	size_t n;
	redisReply *const *row = rows_of(stats, from, &n);

	json_key(j, to);
	json_array(j);
	for (size_t i = 0; i < n; i++) {
		json_object(j);
		for (size_t c = 0; c < n_columns; c++) {
			if (columns[c].number)
				json_number(j, columns[c].name, cli_answer_number(row[i], c, -1));
			else
				out_json_bytes(j, columns[c].name, cli_answer(row[i], c));
		}
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_moment(struct json *j, const redisReply *stats, const char *name)
{
	int64_t ms = number_of(stats, name);

	if (ms >= 0) {
		out_json_time(j, name, ms);
	} else {
		json_key(j, name);
		json_null(j);
	}
}

static void json_scan(struct json *j, const redisReply *stats)
{
	json_moment(j, stats, "scan_begun");
	json_moment(j, stats, "scan_at");
	json_moment(j, stats, "scan_done");
}

static void stats_json(const redisReply *stats)
{
	static const struct {
		const char *name, *answer;
	} numbers[] = {
		{ "pending", "due_total" }, { "due_now", "due_now" }, { "waiting", "waiting" }, { "late", "late" }, { "records", "records" },
		{ "batches", "batches" }, { "batches_looked_into", "looked" },
		{ "open_batches", "open_batches" }, { "open_entries", "open_entries" },
		{ "parked_batches", "parked_batches" }, { "parked_entries", "parked_entries" },
		{ "dead", "dead" }, { "seen", "seen" },
		{ "heard", "heard" }, { "found", "found" }, { "inferred", "inferred" },
		{ "scan_looked", "scan_looked" }, { "scan_keys", "scan_keys" },
	};
	static const struct column slots[] = {
		{ "slot", true }, { "epoch", true }, { "lease_left_ms", true }, { "instance" },
	}, open[] = {
		{ "slot", true }, { "batches", true }, { "entries", true },
	}, parked[] = {
		{ "topic" }, { "batches", true }, { "entries", true }, { "retry_in_ms", true },
	};
	int64_t now = number_of(stats, "now_us") / 1000, oldest = number_of(stats, "oldest_due");
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	out_json_time(&j, "now", now);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_number(&j, numbers[i].name, number_of(stats, numbers[i].answer));
	json_number(&j, "next_due_ms", oldest);
	json_scan(&j, stats);
	json_number(&j, "oldest_overdue_ms", oldest >= 0 && oldest <= now ? now - oldest : -1);
	json_table(&j, stats, "slots", "instances", slots, 4);
	json_table(&j, stats, "open", "open", open, 3);
	json_table(&j, stats, "parked", "parked", parked, 4);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void count(int64_t n, const char *one, const char *many)
{
	printf("%lld %s", (long long)n, n == 1 ? one : many);
}

static void text_pending(const redisReply *stats, int64_t now)
{
	int64_t due_now = number_of(stats, "due_now"), oldest = number_of(stats, "oldest_due");
	char span[OUT_SPAN];

	out_label("pending");
	printf("%lld", (long long)number_of(stats, "due_total"));
	if (oldest > now)
		printf(", the next in %s", out_span(oldest - now, span));
	putchar('\n');
	out_label("due now");
	printf("%lld", (long long)due_now);
	if (due_now > 0 && oldest >= 0)
		printf(", the oldest since %s", out_span(now - oldest, span));
	putchar('\n');
}

static void text_waiting(const redisReply *stats, int64_t now)
{
	int64_t next = number_of(stats, "next_deadline");
	char span[OUT_SPAN];

	out_label("waiting");
	printf("%lld", (long long)number_of(stats, "waiting"));
	if (next >= 0)
		printf(", the first until %s", out_from_now(next, now, span));
	putchar('\n');
}

static void text_batches(const redisReply *stats, const char *title, const char *batches,
			 const char *entries)
{
	out_label(title);
	count(number_of(stats, batches), "batch, ", "batches, ");
	count(number_of(stats, entries), "event\n", "events\n");
}

static void text_open(const redisReply *stats)
{
	size_t n;
	redisReply *const *row = rows_of(stats, "open", &n);

	text_batches(stats, "on the way", "open_batches", "open_entries");
	for (size_t i = 0; i < n; i++) {
		printf("  slot %-7lld", (long long)cli_answer_number(row[i], 0, 0));
		count(cli_answer_number(row[i], 1, 0), "batch, ", "batches, ");
		count(cli_answer_number(row[i], 2, 0), "event\n", "events\n");
	}
}

static void text_parked(const redisReply *stats)
{
	char span[OUT_SPAN];
	size_t n;
	redisReply *const *row = rows_of(stats, "parked", &n);

	text_batches(stats, "parked", "parked_batches", "parked_entries");
	for (size_t i = 0; i < n; i++) {
		fputs("  ", stdout);
		out_column(cli_answer(row[i], 0), 10);
		count(cli_answer_number(row[i], 1, 0), "batch, ", "batches, ");
		count(cli_answer_number(row[i], 2, 0), "event", "events");
		printf(", tried again in %s\n", out_span(cli_answer_number(row[i], 3, 0), span));
	}
}

static void text_instances(const redisReply *stats)
{
	char span[OUT_SPAN];
	size_t n, alive = 0;
	redisReply *const *row = rows_of(stats, "slots", &n);

	for (size_t i = 0; i < n; i++)
		alive += cli_answer_number(row[i], 2, 0) > 0;
	out_label("instances");
	printf("%zu alive%s\n", alive, alive ? "" : ": nothing is forwarded to Kafka");
	for (size_t i = 0; i < n; i++) {
		struct bytes instance = cli_answer(row[i], 3);
		int64_t left = cli_answer_number(row[i], 2, 0);

		printf("  slot %-7lld", (long long)cli_answer_number(row[i], 0, 0));
		out_text(stdout, instance, instance.n);
		printf(", epoch %lld, ", (long long)cli_answer_number(row[i], 1, 0));
		if (left > 0)
			printf("lease ends in %s\n", out_span(left, span));
		else
			puts("dead: its lease has ended");
	}
}

/* Says so when the counts that follow are of a part only. */
static void text_looked(const redisReply *stats)
{
	int64_t batches = number_of(stats, "batches"), looked = number_of(stats, "looked");

	if (looked < 0 || looked >= batches)
		return;
	out_label("batches");
	printf("%lld, of which %lld were looked into:\n", (long long)batches, (long long)looked);
}

static void text_expired(const redisReply *stats)
{
	out_label("expired");
	printf("%lld heard, %lld found, %lld inferred\n", (long long)number_of(stats, "heard"),
	       (long long)number_of(stats, "found"), (long long)number_of(stats, "inferred"));
}

static void text_scan(const redisReply *stats)
{
	int64_t now = number_of(stats, "now_us") / 1000;
	int64_t begun = number_of(stats, "scan_begun"), done = number_of(stats, "scan_done");
	int64_t looked = number_of(stats, "scan_looked"), keys = number_of(stats, "scan_keys");
	char span[OUT_SPAN];

	if (begun < 0)
		return;
	out_label("scan");
	if (done >= begun)
		printf("done %s ago, %lld keys\n", out_span(now - done, span), (long long)looked);
	else
		printf("%lld of about %lld keys since %s\n", (long long)looked,
		       (long long)keys, out_span(now - begun, span));
}

static void stats_text(const redisReply *stats)
{
	text_pending(stats, number_of(stats, "now_us") / 1000);
	text_waiting(stats, number_of(stats, "now_us") / 1000);
	text_looked(stats);
	text_open(stats);
	text_parked(stats);
	out_label("dead letters");
	printf("%lld\n", (long long)number_of(stats, "dead"));
	text_expired(stats);
	text_scan(stats);
	text_instances(stats);
}

enum status cli_stats(struct cli *cli)
{
	struct call c = { .n = 0 };
	struct err err;
	redisReply *stats;
	enum status status = cli_connect(cli);

	if (status != STATUS_DONE)
		return status;
	call_add(&c, BYTES("1"));
	call_add(&c, bytes_str(cli->prefix));
	stats = link_script(cli->link, "stats", &c, &err);
	call_clear(&c);
	if (!stats)
		return cli_failed_call(cli, &err);
	if (cli->json)
		stats_json(stats);
	else
		stats_text(stats);
	freeReplyObject(stats);
	return STATUS_DONE;
}
