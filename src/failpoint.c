/* SPDX-License-Identifier: BSD-2-Clause */

#include "failpoint.h"

#ifdef LAPSED_FAILPOINTS

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void failpoint(const char *what, const char *when)
{
	static int passed;
	const char *wanted = getenv("LAPSED_FAILPOINT");
	char name[64], how[8];
	int n;

	if (!wanted || sscanf(wanted, "%63[^:]:%d:%7s", name, &n, how) != 3)
		return;
	if (strncmp(name, what, strlen(what)) || strcmp(name + strlen(what), when))
		return;
	if (++passed == n)
		raise(strcmp(how, "stop") ? SIGKILL : SIGSTOP);
}

void failpoint_poison(struct bytes member)
{
	const char *poison = getenv("LAPSED_POISON");

	if (poison && bytes_eq(member, bytes_str(poison)))
		raise(SIGKILL);
}

#else

typedef int failpoints_are_compiled_away;	/* ISO C wants a declaration */

#endif
