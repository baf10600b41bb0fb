/* SPDX-License-Identifier: BSD-2-Clause */

/* Whatever a batch holds becomes a proper message or a reason to bury it. */

#include "core/event.h"

#include "core/json.h"
#include "fuzz.h"

static struct routes *routes_make(void)
{
	static const struct {
		const char *name, *pattern, *key;
		enum route_mode mode;
	} all[] = {
		{ "binary", "b*:*", "{1}-{2}-{db}", ROUTE_BINARY },
		{ "raw", "r*", "{id}", ROUTE_RAW },
		{ "structured", "*", "", ROUTE_STRUCTURED },
	};
	struct routes *rs = routes_new(BYTES("lapse:{"));
	struct err err;

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct bytes pattern = bytes_str(all[i].pattern);
		struct route r = {
			.name = bytes_str(all[i].name), .patterns = &pattern,
			.npatterns = 1, .topic = BYTES("t"), .mode = all[i].mode,
			.key = bytes_str(all[i].key),
		};

		FUZZ_CHECK(routes_add(rs, &r, &err));
	}
	return rs;
}

static void message_check(const struct event *e, enum route_mode scheduled,
			  const struct message *m)
{
	enum route_mode mode = e->route ? e->route->mode : scheduled;

	FUZZ_CHECK(topic_valid(m->topic));
	FUZZ_CHECK(m->value.p);
	FUZZ_CHECK(m->id.n && m->id.n <= CE_ID_MAX);
	FUZZ_CHECK(m->nheaders <= EVENT_HEADERS_MAX);
	for (size_t i = 0; i < m->nheaders; i++) {
		FUZZ_CHECK(m->headers[i].value.p);
		FUZZ_CHECK(m->headers[i].name.p[m->headers[i].name.n] == '\0');
	}
	if (mode == ROUTE_STRUCTURED)
		FUZZ_CHECK(json_valid(m->value));
	else
		FUZZ_CHECK(bytes_eq(m->value, e->record.payload));
}

/* Whatever it is, there is a message of it for a topic for dead letters. */
static void dead_check(struct bytes member, struct bytes envelope,
		       const struct routes *routes, const struct event_conf *conf)
{
	const struct dead_letter l = {
		member, envelope, TRIGGER_SWEEP, BYTES("why"), BYTES("dead"),
	};
	static struct event_room room;
	static struct message m;

	event_build_dead(&l, routes, conf, &room, &m);
	FUZZ_CHECK(bytes_eq(m.topic, l.topic));
	FUZZ_CHECK(m.value.p);
	FUZZ_CHECK(m.id.n && m.id.n <= DEAD_ID_MAX(member.n));
	FUZZ_CHECK(m.nheaders <= EVENT_HEADERS_MAX);
	for (size_t i = 0; i < m.nheaders; i++)
		FUZZ_CHECK(m.headers[i].value.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct event_conf conf = {
		.source = BYTES("/s"), .shard = BYTES("lapse:{0}"),
		.mode = (enum route_mode)(size % 3),
	};
	static struct routes *routes;
	static struct event_room room;
	static struct event event;
	static struct message message;
	struct bytes envelope = bytes_of((const char *)data, size);
	struct bytes member = fuzz_take(&envelope);
	struct err err;

	if (!routes)
		routes = routes_make();
	if (event_read(&event, routes, member, envelope, &err) &&
	    event_build(&event, &conf, TRIGGER_SWEEP, &room, &message, &err))
		message_check(&event, conf.mode, &message);
	dead_check(member, envelope, routes, &conf);
	return 0;
}
