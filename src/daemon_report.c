/* SPDX-License-Identifier: BSD-2-Clause */

#include "daemon_report.h"

#include <string.h>

static void note_slot(struct log *log, const struct note *n)
{
	struct log_line l;

	if (n->kind == NOTE_JOINED) {
		log_begin(&l, log, LOG_SLOT_JOINED, "holding slot %lld", (long long)n->a);
		log_int(&l, "slot", n->a);
		log_int(&l, "epoch", n->b);
	} else if (n->kind == NOTE_FENCED) {
		log_begin(&l, log, LOG_SLOT_FENCED,
			  "the slot has a newer holder, or Redis has forgotten it; "
			  "what was open is dropped here and adopted there; joining anew");
		log_int(&l, "batches", n->a);
		log_int(&l, "entries", n->b);
	} else {
		log_begin(&l, log, LOG_SLOT_LEFT, "slot %lld given back", (long long)n->a);
		log_int(&l, "slot", n->a);
	}
	log_end(&l);
}

static void note_batch(struct log *log, const struct note *n)
{
	struct log_line l;

	if (n->kind == NOTE_ADOPTED) {
		log_begin(&l, log, LOG_BATCH_ADOPTED,
			  "taking over %lld entries of batch %s; they go out again with the same ids",
			  (long long)n->a, n->text);
		log_str(&l, "batch", n->text);
		log_int(&l, "entries", n->a);
		log_int(&l, "adopted", n->b);
	} else {
		log_begin(&l, log, LOG_BATCH_GONE,
			  "a batch was gone when it was to be settled; "
			  "%lld of its %lld lives stood elsewhere and are forgotten there",
			  (long long)n->b, (long long)n->a);
		log_int(&l, "entries", n->a);
		log_int(&l, "forgotten", n->b);
	}
	log_end(&l);
}

static void note_topic(struct log *log, const struct note *n)
{
	struct bytes topic = bytes_str(n->text);
	struct log_line l;

	if (n->kind == NOTE_PARKED) {
		log_begin_about(&l, log, LOG_KAFKA_PARKED, LOG_WARN, topic,
				"topic %s refuses (%s); its %s in Redis, next try in %lld ms",
				n->text, n->why, n->b ? "dead letters stay" : "events wait",
				(long long)n->a);
		log_int(&l, "retry_ms", n->a);
	} else if (n->kind == NOTE_UNPARKED) {
		log_begin_about(&l, log, LOG_KAFKA_UNPARKED, LOG_INFO, topic,
				"topic %s takes events again", n->text);
	} else {
		log_begin_about(&l, log, LOG_EVENT_SUSPECT, LOG_WARN, topic,
				"Kafka refused a lot for topic %s (%s); its events go one by one",
				n->text, n->why);
	}
	log_bytes(&l, "topic", topic);
	if (n->why[0])
		log_str(&l, "error", n->why);
	log_end(&l);
}

static void note_buried(struct log *log, const struct note *n)
{
	struct log_line l;

	log_begin_about(&l, log, LOG_EVENT_BURIED, LOG_ERROR, bytes_str(n->why),
			"an event was given up and kept as a dead letter: %s", n->why);
	log_bytes(&l, "member", bytes_str(n->text));
	log_str(&l, "reason", n->why);
	log_end(&l);
}

static void note_dead(struct log *log, const struct note *n)
{
	struct log_line l;

	if (n->kind == NOTE_UNTOLD) {
		log_begin_about(&l, log, LOG_DEAD_UNTOLD, LOG_WARN, bytes_str(n->text),
				"topic %s did not take %lld dead letters; they are in Redis only",
				n->text, (long long)n->a);
		log_str(&l, "topic", n->text);
		log_int(&l, "entries", n->a);
	} else if (n->kind == NOTE_DEAD_MANY) {
		log_begin(&l, log, LOG_DEAD_MANY,
			  "there are %lld dead letters, and all are kept; "
			  "lapse dead list --summary says of what, lapse dead drop throws them away",
			  (long long)n->a);
		log_int(&l, "dead", n->a);
		log_int(&l, "max_dead", n->b);
	} else {
		log_begin(&l, log, LOG_DEAD_DROPPED,
			  "too many dead letters: the oldest %lld dropped, from %s on",
			  (long long)n->a, n->text);
		log_int(&l, "dropped", n->a);
		log_int(&l, "dead", n->b);
		log_str(&l, "first", n->text);
	}
	log_end(&l);
}

static void note_window(struct log *log, const struct note *n)
{
	struct log_line l;

	if (n->kind == NOTE_FULL) {
		log_begin(&l, log, LOG_WINDOW_FULL,
			  "as many events in flight as allowed; more are claimed when these are settled");
		log_int(&l, "inflight_events", n->a);
		log_int(&l, "inflight_bytes", n->b);
	} else {
		log_begin(&l, log, LOG_WINDOW_FREE, "there is room in flight again");
	}
	log_end(&l);
}

static void note_gap(struct log *log, const struct note *n, int64_t gap_ms)
{
	struct log_line l;

	if (gap_ms < 0)
		log_begin(&l, log, LOG_GAP_CLOSED, "first sweep done: %lld entries were due",
			  (long long)n->a);
	else
		log_begin(&l, log, LOG_GAP_CLOSED,
			  "without a subscription for %lld ms; the sweep found %lld entries due",
			  (long long)gap_ms, (long long)n->a);
	log_int(&l, "gap_ms", gap_ms < 0 ? 0 : gap_ms);
	log_int(&l, "entries", n->a);
	log_end(&l);
}

static void note_repaired(struct log *log, const struct note *n)
{
	struct log_line l;

	log_begin_about(&l, log, LOG_SWEEP_REPAIRED, LOG_WARN, bytes_str(n->why),
			"structures in Redis disagreed and were repaired: %s, %lld times",
			n->why, (long long)n->a);
	log_str(&l, "finding", n->why);
	log_int(&l, "entries", n->a);
	log_bytes(&l, "first", bytes_str(n->text));
	log_end(&l);
}

static void note_scan(struct log *log, const struct note *n)
{
	struct log_line l;

	if (n->kind == NOTE_SCAN_BEGIN) {
		log_begin(&l, log, LOG_SCAN_BEGIN,
			  "going through the keyspace for keys that nothing was heard of, "
			  "%lld keys a second", (long long)n->a);
		log_int(&l, "keys_per_s", n->a);
	} else if (n->kind == NOTE_SCAN_GOES_ON) {
		log_begin(&l, log, LOG_SCAN_PROGRESS,
			  "going through the keyspace: %lld keys so far, of which %lld were to "
			  "be registered", (long long)n->a, (long long)n->b);
	} else {
		log_begin(&l, log, LOG_SCAN_DONE,
			  "went through the keyspace: of %lld keys %lld were to be registered",
			  (long long)n->a, (long long)n->b);
	}
	if (n->kind != NOTE_SCAN_BEGIN) {
		log_int(&l, "keys", n->a);
		log_int(&l, "entries", n->b);
		log_int(&l, "took_ms", n->ms);
	}
	log_end(&l);
}

static void note_evicted(struct log *log, const struct note *n)
{
	struct log_line l;

	log_begin(&l, log, LOG_WATCH_EVICTED,
		  "Redis evicts watched keys for want of memory; they make no events unless "
		  "their route has evicted = emit; from now on they are only counted");
	log_int(&l, "entries", n->a);
	log_end(&l);
}

void report_note(struct log *log, const struct note *n, int64_t gap_ms)
{
	struct log_line l;

	switch (n->kind) {
	case NOTE_JOINED:
	case NOTE_FENCED:
	case NOTE_LEFT:
		note_slot(log, n);
		break;
	case NOTE_ADOPTED:
	case NOTE_GONE:
		note_batch(log, n);
		break;
	case NOTE_BURIED:
		note_buried(log, n);
		break;
	case NOTE_UNTOLD:
	case NOTE_DEAD_MANY:
	case NOTE_DEAD_DROPPED:
		note_dead(log, n);
		break;
	case NOTE_PARKED:
	case NOTE_UNPARKED:
	case NOTE_SUSPECT:
		note_topic(log, n);
		break;
	case NOTE_FULL:
	case NOTE_FREE:
		note_window(log, n);
		break;
	case NOTE_CLOCK:
		log_begin(&l, log, LOG_REDIS_CLOCK,
			  "Redis' clock went back by %lld ms; what is due waits for it",
			  (long long)n->a);
		log_int(&l, "back_ms", n->a);
		log_end(&l);
		break;
	case NOTE_SWEPT:
		note_gap(log, n, gap_ms);
		break;
	case NOTE_SCAN_BEGIN:
	case NOTE_SCAN_GOES_ON:
	case NOTE_SCAN_DONE:
		note_scan(log, n);
		break;
	case NOTE_EVICTED:
		note_evicted(log, n);
		break;
	case NOTE_REPAIRED:
		note_repaired(log, n);
		break;
	}
}

void report_stats(struct metrics *m, struct log *log, struct bridge *b, size_t kafka,
		  usec_t now)
{
	struct bridge_gauges g;
	const struct lease *lease = bridge_lease(b);

	bridge_gauges(b, &g);
	metrics_stats(m, log, bridge_counters(b), bridge_lateness(b), (const struct gauge[]){
		{ "slot", lease->state == LEASE_HELD ? (int64_t)lease->slot : -1 },
		{ "rank", lease->rank },
		{ "instances", lease->live },
		{ "inflight_events", (int64_t)g.inflight_events },
		{ "inflight_bytes", (int64_t)g.inflight_bytes },
		{ "open_batches", (int64_t)g.batches },
		{ "parked_topics", (int64_t)g.parked_topics },
		{ "kafka_outstanding", (int64_t)kafka },
	}, 8, now);
}
