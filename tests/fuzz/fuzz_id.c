/* SPDX-License-Identifier: BSD-2-Clause */

/* One life has one ce_id: it is read as it was written, and nothing else is. */

#include "core/record.h"

#include "fuzz.h"

static void from_text(struct bytes in)
{
	struct buf room = { 0 }, out = { 0 };
	struct ce_id id;
	struct err err;

	if (ce_id_parse(in, &room, &id, &err)) {
		ce_id_write(&id.member, id.birth, id.attempt, &out);
		FUZZ_CHECK(bytes_eq(buf_view(&out), in));
		buf_reset(&out);
		member_write(&id.member, &out);
		FUZZ_CHECK(bytes_eq(buf_view(&out), id.raw));
	}
	buf_clear(&room);
	buf_clear(&out);
}

static void from_member(struct bytes in)
{
	struct buf room = { 0 }, out = { 0 };
	struct member m;
	struct ce_id id;
	struct err err;

	if (member_parse(in, &m, &err)) {
		ce_id_write(&m, in.n * 77777777777, (unsigned)in.n, &out);
		FUZZ_CHECK(out.n <= CE_ID_MAX);
		for (size_t i = 0; i < out.n; i++)
			FUZZ_CHECK(out.p[i] >= '!' && out.p[i] <= '~');
		FUZZ_CHECK(ce_id_parse(buf_view(&out), &room, &id, &err));
		FUZZ_CHECK(bytes_eq(id.member.name, m.name));
		FUZZ_CHECK(id.member.db == m.db);
		FUZZ_CHECK(id.birth == in.n * 77777777777 && id.attempt == in.n);
	}
	buf_clear(&room);
	buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_of((const char *)data, size);

	from_text(in);
	from_member(in);
	return 0;
}
