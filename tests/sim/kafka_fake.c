/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A broker that appends, delays, refuses, forgets and stays silent.
 *
 * Refused lots: everything that is in flight for a topic together with a
 * poisoned event is refused with it, as Kafka refuses batches whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ledger.h"
#include "world.h"

#define TIMEOUT	(3 * USEC_PER_SEC)	/* message.timeout.ms */

struct kafka_fake {
	struct world *w;
	usec_t down_until;
	usec_t missing_until;
	size_t missing;		/* the last digit of those topics that are not there */
	struct message_fake *flying;
};

struct message_fake {
	struct message_fake *next;
	struct kafka_fake *k;
	struct instance *i;
	unsigned life;		/* of the instance when it was produced */
	struct entry *e;
	char topic[16];
	struct bytes id, reason;	/* owned */
	bool poison, doomed;
	bool landed;		/* its report may be on the way */
	enum verdict verdict;
	usec_t since;
};

struct kafka_fake *kafka_fake_new(struct world *w)
{
	struct kafka_fake *k = mem_alloc(1, sizeof *k);

	k->w = w;
	return k;
}

static void message_free(struct message_fake *m)
{
	free((char *)m->id.p);
	free((char *)m->reason.p);
	free(m);
}

void kafka_fake_free(struct kafka_fake *k)
{
	while (k->flying) {
		struct message_fake *m = k->flying;

		k->flying = m->next;
		message_free(m);
	}
	free(k);
}

static void unlink_message(struct message_fake *m)
{
	struct message_fake **p = &m->k->flying;

	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
}

/* A process that is frozen hears of it later. */
static void report(struct world *w, void *arg)
{
	struct message_fake *m = arg;

	if (instance_life(m->i) == m->life && w->now < instance_frozen_until(m->i)) {
		at(w, instance_frozen_until(m->i), report, m);
		return;
	}
	unlink_message(m);
	instance_report(m->i, m->life, m->e, m->verdict);
	message_free(m);
}

static void landed(struct message_fake *m, bool append, enum verdict v)
{
	struct world *w = m->k->w;

	if (append && m->reason.p)
		ledger_told(w->ledger, m->id, m->reason);
	else if (append)
		ledger_arrived(w->ledger, m->id);
	if (v == VERDICT_MAYBE)
		ledger_reason(w->ledger, m->id, true);
	m->verdict = v;
	m->landed = true;
	report(w, m);
}

static void doom_neighbours(const struct message_fake *m)
{
	for (struct message_fake *o = m->k->flying; o; o = o->next)
		if (strcmp(o->topic, m->topic) == 0 && o->i == m->i && !o->landed)
			o->doomed = true;
}

static bool is_missing(const struct message_fake *m)
{
	return (size_t)(m->topic[strlen(m->topic) - 1] - '0') == m->k->missing;
}

/* A crashed instance's messages may or may not have got there. */
static void arrive(struct world *w, void *arg)
{
	struct message_fake *m = arg;
	struct kafka_fake *k = m->k;

	if (instance_life(m->i) != m->life) {
		landed(m, below(w, WIRE, 2) && !m->poison && !m->doomed, VERDICT_ACKED);
		return;
	}
	if (w->now < k->missing_until && is_missing(m)) {
		landed(m, false, VERDICT_NO_TOPIC);
	} else if (w->now < k->down_until) {
		if (w->now - m->since > TIMEOUT)
			landed(m, false, VERDICT_RETRY);
		else
			at(w, w->now + 100 * USEC_PER_MSEC, arrive, m);
	} else if (m->poison || m->doomed) {
		if (m->poison)
			doom_neighbours(m);
		landed(m, false, VERDICT_REFUSED);
	} else if (strikes(w, FAULT_MAYBE)) {
		landed(m, below(w, WIRE, 2), VERDICT_MAYBE);
	} else if (strikes(w, FAULT_RETRY)) {
		landed(m, false, VERDICT_RETRY);
	} else {
		landed(m, true, VERDICT_ACKED);
	}
}

void kafka_fake_produce(struct kafka_fake *k, struct instance *i, struct entry *e,
			const struct produced *p)
{
	struct message_fake *m = mem_alloc(1, sizeof *m);

	*m = (struct message_fake){
		.next = k->flying, .k = k, .i = i, .life = instance_life(i), .e = e,
			.id = bytes_of(mem_copy(p->id), p->id.n), .poison = p->poison,
		.reason = p->reason.n ? bytes_of(mem_copy(p->reason), p->reason.n) : bytes_none,
		.since = k->w->now,
	};
	snprintf(m->topic, sizeof m->topic, "%.*s", (int)p->topic.n, p->topic.p);
	k->flying = m;
	at(k->w, k->w->now + 200 + (usec_t)below(k->w, WIRE, 5000), arrive, m);
}

void kafka_fake_down(struct kafka_fake *k, usec_t how_long)
{
	k->down_until = k->w->now + how_long;
}

void kafka_fake_miss(struct kafka_fake *k, usec_t how_long)
{
	k->missing = below(k->w, FAULT, TOPICS);
	k->missing_until = k->w->now + how_long;
}
