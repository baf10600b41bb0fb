/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/kafka_link.h"

#include <stdio.h>

/* Seconds. */
#define PROBE_QUICKLY	0.1
#define PROBE_SLOWLY	1.0	/* once the trouble is known */
#define DOWN_PATIENCE	1.0	/* an idle connection is back by then */
#define START_PATIENCE	5.0	/* for a first connection that hangs */

void kafka_link_seen(struct kafka_link *l, const char *how)
{
	bool tell = l->state == LINK_UNKNOWN || l->state == LINK_DOWN;

	if (l->state == LINK_UP)
		return;
	ev_timer_stop(l->loop, &l->probe);
	ev_timer_stop(l->loop, &l->patience);
	l->state = LINK_UP;
	l->trouble[0] = '\0';
	if (tell)
		l->tell(l->arg, true, how);
}

/*
 * Asks for metadata without waiting for it.  No broker being up is told apart
 * at once, and makes librdkafka try to connect.
 */
static bool any_broker(rd_kafka_t *rk)
{
	const struct rd_kafka_metadata *md = NULL;
	rd_kafka_resp_err_t err = rd_kafka_metadata(rk, 0, NULL, &md, 0);

	if (md)
		rd_kafka_metadata_destroy(md);
	return err != RD_KAFKA_RESP_ERR__TRANSPORT;
}

static void on_probe(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct kafka_link *l = w->data;

	if (any_broker(l->rk))
		kafka_link_seen(l, "a broker is connected");
}

static void probe_every(struct kafka_link *l, ev_tstamp interval)
{
	l->probe.repeat = interval;
	ev_timer_again(l->loop, &l->probe);
}

static void on_patience(struct ev_loop *loop, ev_timer *w, int revents)
{
	struct kafka_link *l = w->data;

	probe_every(l, PROBE_SLOWLY);
	l->state = LINK_DOWN;
	l->tell(l->arg, false, *l->trouble ? l->trouble : "no broker answered");
}

static void patience_for(struct kafka_link *l, ev_tstamp seconds)
{
	ev_timer_stop(l->loop, &l->patience);
	ev_timer_set(&l->patience, seconds, 0.);
	ev_timer_start(l->loop, &l->patience);
}

void kafka_link_start(struct kafka_link *l)
{
	ev_timer_init(&l->probe, on_probe, 0., PROBE_QUICKLY);
	ev_timer_init(&l->patience, on_patience, 0., 0.);
	l->probe.data = l->patience.data = l;
	probe_every(l, PROBE_QUICKLY);
	patience_for(l, START_PATIENCE);
}

void kafka_link_stop(struct kafka_link *l)
{
	ev_timer_stop(l->loop, &l->probe);
	ev_timer_stop(l->loop, &l->patience);
}

void kafka_link_doubt(struct kafka_link *l)
{
	switch (l->state) {
	case LINK_UP:
		l->state = LINK_DOUBTED;
		probe_every(l, PROBE_QUICKLY);
		patience_for(l, DOWN_PATIENCE);
		break;
	case LINK_UNKNOWN:
		if (ev_timer_remaining(l->loop, &l->patience) > DOWN_PATIENCE)
			patience_for(l, DOWN_PATIENCE);
		break;
	case LINK_DOUBTED:
	case LINK_DOWN:
		break;
	}
}

void kafka_link_trouble(struct kafka_link *l, const char *text)
{
	snprintf(l->trouble, sizeof l->trouble, "%s", text);
}
