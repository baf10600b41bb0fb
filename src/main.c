/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <stdio.h>

int main(void)
{
	return puts("lapsed " PACKAGE_VERSION) < 0;
}
