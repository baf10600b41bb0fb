/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/aside.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/mem.h"

struct job {
	struct job *next;
	void (*fn)(void *arg);
	void *arg;
	pthread_t thread;
	atomic_bool done;
};

struct aside {
	struct job *jobs;
};

struct aside *aside_new(void)
{
	return mem_alloc(1, sizeof(struct aside));
}

static void *job_main(void *arg)
{
	struct job *j = arg;

	j->fn(j->arg);
	atomic_store(&j->done, true);
	return NULL;
}

static bool job_start(struct job *j)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&j->thread, NULL, job_main, j);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !failed;
}

/* Joins the jobs that are done. */
static void collect(struct aside *a)
{
	struct job **at = &a->jobs, *j;

	while ((j = *at)) {
		if (!atomic_load(&j->done)) {
			at = &j->next;
			continue;
		}
		pthread_join(j->thread, NULL);
		*at = j->next;
		free(j);
	}
}

void aside_run(struct aside *a, void (*fn)(void *arg), void *arg)
{
	struct job *j = mem_alloc(1, sizeof *j);

	collect(a);
	j->fn = fn;
	j->arg = arg;
	if (!job_start(j)) {
		free(j);
		fn(arg);
		return;
	}
	j->next = a->jobs;
	a->jobs = j;
}

bool aside_free(struct aside *a, int msec)
{
	struct timespec limit;
	struct job *j;

	if (!a)
		return true;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += msec / 1000;
	limit.tv_nsec += (msec % 1000) * 1000000L;
	if (limit.tv_nsec >= 1000000000L) {
		limit.tv_sec++;
		limit.tv_nsec -= 1000000000L;
	}
	while ((j = a->jobs)) {
		if (pthread_timedjoin_np(j->thread, NULL, &limit) != 0)
			return false;
		a->jobs = j->next;
		free(j);
	}
	free(a);
	return true;
}
