/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/kafka.h"

#include <errno.h>
#include <librdkafka/rdkafka.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <syslog.h>
#include <unistd.h>

#include "core/mem.h"
#include "io/aside.h"
#include "io/clock.h"
#include "io/kafka_conf.h"
#include "io/kafka_outcome.h"
#include "io/kafka_topics.h"

#define MAX_INFLIGHT		10000
#define MAX_TOPICS		1000
#define REPORTS_PER_TURN	4096	/* then the loop's other work */

/* Seconds. */
#define PROBE_INTERVAL		0.1	/* until reached, */
#define PROBE_SLOWLY		1.0	/* and once the trouble is known */
#define DOWN_PATIENCE		1.0	/* an idle connection is back by then */
#define START_PATIENCE		5.0	/* for a first connection that hangs */
#define INFLIGHT_PATIENCE	1.0	/* for answers that are under way */
#define PURGE_INTERVAL		0.1
#define REPLACE_DELAY_MIN	1.0	/* for the second fatal error in a row */
#define REPLACE_DELAY_MAX	30.0
#define REPLACE_CALM		60.0	/* without one: start over */
#define FLUSH_INTERVAL		0.05

#define FREE_LIMIT_MS		2000
#define FLUSH_MS		1

/*
 * One rd_kafka_t.
 *
 * Its queue writes to the eventfd only when it turns from empty to not empty,
 * and only if it was read since.  So the fd is read first, the queue until it
 * is empty; whoever stops earlier writes to the fd himself.
 */
struct producer {
	struct kafka *k;
	rd_kafka_t *rk;
	rd_kafka_queue_t *queue;
	struct kafka_topics *topics;
	int fd;
	ev_io io;
	ev_timer flush;			/* running: nothing waits for company */
	ev_timer purge;			/* running: what is left is given up */
	rd_kafka_event_t *event;	/* read in part, or NULL */
	size_t outstanding;
	bool failed;			/* of a fatal error */
};

/*
 *            fatal error             new producer
 *   RUNNING -------------> FAILED ------------------> REPLACING
 *      ^                  at once, or after a delay       |
 *      +------------ all reports of the old one ----------+
 */
enum phase {
	RUNNING,
	FAILED,			/* `replace` runs; nothing is taken */
	REPLACING		/* there is an old one; nothing is taken */
};

enum link {
	LINK_UNKNOWN,		/* of the start */
	LINK_UP,
	LINK_DOUBTED,		/* librdkafka says down; not told yet */
	LINK_DOWN
};

struct kafka {
	struct ev_loop *loop;
	struct kafka_handlers handlers;
	void *arg;
	rd_kafka_conf_t *conf;		/* to be duplicated */
	size_t max_topics;
	struct aside *aside;

	struct producer *now;
	struct producer *old;		/* when REPLACING */
	enum phase phase;
	ev_timer replace;
	ev_timer calm;			/* since the last one, a while ago */
	ev_tstamp delay;		/* of the last one */
	char fatal[512];		/* why */

	enum link link;
	ev_timer probe;			/* unless LINK_UP */
	ev_timer patience;		/* when neither up nor down */
	char trouble[512];		/* what librdkafka last said */

	bool refused;			/* somebody waits for reports_done() */
};

static void fail(struct kafka *k, struct producer *p);

/* Makes the loop come back to `p`. */
static void wake(struct producer *p)
{
	uint64_t one = 1;

	while (write(p->fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* Whether any broker is connected and ready. */

static void link_set(struct kafka *k, enum link link, const char *text)
{
	if (k->link == link)
		return;
	if (link == LINK_UP) {
		/* doubts that proved wrong are nobody's business */
		bool told = k->link == LINK_DOUBTED;

		ev_timer_stop(k->loop, &k->probe);
		ev_timer_stop(k->loop, &k->patience);
		k->link = link;
		k->trouble[0] = '\0';
		if (!told)
			k->handlers.state(k->arg, KAFKA_REACHED, text);
		return;
	}
	k->link = link;
	if (link == LINK_DOWN)
		k->handlers.state(k->arg, KAFKA_UNREACHABLE, text);
}

/*
 * Asks for metadata without waiting for it.  No broker being up is told apart
 * at once, and makes librdkafka try to connect.
 */
static bool link_probe(struct producer *p)
{
	const struct rd_kafka_metadata *md = NULL;
	rd_kafka_resp_err_t err = rd_kafka_metadata(p->rk, 0, NULL, &md, 0);

	if (md)
		rd_kafka_metadata_destroy(md);
	return err != RD_KAFKA_RESP_ERR__TRANSPORT;
}

static void probe_every(struct kafka *k, ev_tstamp interval)
{
	k->probe.repeat = interval;
	ev_timer_again(k->loop, &k->probe);
}

static void on_probe(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct kafka *k = w->data;

	if (link_probe(k->now))
		link_set(k, LINK_UP, "a broker is connected");
}

static void on_patience(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct kafka *k = w->data;

	probe_every(k, PROBE_SLOWLY);
	link_set(k, LINK_DOWN, *k->trouble ? k->trouble : "no broker answered");
}

static void link_doubt(struct kafka *k)
{
	if (k->link == LINK_DOWN)
		return;
	if (k->link == LINK_UP) {
		link_set(k, LINK_DOUBTED, NULL);
		probe_every(k, PROBE_INTERVAL);
	} else if (ev_timer_remaining(k->loop, &k->patience) < DOWN_PATIENCE) {
		return;
	}
	ev_timer_stop(k->loop, &k->patience);
	ev_timer_set(&k->patience, DOWN_PATIENCE, 0.);
	ev_timer_start(k->loop, &k->patience);
}

/* What the queue brings. */

static void serve_error(struct producer *p, rd_kafka_event_t *event)
{
	struct kafka *k = p->k;
	rd_kafka_resp_err_t err = rd_kafka_event_error(event);
	const char *text = rd_kafka_event_error_string(event);

	if (rd_kafka_event_error_is_fatal(event) ||
	    err == RD_KAFKA_RESP_ERR__FATAL) {
		fail(k, p);
		return;
	}
	if (p != k->now)
		return;
	if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		link_doubt(k);
		return;
	}
	snprintf(k->trouble, sizeof k->trouble, "%s", text);
	/* others are in its log, too */
	if (err == RD_KAFKA_RESP_ERR__AUTHENTICATION)
		k->handlers.log(k->arg, LOG_ERR, rd_kafka_err2name(err), text);
}

static void serve_log(struct producer *p, rd_kafka_event_t *event)
{
	const char *facility, *text;
	int level;

	if (rd_kafka_event_log(event, &facility, &text, &level) != 0)
		return;
	if (level < LOG_ERR)
		level = LOG_ERR;	/* we survive what it calls fatal */
	p->k->handlers.log(p->k->arg, level, facility, text);
}

/* So that the next try finds out whether the topic is still refused. */
static void refresh(struct producer *p, struct bytes topic)
{
	kafka_topics_refresh(p->topics, topic, clock_now());
}

static void serve_report(struct producer *p, const rd_kafka_message_t *m)
{
	struct kafka *k = p->k;
	enum kafka_outcome outcome;

	outcome = kafka_outcome(m->err, rd_kafka_message_status(m));
	p->outstanding--;
	if (outcome == KAFKA_ACKED && k->link != LINK_UP && p == k->now)
		link_set(k, LINK_UP, "a broker acknowledged an event");
	if (outcome == KAFKA_DENIED)
		refresh(p, bytes_str(rd_kafka_topic_name(m->rkt)));
	k->handlers.report(k->arg, m->_private, outcome,
			   m->err ? rd_kafka_err2name(m->err) : NULL);
}

/* Serves `limit` messages of p->event at most; returns how many. */
static size_t serve_some(struct producer *p, size_t limit)
{
	const rd_kafka_message_t *m;
	size_t n = 0;

	if (rd_kafka_event_type(p->event) == RD_KAFKA_EVENT_DR) {
		while (n < limit && (m = rd_kafka_event_message_next(p->event))) {
			serve_report(p, m);
			n++;
		}
		if (n == limit)
			return n;	/* perhaps there are more */
	} else if (rd_kafka_event_type(p->event) == RD_KAFKA_EVENT_ERROR) {
		serve_error(p, p->event);
	} else if (rd_kafka_event_type(p->event) == RD_KAFKA_EVENT_LOG) {
		serve_log(p, p->event);
	}
	rd_kafka_event_destroy(p->event);
	p->event = NULL;
	return n;
}

/* Returns how many reports there were. */
static size_t drain(struct producer *p)
{
	size_t events, reports = 0;

	for (events = 0; events < REPORTS_PER_TURN; events++) {
		if (!p->event)
			p->event = rd_kafka_queue_poll(p->queue, 0);
		if (!p->event)
			return reports;
		reports += serve_some(p, REPORTS_PER_TURN - reports);
		if (reports == REPORTS_PER_TURN)
			break;
	}
	wake(p);
	return reports;
}

/* One producer's life. */

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

/* Each message without a report gets one, from `after` seconds on. */
static void give_up(struct producer *p, ev_tstamp after)
{
	ev_timer_stop(p->k->loop, &p->purge);
	ev_timer_set(&p->purge, after, PURGE_INTERVAL);
	ev_timer_start(p->k->loop, &p->purge);
}

static void on_wake(struct ev_loop *loop, ev_io *w, int revents);

static void producer_watch(struct producer *p)
{
	static const uint64_t one = 1;

	rd_kafka_set_log_queue(p->rk, NULL);
	p->queue = rd_kafka_queue_get_main(p->rk);
	rd_kafka_queue_io_event_enable(p->queue, p->fd, &one, sizeof one);
	ev_io_init(&p->io, on_wake, p->fd, EV_READ);
	p->io.data = p;
	ev_io_start(p->k->loop, &p->io);
	ev_timer_init(&p->flush, on_flush, 0., FLUSH_INTERVAL);
	p->flush.data = p;
	ev_timer_init(&p->purge, on_purge, 0., PURGE_INTERVAL);
	p->purge.data = p;
	wake(p);	/* for what came before it was enabled */
}

static struct producer *producer_new(struct kafka *k, struct err *e)
{
	rd_kafka_conf_t *conf;
	struct producer *p;
	char why[400];
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0) {
		err_set(e, "eventfd: %s", strerror(errno));
		return NULL;
	}
	p = mem_alloc(1, sizeof *p);
	p->k = k;
	p->fd = fd;
	conf = rd_kafka_conf_dup(k->conf);
	p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
	if (!p->rk) {
		err_set(e, "%s", why);
		rd_kafka_conf_destroy(conf);
		close(fd);
		free(p);
		return NULL;
	}
	p->topics = kafka_topics_new(p->rk, k->max_topics);
	producer_watch(p);
	return p;
}

/* The fd must outlive every thread that may write to it. */
static void producer_destroy(void *arg)
{
	struct producer *p = arg;

	rd_kafka_destroy(p->rk);
	close(p->fd);
	free(p);
}

/* The last of it on this thread. */
static void producer_retire(struct producer *p)
{
	struct kafka *k = p->k;

	ev_io_stop(k->loop, &p->io);
	ev_timer_stop(k->loop, &p->flush);
	ev_timer_stop(k->loop, &p->purge);
	if (p->event)
		rd_kafka_event_destroy(p->event);
	kafka_topics_free(p->topics);
	rd_kafka_queue_io_event_enable(p->queue, -1, NULL, 0);
	rd_kafka_queue_destroy(p->queue);
	aside_run(k->aside, producer_destroy, p);
}

/* From one producer to the next. */

static void fail(struct kafka *k, struct producer *p)
{
	if (p != k->now)
		return;
	p->failed = true;
	if (k->phase != RUNNING)
		return;
	if (rd_kafka_fatal_error(p->rk, k->fatal, sizeof k->fatal) == 0)
		snprintf(k->fatal, sizeof k->fatal, "unknown reason");
	if (!ev_is_active(&k->calm))
		k->delay = 0.;
	else if (k->delay < REPLACE_DELAY_MIN)
		k->delay = REPLACE_DELAY_MIN;
	else
		k->delay = k->delay * 2. < REPLACE_DELAY_MAX ? k->delay * 2. :
							       REPLACE_DELAY_MAX;
	k->phase = FAILED;
	ev_timer_set(&k->replace, k->delay, 0.);
	ev_timer_start(k->loop, &k->replace);
}

static void replaced(struct kafka *k)
{
	producer_retire(k->old);
	k->old = NULL;
	k->phase = RUNNING;
	k->handlers.state(k->arg, KAFKA_RESTARTED, k->fatal);
	if (k->now->failed)
		fail(k, k->now);
}

/*
 * What is queued is given up at once; what the brokers may be answering just
 * now, a little later.
 */
static void on_replace(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct kafka *k = w->data;
	struct producer *fresh;
	struct err e;

	fresh = producer_new(k, &e);
	if (!fresh) {
		k->handlers.log(k->arg, LOG_ERR, "RESTART", e.text);
		ev_timer_set(w, REPLACE_DELAY_MIN, 0.);
		ev_timer_start(loop, w);
		return;
	}
	k->old = k->now;
	k->now = fresh;
	k->phase = REPLACING;
	ev_timer_stop(loop, &k->calm);
	ev_timer_set(&k->calm, REPLACE_CALM, 0.);
	ev_timer_start(loop, &k->calm);
	purge(k->old, RD_KAFKA_PURGE_F_QUEUE);
	give_up(k->old, INFLIGHT_PATIENCE);
	wake(k->old);
}

static void on_wake(struct ev_loop *loop, ev_io *w, int revents)
{
	struct producer *p = w->data;
	struct kafka *k = p->k;
	uint64_t count;
	size_t reports;

	while (read(p->fd, &count, sizeof count) < 0 && errno == EINTR)
		;
	reports = drain(p);
	if (p == k->old && !p->outstanding && !p->event) {
		replaced(k);
		reports += k->refused;
	}
	if (reports) {
		k->refused = false;
		k->handlers.reports_done(k->arg);
	}
}

/* The module. */

static void on_calm(struct ev_loop *loop, ev_timer *w, int revents)
{
	/* it is enough that it runs no more */
}

static void timers_init(struct kafka *k)
{
	ev_timer_init(&k->replace, on_replace, 0., 0.);
	ev_timer_init(&k->calm, on_calm, REPLACE_CALM, 0.);
	ev_timer_init(&k->probe, on_probe, 0., PROBE_INTERVAL);
	ev_timer_init(&k->patience, on_patience, START_PATIENCE, 0.);
	k->replace.data = k->calm.data = k->probe.data = k->patience.data = k;
}

static void timers_stop(struct kafka *k)
{
	ev_timer_stop(k->loop, &k->replace);
	ev_timer_stop(k->loop, &k->calm);
	ev_timer_stop(k->loop, &k->probe);
	ev_timer_stop(k->loop, &k->patience);
}

struct kafka *kafka_new(struct ev_loop *loop, const struct kafka_conf *conf,
			const struct kafka_handlers *handlers, void *arg,
			struct err *e)
{
	struct kafka_conf c = *conf;
	struct kafka *k = mem_alloc(1, sizeof *k);

	c.max_inflight = conf->max_inflight ? conf->max_inflight : MAX_INFLIGHT;
	k->loop = loop;
	k->handlers = *handlers;
	k->arg = arg;
	k->max_topics = conf->max_topics ? conf->max_topics : MAX_TOPICS;
	k->aside = aside_new();
	timers_init(k);
	k->conf = kafka_conf_build(&c, e);
	if (k->conf)
		k->now = producer_new(k, e);
	if (!k->now) {
		(void)kafka_free(k);
		return NULL;
	}
	ev_timer_start(loop, &k->patience);
	probe_every(k, PROBE_INTERVAL);
	return k;
}

void kafka_warm(struct kafka *k, struct bytes topic)
{
	const char *error;

	(void)kafka_topics_get(k->now->topics, topic, &error);
}

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
static rd_kafka_resp_err_t hand_over(struct producer *p, rd_kafka_topic_t *rkt,
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
	if (!error)
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	if (headers)
		rd_kafka_headers_destroy(headers);
	err = rd_kafka_error_code(error);
	rd_kafka_error_destroy(error);
	return err;
}

static enum kafka_produced not_taken(struct kafka *k, const struct message *m,
				     rd_kafka_resp_err_t err)
{
	switch (err) {
	case RD_KAFKA_RESP_ERR__FATAL:
		fail(k, k->now);
		/* fallthrough */
	case RD_KAFKA_RESP_ERR__QUEUE_FULL:
		k->refused = true;
		return KAFKA_FULL;
	case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
		return KAFKA_TOO_LARGE;
	case RD_KAFKA_RESP_ERR__INVALID_ARG:
		return KAFKA_INVALID;
	case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
	case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
		refresh(k->now, m->topic);
		return KAFKA_DENIED_TOPIC;
	default:
		/* the topic isn't there, or its metadata has an error */
		refresh(k->now, m->topic);
		return KAFKA_UNKNOWN_TOPIC;
	}
}

enum kafka_produced kafka_produce(struct kafka *k, const struct message *m,
				  enum kafka_value value, void *opaque,
				  const char **error)
{
	struct producer *p = k->now;
	rd_kafka_topic_t *rkt;
	rd_kafka_resp_err_t err;

	*error = NULL;
	if (k->phase != RUNNING) {
		*error = rd_kafka_err2name(RD_KAFKA_RESP_ERR__FATAL);
		k->refused = true;
		return KAFKA_FULL;
	}
	rkt = kafka_topics_get(p->topics, m->topic, error);
	if (!rkt)
		return KAFKA_UNKNOWN_TOPIC;
	err = hand_over(p, rkt, m, value, opaque);
	if (!err) {
		p->outstanding++;
		return KAFKA_TAKEN;
	}
	*error = rd_kafka_err2name(err);
	return not_taken(k, m, err);
}

size_t kafka_outstanding(const struct kafka *k)
{
	return k->now->outstanding + (k->old ? k->old->outstanding : 0);
}

void kafka_flush_begin(struct kafka *k)
{
	if (!ev_is_active(&k->now->flush))
		ev_timer_start(k->loop, &k->now->flush);
}

void kafka_purge(struct kafka *k)
{
	if (k->old)
		give_up(k->old, 0.);
	give_up(k->now, 0.);
}

bool kafka_free(struct kafka *k)
{
	bool all;

	if (!k)
		return true;
	if (k->old)
		producer_retire(k->old);
	if (k->now)
		producer_retire(k->now);
	timers_stop(k);
	all = aside_free(k->aside, FREE_LIMIT_MS);
	if (k->conf)
		rd_kafka_conf_destroy(k->conf);
	free(k);
	return all;
}

void kafka_tune_malloc(void)
{
#ifdef __GLIBC__
	mallopt(M_MXFAST, 0);
#endif
}
