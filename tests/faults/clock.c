/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * clock - a library to be loaded before all others: the time of day is wrong by
 * the seconds that the file WRONG_CLOCK holds, an int64_t.  The monotonic clock
 * stays as it is, and so do waits until a time of day, since a machine whose
 * clock is wrong waits by the same clock.  No part of lapsed; compiled by
 * test_machine.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *wrong;
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_cnd_wait)(cnd_t *, mtx_t *, const struct timespec *);

__attribute__((constructor)) static void begin(void)
{
	const char *name = getenv("WRONG_CLOCK");
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *wrong, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		abort();
	close(fd);
	wrong = p;
	*(void **)&real_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	*(void **)&real_cnd_wait = dlsym(RTLD_NEXT, "cnd_timedwait");
}

static time_t by(void)
{
	return wrong ? (time_t)*wrong : 0;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int status = (int)syscall(SYS_clock_gettime, clock, t);

	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		t->tv_sec += by();
	return status;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*t = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}

time_t time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}

int timespec_get(struct timespec *t, int base)
{
	clock_gettime(CLOCK_REALTIME, t);
	return base;
}

static struct timespec truth(struct timespec t)
{
	if (t.tv_sec > 1000000000)	/* not the monotonic clock */
		t.tv_sec -= by();
	return t;
}

int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
			   const struct timespec *restrict until)
{
	struct timespec t = truth(*until);

	return real_wait(c, m, &t);
}

int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict until)
{
	struct timespec t = truth(*until);

	return real_cnd_wait(c, m, &t);
}
