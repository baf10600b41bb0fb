/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/record.h"

#include <inttypes.h>

#define VERSION		1
#define RECORD_HEAD	11
#define ENVELOPE_HEAD	10
#define FIELD_MAX	0xffff
#define JOB_SIZE	19
#define ATTEMPT_HEAD	11

static uint16_t load16(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return (uint16_t)(u[0] << 8 | u[1]);
}

static uint32_t load32(const char *p)
{
	return (uint32_t)load16(p) << 16 | load16(p + 2);
}

static uint64_t load64(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* Whether there are `head` bytes and the first of them is our version. */
static bool head_check(struct bytes from, size_t head, const char *what,
		       struct err *err)
{
	if (from.n && from.p[0] != VERSION)
		return err_set(err, "the %s has version %d, this program reads %d",
			       what, (unsigned char)from.p[0], VERSION);
	if (from.n < head)
		return err_set(err, "the %s ends in its head (%zu of %zu bytes)",
			       what, from.n, head);
	return true;
}

/* Takes a length and that many bytes from the start of `rest`. */
static bool sized_take(struct bytes *rest, struct bytes *out)
{
	size_t n;

	if (rest->n < 2)
		return false;
	n = load16(rest->p);
	if (rest->n - 2 < n)
		return false;
	*out = bytes_of(rest->p + 2, n);
	*rest = bytes_skip(*rest, 2 + n);
	return true;
}

static bool header_add(struct record *r, struct bytes field, struct err *err)
{
	const char *nul = field.n ? memchr(field.p, '\0', field.n) : NULL;
	size_t n;

	if (r->nheaders == RECORD_HEADERS_MAX)
		return err_set(err, "the record has more than %d headers",
			       RECORD_HEADERS_MAX);
	if (!nul || nul == field.p)
		return err_set(err, "header %zu of the record has no name",
			       r->nheaders + 1);
	n = (size_t)(nul - field.p);
	r->headers[r->nheaders++] = (struct header){
		bytes_of(field.p, n), bytes_skip(field, n + 1),
	};
	return true;
}

static bool job_set(struct record *r, struct bytes field, struct err *err)
{
	struct job *job = &r->job;
	const char *p = field.p;

	if (job->ttr)
		return err_set(err, "the record has field 'j' twice");
	if (field.n != JOB_SIZE)
		return err_set(err, "the terms of the job have %zu bytes and not %d",
			       field.n, JOB_SIZE);
	*job = (struct job){
		.ttr = load32(p), .attempts = load16(p + 4), .first = load32(p + 6),
		.factor = load32(p + 10), .most = load32(p + 14), .spent = p[18] == 1,
	};
	if (!job->ttr || !job->attempts)
		return err_set(err, "the job has no time to run, or no attempts");
	return true;
}

static bool attempt_add(struct record *r, struct bytes field, struct err *err)
{
	uint64_t ended;

	if (r->nhistory == RECORD_HISTORY_MAX)
		return err_set(err, "the record has more than %d attempts behind it",
			       RECORD_HISTORY_MAX);
	if (field.n < ATTEMPT_HEAD)
		return err_set(err, "attempt %zu of the record is cut", r->nhistory + 1);
	ended = load64(field.p + 2);
	if (ended > RECORD_DUE_MAX)
		return err_set(err, "attempt %zu of the record ended after the year 9999",
			       r->nhistory + 1);
	r->history[r->nhistory++] = (struct attempt){
		load16(field.p), (msec_t)ended, field.p[10] == 'f',
		bytes_skip(field, ATTEMPT_HEAD),
	};
	return true;
}

static bool end_set(struct record *r, struct bytes field, struct err *err)
{
	if (r->ended)
		return err_set(err, "the record has field 'e' twice");
	if (field.n != 1 || !memchr("hfi", field.p[0], 3))
		return err_set(err, "the record has an end of an unknown kind");
	r->ended = field.p[0];
	return true;
}

static bool field_set(struct record *r, char tag, struct bytes field,
		      struct err *err)
{
	struct bytes *to;

	switch (tag) {
	case 'e':
		return end_set(r, field, err);
	case 'j':
		return job_set(r, field, err);
	case 'a':
		return attempt_add(r, field, err);
	case 't':
		to = &r->topic;
		break;
	case 'k':
		to = &r->key;
		break;
	case 'c':
		to = &r->content_type;
		break;
	case 'y':
		to = &r->type;
		break;
	case 'h':
		return header_add(r, field, err);
	default:
		return err_set(err, "the record has a field of unknown tag 0x%02x",
			       (unsigned char)tag);
	}
	if (to->p)
		return err_set(err, "the record has field '%c' twice", tag);
	*to = field;
	return true;
}

bool record_unpack(struct bytes from, struct record *r, struct err *err)
{
	struct bytes rest, field;

	if (!from.n)
		return err_set(err, "there is no record");
	if (!head_check(from, RECORD_HEAD, "record", err))
		return false;
	r->birth = load64(from.p + 1);
	r->attempt = load16(from.p + 9);
	r->topic = r->key = r->content_type = r->type = r->payload = bytes_none;
	r->ended = 0;
	r->job = (struct job){ 0 };
	r->nhistory = r->nheaders = 0;
	rest = bytes_skip(from, RECORD_HEAD);
	while (rest.n) {
		char tag = rest.p[0];

		rest = bytes_skip(rest, 1);
		if (tag == 'p') {
			r->payload = rest;
			return true;
		}
		if (!sized_take(&rest, &field))
			return err_set(err, "field 0x%02x of the record reaches"
				       " past its end", (unsigned char)tag);
		if (!field_set(r, tag, field, err))
			return false;
	}
	return true;
}

bool envelope_unpack(struct bytes from, struct envelope *e, struct err *err)
{
	uint64_t due;

	if (!head_check(from, ENVELOPE_HEAD, "envelope", err))
		return false;
	due = load64(from.p + 1);
	if (due > RECORD_DUE_MAX)
		return err_set(err, "the envelope is due after the year 9999 (%"
			       PRIu64 " ms)", due);
	if (!memchr("-hfi", from.p[9], 4))
		return err_set(err, "the envelope has unknown certainty 0x%02x",
			       (unsigned char)from.p[9]);
	e->due = (msec_t)due;
	e->certainty = (enum certainty)from.p[9];
	e->record = bytes_skip(from, ENVELOPE_HEAD);
	return true;
}

bool obituary_unpack(struct bytes from, struct obituary *o, struct err *err)
{
	struct bytes rest;

	if (!head_check(from, 1, "obituary", err))
		return false;
	rest = bytes_skip(from, 1);
	if (!sized_take(&rest, &o->reason) || !sized_take(&rest, &o->member))
		return err_set(err, "the obituary reaches past its end");
	o->envelope = rest;
	return true;
}

static bool fits(struct bytes field, const char *what, struct err *err)
{
	if (field.n > FIELD_MAX)
		return err_set(err, "%s has %zu bytes, at most %d have room",
			       what, field.n, FIELD_MAX);
	return true;
}

static bool job_fits(const struct record *r, struct err *err)
{
	if (r->job.ttr > UINT32_MAX || r->job.first > UINT32_MAX ||
	    r->job.most > UINT32_MAX || r->job.attempts > FIELD_MAX)
		return err_set(err, "the terms of the job have no room");
	if (r->nhistory > RECORD_HISTORY_MAX)
		return err_set(err, "there are %zu attempts, at most %d have room",
			       r->nhistory, RECORD_HISTORY_MAX);
	for (size_t i = 0; i < r->nhistory; i++)
		if (ATTEMPT_HEAD + r->history[i].reason.n > FIELD_MAX)
			return err_set(err, "the reason of attempt %zu has no room", i + 1);
	return true;
}

static bool record_fits(const struct record *r, struct err *err)
{
	if (!job_fits(r, err))
		return false;
	if (r->attempt > FIELD_MAX)
		return err_set(err, "attempt %u has no room", r->attempt);
	if (r->nheaders > RECORD_HEADERS_MAX)
		return err_set(err, "there are %zu headers, at most %d have room",
			       r->nheaders, RECORD_HEADERS_MAX);
	if (!fits(r->topic, "the topic", err) || !fits(r->key, "the key", err) ||
	    !fits(r->content_type, "the content type", err) ||
	    !fits(r->type, "the type", err))
		return false;
	for (size_t i = 0; i < r->nheaders; i++) {
		const struct header *h = &r->headers[i];

		if (!h->name.n || memchr(h->name.p, '\0', h->name.n))
			return err_set(err, "header %zu has no proper name", i + 1);
		if (h->name.n + 1 + h->value.n > FIELD_MAX)
			return err_set(err, "header %zu has no room", i + 1);
	}
	return true;
}

static void field_add(struct buf *out, char tag, struct bytes field)
{
	if (!field.p)
		return;
	buf_byte(out, tag);
	buf_be16(out, (uint16_t)field.n);
	buf_add(out, field);
}

static void be32(struct buf *out, uint32_t v)
{
	buf_be16(out, (uint16_t)(v >> 16));
	buf_be16(out, (uint16_t)v);
}

static void job_add(struct buf *out, const struct job *job)
{
	buf_byte(out, 'j');
	buf_be16(out, JOB_SIZE);
	be32(out, (uint32_t)job->ttr);
	buf_be16(out, (uint16_t)job->attempts);
	be32(out, (uint32_t)job->first);
	be32(out, job->factor);
	be32(out, (uint32_t)job->most);
	buf_byte(out, job->spent ? 1 : 0);
}

static void attempt_write(struct buf *out, const struct attempt *a)
{
	buf_byte(out, 'a');
	buf_be16(out, (uint16_t)(ATTEMPT_HEAD + a->reason.n));
	buf_be16(out, (uint16_t)a->number);
	buf_be64(out, (uint64_t)a->ended);
	buf_byte(out, a->failed ? 'f' : 't');
	buf_add(out, a->reason);
}

bool record_pack(const struct record *r, struct buf *out, struct err *err)
{
	if (!record_fits(r, err))
		return false;
	buf_byte(out, VERSION);
	buf_be64(out, r->birth);
	buf_be16(out, (uint16_t)r->attempt);
	if (r->ended)
		field_add(out, 'e', bytes_of(&r->ended, 1));
	if (r->job.ttr)
		job_add(out, &r->job);
	for (size_t i = 0; i < r->nhistory; i++)
		attempt_write(out, &r->history[i]);
	field_add(out, 't', r->topic);
	field_add(out, 'k', r->key);
	field_add(out, 'c', r->content_type);
	field_add(out, 'y', r->type);
	for (size_t i = 0; i < r->nheaders; i++) {
		const struct header *h = &r->headers[i];

		buf_byte(out, 'h');
		buf_be16(out, (uint16_t)(h->name.n + 1 + h->value.n));
		buf_add(out, h->name);
		buf_byte(out, '\0');
		buf_add(out, h->value);
	}
	if (r->payload.p) {
		buf_byte(out, 'p');
		buf_add(out, r->payload);
	}
	return true;
}

void envelope_pack(const struct envelope *e, struct buf *out)
{
	buf_byte(out, VERSION);
	buf_be64(out, (uint64_t)e->due);
	buf_byte(out, (char)e->certainty);
	buf_add(out, e->record);
}

bool obituary_pack(const struct obituary *o, struct buf *out, struct err *err)
{
	if (!fits(o->reason, "the reason", err) ||
	    !fits(o->member, "the member", err))
		return false;
	buf_byte(out, VERSION);
	buf_be16(out, (uint16_t)o->reason.n);
	buf_add(out, o->reason);
	buf_be16(out, (uint16_t)o->member.n);
	buf_add(out, o->member);
	buf_add(out, o->envelope);
	return true;
}

/*
 * Takes a plain decimal of at most `max` from the start of `rest`; false when
 * there is none, when it is larger, or when it has needless zeros.
 */
static bool decimal_take(struct bytes *rest, uint64_t max, uint64_t *v)
{
	size_t n = 0;

	*v = 0;
	while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9') {
		unsigned digit = (unsigned)(rest->p[n] - '0');

		if (digit > max || *v > (max - digit) / 10)
			return false;
		*v = *v * 10 + digit;
		n++;
	}
	if (!n || (n > 1 && rest->p[0] == '0'))
		return false;
	*rest = bytes_skip(*rest, n);
	return true;
}

static bool byte_take(struct bytes *rest, char c)
{
	if (!rest->n || rest->p[0] != c)
		return false;
	*rest = bytes_skip(*rest, 1);
	return true;
}

bool member_parse(struct bytes from, struct member *m, struct err *err)
{
	struct bytes rest;
	uint64_t db = 0;

	bool aside;

	if (from.n < 2 || !memchr("skep", from.p[0], 4) || from.p[1] != ':')
		return err_set(err, "the member is none of s:, k:, e: and p:");
	aside = from.p[0] == 'p';
	m->kind = aside ? MEMBER_SCHEDULED : (enum member_kind)from.p[0];
	m->birth = 0;
	rest = bytes_skip(from, 2);
	if ((aside || m->kind == MEMBER_EXPIRED) &&
	    !(decimal_take(&rest, UINT64_MAX, &m->birth) && byte_take(&rest, ':')))
		return err_set(err, "the member has no birth");
	if (aside && !m->birth)
		return err_set(err, "the member's birth is 0");
	if (m->kind != MEMBER_SCHEDULED &&
	    !(decimal_take(&rest, RECORD_DB_MAX, &db) && byte_take(&rest, ':')))
		return err_set(err, "the member has no database");
	if (!rest.n || rest.n > RECORD_NAME_MAX)
		return err_set(err, "the member names %zu bytes, 1 to %d are allowed",
			       rest.n, RECORD_NAME_MAX);
	m->db = (unsigned)db;
	m->name = rest;
	return true;
}

void member_write(const struct member *m, struct buf *out)
{
	bool aside = m->kind == MEMBER_SCHEDULED && m->birth;

	buf_byte(out, aside ? 'p' : (char)m->kind);
	buf_byte(out, ':');
	if (aside || m->kind == MEMBER_EXPIRED) {
		buf_uint(out, m->birth);
		buf_byte(out, ':');
	}
	if (m->kind != MEMBER_SCHEDULED) {
		buf_uint(out, m->db);
		buf_byte(out, ':');
	}
	buf_add(out, m->name);
}

struct bytes certainty_name(enum certainty c)
{
	switch (c) {
	case CERTAINTY_HEARD:
		return BYTES("heard");
	case CERTAINTY_FOUND:
		return BYTES("found");
	case CERTAINTY_INFERRED:
		return BYTES("inferred");
	case CERTAINTY_SCHEDULED:
		break;
	}
	return BYTES("scheduled");
}

static bool is_plain(char c)
{
	return c >= '!' && c <= '~' && c != '%';
}

void percent_encode(struct bytes from, struct buf *out)
{
	static const char hex[] = "0123456789ABCDEF";
	char *to;

	buf_reserve(out, 3 * from.n);
	to = out->p + out->n;
	for (size_t i = 0; i < from.n; i++) {
		unsigned char c = (unsigned char)from.p[i];

		if (is_plain(from.p[i])) {
			*to++ = from.p[i];
			continue;
		}
		*to++ = '%';
		*to++ = hex[c >> 4];
		*to++ = hex[c & 15];
	}
	out->n = (size_t)(to - out->p);
}

void ce_id_write(const struct member *m, uint64_t birth, unsigned attempt,
		 struct buf *out)
{
	buf_reserve(out, CE_ID_MAX);
	buf_byte(out, m->kind == MEMBER_SCHEDULED ? 's' : 'k');
	buf_byte(out, ':');
	if (m->kind != MEMBER_SCHEDULED) {
		buf_uint(out, m->db);
		buf_byte(out, ':');
	}
	percent_encode(m->name, out);
	buf_byte(out, '@');
	buf_uint(out, birth);
	buf_byte(out, '.');
	buf_uint(out, attempt);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Only what percent_encode() writes; false for anything else. */
static bool percent_decode(struct bytes from, struct buf *out)
{
	for (size_t i = 0; i < from.n; i++) {
		int high, low;

		if (from.p[i] != '%') {
			if (!is_plain(from.p[i]))
				return false;
			buf_byte(out, from.p[i]);
			continue;
		}
		if (from.n - i < 3)
			return false;
		high = hex_digit(from.p[i + 1]);
		low = hex_digit(from.p[i + 2]);
		if (high < 0 || low < 0 || is_plain((char)(high << 4 | low)))
			return false;
		buf_byte(out, (char)(high << 4 | low));
		i += 2;
	}
	return true;
}

static bool token_parse(struct bytes token, struct ce_id *id)
{
	uint64_t attempt;

	if (!decimal_take(&token, UINT64_MAX, &id->birth) ||
	    !byte_take(&token, '.') ||
	    !decimal_take(&token, FIELD_MAX, &attempt) || token.n)
		return false;
	id->attempt = (unsigned)attempt;
	return true;
}

bool ce_id_parse(struct bytes text, struct buf *room, struct ce_id *id,
		 struct err *err)
{
	size_t at = text.n;

	if (text.n > CE_ID_MAX)
		return err_set(err, "a ce_id is not that long (%zu bytes)", text.n);
	while (at && text.p[at - 1] != '@')
		at--;
	if (!at || !token_parse(bytes_skip(text, at), id))
		return err_set(err, "a ce_id ends with @<birth>.<attempt>");
	buf_reset(room);
	buf_reserve(room, at);
	if (!percent_decode(bytes_of(text.p, at - 1), room))
		return err_set(err, "the ce_id is not percent-encoded"
			       " as in the record");
	id->raw = buf_view(room);
	if (!member_parse(id->raw, &id->member, err))
		return false;
	if (id->member.kind == MEMBER_EXPIRED || id->raw.p[0] == 'p')
		return err_set(err, "a ce_id names an id or a key (s: or k:)");
	return true;
}

bool topic_valid(struct bytes topic)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz0123456789._-";

	if (!topic.n || topic.n > RECORD_TOPIC_MAX)
		return false;
	for (size_t i = 0; i < topic.n; i++)
		if (!memchr(allowed, topic.p[i], sizeof allowed - 1))
			return false;
	return !bytes_eq(topic, BYTES(".")) && !bytes_eq(topic, BYTES(".."));
}
