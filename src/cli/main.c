/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * lapse - schedule, look at and take back what lapsed forwards to Kafka.
 *
 * The table of verbs is all that main knows of them.
 */
#include <signal.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "log.h"

#define OPTION_DB	{ "db", "N", "the database of the watched key (0)" }
#define OPTION_IN	{ "in", "DURATION", "due so long from now: 250ms, 10s, 30m, 2h, 7d; 0 is now" }
#define OPTION_AT	{ "at", "TIME", "due then: 2026-11-30T12:30:00Z, or milliseconds since " \
				"1970; the past is now" }
#define OPTION_LIMIT	{ "limit", "N", "list so many at most (100)" }

static const struct option schedule_options[] = {
	OPTION_IN,
	OPTION_AT,
	{ "topic", "TOPIC", "the Kafka topic" },
	{ "key", "KEY", "the Kafka key; none unless given" },
	{ "data", "TEXT", "the payload; - reads it from standard input" },
	{ "data-file", "FILE", "the payload is what FILE holds" },
	{ "type", "TYPE", "ce_type, instead of io.lapsed.scheduled" },
	{ "content-type", "TYPE", "content-type of the payload" },
	{ "header", "NAME=VALUE", "a header of the record; up to 32 of them", .many = true },
	{ "nx", NULL, "refuse, with status 3, if the id is pending, on its way or waiting" },
	{ "if-due-before", "TIME", "replace a pending event only if it is due before that time" },
	{ "ttr", "DURATION", "its time to run: delivered again unless it is finished by then" },
	{ "attempts", "N", "with --ttr: deliver it so often at most, then it is dead (5)" },
	{ "backoff", "FIRST:FACTOR:MOST", "with --ttr: the pause between attempts, as 1s:2:1m" },
	{ "file", "FILE", "many events instead: one JSON object a line; - is standard input" },
	{ NULL }
};

static const struct option cancel_options[] = {
	{ "file", "FILE", "many events instead: one id a line; - is standard input" },
	{ "null", NULL, "with --file: each id ends with a NUL and not with the line", .letter = '0' },
	{ NULL }
};

static const struct option touch_options[] = {
	{ "for", "DURATION", "so long from now, instead of its time to run" },
	{ NULL }
};

static const struct option fail_options[] = {
	{ "reason", "TEXT", "why; kept in its history" },
	{ "in", "DURATION", "the next attempt comes so long from now, instead of its backoff" },
	{ NULL }
};

static const struct option purge_options[] = {
	{ "topic", "TOPIC", "the topic" },
	{ "yes", NULL, "yes, all of it; needed" },
	{ NULL }
};

static const struct option reschedule_options[] = { OPTION_IN, OPTION_AT, { NULL } };

static const struct option setex_options[] = {
	OPTION_DB,
	{ "no-copy", NULL, "keep no copy of the value for the event" },
	{ NULL }
};

static const struct option del_options[] = { OPTION_DB, { NULL } };

static const struct option match_options[] = { OPTION_DB, { NULL } };

static const struct option show_options[] = {
	{ "watched", NULL, "the argument is a watched key, not an id" },
	OPTION_DB,
	{ NULL }
};

static const struct option list_options[] = {
	OPTION_LIMIT,
	{ "due-before", "TIME", "only what is due before that time" },
	{ NULL }
};

static const struct option watch_options[] = {
	{ "count", "N", "stop after so many records" },
	{ NULL }
};

static const struct option import_options[] = {
	{ "topic", "TOPIC", "the Kafka topic" },
	{ "unit", "UNIT", "what scores are: s or ms since 1970; the first score tells" },
	{ "id-prefix", "TEXT", "what goes before a member to make its id" },
	{ "payload-from", "KEY", "the payload is the string at this key, {} being the member" },
	{ "remove", NULL, "remove from the set what has become an event" },
	{ "yes", NULL, "do it; without, only say what would be done" },
	{ NULL }
};

static const struct option fsck_options[] = {
	{ "repair", NULL, "repair what can be repaired, by the rules of protocol.md" },
	{ NULL }
};

#define OPTION_TOPIC	{ "topic", "TOPIC", "those that were meant for that topic" }
#define OPTION_REASON	{ "reason", "TEXT", "those whose reason has TEXT in it" }

static const struct option dead_list_options[] = {
	OPTION_TOPIC,
	OPTION_REASON,
	OPTION_LIMIT,
	{ "summary", NULL, "count them by topic and reason" },
	{ NULL }
};

static const struct option dead_replay_options[] = {
	OPTION_TOPIC,
	OPTION_REASON,
	{ "all", NULL, "every dead letter there is" },
	{ NULL }
};

static const struct option dead_drop_options[] = {
	OPTION_TOPIC,
	OPTION_REASON,
	{ "all", NULL, "every dead letter there is" },
	{ "yes", NULL, "yes, for good; needed where they are not named" },
	{ NULL }
};

static const struct verb verbs[] = {
	{ "schedule", "ID", 0, 1,
	  "ID (--in DURATION | --at TIME) --topic TOPIC [--key KEY] [--data TEXT] [...] | --file FILE",
	  "store an event that goes to Kafka when it is due",
	  "Stores an event, in place of a pending one of the same id. It goes to Kafka when "
	  "it is due, by Redis' clock.",
	  schedule_options, cli_schedule },
	{ "reschedule", "ID", 1, 1, "ID (--in DURATION | --at TIME)",
	  "give a pending event another due time",
	  "Moves the due time of a pending event. One that is on its way to Kafka, and one "
	  "that does not exist, is left alone and gives status 3.",
	  reschedule_options, cli_reschedule },
	{ "cancel", "ID", 0, 1, "ID | --file FILE [-0]",
	  "take back a pending event",
	  "Takes back a pending event. One that is on its way to Kafka, and one that does not "
	  "exist, gives status 3. A job is taken back wherever it is.",
	  cancel_options, cli_cancel },
	{ "finish", "CE_ID", 1, ARGS_ANY, "CE_ID...",
	  "tell that a job is done",
	  "Ends jobs, each named by the ce_id that its consumer received. One that is not "
	  "the attempt that counts is refused, with status 3.",
	  NULL, cli_finish },
	{ "touch", "CE_ID", 1, ARGS_ANY, "CE_ID... [--for DURATION]",
	  "give a job more time",
	  "Moves the deadline of jobs: their time to run begins anew, or ends as --for says.",
	  touch_options, cli_touch },
	{ "fail", "CE_ID", 1, ARGS_ANY, "CE_ID... [--reason TEXT] [--in DURATION]",
	  "give a job back, to be delivered again",
	  "Ends an attempt: the job is delivered again after its backoff, or is dead when "
	  "that was its last attempt.",
	  fail_options, cli_fail_job },
	{ "purge", "", 0, 0, "--topic TOPIC --yes",
	  "take back all that is pending for a topic",
	  "Cancels every pending event for a topic, and its jobs wherever they are. Watched "
	  "keys, and events on their way to Kafka, stay.",
	  purge_options, cli_purge },
	{ "setex", "KEY DURATION VALUE", 3, 3, "KEY DURATION VALUE [--db N] [--no-copy]",
	  "set a watched key with a time to live, and announce its expiry",
	  "Does what SET KEY VALUE PX does, and tells lapsed of the coming expiry in the same "
	  "step. The key should match a route of lapsed's configuration, which names the "
	  "topic. VALUE is read from standard input when it is -.",
	  setex_options, cli_setex },
	{ "del", "KEY", 1, 1, "KEY [--db N]",
	  "delete a watched key, and take back its expiry",
	  "Deletes a watched key, and takes back its announced expiry in the same step. When "
	  "none was announced, or it is on its way to Kafka, the key is deleted all the same, "
	  "and the status is 3.",
	  del_options, cli_del },
	{ "match", "KEY", 1, ARGS_ANY, "KEY... [--db N]",
	  "tell which route takes a watched key, and what record would result",
	  "Tells for each key which route of -c FILE takes it, and the topic, Kafka key and "
	  "headers of the record that its expiry would make. Nothing is sent, and Redis is not "
	  "asked. A key that no route takes gives status 3.",
	  match_options, cli_match },
	{ "show", "ID", 1, 1, "ID [--watched [--db N]]",
	  "tell all about one event or watched key",
	  "Tells all that is known of an event: its state (scheduled, in-flight, parked), due "
	  "time, ce_id and record.",
	  show_options, cli_show },
	{ "list", "", 0, 0, "[--limit N] [--due-before TIME]",
	  "list what is pending, the next first",
	  "Lists the pending events and watched keys, the next one first. What is on its way "
	  "to Kafka is counted by lapse stats.",
	  list_options, cli_list },
	{ "stats", "", 0, 0, "",
	  "say how much is pending, on its way, parked and dead",
	  "One look at everything: what is pending and due, batches on their way to Kafka by "
	  "slot, topics that are parked, dead letters, and the live instances of lapsed.",
	  NULL, cli_stats },
	{ "fsck", "", 0, 0, "[--repair]",
	  "find structures in Redis that disagree, and repair them",
	  "Goes through all that lapsed keeps in Redis, in small steps, and tells what "
	  "disagrees: a due time without its record, a batch that nobody would find, and the "
	  "like. The status is 0 when all is well, or repaired, and 1 when something remains. "
	  "lapsed does the same by itself, slowly. Not for while keys are being restored one "
	  "by one.",
	  fsck_options, cli_fsck },
	{ "watch", "TOPIC", 0, ARGS_ANY, "[TOPIC...] [--count N]",
	  "follow topics in Kafka, and show live what falls due",
	  "Follows the topics of the routes in -c FILE, or those that are named, from now on, "
	  "and shows each record: when it was due, how late it was sent, attempt, trigger, "
	  "topic and id. Kafka is the one of FILE or of LAPSED_KAFKA_BOOTSTRAP_SERVERS; Redis "
	  "is not needed. No consumer group is used.",
	  watch_options, cli_watch },
	{ "import zset", "KEY", 1, 1, "KEY --topic TOPIC [--payload-from KEY] [--yes] [...]",
	  "make events of a sorted set that was polled until now",
	  "Makes an event of every member of a sorted set: due at its score, with the member "
	  "as id and, unless --payload-from names it, as payload. Without --yes it only says "
	  "what would be done. What is there already is left alone, so that a run that was cut "
	  "short is made again. The set stays as it is, but for --remove. Stop whoever polls "
	  "it before.",
	  import_options, cli_import },
	{ "dead list", "", 0, 0, "[--topic TOPIC] [--reason TEXT] [--limit N | --summary]",
	  "list the dead letters, the oldest first, or count them",
	  "Lists what could not be forwarded, with the reason, the oldest first; with "
	  "--summary, how many there are of each topic and reason. The topic of a watched "
	  "key is that of its route, where -c FILE names a configuration with routes, and a "
	  "hyphen otherwise.",
	  dead_list_options, cli_dead_list },
	{ "dead show", "CE_ID", 1, 1, "CE_ID",
	  "tell all about one dead letter",
	  "Tells the reason, the due time and the record of a dead letter.",
	  NULL, cli_dead_show },
	{ "dead replay", "CE_ID", 0, ARGS_ANY, "CE_ID... | [--topic TOPIC] [--reason TEXT] | --all",
	  "give dead letters a new life, due now",
	  "Gives dead letters a new life: the same id and record, due now, with a new ce_id. "
	  "One whose id is pending or on its way is left alone, and gives status 3.",
	  dead_replay_options, cli_dead_replay },
	{ "dead drop", "CE_ID", 0, ARGS_ANY, "CE_ID... | [--topic TOPIC] [--reason TEXT] --yes | --all --yes",
	  "throw dead letters away",
	  "Throws dead letters away, for good.",
	  dead_drop_options, cli_dead_drop },
	{ "install", "", 0, 0, "",
	  "load the function library, for FCALL from any language",
	  "Loads the function library lapse into the server (Redis 7 or Valkey), in place of "
	  "an earlier one, so that applications can call FCALL lapse_schedule and the like. "
	  "The library works on the database and is told the namespace by its callers. In a "
	  "cluster, do it once for every master.",
	  NULL, cli_install },
	{ "completion", "SHELL", 1, 1, "bash | zsh",
	  "print how a shell completes the command line of lapse",
	  "Prints a completion script, made from the verbs and options that this lapse has. "
	  "For bash: lapse completion bash >/etc/bash_completion.d/lapse, or source it. "
	  "For zsh: lapse completion zsh >_lapse, in a folder of fpath, or source it after "
	  "compinit.",
	  NULL, cli_completion },
	{ "version", "", 0, 0, "",
	  "say which version this is", "Says which version of lapse this is.",
	  NULL, cli_version },
	{ "help", "VERB", 0, 2, "[VERB]",
	  "say how a verb is used", "Says how a verb is used, or lists them all.",
	  NULL, cli_help },
	{ NULL }
};

static enum status wrong_usage(const struct args *args, const struct err *err)
{
	if (args->verb)
		cli_fail(STATUS_USAGE, "%s: %s", args->verb->name, err->text);
	else
		cli_fail(STATUS_USAGE, "%s", err->text);
	if (args->verb)
		help_usage(stderr, args->verb);
	else
		fputs("lapse help lists the verbs\n", stderr);
	return STATUS_USAGE;
}

static enum status run(struct cli *cli, int argc, char **argv)
{
	struct err err;

	if (argc < 2) {
		help_all(stderr, verbs);
		return STATUS_USAGE;
	}
	if (!args_parse(&cli->args, verbs, argc, argv, &err))
		return wrong_usage(&cli->args, &err);
	cli->json = args_flag(&cli->args, "json");
	if (args_flag(&cli->args, "version"))
		return cli_version(cli);
	if (args_flag(&cli->args, "help")) {
		help_for(&cli->args, verbs);
		return STATUS_DONE;
	}
	return cli->args.verb->run(cli);
}

static void clear(struct cli *cli)
{
	for (size_t i = 0; i < cli->n_rooms; i++) {
		buf_clear(cli->room[i]);
		free(cli->room[i]);
	}
	free(cli->room);
	free(cli->prefix);
	link_free(cli->link);
	conf_free(cli->conf);
	args_clear(&cli->args);
}

int main(int argc, char **argv)
{
	struct cli cli = { .verbs = verbs };
	enum status status;

	log_secure_stdio();
	signal(SIGPIPE, SIG_IGN);
	status = out_finish(run(&cli, argc, argv));
	clear(&cli);
	return (int)status;
}
