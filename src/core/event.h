/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * event - from what a batch holds to what Kafka gets.
 *
 *   member + envelope --event_read--> struct event --event_build--> message
 *
 * Between the two the caller may look at the event and drop it (`inferred`).
 * CloudEvents 1.0, Kafka binding.  Binary mode, the default, has these headers
 * in this order:
 *
 *   ce_specversion ce_id ce_source ce_type ce_time ce_subject content-type
 *   ce_lapsetrigger ce_lapsecertainty ce_lapseattempt ce_lapseshard
 *
 * and then the event's own.  Structured mode has the same as one JSON value,
 * `content-type` and the event's own headers; its data is JSON where the
 * content type says so and the payload is JSON, a string where it is text/ and
 * the payload is UTF-8, and base64 otherwise.  Raw mode has the payload, the
 * content type, `ce_id` (to tell duplicates by) and the event's own headers.
 *
 *   member + envelope + reason --event_build_dead--> message
 *
 * is the way to a topic for dead letters.
 */
#ifndef LAPSED_CORE_EVENT_H
#define LAPSED_CORE_EVENT_H

#include "core/buf.h"
#include "core/bytes.h"
#include "core/err.h"
#include "core/record.h"
#include "core/route.h"

enum trigger {			/* what made us claim */
	TRIGGER_EXPIRED,	/* a notification */
	TRIGGER_WAKE,		/* a new head of the shadow */
	TRIGGER_TIMER,		/* the head came due */
	TRIGGER_SWEEP,
	TRIGGER_RECOVERY,	/* adopted, or read again */
};

#define EVENT_HEADERS_MAX	(12 + RECORD_HEADERS_MAX + 2)

struct event {
	struct member member;
	struct envelope envelope;
	struct record record;
	const struct route *route;	/* NULL for a scheduled event */
	struct bytes captures[GLOB_CAPTURES];	/* of the route's pattern */
	msec_t now;	/* Redis' clock, to be set where the record has a job */
};

struct event_conf {
	struct bytes source;	/* ce_source, not empty */
	struct bytes shard;	/* its prefix, such as lapse:{0} */
	enum route_mode mode;	/* of scheduled events */
};

/* Where the bytes of a message are; zeroed at first, reused ever after. */
struct event_room {
	struct buf topic;
	struct buf text;
	struct buf value;
};

struct message {
	struct bytes topic;	/* topic_valid() */
	struct bytes key;	/* bytes_none: no key */
	struct bytes value;	/* never NULL: a null is a tombstone */
	struct bytes id;	/* the ce_id, in every mode */
	size_t nheaders;
	struct header headers[EVENT_HEADERS_MAX];	/* no value is NULL */
};

/*
 * Takes one entry of a batch apart and finds its route.  False, with the
 * reason to bury it for, when it can't be read, has no record, or is a watched
 * key that no route matches any more.  `e` borrows from all that was passed.
 */
bool event_read(struct event *e, const struct routes *routes,
		struct bytes member, struct bytes envelope,
		struct err *err) MUST_CHECK;

/*
 * The topic it goes to, which borrows from `e` and `room`.  False when its
 * route's template gives none that the route allows: with another configuration
 * it may.  Till then it waits under the name in `topic`, of which
 * event_waits() is true, as of no topic of Kafka's.
 */
bool event_topic(const struct event *e, struct buf *room, struct bytes *topic,
		 struct err *err);
bool event_waits(struct bytes topic);

/*
 * Makes the message.  It borrows from `e`, `conf` and `room`, and is valid
 * until `room` is used again.  False when the topic is missing, malformed or
 * not allowed.
 */
bool event_build(const struct event *e, const struct event_conf *conf,
		 enum trigger trigger, struct event_room *room,
		 struct message *m, struct err *err) MUST_CHECK;

/* An entry that is given up, for a topic for dead letters. */
struct dead_letter {
	struct bytes member, envelope;
	enum trigger trigger;
	struct bytes reason;
	struct bytes topic;	/* the one for dead letters */
};

/*
 * Makes the message for that topic: the one of event_build(), though there may
 * be no route or no topic, and behind its headers `ce_lapsereason` and, where
 * it is known, `ce_lapsetopic`, which it was meant for.  What can't be read has
 * the bytes of its record, or of its envelope, as value, is of type
 * io.lapsed.unreadable and in binary mode, and has what else is known of it.
 * The message borrows from `l`, `conf` and `room`.
 */
void event_build_dead(const struct dead_letter *l, const struct routes *routes,
		      const struct event_conf *conf, struct event_room *room,
		      struct message *m);

/*
 * Adds the name under which a dead letter is kept: its ce_id, or what comes
 * nearest to one when it can't be read, at most DEAD_ID_MAX bytes.
 */
#define DEAD_ID_MAX(member_len)	(3 * (member_len) + CE_ID_MAX)
void event_dead_id(struct bytes member, struct bytes envelope, struct buf *out);

void event_room_clear(struct event_room *room);

/* "expired", "wake", "timer", "sweep" or "recovery". */
struct bytes trigger_name(enum trigger t);

/*
 * RFC 3339 in UTC with milliseconds, as 2026-11-30T12:30:00.000Z.  `t` is 0 to
 * RECORD_DUE_MAX; anything else is taken as the nearer of the two.
 */
#define EVENT_TIME_LEN	24
void event_time(msec_t t, char out[EVENT_TIME_LEN]);

#endif
