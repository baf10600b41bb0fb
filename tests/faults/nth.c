/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * nth - a library to be loaded before all others: the allocation whose number
 * FAIL_ALLOCATION names fails.  Into the file that ALLOCATION_FAILED names goes
 * who asked for it: the program, or the first library above libc.  No part of
 * lapsed; compiled by test_machine.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH	32

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static atomic_long count;
static long fatal = -1;

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAIL_ALLOCATION");
	void *frames[DEPTH];

	backtrace(frames, DEPTH);	/* the first one allocates */
	fatal = text ? atol(text) : 0;
	count = 0;
}

static const char *asker(void)
{
	void *frames[DEPTH];
	int n = backtrace(frames, DEPTH);
	Dl_info self, info;

	dladdr((void *)begin, &self);
	for (int i = 0; i < n; i++)
		if (dladdr(frames[i], &info) && info.dli_fbase != self.dli_fbase &&
		    !strstr(info.dli_fname, "/libc.so"))
			return info.dli_fname;
	return "nobody";
}

static void tell(void)
{
	const char *path = getenv("ALLOCATION_FAILED"), *name = asker();
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;

	if (fd < 0)
		return;
	if (write(fd, name, strlen(name)) < 0)
		_exit(99);
	close(fd);
}

static bool fails(void)
{
	if (fatal <= 0 || atomic_fetch_add(&count, 1) + 1 != fatal)
		return false;
	tell();
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}
