/* SPDX-License-Identifier: BSD-2-Clause */

/* install - the verb that loads the function library. */
#include <stdlib.h>

#include "cli/cli.h"

/* What INFO says of the server's version, or "unknown". */
static void server_version(struct link *l, char out[32])
{
	static const char name[] = "redis_version:";
	struct err ignored;
	redisReply *info = link_command(l, "INFO server", &ignored);
	const char *at = info && info->type == REDIS_REPLY_STRING ? strstr(info->str, name) : NULL;

	snprintf(out, 32, "unknown");
	if (at) {
		at += strlen(name);
		snprintf(out, 32, "%.*s", (int)strcspn(at, "\r\n"), at);
	}
	freeReplyObject(info);
}

static enum status no_functions(struct cli *cli)
{
	char version[32];
	int major;

	server_version(cli->link, version);
	major = atoi(version);
	if (major >= 7)
		return cli_fail(STATUS_FAILED, "%s has no command FUNCTION: it is of version %s, "
			"which knows it, so it was disabled there", link_where(cli->link),
			version);
	return cli_fail(STATUS_FAILED, "%s has no functions: they need Redis 7 or Valkey, and its "
		"version is %s; lapse and lapsed work without, and applications can run the same "
		"scripts with EVALSHA", link_where(cli->link), version);
}

static enum status load(struct cli *cli)
{
	char *library = script_library((int)cli->conf->database);
	struct call c = { .n = 0 };
	struct err err;
	redisReply *reply;

	call_add(&c, BYTES("FUNCTION"));
	call_add(&c, BYTES("LOAD"));
	call_add(&c, BYTES("REPLACE"));
	call_add(&c, bytes_str(library));
	reply = link_call(cli->link, &c, &err);
	call_clear(&c);
	free(library);
	if (reply) {
		freeReplyObject(reply);
		return STATUS_DONE;
	}
	if (strstr(link_reply_text(cli->link), "unknown command"))
		return no_functions(cli);
	return cli_failed_call(cli, &err);
}

static void tell_json(const struct cli *cli)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "result");
	json_cstr(&j, "installed");
	json_key(&j, "server");
	json_cstr(&j, link_where(cli->link));
	json_key(&j, "library");
	json_cstr(&j, "lapse");
	json_key(&j, "functions");
	json_array(&j);
	for (size_t i = 0; script_function(i); i++)
		json_cstr(&j, script_function(i));
	json_array_end(&j);
	json_key(&j, "prefix");
	json_cstr(&j, cli->prefix);
	json_key(&j, "database");
	json_int(&j, cli->conf->database);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void tell_text(const struct cli *cli)
{
	printf("installed library lapse at %s, for keys in database %lld:\n ",
		link_where(cli->link), (long long)cli->conf->database);
	for (size_t i = 0; script_function(i); i++)
		printf(" %s", script_function(i));
	printf("\nfor instance, an event in half an hour:\n"
		"  FCALL lapse_schedule 1 %s order-42 +1800000 order-timeouts 42 "
		"'{\"order\":42}'\n", cli->prefix);
}

enum status cli_install(struct cli *cli)
{
	enum status status = cli_connect(cli);

	if (status == STATUS_DONE)
		status = load(cli);
	if (status != STATUS_DONE)
		return status;
	if (cli->json)
		tell_json(cli);
	else
		tell_text(cli);
	return STATUS_DONE;
}
