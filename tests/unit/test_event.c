/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/event.h"

#include <time.h>

#include "core/json.h"
#include "unit.h"

#define DUE	INT64_C(1796041800000)	/* 2026-11-30T12:30:00.000Z */
#define TIME	"2026-11-30T12:30:00.000Z"

static const struct event_conf conf = {
	.source = { "/redis/main", 11 },
	.shard = { "lapse:{0}", 9 },
};

static struct routes *routes;
static struct event_room room;
static struct buf record, envelope;
static struct event event;
static struct message message;
static struct err err;

static void setup(void)
{
	routes = routes_new(BYTES("lapse:{"));
	room = (struct event_room){ { 0 }, { 0 }, { 0 } };
	record = envelope = (struct buf){ 0 };
	memset(&message, 0x5a, sizeof message);
	err.text[0] = '\0';
}

static void teardown(void)
{
	routes_free(routes);
	event_room_clear(&room);
	buf_clear(&record);
	buf_clear(&envelope);
}

static void route(const char *name, const char *pattern, struct route r)
{
	struct bytes p = bytes_str(pattern);

	r.name = bytes_str(name);
	r.patterns = &p;
	r.npatterns = 1;
	if (!r.topic.p)
		r.topic = BYTES("expired");
	ck_assert_msg(routes_add(routes, &r, &err), "%s", err.text);
}

static bool read_event(struct bytes member, enum certainty certainty, struct record r)
{
	struct envelope e = { DUE, certainty, bytes_none };

	if (!r.birth)
		r.birth = 1764505800000000;
	buf_reset(&record);
	buf_reset(&envelope);
	ck_assert(record_pack(&r, &record, &err));
	e.record = buf_view(&record);
	envelope_pack(&e, &envelope);
	return event_read(&event, routes, member, buf_view(&envelope), &err);
}

static void build(struct bytes member, enum certainty certainty, struct record r)
{
	ck_assert_msg(read_event(member, certainty, r), "%s", err.text);
	ck_assert_msg(event_build(&event, &conf, TRIGGER_TIMER, &room, &message, &err),
		      "%s", err.text);
}

#define ck_assert_header(i, expected_name, expected_value) do { \
	const struct header *h_ = &message.headers[i]; \
	ck_assert_uint_lt(i, message.nheaders); \
	ck_assert_bytes(h_->name, bytes_str(expected_name)); \
	ck_assert_bytes(h_->value, bytes_str(expected_value)); \
	ck_assert_uint_eq(strlen(h_->name.p), h_->name.n); \
} while (0)

START_TEST(a_scheduled_event)
{
	build(BYTES("s:order 42"), CERTAINTY_SCHEDULED, (struct record){
		.topic = BYTES("orders"), .payload = BYTES("{}"), .attempt = 2,
		.nheaders = 2, .headers = {
			{ BYTES("traceparent"), BYTES("00-1") },
			{ BYTES("x"), BYTES("") },
		},
	});
	ck_assert_text(message.topic, "orders");
	ck_assert_ptr_null(message.key.p);
	ck_assert_text(message.value, "{}");
	ck_assert_text(message.id, "s:order%2042@1764505800000000.2");
	ck_assert_uint_eq(message.nheaders, 13);
	ck_assert_header(0, "ce_specversion", "1.0");
	ck_assert_header(1, "ce_id", "s:order%2042@1764505800000000.2");
	ck_assert_header(2, "ce_source", "/redis/main");
	ck_assert_header(3, "ce_type", "io.lapsed.scheduled");
	ck_assert_header(4, "ce_time", TIME);
	ck_assert_header(5, "ce_subject", "order%2042");
	ck_assert_header(6, "content-type", "application/octet-stream");
	ck_assert_header(7, "ce_lapsetrigger", "timer");
	ck_assert_header(8, "ce_lapsecertainty", "scheduled");
	ck_assert_header(9, "ce_lapseattempt", "3");
	ck_assert_header(10, "ce_lapseshard", "lapse:{0}");
	ck_assert_header(11, "traceparent", "00-1");
	ck_assert_header(12, "x", "");
}
END_TEST

START_TEST(a_job_tells_its_deadline)
{
	struct record r = {
		.topic = BYTES("jobs"), .payload = BYTES("{}"), .attempt = 1,
		.job = { .ttr = 30000, .attempts = 5 },
	};
	char expected[EVENT_TIME_LEN + 1] = "";

	ck_assert(read_event(BYTES("s:job"), CERTAINTY_SCHEDULED, r));
	event.now = DUE + 500;
	ck_assert(event_build(&event, &conf, TRIGGER_TIMER, &room, &message, &err));
	ck_assert_uint_eq(message.nheaders, 12);
	ck_assert_header(9, "ce_lapseattempt", "2");
	event_time(DUE + 30500, expected);
	ck_assert_bytes(message.headers[11].name, BYTES("ce_lapsedeadline"));
	ck_assert_bytes(message.headers[11].value, bytes_str(expected));
}
END_TEST

START_TEST(a_watched_key)
{
	route("r", "order:*:*", (struct route){ .key = BYTES("{2}-{db}") });
	build(BYTES("k:3:order:pay:42"), CERTAINTY_FOUND,
	      (struct record){ .payload = BYTES("copy") });
	ck_assert_text(message.topic, "expired");
	ck_assert_text(message.key, "42-3");
	ck_assert_text(message.value, "copy");
	ck_assert_header(1, "ce_id", "k:3:order:pay:42@1764505800000000.0");
	ck_assert_header(3, "ce_type", "io.lapsed.expired");
	ck_assert_header(5, "ce_subject", "order:pay:42");
	ck_assert_header(8, "ce_lapsecertainty", "found");
	ck_assert_header(9, "ce_lapseattempt", "1");
}
END_TEST

START_TEST(without_a_payload_the_value_is_empty_and_not_null)
{
	route("r", "*", (struct route){ 0 });
	build(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ 0 });
	ck_assert_text(message.value, "");
	build(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ .payload = BYTES("") });
	ck_assert_text(message.value, "");
}
END_TEST

START_TEST(the_key_is_the_records_then_the_routes)
{
	route("r", "*", (struct route){ 0 });
	build(BYTES("k:0:a\0b"), CERTAINTY_HEARD, (struct record){ 0 });
	ck_assert_text(message.key, "a\0b");
	build(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ .key = BYTES("own") });
	ck_assert_text(message.key, "own");
	build(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ .key = BYTES("") });
	ck_assert_text(message.key, "");
	build(BYTES("s:a"), CERTAINTY_SCHEDULED,
	      (struct record){ .topic = BYTES("t"), .key = BYTES("own") });
	ck_assert_text(message.key, "own");
}
END_TEST

START_TEST(a_key_of_nothing_is_empty_and_not_null)
{
	route("r", "a*", (struct route){ .key = BYTES("{1}") });
	build(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ 0 });
	ck_assert_text(message.key, "");
}
END_TEST

START_TEST(an_id_may_be_the_key)
{
	route("r", "*", (struct route){ .key = BYTES("{id}{id}{id}{key}") });
	build(BYTES("k:0:\xff"), CERTAINTY_HEARD, (struct record){ .birth = 1 });
	ck_assert_text(message.key, "k:0:%FF@1.0k:0:%FF@1.0k:0:%FF@1.0\xff");
}
END_TEST

START_TEST(types_are_the_records_then_the_routes)
{
	route("typed", "t*", (struct route){
		.type = BYTES("com.shop.late"), .content_type = BYTES("text/plain") });
	build(BYTES("k:0:t"), CERTAINTY_HEARD, (struct record){ 0 });
	ck_assert_header(3, "ce_type", "com.shop.late");
	ck_assert_header(6, "content-type", "text/plain");
	build(BYTES("k:0:t"), CERTAINTY_HEARD, (struct record){
		.type = BYTES("own"), .content_type = BYTES("a/b") });
	ck_assert_header(3, "ce_type", "own");
	ck_assert_header(6, "content-type", "a/b");
	build(BYTES("k:0:t"), CERTAINTY_HEARD, (struct record){
		.type = BYTES(""), .content_type = BYTES("") });
	ck_assert_header(3, "ce_type", "com.shop.late");
	ck_assert_header(6, "content-type", "text/plain");
	build(BYTES("s:t"), CERTAINTY_SCHEDULED, (struct record){
		.topic = BYTES("t"), .type = BYTES("own"), .content_type = BYTES("a/b") });
	ck_assert_header(3, "ce_type", "own");
	ck_assert_header(6, "content-type", "a/b");
}
END_TEST

START_TEST(an_expired_life_looks_like_its_key)
{
	route("r", "a*", (struct route){ 0 });
	build(BYTES("e:77:2:a1"), CERTAINTY_INFERRED, (struct record){ .birth = 77 });
	ck_assert_header(1, "ce_id", "k:2:a1@77.0");
	ck_assert_header(5, "ce_subject", "a1");
	ck_assert_header(8, "ce_lapsecertainty", "inferred");
	ck_assert_text(message.key, "a1");
}
END_TEST

START_TEST(each_trigger_has_a_name)
{
	static const char *const names[] = {
		"expired", "wake", "timer", "sweep", "recovery",
	};

	route("r", "*", (struct route){ 0 });
	ck_assert(read_event(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ 0 }));
	for (int t = TRIGGER_EXPIRED; t <= TRIGGER_RECOVERY; t++) {
		ck_assert(event_build(&event, &conf, (enum trigger)t, &room, &message,
				      &err));
		ck_assert_header(7, "ce_lapsetrigger", names[t]);
	}
}
END_TEST

START_TEST(scheduled_events_have_a_mode_of_their_own)
{
	struct event_conf other = conf;

	route("r", "*", (struct route){ 0 });
	ck_assert(read_event(BYTES("s:a"), CERTAINTY_SCHEDULED,
			     (struct record){ .topic = BYTES("t") }));
	other.mode = ROUTE_RAW;
	ck_assert(event_build(&event, &other, TRIGGER_WAKE, &room, &message, &err));
	ck_assert_uint_eq(message.nheaders, 2);
	other.mode = ROUTE_STRUCTURED;
	ck_assert(event_build(&event, &other, TRIGGER_WAKE, &room, &message, &err));
	ck_assert_uint_eq(message.nheaders, 1);
	ck_assert(json_valid(message.value));
	ck_assert(read_event(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ 0 }));
	ck_assert(event_build(&event, &other, TRIGGER_WAKE, &room, &message, &err));
	ck_assert_uint_eq(message.nheaders, 11);
}
END_TEST

START_TEST(a_raw_message)
{
	route("r", "*", (struct route){ .mode = ROUTE_RAW });
	build(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){
		.birth = 5, .payload = BYTES("p"), .nheaders = 1,
		.headers = { { BYTES("own"), BYTES("v") } },
	});
	ck_assert_text(message.value, "p");
	ck_assert_uint_eq(message.nheaders, 3);
	ck_assert_header(0, "content-type", "application/octet-stream");
	ck_assert_header(1, "ce_id", "k:0:a@5.0");
	ck_assert_header(2, "own", "v");
}
END_TEST

#define ATTRIBUTES(type) \
	"{\"specversion\":\"1.0\",\"id\":\"k:0:a@5.0\"," \
	"\"source\":\"/redis/main\",\"type\":\"io.lapsed.expired\"," \
	"\"time\":\"" TIME "\",\"subject\":\"a\"," \
	"\"datacontenttype\":\"" type "\",\"lapsetrigger\":\"timer\"," \
	"\"lapsecertainty\":\"heard\",\"lapseattempt\":1," \
	"\"lapseshard\":\"lapse:{0}\""

static const struct {
	struct bytes content_type;
	struct bytes payload;
	const char *value;
} structured[] = {
	{ { "application/json", 16 }, { "{\"a\": 1}", 8 },
	  ATTRIBUTES("application/json") ",\"data\":{\"a\": 1}}" },
	{ { "Application/JSON; charset=utf-8", 31 }, { "null", 4 },
	  ATTRIBUTES("Application/JSON; charset=utf-8") ",\"data\":null}" },
	{ { "application/vnd.x+json", 22 }, { " [1]\n", 5 },
	  ATTRIBUTES("application/vnd.x+json") ",\"data\": [1]\n}" },
	{ { "text/json", 9 }, { "1", 1 }, ATTRIBUTES("text/json") ",\"data\":1}" },
	{ { "application/json", 16 }, { "{a:1}", 5 },
	  ATTRIBUTES("application/json") ",\"data_base64\":\"e2E6MX0=\"}" },
	{ { "text/json", 9 }, { "a", 1 },
	  ATTRIBUTES("text/json") ",\"data_base64\":\"YQ==\"}" },
	{ { "application/json", 16 }, { "", 0 },
	  ATTRIBUTES("application/json") ",\"data_base64\":\"\"}" },
	{ { "text/plain", 10 }, { "say \"\xc3\xa9\"\n", 9 },
	  ATTRIBUTES("text/plain") ",\"data\":\"say \\\"\xc3\xa9\\\"\\n\"}" },
	{ { "TEXT/html;x", 11 }, { "", 0 },
	  ATTRIBUTES("TEXT/html;x") ",\"data\":\"\"}" },
	{ { "text/plain", 10 }, { "\xff", 1 },
	  ATTRIBUTES("text/plain") ",\"data_base64\":\"/w==\"}" },
	{ { "text/", 5 }, { "a", 1 },
	  ATTRIBUTES("text/") ",\"data_base64\":\"YQ==\"}" },
	{ { "+json", 5 }, { "1", 1 }, ATTRIBUTES("+json") ",\"data_base64\":\"MQ==\"}" },
	{ { NULL, 0 }, { "{}", 2 },
	  ATTRIBUTES("application/octet-stream") ",\"data_base64\":\"e30=\"}" },
	{ { NULL, 0 }, { NULL, 0 }, ATTRIBUTES("application/octet-stream") "}" },
};

START_TEST(a_structured_message)
{
	route("r", "*", (struct route){ .mode = ROUTE_STRUCTURED });
	build(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){
		.birth = 5, .payload = structured[_i].payload,
		.content_type = structured[_i].content_type, .nheaders = 1,
		.headers = { { BYTES("own"), BYTES("v") } },
	});
	ck_assert_bytes(message.value, bytes_str(structured[_i].value));
	ck_assert(json_valid(message.value));
	ck_assert_uint_eq(message.nheaders, 2);
	ck_assert_header(0, "content-type", "application/cloudevents+json");
	ck_assert_header(1, "own", "v");
	ck_assert_text(message.id, "k:0:a@5.0");
	ck_assert_text(message.key, "a");
}
END_TEST

START_TEST(hostile_bytes_stay_valid_json)
{
	char name[255], member[260] = "k:0:";

	for (int i = 0; i < 255; i++)
		name[i] = (char)(i + 1);
	memcpy(member + 4, name, sizeof name);
	route("r", "*", (struct route){ .mode = ROUTE_STRUCTURED });
	build(bytes_of(member, 4 + sizeof name), CERTAINTY_HEARD, (struct record){
		.type = bytes_of(name, sizeof name), .payload = BYTES("\0"),
		.content_type = BYTES("text/\"\\\xff"),
	});
	ck_assert(json_valid(message.value));
	ck_assert_bytes(message.key, bytes_of(name, sizeof name));
}
END_TEST

static const struct {
	struct bytes member;
	struct bytes envelope;
	const char *error;
} unreadable[] = {
	{ { "x:a", 3 }, { "", 0 }, "the member is none of" },
	{ { "s:a", 3 }, { "", 0 }, "the envelope ends" },
	{ { "s:a", 3 }, { "\1\0\0\0\0\0\0\0\0-", 10 }, "there is no record" },
	{ { "k:0:a", 5 }, { "\1\0\0\0\0\0\0\0\0h", 10 }, "there is no record" },
	{ { "s:a", 3 }, { "\1\0\0\0\0\0\0\0\0-\2", 11 }, "the record has version 2" },
};

START_TEST(what_cannot_be_read_says_why)
{
	ck_assert(!event_read(&event, routes, unreadable[_i].member,
			      unreadable[_i].envelope, &err));
	ck_assert_has(err.text, unreadable[_i].error);
}
END_TEST

START_TEST(a_key_without_a_route_is_refused)
{
	route("r", "b*", (struct route){ 0 });
	ck_assert(!read_event(BYTES("k:0:a"), CERTAINTY_HEARD, (struct record){ 0 }));
	ck_assert_has(err.text, "no route matches");
	ck_assert(!read_event(BYTES("e:1:0:a"), CERTAINTY_HEARD, (struct record){ 0 }));
	ck_assert(read_event(BYTES("s:a"), CERTAINTY_SCHEDULED, (struct record){ 0 }));
}
END_TEST

START_TEST(a_topic_that_kafka_refuses_is_refused)
{
	ck_assert(read_event(BYTES("s:a"), CERTAINTY_SCHEDULED, (struct record){ 0 }));
	ck_assert(!event_build(&event, &conf, TRIGGER_WAKE, &room, &message, &err));
	ck_assert_has(err.text, "no topic");
	ck_assert(read_event(BYTES("s:a"), CERTAINTY_SCHEDULED,
			     (struct record){ .topic = BYTES("a\0b") }));
	ck_assert(!event_build(&event, &conf, TRIGGER_WAKE, &room, &message, &err));
	ck_assert_has(err.text, "malformed");
}
END_TEST

START_TEST(a_topic_is_made_of_the_key)
{
	const struct bytes topics[] = { BYTES("orders-*") };
	struct bytes topic;

	route("r", "*:*", (struct route){ .topic = BYTES("{1}-{db}"), .topics = topics,
					  .ntopics = 1 });
	build(BYTES("k:3:orders:1"), CERTAINTY_HEARD, (struct record){ 0 });
	ck_assert_bytes(message.topic, BYTES("orders-3"));
	ck_assert(event_topic(&event, &room.topic, &topic, &err));
	ck_assert_bytes(topic, BYTES("orders-3"));
	ck_assert(!event_waits(topic));
}
END_TEST

START_TEST(without_a_topic_that_is_allowed_it_waits)
{
	static const struct {
		struct bytes member;
		const char *why;
	} bad[] = {
		{ BYTES("k:0:users:1"), "users-0 is not among" },
		{ BYTES("k:0:orders- x:1"), "is no topic" },
		{ BYTES("k:0:orders-\0:1"), "is no topic" },
		{ BYTES("k:0::1"), "-0 is not among" },
	};
	const struct bytes topics[] = { BYTES("orders-*") };
	struct bytes topic;

	route("r", "*:*", (struct route){ .topic = BYTES("{1}-{db}"), .topics = topics,
					  .ntopics = 1 });
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		ck_assert(read_event(bad[i].member, CERTAINTY_HEARD, (struct record){ 0 }));
		ck_assert(!event_topic(&event, &room.topic, &topic, &err));
		ck_assert_bytes(topic, BYTES("route:r"));
		ck_assert(event_waits(topic));
		ck_assert_has(err.text, bad[i].why);
		ck_assert(!event_build(&event, &conf, TRIGGER_WAKE, &room, &message, &err));
		ck_assert_has(err.text, bad[i].why);
	}
}
END_TEST

START_TEST(type_and_subject_are_made_of_the_key_as_text)
{
	route("r", "*:*", (struct route){ .type = BYTES("x.{1}"), .subject = BYTES("{db}/{2}/{id}") });
	build(BYTES("k:3:a%:\xff"), CERTAINTY_HEARD, (struct record){ .birth = 5 });
	ck_assert_header(3, "ce_type", "x.a%25");
	ck_assert_header(5, "ce_subject", "3/%FF/k:3:a%25:%FF@5.0");
	build(BYTES("k:3::x"), CERTAINTY_HEARD, (struct record){ .type = BYTES("own"), .birth = 5 });
	ck_assert_header(3, "ce_type", "own");
}
END_TEST

START_TEST(the_largest_event_fits)
{
	static char member[5 + RECORD_NAME_MAX], text[1025];
	struct record r = { .birth = UINT64_MAX, .attempt = 65535 };
	const char *room_was;

	memset(member, 0xff, sizeof member);
	memcpy(member, "k:9:", 4);
	for (size_t i = 0; i + 4 < sizeof text; i += 4)
		memcpy(text + i, "{id}", 4);
	route("r", "*", (struct route){
		.key = bytes_str(text), .subject = BYTES("{1}{key}{id}"), .type = BYTES("{1}{1}"),
	});
	r.nheaders = RECORD_HEADERS_MAX;
	for (size_t i = 0; i < RECORD_HEADERS_MAX; i++)
		r.headers[i] = (struct header){ BYTES("n"), BYTES("v") };
	build(bytes_of(member, 4 + RECORD_NAME_MAX), CERTAINTY_HEARD, r);
	ck_assert_uint_eq(message.nheaders, EVENT_HEADERS_MAX - 3);
	ck_assert_uint_eq(message.key.n, 256 * message.id.n);
	ck_assert(bytes_starts(message.key, message.id));
	room_was = room.text.p;
	for (int i = 0; i < 3; i++)
		build(bytes_of(member, 4 + RECORD_NAME_MAX), CERTAINTY_HEARD, r);
	ck_assert_ptr_eq(room.text.p, room_was);
}
END_TEST

/* What read_event() has put together last, as a dead letter. */
static void build_dead(struct bytes member)
{
	const struct dead_letter l = {
		member, buf_view(&envelope), TRIGGER_SWEEP, BYTES("too large"),
		BYTES("dead"),
	};
	struct buf id = { 0 };

	memset(&message, 0x5a, sizeof message);
	event_build_dead(&l, routes, &conf, &room, &message);
	ck_assert_text(message.topic, "dead");
	event_dead_id(member, buf_view(&envelope), &id);
	ck_assert_bytes(message.id, buf_view(&id));
	ck_assert_ptr_nonnull(message.value.p);
	buf_clear(&id);
}

START_TEST(a_dead_letter_is_the_event_and_its_reason)
{
	ck_assert(read_event(BYTES("s:a"), CERTAINTY_SCHEDULED, (struct record){
		.birth = 5, .topic = BYTES("orders"), .key = BYTES("k"),
		.payload = BYTES("p"), .type = BYTES("own"), .nheaders = 1,
		.headers = { { BYTES("h"), BYTES("v") } },
	}));
	build_dead(BYTES("s:a"));
	ck_assert_text(message.key, "k");
	ck_assert_text(message.value, "p");
	ck_assert_uint_eq(message.nheaders, 14);
	ck_assert_header(1, "ce_id", "s:a@5.0");
	ck_assert_header(3, "ce_type", "own");
	ck_assert_header(7, "ce_lapsetrigger", "sweep");
	ck_assert_header(11, "h", "v");
	ck_assert_header(12, "ce_lapsereason", "too large");
	ck_assert_header(13, "ce_lapsetopic", "orders");
}
END_TEST

START_TEST(a_dead_letter_keeps_the_layout_of_its_route)
{
	route("raw", "r*", (struct route){ .mode = ROUTE_RAW });
	route("structured", "s*", (struct route){ .mode = ROUTE_STRUCTURED });
	ck_assert(read_event(BYTES("k:0:r"), CERTAINTY_HEARD, (struct record){ 0 }));
	build_dead(BYTES("k:0:r"));
	ck_assert_uint_eq(message.nheaders, 4);
	ck_assert_header(2, "ce_lapsereason", "too large");
	ck_assert_header(3, "ce_lapsetopic", "expired");
	ck_assert(read_event(BYTES("k:0:s"), CERTAINTY_HEARD, (struct record){ 0 }));
	build_dead(BYTES("k:0:s"));
	ck_assert_uint_eq(message.nheaders, 3);
	ck_assert(json_valid(message.value));
}
END_TEST

START_TEST(a_dead_letter_needs_neither_route_nor_topic)
{
	ck_assert(!read_event(BYTES("k:0:order:1"), CERTAINTY_FOUND,
			      (struct record){ .payload = BYTES("copy") }));
	build_dead(BYTES("k:0:order:1"));
	ck_assert_text(message.key, "order:1");
	ck_assert_text(message.value, "copy");
	ck_assert_uint_eq(message.nheaders, 12);
	ck_assert_header(3, "ce_type", "io.lapsed.expired");
	ck_assert_header(11, "ce_lapsereason", "too large");
	ck_assert(read_event(BYTES("s:a"), CERTAINTY_SCHEDULED, (struct record){ 0 }));
	build_dead(BYTES("s:a"));
	ck_assert_header(3, "ce_type", "io.lapsed.scheduled");
	ck_assert_uint_eq(message.nheaders, 12);
}
END_TEST

static void unreadable_record(struct bytes bytes)
{
	const struct envelope e = { DUE, CERTAINTY_SCHEDULED, bytes };

	buf_reset(&envelope);
	envelope_pack(&e, &envelope);
}

START_TEST(what_cannot_be_read_is_a_dead_letter_of_its_bytes)
{
	unreadable_record(BYTES("gar\0bage"));
	build_dead(BYTES("s:a b"));
	ck_assert_ptr_null(message.key.p);
	ck_assert_text(message.value, "gar\0bage");
	ck_assert_text(message.id, "s:a%20b@1796041800000000.0");
	ck_assert_header(3, "ce_type", "io.lapsed.unreadable");
	ck_assert_header(4, "ce_time", TIME);
	ck_assert_header(5, "ce_subject", "a%20b");
	ck_assert_header(9, "ce_lapsereason", "too large");
	ck_assert_uint_eq(message.nheaders, 10);
	unreadable_record(BYTES(""));
	build_dead(BYTES("s:a"));
	ck_assert_text(message.value, "");
}
END_TEST

START_TEST(nor_need_the_envelope_or_the_member)
{
	buf_reset(&envelope);
	buf_str(&envelope, "\2??");
	build_dead(BYTES("s:a"));
	ck_assert_text(message.value, "\2??");
	ck_assert_text(message.id, "s:a@0.0");
	ck_assert_header(4, "ce_subject", "a");
	unreadable_record(BYTES("x"));
	build_dead(BYTES("\xff"));
	ck_assert_text(message.id, "%FF@0.0");
	build_dead(BYTES(""));
	ck_assert_text(message.id, "@0.0");
	ck_assert_header(5, "ce_subject", "");
}
END_TEST

START_TEST(the_largest_dead_letter_fits)
{
	static char member[2 + RECORD_NAME_MAX];
	struct record r = { .topic = BYTES("t"), .nheaders = RECORD_HEADERS_MAX };

	memset(member, 0xff, sizeof member);
	memcpy(member, "s:", 2);
	for (size_t i = 0; i < RECORD_HEADERS_MAX; i++)
		r.headers[i] = (struct header){ BYTES("n"), BYTES("v") };
	ck_assert(read_event(bytes_of(member, sizeof member), CERTAINTY_SCHEDULED, r));
	build_dead(bytes_of(member, sizeof member));
	ck_assert_uint_eq(message.nheaders, EVENT_HEADERS_MAX - 1);
	unreadable_record(BYTES("x"));
	build_dead(bytes_of(member, sizeof member));
	ck_assert(bytes_starts(message.id, BYTES("s:%FF%FF")));
}
END_TEST

static const struct {
	msec_t t;
	const char *text;
} times[] = {
	{ 0, "1970-01-01T00:00:00.000Z" },
	{ 1, "1970-01-01T00:00:00.001Z" },
	{ 86399999, "1970-01-01T23:59:59.999Z" },
	{ 86400000, "1970-01-02T00:00:00.000Z" },
	{ INT64_C(951782400000), "2000-02-29T00:00:00.000Z" },
	{ INT64_C(951868800000), "2000-03-01T00:00:00.000Z" },
	{ INT64_C(4107542400000), "2100-03-01T00:00:00.000Z" },
	{ INT64_C(4107542399999), "2100-02-28T23:59:59.999Z" },
	{ DUE, TIME },
	{ RECORD_DUE_MAX, "9999-12-31T23:59:59.999Z" },
	{ -1, "1970-01-01T00:00:00.000Z" },
	{ INT64_MAX, "9999-12-31T23:59:59.999Z" },
	{ INT64_MIN, "1970-01-01T00:00:00.000Z" },
};

START_TEST(times_are_those_of_the_rfc)
{
	char text[EVENT_TIME_LEN];

	event_time(times[_i].t, text);
	ck_assert_bytes(bytes_of(text, sizeof text), bytes_str(times[_i].text));
}
END_TEST

START_TEST(times_agree_with_the_c_library)
{
	for (msec_t t = 0; t < RECORD_DUE_MAX; t += INT64_C(86400000) * 97 + 12345678) {
		char got[EVENT_TIME_LEN], expected[64];
		time_t seconds = (time_t)(t / 1000);
		struct tm tm;
		size_t n;

		gmtime_r(&seconds, &tm);
		n = strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(expected + n, sizeof expected - n, ".%03dZ", (int)(t % 1000));
		event_time(t, got);
		ck_assert_bytes(bytes_of(got, sizeof got), bytes_str(expected));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("event");
	TCase *tc = tcase_create("event");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_scheduled_event);
	tcase_add_test(tc, a_job_tells_its_deadline);
	tcase_add_test(tc, a_watched_key);
	tcase_add_test(tc, without_a_payload_the_value_is_empty_and_not_null);
	tcase_add_test(tc, the_key_is_the_records_then_the_routes);
	tcase_add_test(tc, a_key_of_nothing_is_empty_and_not_null);
	tcase_add_test(tc, an_id_may_be_the_key);
	tcase_add_test(tc, types_are_the_records_then_the_routes);
	tcase_add_test(tc, an_expired_life_looks_like_its_key);
	tcase_add_test(tc, each_trigger_has_a_name);
	tcase_add_test(tc, scheduled_events_have_a_mode_of_their_own);
	tcase_add_test(tc, a_raw_message);
	tcase_add_loop_test(tc, a_structured_message, 0, (int)COUNT_OF(structured));
	tcase_add_test(tc, hostile_bytes_stay_valid_json);
	tcase_add_loop_test(tc, what_cannot_be_read_says_why, 0,
			    (int)COUNT_OF(unreadable));
	tcase_add_test(tc, a_key_without_a_route_is_refused);
	tcase_add_test(tc, a_topic_that_kafka_refuses_is_refused);
	tcase_add_test(tc, a_topic_is_made_of_the_key);
	tcase_add_test(tc, without_a_topic_that_is_allowed_it_waits);
	tcase_add_test(tc, type_and_subject_are_made_of_the_key_as_text);
	tcase_add_test(tc, the_largest_event_fits);
	tcase_add_test(tc, a_dead_letter_is_the_event_and_its_reason);
	tcase_add_test(tc, a_dead_letter_keeps_the_layout_of_its_route);
	tcase_add_test(tc, a_dead_letter_needs_neither_route_nor_topic);
	tcase_add_test(tc, what_cannot_be_read_is_a_dead_letter_of_its_bytes);
	tcase_add_test(tc, nor_need_the_envelope_or_the_member);
	tcase_add_test(tc, the_largest_dead_letter_fits);
	tcase_add_loop_test(tc, times_are_those_of_the_rfc, 0, (int)COUNT_OF(times));
	tcase_add_test(tc, times_agree_with_the_c_library);
	suite_add_tcase(suite, tc);
	return unit_run(suite);
}
