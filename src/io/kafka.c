/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/kafka.h"

#include <librdkafka/rdkafka.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "core/mem.h"
#include "io/aside.h"
#include "io/clock.h"
#include "io/kafka_conf.h"
#include "io/kafka_link.h"
#include "io/kafka_outcome.h"
#include "io/kafka_producer.h"
#include "io/kafka_topics.h"

#define MAX_INFLIGHT		10000
#define MAX_TOPICS		1000
#define FREE_LIMIT_MS		2000

/* Seconds. */
#define INFLIGHT_PATIENCE	1.0	/* for answers that are under way */
#define REPLACE_DELAY_MIN	1.0	/* for the second fatal error in a row */
#define REPLACE_DELAY_MAX	30.0
#define REPLACE_CALM		60.0	/* without one: start over */

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

struct kafka {
	struct ev_loop *loop;
	struct kafka_handlers handlers;
	void *arg;
	rd_kafka_conf_t *conf;		/* to be duplicated */
	size_t max_topics;
	struct aside *aside;
	struct kafka_link link;

	struct producer *now;
	struct producer *old;		/* when REPLACING */
	enum phase phase;
	ev_timer replace;
	ev_timer calm;			/* since the last one, a while ago */
	ev_tstamp delay;		/* of the last one */
	char fatal[512];		/* why */

	bool refused;			/* somebody waits for reports_done() */
};

/* From one producer to the next. */

static ev_tstamp delay_after(const struct kafka *k)
{
	if (!ev_is_active(&k->calm))
		return 0.;
	if (k->delay < REPLACE_DELAY_MIN)
		return REPLACE_DELAY_MIN;
	return k->delay * 2. < REPLACE_DELAY_MAX ? k->delay * 2. :
						   REPLACE_DELAY_MAX;
}

/* The present producer is of no use any more. */
static void failed(struct kafka *k)
{
	if (k->phase != RUNNING)
		return;
	if (rd_kafka_fatal_error(k->now->rk, k->fatal, sizeof k->fatal) == 0)
		snprintf(k->fatal, sizeof k->fatal, "unknown reason");
	k->phase = FAILED;
	k->delay = delay_after(k);
	ev_timer_set(&k->replace, k->delay, 0.);
	ev_timer_start(k->loop, &k->replace);
}

static void on_fatal(struct producer *p)
{
	struct kafka *k = p->arg;

	if (p == k->now)
		failed(k);
}

static struct producer *start_one(struct kafka *k, struct err *e);

/*
 * What is queued is given up at once; what the brokers may be answering just
 * now, a little later.
 */
static void on_replace(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct kafka *k = w->data;
	struct producer *fresh;
	struct err e;

	fresh = start_one(k, &e);
	if (!fresh) {
		k->handlers.log(k->arg, LOG_ERR, "RESTART", e.text);
		ev_timer_set(w, REPLACE_DELAY_MIN, 0.);
		ev_timer_start(loop, w);
		return;
	}
	k->old = k->now;
	k->now = fresh;
	k->link.rk = fresh->rk;
	k->phase = REPLACING;
	ev_timer_stop(loop, &k->calm);
	ev_timer_set(&k->calm, REPLACE_CALM, 0.);
	ev_timer_start(loop, &k->calm);
	producer_give_up(k->old, INFLIGHT_PATIENCE);
	producer_wake(k->old);
}

static void on_calm(struct ev_loop *loop, ev_timer *w, int revents)
{
	/* it is enough that it runs no more */
}

/* The old one has nothing more to say. */
static void replaced(struct kafka *k)
{
	producer_retire(k->old, k->aside);
	k->old = NULL;
	k->phase = RUNNING;
	k->handlers.state(k->arg, KAFKA_RESTARTED, k->fatal);
	if (k->now->failed)
		failed(k);
}

/* What a producer tells. */

/* So that the next try finds out whether the topic is still refused. */
static void refresh(struct producer *p, struct bytes topic)
{
	kafka_topics_refresh(p->topics, topic, clock_now());
}

static void on_report(struct producer *p, const rd_kafka_message_t *m)
{
	struct kafka *k = p->arg;
	enum kafka_outcome outcome;

	outcome = kafka_outcome(m->err, rd_kafka_message_status(m));
	if (outcome == KAFKA_ACKED && p == k->now)
		kafka_link_seen(&k->link, "a broker acknowledged an event");
	if (outcome == KAFKA_DENIED)
		refresh(p, bytes_str(rd_kafka_topic_name(m->rkt)));
	k->handlers.report(k->arg, m->_private, outcome,
			   m->err ? rd_kafka_err2name(m->err) : NULL);
}

static void on_error(struct producer *p, rd_kafka_resp_err_t err,
		     const char *text)
{
	struct kafka *k = p->arg;

	if (p != k->now)
		return;
	if (err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
		kafka_link_doubt(&k->link);
		return;
	}
	kafka_link_trouble(&k->link, text);
	/* others are in its log, too */
	if (err == RD_KAFKA_RESP_ERR__AUTHENTICATION)
		k->handlers.log(k->arg, LOG_ERR, rd_kafka_err2name(err), text);
}

static void on_log(struct producer *p, int level, const char *facility,
		   const char *text)
{
	struct kafka *k = p->arg;

	k->handlers.log(k->arg, level, facility, text);
}

static void on_served(struct producer *p, size_t reports)
{
	struct kafka *k = p->arg;
	bool done = reports > 0;

	if (p == k->old && !p->outstanding && !p->event) {
		replaced(k);
		done |= k->refused;
	}
	if (done) {
		k->refused = false;
		k->handlers.reports_done(k->arg);
	}
}

static void on_link(void *arg, bool up, const char *why)
{
	struct kafka *k = arg;

	k->handlers.state(k->arg, up ? KAFKA_REACHED : KAFKA_UNREACHABLE, why);
}

static struct producer *start_one(struct kafka *k, struct err *e)
{
	static const struct producer_handlers handlers = {
		on_report, on_error, on_fatal, on_log, on_served
	};
	struct producer *p = producer_new(k->loop, k->conf, k->max_topics, e);

	if (p) {
		p->handlers = &handlers;
		p->arg = k;
	}
	return p;
}

/* The module. */

struct kafka *kafka_new(struct ev_loop *loop, const struct kafka_conf *conf,
			const struct kafka_handlers *handlers, void *arg,
			struct err *e)
{
	struct kafka_conf c = *conf;
	struct kafka *k = mem_alloc(1, sizeof *k);

	c.max_inflight = conf->max_inflight ? conf->max_inflight : MAX_INFLIGHT;
	k->loop = k->link.loop = loop;
	k->handlers = *handlers;
	k->arg = arg;
	k->max_topics = conf->max_topics ? conf->max_topics : MAX_TOPICS;
	k->aside = aside_new();
	ev_timer_init(&k->replace, on_replace, 0., 0.);
	ev_timer_init(&k->calm, on_calm, REPLACE_CALM, 0.);
	k->replace.data = k->calm.data = k;
	k->conf = kafka_conf_build(&c, e);
	if (k->conf)
		k->now = start_one(k, e);
	if (!k->now) {
		(void)kafka_free(k);
		return NULL;
	}
	k->link.tell = on_link;
	k->link.arg = k;
	k->link.rk = k->now->rk;
	kafka_link_start(&k->link);
	return k;
}

void kafka_warm(struct kafka *k, struct bytes topic)
{
	const char *error;

	(void)kafka_topics_get(k->now->topics, topic, &error);
}

static enum kafka_produced not_taken(struct kafka *k, const struct message *m,
				     rd_kafka_resp_err_t err)
{
	switch (err) {
	case RD_KAFKA_RESP_ERR__FATAL:
		failed(k);
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
	rd_kafka_topic_t *rkt;
	rd_kafka_resp_err_t err;

	*error = NULL;
	if (k->phase != RUNNING) {
		*error = rd_kafka_err2name(RD_KAFKA_RESP_ERR__FATAL);
		k->refused = true;
		return KAFKA_FULL;
	}
	rkt = kafka_topics_get(k->now->topics, m->topic, error);
	if (!rkt)
		return KAFKA_UNKNOWN_TOPIC;
	err = producer_send(k->now, rkt, m, value, opaque);
	if (!err)
		return KAFKA_TAKEN;
	*error = rd_kafka_err2name(err);
	return not_taken(k, m, err);
}

size_t kafka_outstanding(const struct kafka *k)
{
	return k->now->outstanding + (k->old ? k->old->outstanding : 0);
}

void kafka_flush_begin(struct kafka *k)
{
	producer_flush(k->now);
}

void kafka_purge(struct kafka *k)
{
	if (k->old)
		producer_give_up(k->old, 0.);
	producer_give_up(k->now, 0.);
}

bool kafka_free(struct kafka *k)
{
	bool all;

	if (!k)
		return true;
	if (k->old)
		producer_retire(k->old, k->aside);
	if (k->now)
		producer_retire(k->now, k->aside);
	ev_timer_stop(k->loop, &k->replace);
	ev_timer_stop(k->loop, &k->calm);
	kafka_link_stop(&k->link);
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
