/* SPDX-License-Identifier: BSD-2-Clause */

/* Any bytes make a valid string, and valid JSON stays so inside of JSON. */

#include "core/json.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = bytes_of((const char *)data, size);
	struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object(&j);
	json_key_bytes(&j, in);
	json_array(&j);
	json_string(&j, in);
	json_base64(&j, in);
	if (json_valid(in))
		json_raw(&j, in);
	json_array_end(&j);
	json_object_end(&j);
	/* two levels more than the input may have used up already */
	FUZZ_CHECK(json_utf8(buf_view(&out)));
	FUZZ_CHECK(json_valid(buf_view(&out)) || size > JSON_DEPTH_MAX);
	buf_clear(&out);
	return 0;
}
