/* SPDX-License-Identifier: BSD-2-Clause */

/* A template is refused, or fills in within its bound. */

#include "core/template.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes text = bytes_of((const char *)data, size);
	struct bytes captures[GLOB_CAPTURES];
	struct template_values values = {
		.key = fuzz_take(&text), .id = fuzz_take(&text),
		.db = 4294967295u, .captures = captures,
	};
	struct buf out = { 0 };
	struct template *t;
	struct err err;

	for (size_t i = 0; i < GLOB_CAPTURES; i++)
		captures[i] = i % 2 ? values.key : bytes_none;
	t = template_new(text, 7, &err);
	if (!t)
		return 0;
	template_write(t, &values, &out);
	FUZZ_CHECK(out.n <= template_bound(t, &values));
	template_free(t);
	buf_clear(&out);
	return 0;
}
