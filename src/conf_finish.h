/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * conf_finish - from options as they were written to what they come to.
 *
 * Reads the password files, takes the URL apart, makes the routes, and finds
 * the mistakes that take more than one option.  Private to conf*.c.
 */
#ifndef LAPSED_CONF_FINISH_H
#define LAPSED_CONF_FINISH_H

#include "conf.h"

/* `tool` as in struct conf_source. */
void conf_finish(struct conf *c, bool tool, struct conf_report *report);

/* Makes the routes again, when the namespace was put back. */
void conf_finish_routes(struct conf *c);

#endif
