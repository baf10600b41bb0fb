/* SPDX-License-Identifier: BSD-2-Clause */

/* match - the verb that tells which route takes a key, and what would result. */
#include "cli/cli.h"
#include "conf.h"
#include "core/event.h"
#include "core/json.h"
#include "core/route.h"

struct match {
	const struct cli *cli;
	struct bytes key;
	unsigned db;
	struct event event;
	struct route route;	/* as it is shown */
	enum route_mode mode;
	struct event_room room;
	struct message message;
};

enum found { FOUND_NOTHING, FOUND_NO_TOPIC, FOUND_ALL };

/* In structured mode the attributes stand inside of the value. */
static void show_attributes(struct match *m)
{
	m->route = *m->event.route;
	if (m->route.mode == ROUTE_STRUCTURED)
		m->route.mode = ROUTE_BINARY;
	m->mode = m->event.route->mode;
	m->event.route = &m->route;
}

static const char *mode_name(enum route_mode mode)
{
	static const char *const names[] = {
		[ROUTE_BINARY] = "binary", [ROUTE_STRUCTURED] = "structured", [ROUTE_RAW] = "raw",
	};

	return names[mode];
}

/* What an expiry now would be made of, or in `err` why it would wait. */
static enum found find(struct match *m, struct buf *room, struct err *err)
{
	const struct event_conf conf = {
		.source = bytes_str(m->cli->conf->source), .shard = BYTES("lapse:{0}"),
	};
	const struct record record = { .birth = 0 };
	const struct member member = { .kind = MEMBER_WATCHED, .db = m->db, .name = m->key };
	struct buf packed = { 0 };
	struct envelope envelope = { .due = 0, .certainty = CERTAINTY_FOUND };
	enum found found = FOUND_NOTHING;
	size_t at;

	if (!record_pack(&record, &packed, err))
		return FOUND_NOTHING;
	envelope.record = buf_view(&packed);
	buf_reset(room);
	member_write(&member, room);
	at = room->n;
	envelope_pack(&envelope, room);
	if (event_read(&m->event, m->cli->conf->routes, bytes_of(room->p, at),
		       bytes_skip(buf_view(room), at), err)) {
		show_attributes(m);
		found = event_build(&m->event, &conf, TRIGGER_TIMER, &m->room, &m->message, err) ?
			FOUND_ALL : FOUND_NO_TOPIC;
	}
	buf_clear(&packed);
	return found;
}

/* Those that depend on the moment are left out. */
static bool lasts(struct bytes header)
{
	return bytes_eq(header, BYTES("ce_type")) || bytes_eq(header, BYTES("ce_subject")) ||
	       bytes_eq(header, BYTES("content-type"));
}

static void tell_route(const struct match *m)
{
	out_name(stdout, m->key);
	printf(": route ");
	out_name(stdout, m->event.route->name);
	putchar('\n');
}

static void tell(const struct match *m)
{
	tell_route(m);
	out_label("topic");
	out_name(stdout, m->message.topic);
	putchar('\n');
	out_label("key");
	out_text(stdout, m->message.key, SIZE_MAX);
	putchar('\n');
	out_label("value");
	puts(m->event.route->copy ? "a copy" : "none");
	out_label("mode");
	puts(mode_name(m->mode));
	for (size_t i = 0; i < m->message.nheaders; i++) {
		if (!lasts(m->message.headers[i].name))
			continue;
		out_label(m->message.headers[i].name.p);
		out_text(stdout, m->message.headers[i].value, SIZE_MAX);
		putchar('\n');
	}
}

static void tell_json(const struct match *m, enum found found, const struct err *err)
{
	struct buf line = { 0 };
	struct json j;

	json_init(&j, &line);
	json_object(&j);
	out_json_bytes(&j, "key", m->key);
	json_key(&j, "db");
	json_uint(&j, m->db);
	if (found != FOUND_NOTHING)
		out_json_bytes(&j, "route", m->event.route->name);
	if (found == FOUND_NO_TOPIC)
		out_json_bytes(&j, "error", bytes_str(err->text));
	if (found == FOUND_ALL) {
		out_json_bytes(&j, "topic", m->message.topic);
		out_json_bytes(&j, "kafka_key", m->message.key);
		json_key(&j, "copy");
		json_bool(&j, m->event.route->copy);
		out_json_bytes(&j, "mode", bytes_str(mode_name(m->mode)));
	}
	for (size_t i = 0; found == FOUND_ALL && i < m->message.nheaders; i++)
		if (lasts(m->message.headers[i].name))
			out_json_bytes(&j, m->message.headers[i].name.p,
				       m->message.headers[i].value);
	json_object_end(&j);
	out_json_line(&line);
	buf_clear(&line);
}

/* False when no record would come of it. */
static bool match_one(struct match *m, struct buf *room)
{
	struct err err;
	enum found found = find(m, room, &err);

	if (m->cli->json) {
		tell_json(m, found, &err);
	} else if (found == FOUND_ALL) {
		tell(m);
	} else if (found == FOUND_NO_TOPIC) {
		tell_route(m);
		out_label("topic");
		fputs("none: ", stdout);
		out_text(stdout, bytes_str(err.text), SIZE_MAX);
		puts("; its events would wait in Redis");
	} else {
		out_name(stdout, m->key);
		printf(": no route\n");
	}
	return found == FOUND_ALL;
}

enum status cli_match(struct cli *cli)
{
	struct match m = { .cli = cli };
	struct buf room = { 0 };
	enum status status = STATUS_DONE;
	const struct conf_source source = { .path = args_value(&cli->args, "config"), .tool = true };
	uint64_t db;
	struct err err;

	if (!cli_number(cli, "db", RECORD_DB_MAX, 0, &db, &err))
		return cli_usage(cli, &err);
	if (!cli_load_conf(cli, &source))
		return STATUS_USAGE;
	m.db = (unsigned)db;
	if (routes_count(cli->conf->routes) == 0)
		cli_note("warning: there are no routes; -c FILE names a configuration with some");
	for (size_t i = 0; i < cli->args.n_words; i++) {
		if (!cli_name(cli, cli->args.word[i], "KEY", &m.key, &err)) {
			status = cli_usage(cli, &err);
			break;
		}
		if (!match_one(&m, &room))
			status = STATUS_REFUSED;
	}
	event_room_clear(&m.room);
	buf_clear(&room);
	return status;
}
