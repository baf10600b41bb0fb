/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * script - the texts that Redis runs, and the codes of its refusals.
 *
 * A script of src/lua is a file that defines lapse_<name>(keys, argv) and
 * says in one line of its head which library files it stands on:
 *
 *	-- uses: common batch
 *
 * From these files two things are made.  What EVALSHA runs:
 *
 *	local NSDB = <database>		of the keys below the prefix
 *	the library files, in the order of that line
 *	the file itself
 *	return lapse_<name>(KEYS, ARGV)
 *
 * and the function library that `lapse install` loads: one `#!lua` text with
 * the scripts meant for applications, and each library file once.  A line
 *
 *	-- flags: no-writes
 *
 * gives the function those flags; scripts have none, as Redis 6.2 knows none.
 *
 * Nothing here talks to Redis.
 */
#ifndef LAPSED_IO_SCRIPT_H
#define LAPSED_IO_SCRIPT_H

#include <stddef.h>

#include "core/bytes.h"

/*
 * The text of script `name` ("claim"), for keys in `database`.  NULL if there
 * is no such script, or it names a library file that does not exist.  To be
 * freed by the caller.
 */
char *script_text(const char *name, int database);

/* The text for FUNCTION LOAD REPLACE; to be freed by the caller. */
char *script_library(int database);

/* The i-th function of that library ("lapse_schedule"); NULL past the last. */
const char *script_function(size_t i);

/*
 * The first word of an error reply.  What each asks of the caller:
 *
 *	not able now	keep the connection, back off, ask again
 *	wrong node	find the right one and connect anew
 *	writes refused	wait, say so, never drop
 *	configuration	say so loudly, try again slowly
 *
 * In all of these the script has not run, unless it was the one that met the
 * refusal half way: ours are written so that asking again is safe.
 */
enum script_error {
	SCRIPT_ERR,		/* any other: the text is all there is */
	SCRIPT_NOSCRIPT,	/* load it and ask again */
	SCRIPT_LOADING,		/* not able now */
	SCRIPT_BUSY,		/* not able now: somebody else's script runs */
	SCRIPT_MASTERDOWN,	/* not able now */
	SCRIPT_CLUSTERDOWN,	/* not able now */
	SCRIPT_TRYAGAIN,	/* not able now */
	SCRIPT_READONLY,	/* wrong node: a replica */
	SCRIPT_MOVED,		/* wrong node */
	SCRIPT_ASK,		/* wrong node, for this one call */
	SCRIPT_OOM,		/* writes refused */
	SCRIPT_MISCONF,		/* writes refused */
	SCRIPT_NOREPLICAS,	/* writes refused */
	SCRIPT_NOAUTH,		/* configuration */
	SCRIPT_WRONGPASS,	/* configuration */
	SCRIPT_NOPERM,		/* configuration */
	SCRIPT_CROSSSLOT,	/* our layout of keys is wrong */
	SCRIPT_WRONGTYPE,	/* somebody else uses a key of ours */
	SCRIPT_BADARG,		/* LAPSE_BADARG */
	SCRIPT_EXISTS,		/* LAPSE_EXISTS */
	SCRIPT_NOTFOUND,	/* LAPSE_NOTFOUND */
	SCRIPT_STALE,		/* LAPSE_STALE */
	SCRIPT_UNSURE,		/* LAPSE_UNSURE */
	SCRIPT_BADRECORD,	/* LAPSE_BADRECORD */
	SCRIPT_FENCED		/* LAPSE_FENCED */
};

/*
 * The code of an error reply, given without its leading `-`.  Redis 6.2 wraps
 * what a script meets ("ERR Error running script (call to f_...):
 * @user_script:5: -OOM command not allowed ..."; some codes have no dash): there
 * the code inside counts.
 */
enum script_error script_error_code(struct bytes reply);

/* "NOSCRIPT", "LAPSE_BADARG" ...; "ERR" for SCRIPT_ERR. */
const char *script_error_name(enum script_error code);

#endif
