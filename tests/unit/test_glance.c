/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/glance.h"

#include "unit.h"

START_TEST(each_event_is_added_once)
{
	struct glance g = { 0 };
	struct glance_counts add, now = { 3, 2, 1 };

	ck_assert(glance_next(&g, &now, &add));
	ck_assert_uint_eq(g.serial, 1);
	ck_assert(add.heard == 3 && add.found == 2 && add.inferred == 1);
	/* Without an answer it may have been heeded: the very same again. */
	now.heard = 10;
	ck_assert(glance_next(&g, &now, &add));
	ck_assert_uint_eq(g.serial, 1);
	ck_assert_uint_eq(add.heard, 3);
	glance_answered(&g);
	ck_assert(glance_next(&g, &now, &add));
	ck_assert_uint_eq(g.serial, 2);
	ck_assert(add.heard == 7 && add.found == 0 && add.inferred == 0);
	glance_answered(&g);
	ck_assert(!glance_next(&g, &now, &add));
}
END_TEST

START_TEST(keys_that_are_gone_twice_are_told_once)
{
	struct glance g = { 0 };

	ck_assert_int_eq(glance_row(&g, 3, 20, 20), GLANCE_NOTHING);
	ck_assert_int_eq(glance_row(&g, 4, 20, 20), GLANCE_NOTHING);
	ck_assert_int_eq(glance_row(&g, 4, 20, 19), GLANCE_NOTHING);
	ck_assert_int_eq(glance_row(&g, 3, 20, 20), GLANCE_GONE);
	ck_assert_int_eq(glance_row(&g, 3, 20, 20), GLANCE_NOTHING);
	ck_assert_int_eq(glance_row(&g, 4, 20, 20), GLANCE_NOTHING);
	ck_assert_int_eq(glance_row(&g, 3, 0, 0), GLANCE_NOTHING);
	ck_assert_int_eq(glance_row(&g, 3, 20, 19), GLANCE_BACK);
	ck_assert_int_eq(glance_row(&g, 3, 20, 0), GLANCE_NOTHING);
}
END_TEST

START_TEST(more_databases_than_fit_are_not_told)
{
	struct glance g = { 0 };

	for (unsigned db = 0; db < GLANCE_DATABASES; db++)
		(void)glance_row(&g, db, 1, 1);
	for (unsigned db = 0; db < GLANCE_DATABASES; db++)
		ck_assert_int_eq(glance_row(&g, db, 1, 1), GLANCE_GONE);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(glance_row(&g, GLANCE_DATABASES, 1, 1), GLANCE_NOTHING);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("glance");

	tcase_add_test(tests, each_event_is_added_once);
	tcase_add_test(tests, keys_that_are_gone_twice_are_told_once);
	tcase_add_test(tests, more_databases_than_fit_are_not_told);
	return unit_main("glance", tests);
}
