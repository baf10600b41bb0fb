/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/alarm.h"

#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/mem.h"

struct alarm {
	struct ev_loop *loop;
	int fd;
	ev_io io;
	ev_idle busy;	/* while it runs, the loop only looks and does not wait */
	usec_t at;	/* that the timer is set to; USEC_NEVER: it is off */
};

static void on_ring(struct ev_loop *loop, ev_io *w, int events)
{
	struct alarm *a = w->data;
	uint64_t count;

	(void)loop;
	(void)events;
	if (read(a->fd, &count, sizeof count) == sizeof count)
		a->at = USEC_NEVER;
}

static void on_idle(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
}

struct alarm *alarm_new(struct ev_loop *loop)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct alarm *a;

	if (fd < 0)
		return NULL;
	a = mem_alloc(1, sizeof *a);
	a->loop = loop;
	a->fd = fd;
	a->at = USEC_NEVER;
	ev_io_init(&a->io, on_ring, fd, EV_READ);
	a->io.data = a;
	ev_io_start(loop, &a->io);
	ev_idle_init(&a->busy, on_idle);
	return a;
}

void alarm_free(struct alarm *a)
{
	if (!a)
		return;
	ev_io_stop(a->loop, &a->io);
	ev_idle_stop(a->loop, &a->busy);
	close(a->fd);
	free(a);
}

void alarm_set(struct alarm *a, usec_t at, usec_t now)
{
	struct itimerspec t = { 0 };

	if (at <= now) {
		ev_idle_start(a->loop, &a->busy);
		return;
	}
	ev_idle_stop(a->loop, &a->busy);
	if (at == a->at)
		return;
	a->at = at;
	if (at != USEC_NEVER) {
		t.it_value.tv_sec = at / USEC_PER_SEC;
		t.it_value.tv_nsec = at % USEC_PER_SEC * 1000;
	}
	timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &t, NULL);
}
