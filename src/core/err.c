/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/err.h"

#include <stdarg.h>
#include <stdio.h>

bool err_set(struct err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return false;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	return false;
}
