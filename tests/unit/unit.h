/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * unit - what the unit tests of src/core have in common.
 */
#ifndef LAPSED_TESTS_UNIT_H
#define LAPSED_TESTS_UNIT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"

#define COUNT_OF(array)	(sizeof(array) / sizeof((array)[0]))

/* Bytes as a C string for messages; valid until the fourth call after. */
static inline const char *unit_show(struct bytes b)
{
	static char rooms[4][1024];
	static unsigned turn;
	char *room = rooms[turn++ % 4];
	size_t at = 0;

	if (!b.p)
		return "(none)";
	room[0] = '\0';
	for (size_t i = 0; i < b.n && at < sizeof rooms[0] - 8; i++)
		at += (size_t)snprintf(room + at, sizeof rooms[0] - at,
			b.p[i] >= ' ' && b.p[i] <= '~' ? "%c" : "\\x%02x",
			(unsigned char)b.p[i]);
	return room;
}

#define ck_assert_bytes(got, expected) do { \
	struct bytes got_ = (got), expected_ = (expected); \
	ck_assert_msg(bytes_eq(got_, expected_) && !got_.p == !expected_.p, \
		      "%s: got '%s', expected '%s'", #got, \
		      unit_show(got_), unit_show(expected_)); \
} while (0)

#define ck_assert_text(got, literal)	ck_assert_bytes(got, BYTES(literal))

#define ck_assert_has(text, part) \
	ck_assert_msg(strstr(text, part), "'%s' lacks '%s'", text, part)

/* Runs the suite and frees it; what main() returns. */
static inline int unit_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The same for a suite of one case. */
static inline int unit_main(const char *name, TCase *tests)
{
	Suite *suite = suite_create(name);

	suite_add_tcase(suite, tests);
	return unit_run(suite);
}

#endif
