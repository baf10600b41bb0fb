/* SPDX-License-Identifier: BSD-2-Clause */

#include "cli/arrival.h"

#include <stddef.h>
#include <string.h>

#include "cli/value.h"
#include "core/event.h"

/* Called so in JSON, and with "ce_" before it in a header. */
static const struct attribute {
	const char *header;
	size_t at;
} attributes[] = {
	{ "ce_id", offsetof(struct arrival, ce_id) },
	{ "ce_time", offsetof(struct arrival, time) },
	{ "ce_subject", offsetof(struct arrival, subject) },
	{ "ce_lapseattempt", offsetof(struct arrival, attempt) },
	{ "ce_lapsetrigger", offsetof(struct arrival, trigger) },
};

#define N_ATTRIBUTES	(sizeof(attributes) / sizeof(attributes[0]))

static struct bytes *attribute_of(struct arrival *a, size_t i)
{
	return (struct bytes *)((char *)a + attributes[i].at);
}

static struct bytes header(const rd_kafka_message_t *m, const char *name)
{
	rd_kafka_headers_t *headers;
	const void *value;
	size_t n;

	if (rd_kafka_message_headers((rd_kafka_message_t *)m, &headers) ||
	    rd_kafka_header_get_last(headers, name, &value, &n))
		return bytes_none;
	return bytes_of(value, n);
}

static void take_member(struct arrival *a, const struct line *l)
{
	size_t began = a->room.n;

	if (bytes_eq(l->name, BYTES("data")))
		a->payload = l->value;
	else if (bytes_eq(l->name, BYTES("data_base64")) && line_base64(l->value, &a->room))
		a->payload = buf_since(&a->room, began);
	for (size_t i = 0; i < N_ATTRIBUTES; i++)
		if (bytes_eq(l->name, bytes_str(attributes[i].header + strlen("ce_"))))
			*attribute_of(a, i) = l->value;
}

/* What is no JSON stays a payload without attributes. */
static void read_structured(struct arrival *a)
{
	struct err ignored;

	if (!line_open(&a->line, a->payload, &ignored))
		return;
	a->payload = BYTES("");
	buf_reset(&a->room);
	buf_reserve(&a->room, (size_t)(a->line.end - a->line.at));
	while (line_next(&a->line))
		take_member(a, &a->line);
}

static msec_t due_of(struct bytes time)
{
	char text[EVENT_TIME_LEN + 1];
	struct err ignored;
	msec_t due;

	if (time.n != EVENT_TIME_LEN)
		return -1;
	memcpy(text, time.p, time.n);
	text[time.n] = '\0';
	return value_time(text, &due, &ignored) ? due : -1;
}

void arrival_read(struct arrival *a, const rd_kafka_message_t *m)
{
	a->payload = bytes_of(m->payload, m->len);
	for (size_t i = 0; i < N_ATTRIBUTES; i++)
		*attribute_of(a, i) = header(m, attributes[i].header);
	if (bytes_starts(header(m, "content-type"), BYTES("application/cloudevents+json")))
		read_structured(a);
	a->due = due_of(a->time);
}

void arrival_clear(struct arrival *a)
{
	line_clear(&a->line);
	buf_clear(&a->room);
}
