/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/kafka_producer.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <syslog.h>
#include <unistd.h>

#include "core/mem.h"

#define REPORTS_PER_TURN	4096	/* then the loop's other work */
#define PURGE_INTERVAL		0.1	/* seconds */
#define FLUSH_INTERVAL		0.05
#define FLUSH_MS		1

void producer_wake(struct producer *p)
{
	uint64_t one = 1;

	while (write(p->fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* What the queue brings. */

static void serve_error(struct producer *p)
{
	rd_kafka_resp_err_t err = rd_kafka_event_error(p->event);

	if (err != RD_KAFKA_RESP_ERR__FATAL &&
	    !rd_kafka_event_error_is_fatal(p->event)) {
		p->handlers->error(p, err,
				   rd_kafka_event_error_string(p->event));
		return;
	}
	p->failed = true;
	p->handlers->fatal(p);
}

static void serve_log(struct producer *p)
{
	const char *facility, *text;
	int level;

	if (rd_kafka_event_log(p->event, &facility, &text, &level) != 0)
		return;
	if (level < LOG_ERR)
		level = LOG_ERR;	/* we survive what it calls fatal */
	p->handlers->log(p, level, facility, text);
}

/* At most `limit` messages; returns how many. */
static size_t serve_reports(struct producer *p, size_t limit)
{
	const rd_kafka_message_t *m;
	size_t n = 0;

	while (n < limit && (m = rd_kafka_event_message_next(p->event))) {
		p->outstanding--;
		p->handlers->report(p, m);
		n++;
	}
	return n;
}

/* Serves p->event; keeps it when there may be more than `limit` in it. */
static size_t serve(struct producer *p, size_t limit)
{
	size_t reports = 0;

	switch (rd_kafka_event_type(p->event)) {
	case RD_KAFKA_EVENT_DR:
		reports = serve_reports(p, limit);
		if (reports == limit)
			return reports;
		break;
	case RD_KAFKA_EVENT_ERROR:
		serve_error(p);
		break;
	case RD_KAFKA_EVENT_LOG:
		serve_log(p);
		break;
	default:
		break;
	}
	rd_kafka_event_destroy(p->event);
	p->event = NULL;
	return reports;
}

static size_t drain(struct producer *p)
{
	size_t events, reports = 0;

	for (events = 0; events < REPORTS_PER_TURN; events++) {
		if (!p->event)
			p->event = rd_kafka_queue_poll(p->queue, 0);
		if (!p->event)
			return reports;
		reports += serve(p, REPORTS_PER_TURN - reports);
		if (reports == REPORTS_PER_TURN)
			break;
	}
	producer_wake(p);
	return reports;
}

static void on_wake(struct ev_loop *loop, ev_io *w, int revents)
{
	struct producer *p = w->data;
	uint64_t count;

	while (read(p->fd, &count, sizeof count) < 0 && errno == EINTR)
		;
	p->handlers->served(p, drain(p));
}

/* The ways out. */

/*
 * linger.ms counts as zero for as long as this call takes.  It also wakes the
 * threads that should see it, so a moment is enough, though perhaps not for
 * the first one.
 */
static void on_flush(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct producer *p = w->data;

	if (p->outstanding)
		rd_kafka_flush(p->rk, FLUSH_MS);
}

void producer_flush(struct producer *p)
{
	if (!ev_is_active(&p->flush))
		ev_timer_start(p->loop, &p->flush);
}

static void purge(struct producer *p, int flags)
{
	rd_kafka_purge(p->rk, flags | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* Again and again, as a message may just move from one queue to another. */
static void on_purge(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct producer *p = w->data;

	if (p->outstanding)
		purge(p, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	else
		ev_timer_stop(loop, w);
}

void producer_give_up(struct producer *p, ev_tstamp inflight_after)
{
	purge(p, RD_KAFKA_PURGE_F_QUEUE);
	ev_timer_stop(p->loop, &p->purge);
	ev_timer_set(&p->purge, inflight_after, PURGE_INTERVAL);
	ev_timer_start(p->loop, &p->purge);
}

/* The beginning and the end. */

static void watch(struct producer *p)
{
	static const uint64_t one = 1;

	rd_kafka_set_log_queue(p->rk, NULL);
	p->queue = rd_kafka_queue_get_main(p->rk);
	rd_kafka_queue_io_event_enable(p->queue, p->fd, &one, sizeof one);
	ev_io_init(&p->io, on_wake, p->fd, EV_READ);
	ev_timer_init(&p->flush, on_flush, 0., FLUSH_INTERVAL);
	ev_timer_init(&p->purge, on_purge, 0., PURGE_INTERVAL);
	p->io.data = p->flush.data = p->purge.data = p;
	ev_io_start(p->loop, &p->io);
	producer_wake(p);	/* for what came before it was enabled */
}

struct producer *producer_new(struct ev_loop *loop,
			      const rd_kafka_conf_t *conf, size_t max_topics,
			      struct err *e)
{
	rd_kafka_conf_t *copy;
	struct producer *p;
	char why[400];
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0) {
		err_set(e, "eventfd: %s", strerror(errno));
		return NULL;
	}
	p = mem_alloc(1, sizeof *p);
	p->loop = loop;
	p->fd = fd;
	copy = rd_kafka_conf_dup(conf);
	p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, copy, why, sizeof why);
	if (!p->rk) {
		err_set(e, "%s", why);
		rd_kafka_conf_destroy(copy);
		close(fd);
		free(p);
		return NULL;
	}
	p->topics = kafka_topics_new(p->rk, max_topics);
	watch(p);
	return p;
}

/* The fd must outlive every thread that may write to it. */
static void destroy(void *arg)
{
	struct producer *p = arg;

	rd_kafka_destroy(p->rk);
	close(p->fd);
	free(p);
}

void producer_retire(struct producer *p, struct aside *aside)
{
	ev_io_stop(p->loop, &p->io);
	ev_timer_stop(p->loop, &p->flush);
	ev_timer_stop(p->loop, &p->purge);
	if (p->event)
		rd_kafka_event_destroy(p->event);
	kafka_topics_free(p->topics);
	rd_kafka_queue_io_event_enable(p->queue, -1, NULL, 0);
	rd_kafka_queue_destroy(p->queue);
	aside_run(aside, destroy, p);
}

/* Sending. */

static rd_kafka_headers_t *headers_of(const struct message *m)
{
	rd_kafka_headers_t *h = rd_kafka_headers_new(m->nheaders);
	size_t i;

	for (i = 0; i < m->nheaders; i++)
		rd_kafka_header_add(h, m->headers[i].name.p,
				    (ssize_t)m->headers[i].name.n,
				    m->headers[i].value.p,
				    (ssize_t)m->headers[i].value.n);
	return h;
}

/*
 * Headers are passed as a list: then they stay ours on failure.  Given one by
 * one, librdkafka before 2.12 frees them twice when the topic is not known.
 */
rd_kafka_resp_err_t producer_send(struct producer *p, rd_kafka_topic_t *rkt,
				  const struct message *m,
				  enum kafka_value value, void *opaque)
{
	rd_kafka_headers_t *headers = m->nheaders ? headers_of(m) : NULL;
	rd_kafka_resp_err_t err;
	rd_kafka_error_t *error;
	rd_kafka_vu_t part[6] = {
		{ .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = rkt },
		{ .vtype = RD_KAFKA_VTYPE_VALUE,
		  .u.mem = { m->value.p ? (void *)m->value.p : (void *)"",
			     m->value.n } },
		{ .vtype = RD_KAFKA_VTYPE_KEY,
		  .u.mem = { (void *)m->key.p, m->key.n } },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS,
		  .u.i = value == KAFKA_COPY ? RD_KAFKA_MSG_F_COPY : 0 },
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = opaque },
		{ .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
	};

	error = rd_kafka_produceva(p->rk, part, headers ? 6 : 5);
	if (!error) {
		p->outstanding++;
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	}
	if (headers)
		rd_kafka_headers_destroy(headers);
	err = rd_kafka_error_code(error);
	rd_kafka_error_destroy(error);
	return err;
}
