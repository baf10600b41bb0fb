/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/event.h"

#include <assert.h>

#include "core/json.h"

#define OCTETS		"application/octet-stream"
#define CLOUDEVENT	"application/cloudevents+json"

#define MS_PER_DAY	INT64_C(86400000)

static bool unpack(struct event *e, struct bytes member, struct bytes envelope,
		   struct err *err)
{
	return member_parse(member, &e->member, err) &&
		envelope_unpack(envelope, &e->envelope, err) &&
		record_unpack(e->envelope.record, &e->record, err);
}

/* False for a watched key that has no route. */
static bool find_route(struct event *e, const struct routes *routes)
{
	e->route = NULL;
	e->now = 0;
	for (size_t i = 0; i < GLOB_CAPTURES; i++)
		e->captures[i] = bytes_none;
	if (e->member.kind == MEMBER_SCHEDULED)
		return true;
	e->route = routes_match(routes, e->member.db, e->member.name, e->captures);
	return e->route;
}

bool event_read(struct event *e, const struct routes *routes,
		struct bytes member, struct bytes envelope, struct err *err)
{
	return unpack(e, member, envelope, err) &&
		(find_route(e, routes) ||
		 err_set(err, "no route matches the key any more"));
}

void event_room_clear(struct event_room *room)
{
	buf_clear(&room->topic);
	buf_clear(&room->text);
	buf_clear(&room->value);
}

struct bytes trigger_name(enum trigger t)
{
	switch (t) {
	case TRIGGER_EXPIRED:
		return BYTES("expired");
	case TRIGGER_WAKE:
		return BYTES("wake");
	case TRIGGER_TIMER:
		return BYTES("timer");
	case TRIGGER_SWEEP:
		return BYTES("sweep");
	case TRIGGER_RECOVERY:
		break;
	}
	return BYTES("recovery");
}

/* Writes `v` in exactly `n` digits. */
static void digits(char *to, unsigned v, int n)
{
	while (n-- > 0) {
		to[n] = (char)('0' + v % 10);
		v /= 10;
	}
}

/*
 * Days since 1970-01-01 as year, month and day: H. Hinnant, "chrono-Compatible
 * Low-Level Date Algorithms", civil_from_days().  Years begin in March there,
 * so that the leap day is the last of its year, and come in eras of 400.
 */
static void date(unsigned days, char *to)
{
	unsigned z = days + 719468;
	unsigned era = z / 146097;
	unsigned doe = z % 146097;
	unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	unsigned mp = (5 * doy + 2) / 153;
	unsigned month = mp < 10 ? mp + 3 : mp - 9;

	digits(to, yoe + era * 400 + (month <= 2), 4);
	digits(to + 5, month, 2);
	digits(to + 8, doy - (153 * mp + 2) / 5 + 1, 2);
}

void event_time(msec_t t, char out[EVENT_TIME_LEN])
{
	unsigned ms;

	if (t < 0)
		t = 0;
	if (t > RECORD_DUE_MAX)
		t = RECORD_DUE_MAX;
	ms = (unsigned)(t % MS_PER_DAY);
	memcpy(out, "0000-00-00T00:00:00.000Z", EVENT_TIME_LEN);
	date((unsigned)(t / MS_PER_DAY), out);
	digits(out + 11, ms / 3600000, 2);
	digits(out + 14, ms / 60000 % 60, 2);
	digits(out + 17, ms / 1000 % 60, 2);
	digits(out + 20, ms % 1000, 3);
}

/* The CloudEvents attributes, all in text. */
struct attributes {
	struct bytes id;
	struct bytes source;
	struct bytes type;
	struct bytes time;
	struct bytes subject;
	struct bytes content_type;
	struct bytes trigger;
	struct bytes certainty;
	struct bytes attempt;
	struct bytes shard;
	struct bytes deadline;	/* of a job; else bytes_none */
};

/* The first that is there and not empty. */
static struct bytes first_of(struct bytes a, struct bytes b, struct bytes c)
{
	if (a.n)
		return a;
	return b.n ? b : c;
}

static struct template_values values_of(const struct event *e, struct bytes id)
{
	return (struct template_values){
		e->member.name, id, e->member.db, e->captures,
	};
}

/* What the route says of `part`, for a header; empty if nothing. */
static struct bytes attribute_make(const struct event *e, enum route_template part,
				   struct bytes id, struct buf *text)
{
	struct template_values v = values_of(e, id);
	size_t from = text->n;

	if (!e->route)
		return bytes_none;
	if (!e->route->templates[part])
		return route_template_text(e->route, part);
	template_write_text(e->route->templates[part], &v, text);
	return buf_since(text, from);
}

/*
 * `text` has room for all that is added here, so that views of it stay valid.
 */
static void attributes_make(const struct event *e, const struct event_conf *conf,
			    enum trigger trigger, struct buf *text,
			    struct attributes *a)
{
	const struct record *r = &e->record;
	const struct route *route = e->route;
	size_t from = text->n;

	ce_id_write(&e->member, r->birth, r->attempt, text);
	a->id = buf_since(text, from);
	a->subject = attribute_make(e, ROUTE_SUBJECT, a->id, text);
	from = text->n;
	if (!a->subject.n)
		percent_encode(e->member.name, text);
	if (!a->subject.n)
		a->subject = buf_since(text, from);
	from = text->n;
	buf_uint(text, (uint64_t)r->attempt + 1);
	a->attempt = buf_since(text, from);
	event_time(e->envelope.due, text->p + text->n);
	a->time = bytes_of(text->p + text->n, EVENT_TIME_LEN);
	text->n += EVENT_TIME_LEN;
	a->deadline = bytes_none;
	if (e->record.job.ttr && e->now) {
		event_time(e->now + e->record.job.ttr, text->p + text->n);
		a->deadline = bytes_of(text->p + text->n, EVENT_TIME_LEN);
		text->n += EVENT_TIME_LEN;
	}
	a->source = conf->source;
	a->shard = conf->shard;
	a->trigger = trigger_name(trigger);
	a->certainty = certainty_name(e->envelope.certainty);
	a->type = first_of(r->type, attribute_make(e, ROUTE_TYPE, a->id, text),
			   e->member.kind == MEMBER_SCHEDULED ?
			   BYTES("io.lapsed.scheduled") : BYTES("io.lapsed.expired"));
	a->content_type = first_of(r->content_type,
				   route ? route->content_type : bytes_none,
				   BYTES(OCTETS));
}

static struct bytes key_make(const struct event *e, struct bytes id,
			     struct buf *text)
{
	struct template_values v = values_of(e, id);
	size_t from = text->n;

	if (e->record.key.p || e->member.kind == MEMBER_SCHEDULED)
		return e->record.key;
	if (!e->route)		/* a dead letter */
		return e->member.name;
	template_write(e->route->templates[ROUTE_KEY], &v, text);
	return buf_since(text, from);
}

/* All that attributes_make() and key_make() may add. */
static size_t text_bound(const struct event *e)
{
	struct template_values longest = values_of(e, bytes_of("", CE_ID_MAX));
	size_t n = CE_ID_MAX + 3 * e->member.name.n + BUF_DECIMAL_MAX + 2 * EVENT_TIME_LEN;

	for (int part = 0; e->route && part < ROUTE_TEMPLATES; part++)
		if (e->route->templates[part])
			n += 3 * template_bound(e->route->templates[part], &longest);
	return n;
}

static void header(struct message *m, struct bytes name, struct bytes value)
{
	assert(m->nheaders < EVENT_HEADERS_MAX);
	m->headers[m->nheaders++] = (struct header){ name, value };
}

static void headers_own(struct message *m, const struct record *r)
{
	assert(m->nheaders + r->nheaders <= EVENT_HEADERS_MAX);
	memcpy(m->headers + m->nheaders, r->headers,
	       r->nheaders * sizeof r->headers[0]);
	m->nheaders += r->nheaders;
}

/* A consumer has to tell it from an empty value. */
static bool lacks_copy(const struct event *e)
{
	if (!e->route || !e->route->copy || e->record.payload.p)
		return false;
	for (size_t i = 0; i < e->record.nheaders; i++)
		if (bytes_eq(e->record.headers[i].name, BYTES("ce_lapsevalue")))
			return false;
	return true;
}

static void binary(const struct attributes *a, struct message *m)
{
	header(m, BYTES("ce_specversion"), BYTES("1.0"));
	header(m, BYTES("ce_id"), a->id);
	header(m, BYTES("ce_source"), a->source);
	header(m, BYTES("ce_type"), a->type);
	header(m, BYTES("ce_time"), a->time);
	header(m, BYTES("ce_subject"), a->subject);
	header(m, BYTES("content-type"), a->content_type);
	header(m, BYTES("ce_lapsetrigger"), a->trigger);
	header(m, BYTES("ce_lapsecertainty"), a->certainty);
	header(m, BYTES("ce_lapseattempt"), a->attempt);
	header(m, BYTES("ce_lapseshard"), a->shard);
	if (a->deadline.p)
		header(m, BYTES("ce_lapsedeadline"), a->deadline);
}

static void raw(const struct attributes *a, struct message *m)
{
	header(m, BYTES("content-type"), a->content_type);
	header(m, BYTES("ce_id"), a->id);
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_word(struct bytes a, struct bytes word)
{
	if (a.n != word.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != word.p[i])
			return false;
	return true;
}

/* The media type without its parameters. */
static struct bytes media_type(struct bytes content_type)
{
	size_t n = 0;

	while (n < content_type.n && !memchr("; \t", content_type.p[n], 3))
		n++;
	return bytes_of(content_type.p, n);
}

/* application/json, text/json and anything that ends with +json */
static bool is_json(struct bytes type)
{
	static const struct bytes suffix = { "+json", 5 };

	return same_word(type, BYTES("application/json")) ||
		same_word(type, BYTES("text/json")) ||
		(type.n > suffix.n &&
		 same_word(bytes_skip(type, type.n - suffix.n), suffix));
}

static bool is_text(struct bytes type)
{
	return type.n > 5 && same_word(bytes_of(type.p, 5), BYTES("text/"));
}

static void data_write(struct json *j, struct bytes content_type,
		       struct bytes payload)
{
	struct bytes type = media_type(content_type);

	if (is_json(type) && json_valid(payload)) {
		json_key(j, "data");
		json_raw(j, payload);
	} else if (is_text(type) && !is_json(type) && json_utf8(payload)) {
		json_key(j, "data");
		json_string(j, payload);
	} else {
		json_key(j, "data_base64");
		json_base64(j, payload);
	}
}

static void attribute(struct json *j, const char *name, struct bytes value)
{
	json_key(j, name);
	json_string(j, value);
}

static void structured(const struct attributes *a, const struct record *r,
		       struct buf *out, struct message *m)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	attribute(&j, "specversion", BYTES("1.0"));
	attribute(&j, "id", a->id);
	attribute(&j, "source", a->source);
	attribute(&j, "type", a->type);
	attribute(&j, "time", a->time);
	attribute(&j, "subject", a->subject);
	attribute(&j, "datacontenttype", a->content_type);
	attribute(&j, "lapsetrigger", a->trigger);
	attribute(&j, "lapsecertainty", a->certainty);
	json_key(&j, "lapseattempt");
	json_raw(&j, a->attempt);
	attribute(&j, "lapseshard", a->shard);
	if (a->deadline.p)
		attribute(&j, "lapsedeadline", a->deadline);
	if (r->payload.p)
		data_write(&j, a->content_type, r->payload);
	json_object_end(&j);
	m->value = buf_view(out);
	header(m, BYTES("content-type"), BYTES(CLOUDEVENT));
}

/* All but the topic. */
static void build(const struct event *e, const struct event_conf *conf,
		  enum trigger trigger, struct event_room *room, struct message *m)
{
	struct attributes a;

	buf_reset(&room->text);
	buf_reset(&room->value);
	buf_reserve(&room->text, text_bound(e));
	attributes_make(e, conf, trigger, &room->text, &a);
	m->id = a.id;
	m->key = key_make(e, a.id, &room->text);
	m->value = e->record.payload.p ? e->record.payload : bytes_of("", 0);
	m->nheaders = 0;
	switch (e->route ? e->route->mode : conf->mode) {
	case ROUTE_BINARY:
		binary(&a, m);
		break;
	case ROUTE_STRUCTURED:
		structured(&a, &e->record, &room->value, m);
		break;
	case ROUTE_RAW:
		raw(&a, m);
		break;
	}
	headers_own(m, &e->record);
	if (lacks_copy(e))
		header(m, BYTES("ce_lapsevalue"), BYTES("not-copied"));
}

/* As the template has it, allowed or not. */
static struct bytes topic_of(const struct event *e, struct buf *text)
{
	const struct template *t = e->route ? e->route->templates[ROUTE_TOPIC] : NULL;
	struct template_values v = values_of(e, bytes_none);
	size_t from = text->n;

	if (!e->route)
		return e->record.topic;
	if (!t)
		return e->route->topic;
	template_write(t, &v, text);
	return buf_since(text, from);
}

#define WAITS	"route:"	/* no topic is called so */

bool event_topic(const struct event *e, struct buf *room, struct bytes *topic,
		 struct err *err)
{
	struct bytes made;

	buf_reset(room);
	made = topic_of(e, room);
	*topic = made;
	if (!e->route || !e->route->templates[ROUTE_TOPIC] || route_allows(e->route, made))
		return true;
	err_set(err, topic_valid(made) ? "%.*s is not among the topics of the route" :
		"\"%.*s\" is no topic", made.n > 64 ? 64 : (int)made.n, made.p ? made.p : "");
	buf_reset(room);
	buf_str(room, WAITS);
	buf_add(room, e->route->name);
	*topic = buf_view(room);
	return false;
}

bool event_waits(struct bytes topic)
{
	return bytes_starts(topic, BYTES(WAITS));
}

bool event_build(const struct event *e, const struct event_conf *conf,
		 enum trigger trigger, struct event_room *room,
		 struct message *m, struct err *err)
{
	if (!event_topic(e, &room->topic, &m->topic, err))
		return false;
	if (!topic_valid(m->topic))
		return err_set(err, m->topic.n ? "the topic is malformed" :
			       "the record has no topic");
	build(e, conf, trigger, room, m);
	return true;
}

/* Dead letters -------------------------------------------------------- */

void event_dead_id(struct bytes member, struct bytes envelope, struct buf *out)
{
	struct event e;
	bool enveloped = envelope_unpack(envelope, &e.envelope, NULL);

	if (!member_parse(member, &e.member, NULL)) {
		percent_encode(member, out);
		buf_str(out, "@0.0");
	} else if (enveloped && record_unpack(e.envelope.record, &e.record, NULL)) {
		ce_id_write(&e.member, e.record.birth, e.record.attempt, out);
	} else {
		/* No birth: the due time tells its lives apart. */
		ce_id_write(&e.member, enveloped ? (uint64_t)e.envelope.due * 1000 : 0, 0,
			    out);
	}
}

/* What there is of attributes goes into headers, whatever the mode. */
static void build_unreadable(const struct dead_letter *l, const struct event_conf *conf,
			     struct event_room *room, struct message *m)
{
	struct buf *text = &room->text;
	struct envelope env;
	struct member member;
	size_t from;

	buf_reset(text);
	buf_reserve(text, DEAD_ID_MAX(l->member.n) + 3 * l->member.n + EVENT_TIME_LEN);
	event_dead_id(l->member, l->envelope, text);
	m->id = buf_view(text);
	m->key = bytes_none;
	m->value = l->envelope.p ? l->envelope : bytes_of("", 0);
	m->nheaders = 0;
	header(m, BYTES("ce_specversion"), BYTES("1.0"));
	header(m, BYTES("ce_id"), m->id);
	header(m, BYTES("ce_source"), conf->source);
	header(m, BYTES("ce_type"), BYTES("io.lapsed.unreadable"));
	if (envelope_unpack(l->envelope, &env, NULL)) {
		m->value = env.record.p ? env.record : bytes_of("", 0);
		event_time(env.due, text->p + text->n);
		header(m, BYTES("ce_time"), bytes_of(text->p + text->n, EVENT_TIME_LEN));
		text->n += EVENT_TIME_LEN;
	}
	from = text->n;
	percent_encode(member_parse(l->member, &member, NULL) ? member.name : l->member, text);
	header(m, BYTES("ce_subject"), buf_since(text, from));
	header(m, BYTES("content-type"), BYTES(OCTETS));
	header(m, BYTES("ce_lapsetrigger"), trigger_name(l->trigger));
	header(m, BYTES("ce_lapseshard"), conf->shard);
}

void event_build_dead(const struct dead_letter *l, const struct routes *routes,
		      const struct event_conf *conf, struct event_room *room,
		      struct message *m)
{
	struct bytes meant = bytes_none;
	struct event e;
	struct err why;

	if (unpack(&e, l->member, l->envelope, NULL)) {
		find_route(&e, routes);
		(void)event_topic(&e, &room->topic, &meant, &why);
		build(&e, conf, l->trigger, room, m);
	} else {
		build_unreadable(l, conf, room, m);
	}
	header(m, BYTES("ce_lapsereason"), l->reason);
	if (meant.n)
		header(m, BYTES("ce_lapsetopic"), meant);
	m->topic = l->topic;
}
