/* SPDX-License-Identifier: BSD-2-Clause */

/* Whatever stands in Redis is read or refused, and survives a round trip. */

#include "core/record.h"

#include "fuzz.h"

static void record(struct bytes in)
{
	struct record r, again;
	struct buf out = { 0 };
	struct err err;

	if (!record_unpack(in, &r, &err))
		return;
	FUZZ_CHECK(record_pack(&r, &out, &err));
	FUZZ_CHECK(out.n == in.n);
	FUZZ_CHECK(record_unpack(buf_view(&out), &again, &err));
	FUZZ_CHECK(r.birth == again.birth && r.attempt == again.attempt);
	FUZZ_CHECK(fuzz_same(r.topic, again.topic));
	FUZZ_CHECK(fuzz_same(r.key, again.key));
	FUZZ_CHECK(fuzz_same(r.content_type, again.content_type));
	FUZZ_CHECK(fuzz_same(r.type, again.type));
	FUZZ_CHECK(fuzz_same(r.payload, again.payload));
	FUZZ_CHECK(r.nheaders == again.nheaders);
	for (size_t i = 0; i < r.nheaders; i++) {
		FUZZ_CHECK(r.headers[i].name.p[r.headers[i].name.n] == '\0');
		FUZZ_CHECK(fuzz_same(r.headers[i].name, again.headers[i].name));
		FUZZ_CHECK(fuzz_same(r.headers[i].value, again.headers[i].value));
	}
	buf_clear(&out);
}

static void envelope(struct bytes in)
{
	struct envelope e;
	struct buf out = { 0 };
	struct err err;

	if (!envelope_unpack(in, &e, &err))
		return;
	FUZZ_CHECK(e.due >= 0 && e.due <= RECORD_DUE_MAX);
	envelope_pack(&e, &out);
	FUZZ_CHECK(bytes_eq(buf_view(&out), in));
	buf_clear(&out);
	record(e.record);
}

static void obituary(struct bytes in)
{
	struct obituary o;
	struct buf out = { 0 };
	struct err err;

	if (!obituary_unpack(in, &o, &err))
		return;
	FUZZ_CHECK(obituary_pack(&o, &out, &err));
	FUZZ_CHECK(bytes_eq(buf_view(&out), in));
	buf_clear(&out);
	envelope(o.envelope);
}

static void member(struct bytes in)
{
	struct member m;
	struct buf out = { 0 };
	struct err err;

	if (!member_parse(in, &m, &err))
		return;
	member_write(&m, &out);
	FUZZ_CHECK(bytes_eq(buf_view(&out), in));
	buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_of((const char *)data, size);

	record(in);
	envelope(in);
	obituary(in);
	member(in);
	return 0;
}
