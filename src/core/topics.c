/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/topics.h"

#include <assert.h>
#include <stdlib.h>

#include "core/mem.h"

#define BUCKETS	256	/* a power of two; topics are few */
#define TIDY_AT	1024	/* topics; beyond, those that are idle are let go */

struct queue {
	struct entry *head, *tail;
};

struct parked {
	uint64_t seq;
	size_t n;	/* entries, as far as we know */
	unsigned unsure;	/* settles under way that add to it */
};

struct topic {
	struct topic *next;		/* in its bucket */
	struct topic *turn;		/* in the ring of those with work */
	bool in_ring;
	enum topic_state state;
	char *name;
	size_t name_len;
	struct queue ready, suspects;
	bool alone;			/* a suspect is flying */
	size_t flying;
	size_t entries;			/* queued, flying, waiting or to be placed */
	usec_t retry_at, pause;
	bool fetching;
	bool special;			/* does not flow, or has parked batches */
	struct parked *parked;
	size_t nparked, cap;
};

struct topics {
	struct topics_conf conf;
	struct topic *buckets[BUCKETS];
	struct topic *ring, *ring_tail;	/* topics that may have work */
	struct entry *later, *later_tail;
	usec_t later_at;		/* when the first of them is due */
	size_t flying;
	size_t count, tidy_at;		/* topics known; when to let idle ones go */
	size_t special;			/* how many are */
	size_t stopped;			/* how many do not flow */
};

static void queue_put(struct queue *q, struct entry *e)
{
	e->next = NULL;
	if (q->tail)
		q->tail->next = e;
	else
		q->head = e;
	q->tail = e;
}

static void queue_push(struct queue *q, struct entry *e)
{
	e->next = q->head;
	q->head = e;
	if (!q->tail)
		q->tail = e;
}

static struct entry *queue_take(struct queue *q)
{
	struct entry *e = q->head;

	if (!e)
		return NULL;
	q->head = e->next;
	if (!q->head)
		q->tail = NULL;
	e->next = NULL;
	return e;
}

struct topics *topics_new(const struct topics_conf *conf)
{
	struct topics *ts = mem_alloc(1, sizeof *ts);

	ts->conf = *conf;
	ts->tidy_at = TIDY_AT;
	return ts;
}

void topics_configure(struct topics *ts, const struct topics_conf *conf)
{
	ts->conf = *conf;
}

static void topic_free(struct topic *t)
{
	free(t->parked);
	free(t->name);
	free(t);
}

void topics_free(struct topics *ts)
{
	if (!ts)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (ts->buckets[i]) {
			struct topic *t = ts->buckets[i];

			ts->buckets[i] = t->next;
			topic_free(t);
		}
	free(ts);
}

static struct topic **bucket(struct topics *ts, struct bytes name)
{
	unsigned x = 2166136261u;

	for (size_t i = 0; i < name.n; i++)
		x = (x ^ (unsigned char)name.p[i]) * 16777619u;
	return &ts->buckets[(x ^ x >> 15) & (BUCKETS - 1)];
}

static bool idle(const struct topic *t)
{
	return !t->entries && !t->in_ring && !t->special && !t->fetching;
}

/* Topic names come from events: what is idle is not kept for ever. */
static void tidy(struct topics *ts)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct topic **at = &ts->buckets[i]; *at;) {
			struct topic *t = *at;

			if (!idle(t)) {
				at = &t->next;
				continue;
			}
			*at = t->next;
			topic_free(t);
			ts->count--;
		}
	ts->tidy_at = TIDY_AT + 2 * ts->count;
}

static struct topic *topic_get(struct topics *ts, struct bytes name)
{
	struct topic **at = bucket(ts, name);
	struct topic *t;

	for (t = *at; t; t = t->next)
		if (bytes_eq(bytes_of(t->name, t->name_len), name))
			return t;
	if (ts->count >= ts->tidy_at)
		tidy(ts);
	t = mem_alloc(1, sizeof *t);
	t->name = mem_copy(name);
	t->name_len = name.n;
	t->pause = ts->conf.park_min;
	t->next = *at;
	*at = t;
	ts->count++;
	return t;
}

/* The one place where a topic changes its state. */
static void topic_move(struct topics *ts, struct topic *t, enum topic_state to)
{
	ts->stopped += (to != TOPIC_FLOWS) - (t->state != TOPIC_FLOWS);
	t->state = to;
}

/* To be called when state or parked batches have changed. */
static void topic_mark(struct topics *ts, struct topic *t)
{
	bool special = t->state != TOPIC_FLOWS || t->nparked > 0;

	ts->special += special - t->special;
	t->special = special;
}

static void ring_add(struct topics *ts, struct topic *t)
{
	if (t->in_ring)
		return;
	t->in_ring = true;
	t->turn = NULL;
	if (ts->ring_tail)
		ts->ring_tail->turn = t;
	else
		ts->ring = t;
	ts->ring_tail = t;
}

static struct topic *ring_take(struct topics *ts)
{
	struct topic *t = ts->ring;

	if (!t)
		return NULL;
	ts->ring = t->turn;
	if (!ts->ring)
		ts->ring_tail = NULL;
	t->in_ring = false;
	return t;
}

/* Not for PARKED, which counts until it is placed. */
static void over(struct entry *e, enum entry_state state)
{
	entry_move(e, state);
	e->topic->entries--;
}

static void bury_untold(struct entry *e)
{
	e->death = DEATH_UNTOLD;
	e->batch->untold++;
	over(e, ENTRY_BURIED);
}

/* Its topic does not flow: it waits in Redis. */
static void set_aside(struct entry *e)
{
	if (e->death == DEATH_DYING)
		bury_untold(e);
	else
		entry_move(e, ENTRY_PARKED);
}

static void queue_for(struct topics *ts, struct entry *e)
{
	struct topic *t = e->topic;

	if (t->state == TOPIC_PARKED) {
		set_aside(e);
		return;
	}
	queue_put(e->suspect ? &t->suspects : &t->ready, e);
	ring_add(ts, t);
}

void topics_enter(struct topics *ts, struct entry *e, struct bytes name)
{
	struct topic *t = topic_get(ts, name);

	assert(e->state == ENTRY_QUEUED && !e->topic);
	e->topic = t;
	t->entries++;
	/* Only what was read again for it takes part in a trial. */
	if (t->state == TOPIC_TRIAL && e->batch->source != BATCH_FETCHED)
		set_aside(e);
	else
		queue_for(ts, e);
}

void topics_tell(struct topics *ts, struct entry *e, struct bytes name)
{
	assert(e->reason && e->death == DEATH_PLAIN);
	if (e->topic)
		e->topic->entries--;
	e->topic = NULL;
	e->suspect = false;
	e->death = DEATH_DYING;
	topics_enter(ts, e, name);
}

/* What of this topic may go now. */
static struct entry *topic_pick(struct topic *t)
{
	struct entry *e;

	if (t->alone)
		return NULL;
	if (!t->suspects.head)
		return queue_take(&t->ready);
	if (t->flying)
		return NULL;
	e = queue_take(&t->suspects);
	t->alone = true;
	return e;
}

struct entry *topics_next(struct topics *ts)
{
	struct topic *t;

	while ((t = ts->ring)) {
		struct entry *e = topic_pick(t);

		if (e) {
			t->flying++;
			ts->flying++;
			entry_move(e, ENTRY_FLYING);
			return e;
		}
		/* A topic with suspects comes back with the next verdict. */
		ring_take(ts);
	}
	return NULL;
}

static void landed(struct topics *ts, struct entry *e)
{
	struct topic *t = e->topic;

	t->flying--;
	ts->flying--;
	if (e->suspect)
		t->alone = false;
	if (t->ready.head || t->suspects.head)
		ring_add(ts, t);
}

void topics_back(struct topics *ts, struct entry *e)
{
	landed(ts, e);
	entry_move(e, ENTRY_QUEUED);
	queue_push(e->suspect ? &e->topic->suspects : &e->topic->ready, e);
	ring_add(ts, e->topic);
}

static void park_queue(struct queue *q)
{
	struct entry *e;

	while ((e = queue_take(q)))
		set_aside(e);
}

static enum topic_news park(struct topics *ts, struct entry *e, usec_t now)
{
	struct topic *t = e->topic;
	bool news = t->state != TOPIC_PARKED;

	set_aside(e);
	park_queue(&t->ready);
	park_queue(&t->suspects);
	if (!news)
		return NEWS_NONE;
	t->pause = t->state == TOPIC_TRIAL ? 2 * t->pause : ts->conf.park_min;
	if (t->pause > ts->conf.park_max)
		t->pause = ts->conf.park_max;
	t->retry_at = now + t->pause;
	topic_move(ts, t, TOPIC_PARKED);
	topic_mark(ts, t);
	return NEWS_PARKED;
}

static void later(struct topics *ts, struct entry *e, usec_t now)
{
	entry_move(e, ENTRY_LATER);
	e->next = NULL;
	if (ts->later_tail)
		ts->later_tail->next = e;
	else
		ts->later = e;
	ts->later_tail = e;
	/* All wait until a pause after the latest: order is kept. */
	ts->later_at = now + ts->conf.retry_pause;
}

static enum topic_news flows(struct topics *ts, struct topic *t)
{
	if (t->state == TOPIC_FLOWS)
		return NEWS_NONE;
	topic_move(ts, t, TOPIC_FLOWS);
	topic_mark(ts, t);
	return NEWS_UNPARKED;
}

static enum topic_news acked(struct topics *ts, struct entry *e)
{
	if (e->death == DEATH_DYING) {
		e->death = DEATH_TOLD;
		over(e, ENTRY_BURIED);
	} else {
		over(e, ENTRY_DONE);
	}
	return flows(ts, e->topic);
}

/* It can't be delivered; a topic that refuses one is there. */
static enum topic_news give_up(struct topics *ts, struct entry *e, const char *reason,
			       bool tell)
{
	struct topic *t = e->topic;

	if (e->death == DEATH_DYING) {
		bury_untold(e);
		return flows(ts, t);
	}
	e->reason = mem_copy(bytes_str(reason ? reason : "refused"));
	if (tell)
		entry_move(e, ENTRY_QUEUED);
	else
		over(e, ENTRY_BURIED);
	return flows(ts, t);
}

static enum topic_news suspect(struct topics *ts, struct entry *e)
{
	e->suspect = true;
	entry_move(e, ENTRY_QUEUED);
	queue_put(&e->topic->suspects, e);
	ring_add(ts, e->topic);
	return NEWS_SUSPECT;
}

enum topic_news topics_verdict(struct topics *ts, struct entry *e, enum verdict v,
			       const char *reason, bool tell, usec_t now)
{
	bool alone = e->topic->alone;

	landed(ts, e);
	switch (v) {
	case VERDICT_ACKED:
		return acked(ts, e);
	case VERDICT_RETRY:
	case VERDICT_MAYBE:
		later(ts, e, now);
		return NEWS_NONE;
	case VERDICT_REFUSED:
		if (!e->suspect || !alone)
			return suspect(ts, e);
		return give_up(ts, e, reason, tell);
	case VERDICT_CULPRIT:
		return give_up(ts, e, reason, tell);
	case VERDICT_NO_TOPIC:
		return park(ts, e, now);
	}
	return NEWS_NONE;
}

bool topics_tick(struct topics *ts, usec_t now)
{
	struct entry *e, *next;
	bool outcome = false;

	if (!ts->later || now < ts->later_at)
		return false;
	e = ts->later;
	ts->later = ts->later_tail = NULL;
	for (; e; e = next) {
		next = e->next;
		entry_move(e, ENTRY_QUEUED);
		queue_for(ts, e);
		outcome |= entry_over(e);
	}
	return outcome;
}

static void parked_add(struct topics *ts, struct topic *t, uint64_t seq, size_t n)
{
	if (t->nparked == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 8;
		t->parked = mem_resize(t->parked, t->cap, sizeof *t->parked);
	}
	t->parked[t->nparked++] = (struct parked){ .seq = seq, .n = n };
	topic_mark(ts, t);
}

void topics_parked(struct topics *ts, struct bytes name, uint64_t seq, usec_t retry)
{
	struct topic *t = topic_get(ts, name);

	if (t->state == TOPIC_FLOWS && t->flying == 0) {
		topic_move(ts, t, TOPIC_PARKED);
		t->retry_at = retry;
	}
	parked_add(ts, t, seq, ts->conf.batch_limit);
}

/* A trial without anything to try is none. */
static void trial_over(struct topics *ts, struct topic *t)
{
	if (t->state == TOPIC_TRIAL && t->entries == 0 && !t->fetching) {
		topic_move(ts, t, TOPIC_PARKED);
		topic_mark(ts, t);
	}
}

uint64_t topics_place(struct topics *ts, struct topic *t, size_t n, uint64_t fresh,
		      bool *used)
{
	struct parked *last = t->nparked ? &t->parked[t->nparked - 1] : NULL;

	t->entries -= n;
	*used = !last || last->n + n > ts->conf.batch_limit;
	if (*used) {
		parked_add(ts, t, fresh, 0);
		last = &t->parked[t->nparked - 1];
	}
	last->n += n;
	last->unsure++;
	trial_over(ts, t);
	return last->seq;
}

void topics_placed(struct topics *ts, struct topic *t, uint64_t seq)
{
	(void)ts;
	for (size_t i = 0; i < t->nparked; i++)
		if (t->parked[i].seq == seq)
			t->parked[i].unsure--;
}

/* The first that can be read; nparked when there is none. */
static size_t first_sure(const struct topic *t)
{
	size_t i = 0;

	while (i < t->nparked && t->parked[i].unsure)
		i++;
	return i;
}


/* With no batch at all it is tried with the next event. */
static bool on_trial(const struct topic *t, usec_t now)
{
	return !t->fetching && t->state == TOPIC_PARKED && now >= t->retry_at &&
	       (t->nparked == 0 || first_sure(t) < t->nparked);
}

static bool has_backlog(const struct topic *t, usec_t now)
{
	(void)now;
	return !t->fetching && t->state == TOPIC_FLOWS && first_sure(t) < t->nparked;
}

/* Calls `f` for each topic until it returns true. */
static struct topic *find(const struct topics *ts, bool (*f)(const struct topic *, usec_t),
			  usec_t now)
{
	if (ts->special == 0)
		return NULL;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct topic *t = ts->buckets[i]; t; t = t->next)
			if (f(t, now))
				return t;
	return NULL;
}


usec_t topics_deadline(const struct topics *ts)
{
	usec_t at = ts->later ? ts->later_at : USEC_NEVER;

	if (ts->special == 0)
		return at;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct topic *t = ts->buckets[i]; t; t = t->next) {
			if (t->retry_at < at && on_trial(t, t->retry_at))
				at = t->retry_at;
			if (has_backlog(t, 0))
				at = 0;
		}
	return at;
}

bool topics_trial(struct topics *ts, usec_t now, uint64_t *seq, struct topic **t)
{
	struct topic *found = find(ts, has_backlog, now);
	size_t i;

	if (!found)
		found = find(ts, on_trial, now);
	if (!found)
		return false;
	if (found->nparked == 0) {	/* nothing to try with: try the next event */
		flows(ts, found);
		return false;
	}
	i = first_sure(found);
	*seq = found->parked[i].seq;
	found->nparked--;
	memmove(found->parked + i, found->parked + i + 1,
		(found->nparked - i) * sizeof *found->parked);
	found->fetching = true;
	if (found->state == TOPIC_PARKED)
		topic_move(ts, found, TOPIC_TRIAL);
	topic_mark(ts, found);
	*t = found;
	return true;
}

bool topics_has(const struct topics *ts, uint64_t seq)
{
	for (size_t i = 0; ts->special && i < BUCKETS; i++)
		for (const struct topic *t = ts->buckets[i]; t; t = t->next)
			for (size_t j = 0; j < t->nparked; j++)
				if (t->parked[j].seq == seq)
					return true;
	return false;
}

void topics_untried(struct topics *ts, struct topic *t, uint64_t seq)
{
	t->fetching = false;
	trial_over(ts, t);
	parked_add(ts, t, seq, ts->conf.batch_limit);
}

void topics_fetched(struct topics *ts, struct topic *t)
{
	t->fetching = false;
	trial_over(ts, t);
}

void topics_unpark(struct topics *ts)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct topic *t = ts->buckets[i]; t; t = t->next) {
			t->nparked = 0;
			topic_mark(ts, t);
		}
}

static void queue_drop(struct queue *q, const struct batch *b)
{
	struct queue kept = { NULL, NULL };
	struct entry *e;

	while ((e = queue_take(q)))
		if (e->batch != b)
			queue_put(&kept, e);
	*q = kept;
}

void topics_drop(struct topics *ts, const struct batch *b)
{
	struct queue waiting = { ts->later, ts->later_tail };

	queue_drop(&waiting, b);
	ts->later = waiting.head;
	ts->later_tail = waiting.tail;
	for (size_t i = 0; i < b->n; i++) {
		struct entry *e = &b->entries[i];
		bool held = e->state == ENTRY_QUEUED || e->state == ENTRY_LATER ||
			    (e->state == ENTRY_PARKED && !e->park_seq);

		if (!e->topic || !held)
			continue;
		queue_drop(&e->topic->ready, b);
		queue_drop(&e->topic->suspects, b);
		e->topic->entries--;
		trial_over(ts, e->topic);
	}
}

void topics_let_go(struct topics *ts, struct entry *e)
{
	landed(ts, e);
	over(e, ENTRY_LEFT);
	trial_over(ts, e->topic);
}

static void leave_queue(struct queue *q)
{
	struct entry *e;

	while ((e = queue_take(q)))
		over(e, ENTRY_LEFT);
}

void topics_leave(struct topics *ts)
{
	struct queue waiting = { ts->later, ts->later_tail };

	leave_queue(&waiting);
	ts->later = ts->later_tail = NULL;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct topic *t = ts->buckets[i]; t; t = t->next) {
			leave_queue(&t->ready);
			leave_queue(&t->suspects);
		}
}

struct bytes topic_name(const struct topic *t)
{
	return bytes_of(t->name, t->name_len);
}

enum topic_state topic_state(const struct topic *t)
{
	return t->state;
}

usec_t topic_retry_at(const struct topic *t)
{
	return t->retry_at;
}

usec_t topic_pause(const struct topic *t)
{
	return t->pause;
}

size_t topics_flying(const struct topics *ts)
{
	return ts->flying;
}

size_t topics_count(const struct topics *ts)
{
	return ts->count;
}

size_t topics_parked_count(const struct topics *ts)
{
	return ts->stopped;
}
