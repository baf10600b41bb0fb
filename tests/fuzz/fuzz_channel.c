/* SPDX-License-Identifier: BSD-2-Clause */

/* What a server says of itself: channels, INFO, flags. */

#include "io/server.h"

#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes input = bytes_of((const char *)data, size), event;
	struct server_info info;
	unsigned db;
	char missing[6];

	if (server_keyevent(input, &db, &event)) {
		FUZZ_CHECK(event.n > 0 && event.p + event.n == input.p + input.n);
		FUZZ_CHECK(input.n - event.n >= strlen("__keyevent@0__:"));
		FUZZ_CHECK(memcmp(event.p - 3, "__:", 3) == 0);
	}
	server_info(input, &info);
	FUZZ_CHECK(strlen(info.version) < sizeof info.version);
	server_notify_missing(input, "Exg$e", missing);
	FUZZ_CHECK(strlen(missing) <= 5);
	return 0;
}
