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
 * walk.
 */
#ifndef LAPSED_FAILPOINT_H
#define LAPSED_FAILPOINT_H

#ifdef LAPSED_FAILPOINTS
void failpoint(const char *what, const char *when);
#else
#define failpoint(what, when)	((void)0)
#endif

#endif
