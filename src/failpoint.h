/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * failpoint - where tests make the process die or stop.
 *
 * Compiled away unless LAPSED_FAILPOINTS is defined (CPPFLAGS of a test build).
 * Then LAPSED_FAILPOINT=<name>:<n>:<kill|stop> raises SIGKILL or SIGSTOP when
 * the point of that name is passed for the n-th time.  The names:
 *
 *	<script>.ask		a call is about to be sent
 *	<script>.sent		it is in the socket
 *	<script>.answer		its answer has come and is not looked at yet
 *	<script>.done		it has been
 *	produce.ask, produce.taken, report
 *
 * with the scripts join, renew, leave, claim, adopt, settle, forget,
 * walk.  Besides, LAPSED_POISON names a member whose event kills the process
 * that is about to produce it.
 */
#ifndef LAPSED_FAILPOINT_H
#define LAPSED_FAILPOINT_H

#ifdef LAPSED_FAILPOINTS
#include "core/bytes.h"

void failpoint(const char *what, const char *when);
void failpoint_poison(struct bytes member);
#else
#define failpoint(what, when)	((void)0)
#define failpoint_poison(member)	((void)0)
#endif

#endif
