/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/entry.h"

#include <stdio.h>

void entry_read(struct entry *e, struct bytes member, struct bytes record)
{
	e->raw = member;
	e->named = member_parse(member, &e->member, &e->why);
	if (record.n == 0)
		e->state = ENTRY_BARE;
	else if (record_unpack(record, &e->record, &e->why))
		e->state = ENTRY_READABLE;
	else
		e->state = ENTRY_UNREADABLE;
}

const char *entry_kind(const struct entry *e, char out[ENTRY_KIND])
{
	if (!e->named)
		snprintf(out, ENTRY_KIND, "?");
	else if (e->member.kind == MEMBER_SCHEDULED)
		snprintf(out, ENTRY_KIND, "event");
	else
		snprintf(out, ENTRY_KIND, "%s/%u",
			e->member.kind == MEMBER_WATCHED ? "key" : "expired", e->member.db);
	return out;
}

struct bytes entry_name(const struct entry *e)
{
	return e->named ? e->member.name : e->raw;
}

struct bytes entry_topic(const struct entry *e)
{
	if (e->state == ENTRY_UNREADABLE)
		return BYTES("(unreadable)");
	if (e->state == ENTRY_BARE || !e->record.topic.p)
		return BYTES("-");
	return e->record.topic;
}

static void json_member(struct json *j, const struct entry *e)
{
	if (!e->named) {
		out_json_bytes(j, "member", e->raw);
		return;
	}
	out_json_bytes(j, e->member.kind == MEMBER_SCHEDULED ? "id" : "key", e->member.name);
	if (e->member.kind == MEMBER_SCHEDULED)
		return;
	json_key(j, "db");
	json_uint(j, e->member.db);
	json_key(j, "expired");
	json_bool(j, e->member.kind == MEMBER_EXPIRED);
}

static void json_if_there(struct json *j, const char *name, struct bytes value)
{
	if (value.p)
		out_json_bytes(j, name, value);
}

static void json_headers(struct json *j, const struct record *r)
{
	json_key(j, "headers");
	json_object(j);
	for (size_t i = 0; i < r->nheaders; i++)
		out_json_bytes(j, r->headers[i].name.p, r->headers[i].value);
	json_object_end(j);
}

static void json_record(struct json *j, const struct record *r, bool all)
{
	json_key(j, "attempt");
	json_uint(j, r->attempt);
	json_key(j, "birth_us");
	json_uint(j, r->birth);
	json_if_there(j, "topic", r->topic);
	json_if_there(j, "kafka_key", r->key);
	json_if_there(j, "type", r->type);
	json_if_there(j, "content_type", r->content_type);
	json_key(j, "bytes");
	json_uint(j, r->payload.n);
	if (!all)
		return;
	json_headers(j, r);
	json_if_there(j, "payload", r->payload);
}

void entry_json(struct json *j, const struct entry *e, bool all)
{
	json_member(j, e);
	if (e->state == ENTRY_READABLE)
		json_record(j, &e->record, all);
	if (e->state != ENTRY_UNREADABLE)
		return;
	json_key(j, "unreadable");
	json_cstr(j, e->why.text);
}

static void text_line(const char *label, struct bytes value)
{
	if (!value.p)
		return;
	out_label(label);
	out_text(stdout, value, OUT_SHOWN);
	putchar('\n');
}

static void text_name(const char *label, struct bytes name)
{
	if (!name.p)
		return;
	out_label(label);
	out_name(stdout, name);
	putchar('\n');
}

static void text_record(const struct record *r)
{
	char time[OUT_TIME];

	out_label("attempt");
	printf("%u\n", r->attempt);
	text_line("stored", bytes_str(out_time((msec_t)(r->birth / 1000), time)));
	text_line("topic", r->topic);
	text_name("kafka key", r->key);
	text_line("type", r->type);
	text_line("content type", r->content_type);
	for (size_t i = 0; i < r->nheaders; i++) {
		out_label("header");
		out_text(stdout, r->headers[i].name, OUT_SHOWN);
		fputs(": ", stdout);
		out_text(stdout, r->headers[i].value, OUT_SHOWN);
		putchar('\n');
	}
	text_line("payload", r->payload);
}

void entry_text(const struct entry *e)
{
	if (!e->named) {
		text_name("member", e->raw);
	} else if (e->member.kind == MEMBER_SCHEDULED) {
		text_name("id", e->member.name);
	} else {
		text_name("watched key", e->member.name);
		out_label("database");
		printf("%u\n", e->member.db);
	}
	if (e->state == ENTRY_READABLE)
		text_record(&e->record);
	else if (e->state == ENTRY_UNREADABLE)
		text_line("unreadable", bytes_str(e->why.text));
}
