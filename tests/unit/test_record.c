/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/record.h"

#include "unit.h"

static struct buf out;
static struct err err;

static void setup(void)
{
	out = (struct buf){ 0 };
	err.text[0] = '\0';
}

static void teardown(void)
{
	buf_clear(&out);
}

#define HEAD	"\x01\x00\x06\x0a\x24\x18\x1e\x40\x00\x00\x03"

/* A copy without anything behind it, so that the sanitizers see an overrun. */
static struct bytes tight(struct bytes b)
{
	char *p = malloc(b.n ? b.n : 1);

	ck_assert_ptr_nonnull(p);
	if (b.n)
		memcpy(p, b.p, b.n);
	return bytes_of(p, b.n);
}

static void refused(struct bytes from, const char *why)
{
	struct bytes copy = tight(from);
	struct record r;

	ck_assert_msg(!record_unpack(copy, &r, &err), "%s", unit_show(from));
	ck_assert_has(err.text, why);
	free((char *)copy.p);
}

START_TEST(a_full_record_is_read)
{
	struct record r;

	ck_assert(record_unpack(BYTES(HEAD "t\0\6orders" "k\0\2\0\xff" "c\0\3a/b"
				      "y\0\1y" "h\0\5a\0b\0c" "h\0\2d\0"
				      "p\0payload"), &r, &err));
	ck_assert_uint_eq(r.birth, UINT64_C(0x00060a24181e4000));
	ck_assert_uint_eq(r.attempt, 3);
	ck_assert_text(r.topic, "orders");
	ck_assert_text(r.key, "\0\xff");
	ck_assert_text(r.content_type, "a/b");
	ck_assert_text(r.type, "y");
	ck_assert_text(r.payload, "\0payload");
	ck_assert_uint_eq(r.nheaders, 2);
	ck_assert_text(r.headers[0].name, "a");
	ck_assert_text(r.headers[0].value, "b\0c");
	ck_assert_text(r.headers[1].name, "d");
	ck_assert_text(r.headers[1].value, "");
	ck_assert_int_eq(r.headers[1].name.p[1], '\0');
}
END_TEST

START_TEST(what_is_absent_is_none_and_what_is_empty_is_there)
{
	struct record r;

	ck_assert(record_unpack(BYTES(HEAD), &r, &err));
	ck_assert_ptr_null(r.topic.p);
	ck_assert_ptr_null(r.key.p);
	ck_assert_ptr_null(r.content_type.p);
	ck_assert_ptr_null(r.type.p);
	ck_assert_ptr_null(r.payload.p);
	ck_assert_uint_eq(r.nheaders, 0);
	ck_assert(record_unpack(BYTES(HEAD "k\0\0p"), &r, &err));
	ck_assert_text(r.key, "");
	ck_assert_text(r.payload, "");
}
END_TEST

START_TEST(a_malformed_record_is_refused)
{
	refused(BYTES(""), "no record");
	refused(bytes_none, "no record");
	refused(BYTES("\x02"), "version 2");
	refused(BYTES("\xff\0\0\0\0\0\0\0\0\0\0"), "version 255");
	refused(BYTES("\0"), "version 0");
	refused(BYTES("\x01"), "ends in its head (1 of 11");
	refused(bytes_of(HEAD, 10), "ends in its head (10 of 11");
	refused(BYTES(HEAD "t"), "past its end");
	refused(BYTES(HEAD "t\0"), "past its end");
	refused(BYTES(HEAD "t\0\2a"), "past its end");
	refused(BYTES(HEAD "t\xff\xff" "a"), "past its end");
	refused(BYTES(HEAD "x\0\0"), "unknown tag 0x78");
	refused(BYTES(HEAD "\0\0\0"), "unknown tag 0x00");
	refused(BYTES(HEAD "\xff\0\0"), "unknown tag 0xff");
	refused(BYTES(HEAD "t\0\1at\0\1b"), "'t' twice");
	refused(BYTES(HEAD "t\0\0t\0\0"), "'t' twice");
	refused(BYTES(HEAD "k\0\0k\0\0"), "'k' twice");
	refused(BYTES(HEAD "c\0\0c\0\0"), "'c' twice");
	refused(BYTES(HEAD "y\0\0y\0\0"), "'y' twice");
	refused(BYTES(HEAD "h\0\0"), "header 1 of the record has no name");
	refused(BYTES(HEAD "h\0\1a"), "no name");
	refused(BYTES(HEAD "h\0\2\0a"), "no name");
	refused(BYTES(HEAD "h\0\2a\0h\0\3abc"), "header 2");
}
END_TEST

START_TEST(the_headers_have_a_most)
{
	struct record r;

	buf_add(&out, BYTES(HEAD));
	for (int i = 0; i < RECORD_HEADERS_MAX; i++)
		buf_add(&out, BYTES("h\0\3n\0v"));
	ck_assert(record_unpack(buf_view(&out), &r, &err));
	ck_assert_uint_eq(r.nheaders, RECORD_HEADERS_MAX);
	buf_add(&out, BYTES("h\0\3n\0v"));
	refused(buf_view(&out), "more than 32 headers");
}
END_TEST

START_TEST(every_cut_of_a_record_is_safe)
{
	struct bytes whole = BYTES(HEAD "t\0\6orders" "h\0\5a\0b\0c" "y\0\2ab");

	for (size_t n = 0; n < whole.n; n++) {
		struct bytes cut = tight(bytes_of(whole.p, n));
		struct record r;

		if (record_unpack(cut, &r, &err))
			ck_assert_uint_ge(n, 11);
		free((char *)cut.p);
	}
}
END_TEST

static struct record sample(void)
{
	return (struct record){
		.birth = UINT64_MAX - 1, .attempt = 65535,
		.topic = BYTES("t"), .key = BYTES(""), .content_type = BYTES("c"),
		.type = BYTES("y"), .payload = BYTES("\0p"), .nheaders = 2,
		.headers = { { BYTES("h1"), BYTES("") }, { BYTES("h2"), BYTES("\0") } },
	};
}

START_TEST(what_is_packed_is_read_back)
{
	struct record in = sample(), r;

	ck_assert(record_pack(&in, &out, &err));
	ck_assert(record_unpack(buf_view(&out), &r, &err));
	ck_assert_uint_eq(r.birth, in.birth);
	ck_assert_uint_eq(r.attempt, in.attempt);
	ck_assert_bytes(r.topic, in.topic);
	ck_assert_bytes(r.key, in.key);
	ck_assert_bytes(r.content_type, in.content_type);
	ck_assert_bytes(r.type, in.type);
	ck_assert_bytes(r.payload, in.payload);
	ck_assert_uint_eq(r.nheaders, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_bytes(r.headers[i].name, in.headers[i].name);
		ck_assert_bytes(r.headers[i].value, in.headers[i].value);
	}
}
END_TEST

START_TEST(so_are_the_terms_of_a_job_and_its_attempts)
{
	struct record in = sample(), r;

	in.job = (struct job){ 30000, 5, 1000, 60000, 2000, true };
	in.nhistory = 2;
	in.history[0] = (struct attempt){ 3, 1764505800000, true, BYTES("no answer") };
	in.history[1] = (struct attempt){ 4, 1764505800001, false, BYTES("") };
	ck_assert(record_pack(&in, &out, &err));
	ck_assert(record_unpack(buf_view(&out), &r, &err));
	ck_assert_int_eq(r.job.ttr, 30000);
	ck_assert_uint_eq(r.job.attempts, 5);
	ck_assert_int_eq(r.job.first, 1000);
	ck_assert_int_eq(r.job.most, 60000);
	ck_assert_uint_eq(r.job.factor, 2000);
	ck_assert(r.job.spent);
	ck_assert_uint_eq(r.nhistory, 2);
	ck_assert_uint_eq(r.history[0].number, 3);
	ck_assert_int_eq(r.history[0].ended, 1764505800000);
	ck_assert(r.history[0].failed && !r.history[1].failed);
	ck_assert_text(r.history[0].reason, "no answer");
	ck_assert_bytes(r.topic, in.topic);
}
END_TEST

START_TEST(a_record_is_packed_byte_for_byte)
{
	struct record in = {
		.birth = 1, .attempt = 2, .topic = BYTES("ab"), .payload = BYTES(""),
		.nheaders = 1, .headers = { { BYTES("n"), BYTES("v") } },
	};

	ck_assert(record_pack(&in, &out, &err));
	ck_assert_text(buf_view(&out), "\1\0\0\0\0\0\0\0\1\0\2" "t\0\2ab" "h\0\3n\0v" "p");
}
END_TEST

START_TEST(what_has_no_room_is_not_packed)
{
	static char large[65536];
	const struct bytes big = bytes_of(large, sizeof large);
	struct record in = sample();

	in.attempt = 65536;
	ck_assert(!record_pack(&in, &out, &err));
	ck_assert_has(err.text, "65536");
	in = sample();
	in.type = big;
	ck_assert(!record_pack(&in, &out, &err));
	ck_assert_has(err.text, "the type");
	in = sample();
	in.headers[1].value = bytes_of(large, 65533);
	ck_assert(!record_pack(&in, &out, &err));
	in.headers[1].value = bytes_of(large, 65532);
	ck_assert(record_pack(&in, &out, &err));
	buf_reset(&out);
	in = sample();
	in.headers[0].name = BYTES("a\0");
	ck_assert(!record_pack(&in, &out, &err));
	in.headers[0].name = bytes_none;
	ck_assert(!record_pack(&in, &out, &err));
	in = sample();
	in.nheaders = 33;
	ck_assert(!record_pack(&in, &out, &err));
	ck_assert_uint_eq(out.n, 0);
}
END_TEST

START_TEST(an_envelope_is_read)
{
	struct envelope e, back;

	ck_assert(envelope_unpack(BYTES("\1\0\0\1\x9a\xd3\xfb\x7e\x40" "frecord"),
				  &e, &err));
	ck_assert_int_eq(e.due, INT64_C(0x19ad3fb7e40));
	ck_assert_int_eq(e.certainty, CERTAINTY_FOUND);
	ck_assert_text(e.record, "record");
	envelope_pack(&e, &out);
	ck_assert(envelope_unpack(buf_view(&out), &back, &err));
	ck_assert_int_eq(back.due, e.due);
	ck_assert_int_eq(back.certainty, e.certainty);
	ck_assert_bytes(back.record, e.record);
}
END_TEST

START_TEST(each_certainty_has_a_name)
{
	static const struct {
		const char *raw;
		const char *name;
	} all[] = {
		{ "-", "scheduled" }, { "h", "heard" }, { "f", "found" },
		{ "i", "inferred" },
	};
	char raw[] = "\1\0\0\0\0\0\0\0\0?";

	for (size_t i = 0; i < COUNT_OF(all); i++) {
		struct envelope e;

		raw[9] = all[i].raw[0];
		ck_assert(envelope_unpack(bytes_of(raw, 10), &e, &err));
		ck_assert_bytes(certainty_name(e.certainty), bytes_str(all[i].name));
		ck_assert_text(e.record, "");
	}
}
END_TEST

START_TEST(a_malformed_envelope_is_refused)
{
	static const struct {
		struct bytes raw;
		const char *error;
	} bad[] = {
		{ { "", 0 }, "head" },
		{ { "\2", 1 }, "version 2" },
		{ { "\1\0\0\0\0\0\0\0\0", 9 }, "head (9 of 10" },
		{ { "\1\0\0\0\0\0\0\0\0x", 10 }, "certainty 0x78" },
		{ { "\1\0\0\0\0\0\0\0\0\0", 10 }, "certainty 0x00" },
		{ { "\1\xff\xff\xff\xff\xff\xff\xff\xff-", 10 }, "year 9999" },
		{ { "\1\0\0\xe6\x77\xd2\x1f\xdc\0-", 10 }, "year 9999" },
	};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct bytes copy = tight(bad[i].raw);
		struct envelope e;

		ck_assert(!envelope_unpack(copy, &e, &err));
		ck_assert_has(err.text, bad[i].error);
		free((char *)copy.p);
	}
}
END_TEST

START_TEST(the_last_millisecond_of_9999_is_the_last)
{
	struct envelope e = { RECORD_DUE_MAX, CERTAINTY_HEARD, bytes_none };
	struct envelope back;

	envelope_pack(&e, &out);
	ck_assert(envelope_unpack(buf_view(&out), &back, &err));
	ck_assert_int_eq(back.due, RECORD_DUE_MAX);
	e.due++;
	buf_reset(&out);
	envelope_pack(&e, &out);
	ck_assert(!envelope_unpack(buf_view(&out), &back, &err));
}
END_TEST

START_TEST(an_obituary_is_read)
{
	struct obituary o, back;

	ck_assert(obituary_unpack(BYTES("\1\0\3why\0\3s:a\1env"), &o, &err));
	ck_assert_text(o.reason, "why");
	ck_assert_text(o.member, "s:a");
	ck_assert_text(o.envelope, "\1env");
	ck_assert(obituary_pack(&o, &out, &err));
	ck_assert(obituary_unpack(buf_view(&out), &back, &err));
	ck_assert_bytes(back.reason, o.reason);
	ck_assert_bytes(back.member, o.member);
	ck_assert_bytes(back.envelope, o.envelope);
	ck_assert(obituary_unpack(BYTES("\1\0\0\0\0"), &o, &err));
	ck_assert_text(o.envelope, "");
}
END_TEST

START_TEST(a_malformed_obituary_is_refused)
{
	struct bytes whole = BYTES("\1\0\3why\0\3s:a");
	struct obituary o;

	for (size_t n = 0; n < whole.n; n++) {
		struct bytes cut = tight(bytes_of(whole.p, n));

		ck_assert(!obituary_unpack(cut, &o, &err));
		free((char *)cut.p);
	}
	ck_assert(obituary_unpack(whole, &o, &err));
	ck_assert(!obituary_unpack(BYTES("\2\0\0\0\0"), &o, &err));
}
END_TEST

static const struct {
	struct bytes raw;
	struct member member;
} members[] = {
	{ { "s:a", 3 }, { MEMBER_SCHEDULED, 0, 0, { "a", 1 } } },
	{ { "s::", 3 }, { MEMBER_SCHEDULED, 0, 0, { ":", 1 } } },
	{ { "s:\0\xff", 4 }, { MEMBER_SCHEDULED, 0, 0, { "\0\xff", 2 } } },
	{ { "k:0:a:b", 7 }, { MEMBER_WATCHED, 0, 0, { "a:b", 3 } } },
	{ { "k:15::", 6 }, { MEMBER_WATCHED, 15, 0, { ":", 1 } } },
	{ { "k:2147483647:k", 14 }, { MEMBER_WATCHED, 2147483647, 0, { "k", 1 } } },
	{ { "e:17:3:k", 8 }, { MEMBER_EXPIRED, 3, 17, { "k", 1 } } },
	{ { "p:17:a:b", 8 }, { MEMBER_SCHEDULED, 0, 17, { "a:b", 3 } } },
	{ { "e:0:0:1:2", 9 }, { MEMBER_EXPIRED, 0, 0, { "1:2", 3 } } },
	{ { "e:18446744073709551615:0:k", 26 },
	  { MEMBER_EXPIRED, 0, UINT64_MAX, { "k", 1 } } },
};

START_TEST(a_member_is_read_and_written)
{
	const struct member *expected = &members[_i].member;
	struct member m;

	ck_assert(member_parse(members[_i].raw, &m, &err));
	ck_assert_int_eq(m.kind, expected->kind);
	ck_assert_uint_eq(m.db, expected->db);
	ck_assert_uint_eq(m.birth, expected->birth);
	ck_assert_bytes(m.name, expected->name);
	member_write(&m, &out);
	ck_assert_bytes(buf_view(&out), members[_i].raw);
}
END_TEST

static const char *const bad_members[] = {
	"", "s", "k", "s:", "k:", "x:a", "S:a", "sa", "k:0", "k:0:", "k::a", "k:a:b",
	"k:-1:a", "k:+1:a", "k: 1:a", "k:01:a", "k:00:a", "k:2147483648:a",
	"k:99999999999999999999:a", "e:", "e:1", "e:1:", "e:1:0", "e:1:0:", "e::0:a",
	"e:x:0:a", "e:01:0:a", "p:0:a", "p:1:", "p:a", "e:18446744073709551616:0:a", "e:1:01:a", "k:0x:a",
};

START_TEST(a_malformed_member_is_refused)
{
	struct bytes copy = tight(bytes_str(bad_members[_i]));
	struct member m;

	ck_assert_msg(!member_parse(copy, &m, &err), "%s", bad_members[_i]);
	ck_assert_has(err.text, "the member");
	free((char *)copy.p);
}
END_TEST

START_TEST(a_name_has_a_longest)
{
	char raw[RECORD_NAME_MAX + 10];
	struct member m;

	memset(raw, 'x', sizeof raw);
	memcpy(raw, "s:", 2);
	ck_assert(member_parse(bytes_of(raw, 2 + RECORD_NAME_MAX), &m, &err));
	ck_assert(!member_parse(bytes_of(raw, 3 + RECORD_NAME_MAX), &m, &err));
	ck_assert_has(err.text, "1025 bytes");
}
END_TEST

static const struct {
	struct bytes raw;
	uint64_t birth;
	unsigned attempt;
	const char *id;
} ids[] = {
	{ { "s:order-42", 10 }, 1764505800000000, 0, "s:order-42@1764505800000000.0" },
	{ { "k:3:a b", 7 }, 1, 2, "k:3:a%20b@1.2" },
	{ { "k:0:!~%", 7 }, 1, 2, "k:0:!~%25@1.2" },
	{ { "s:a@1.2", 7 }, 3, 4, "s:a@1.2@3.4" },
	{ { "s:\0\x1f\x7f\xff", 6 }, UINT64_MAX, 65535,
	  "s:%00%1F%7F%FF@18446744073709551615.65535" },
	{ { "e:99:7:k\r\n", 10 }, 99, 1, "k:7:k%0D%0A@99.1" },
};

START_TEST(an_id_is_written_and_read)
{
	struct member m;
	struct ce_id id;
	struct buf room = { 0 };

	ck_assert(member_parse(ids[_i].raw, &m, &err));
	ce_id_write(&m, ids[_i].birth, ids[_i].attempt, &out);
	ck_assert_bytes(buf_view(&out), bytes_str(ids[_i].id));
	ck_assert_msg(ce_id_parse(buf_view(&out), &room, &id, &err), "%s", err.text);
	ck_assert_uint_eq(id.birth, ids[_i].birth);
	ck_assert_uint_eq(id.attempt, ids[_i].attempt);
	ck_assert_bytes(id.member.name, m.name);
	ck_assert_uint_eq(id.member.db, m.db);
	if (m.kind != MEMBER_EXPIRED)
		ck_assert_bytes(id.raw, ids[_i].raw);
	else
		ck_assert_int_eq(id.member.kind, MEMBER_WATCHED);
	buf_clear(&room);
}
END_TEST

static const char *const bad_ids[] = {
	"", "@", "s:a", "s:a@", "s:a@1", "s:a@1.", "s:a@.1", "s:a@1.2.3", "s:a@1.2 ",
	"s:a@-1.2", "s:a@01.2", "s:a@1.02", "s:a@1.65536",
	"s:a@18446744073709551616.0", "@1.2", "s:@1.2", "x:a@1.2", "k:a@1.2",
	"e:1:0:a@1.2", "s:a b@1.2", "s:a\x7f@1.2", "s:\xc3\xa9@1.2", "s:%@1.2",
	"s:%2@1.2", "s:%0g@1.2", "s:%0a@1.2" /* lower case */,
	"s:%41@1.2" /* needless */, "%73:a@1.2", "s%3Aa@1.2", "s:%%@1.2", "s:a@1,2",
};

START_TEST(a_malformed_id_is_refused)
{
	struct bytes copy = tight(bytes_str(bad_ids[_i]));
	struct ce_id id;

	ck_assert_msg(!ce_id_parse(copy, &out, &id, &err), "%s", bad_ids[_i]);
	ck_assert_uint_gt(strlen(err.text), 10);
	free((char *)copy.p);
}
END_TEST

START_TEST(the_longest_id_fits_its_bound)
{
	char name[RECORD_NAME_MAX];
	struct member m = { MEMBER_WATCHED, RECORD_DB_MAX, 0, { name, sizeof name } };
	struct buf room = { 0 };
	struct ce_id id;
	char *lengthy;

	memset(name, 0, sizeof name);
	ce_id_write(&m, UINT64_MAX, 65535, &out);
	ck_assert_uint_le(out.n, CE_ID_MAX);
	ck_assert(ce_id_parse(buf_view(&out), &room, &id, &err));
	ck_assert_bytes(id.member.name, m.name);
	lengthy = malloc(CE_ID_MAX + 1);
	memset(lengthy, 'a', CE_ID_MAX + 1);
	ck_assert(!ce_id_parse(bytes_of(lengthy, CE_ID_MAX + 1), &room, &id, &err));
	ck_assert(!ce_id_parse(bytes_of(lengthy, CE_ID_MAX), &room, &id, &err));
	free(lengthy);
	buf_clear(&room);
}
END_TEST

static const struct {
	struct bytes name;
	bool valid;
} topics[] = {
	{ { "a", 1 }, true }, { { "A-z_0.9", 7 }, true }, { { "...", 3 }, true },
	{ { ".a", 2 }, true }, { { "", 0 }, false }, { { NULL, 0 }, false },
	{ { ".", 1 }, false }, { { "..", 2 }, false }, { { "a b", 3 }, false },
	{ { "a\0b", 3 }, false }, { { "a/b", 3 }, false }, { { "\xc3\xa9", 2 }, false },
	{ { "a\n", 2 }, false },
};

START_TEST(topics_are_what_kafka_takes)
{
	ck_assert(topic_valid(topics[_i].name) == topics[_i].valid);
}
END_TEST

START_TEST(a_topic_has_a_longest)
{
	char name[RECORD_TOPIC_MAX + 1];

	memset(name, 'x', sizeof name);
	ck_assert(topic_valid(bytes_of(name, RECORD_TOPIC_MAX)));
	ck_assert(!topic_valid(bytes_of(name, RECORD_TOPIC_MAX + 1)));
}
END_TEST

static Suite *record_suite(void)
{
	Suite *suite = suite_create("record");
	TCase *record = tcase_create("record");
	TCase *around = tcase_create("envelope and obituary");
	TCase *names = tcase_create("member, id and topic");

	tcase_add_checked_fixture(record, setup, teardown);
	tcase_add_test(record, a_full_record_is_read);
	tcase_add_test(record, what_is_absent_is_none_and_what_is_empty_is_there);
	tcase_add_test(record, a_malformed_record_is_refused);
	tcase_add_test(record, the_headers_have_a_most);
	tcase_add_test(record, every_cut_of_a_record_is_safe);
	tcase_add_test(record, what_is_packed_is_read_back);
	tcase_add_test(record, so_are_the_terms_of_a_job_and_its_attempts);
	tcase_add_test(record, a_record_is_packed_byte_for_byte);
	tcase_add_test(record, what_has_no_room_is_not_packed);
	tcase_add_checked_fixture(around, setup, teardown);
	tcase_add_test(around, an_envelope_is_read);
	tcase_add_test(around, each_certainty_has_a_name);
	tcase_add_test(around, a_malformed_envelope_is_refused);
	tcase_add_test(around, the_last_millisecond_of_9999_is_the_last);
	tcase_add_test(around, an_obituary_is_read);
	tcase_add_test(around, a_malformed_obituary_is_refused);
	tcase_add_checked_fixture(names, setup, teardown);
	tcase_add_loop_test(names, a_member_is_read_and_written, 0,
			    (int)COUNT_OF(members));
	tcase_add_loop_test(names, a_malformed_member_is_refused, 0,
			    (int)COUNT_OF(bad_members));
	tcase_add_test(names, a_name_has_a_longest);
	tcase_add_loop_test(names, an_id_is_written_and_read, 0, (int)COUNT_OF(ids));
	tcase_add_loop_test(names, a_malformed_id_is_refused, 0,
			    (int)COUNT_OF(bad_ids));
	tcase_add_test(names, the_longest_id_fits_its_bound);
	tcase_add_loop_test(names, topics_are_what_kafka_takes, 0,
			    (int)COUNT_OF(topics));
	tcase_add_test(names, a_topic_has_a_longest);
	suite_add_tcase(suite, record);
	suite_add_tcase(suite, around);
	suite_add_tcase(suite, names);
	return suite;
}

int main(void)
{
	return unit_run(record_suite());
}
