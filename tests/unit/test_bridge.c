/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The bridge against a Redis and a Kafka that are played by hand, in virtual
 * time.
 */
#include "core/bridge.h"

#include "core/buf.h"
#include "core/record.h"
#include "unit.h"

#define REDIS	INT64_C(1700000000000000)	/* Redis' us at our time 0 */
#define DUE	(REDIS / 1000)
#define TERM	(9 * USEC_PER_SEC)

static struct bridge *bridge;
static struct routes *routes;
static usec_t now;
static struct buf store;
static const char *const ids[] = { "s:a", "s:b", "s:c", "s:d" };

static const struct bridge_conf conf = {
	.listens = true, .sweeps = true, .max_events = 8, .max_bytes = 1 << 20,
	.claim_limit = 4, .lease = TERM,
	.grace = 50 * USEC_PER_MSEC, .sweep_interval = 30 * USEC_PER_SEC,
	.park_min = USEC_PER_SEC, .park_max = 8 * USEC_PER_SEC,
};

static void setup(void)
{
	const struct bytes pattern = BYTES("order:*");
	const struct route route = {
		.name = BYTES("r"), .patterns = &pattern, .npatterns = 1,
		.registers = ROUTE_APP, .topic = BYTES("orders"), .copy = true,
		.inferred = ROUTE_DROP, .dead_topic = BYTES("orders-dead"),
	};
	struct err err;

	now = 1000;
	routes = routes_new(BYTES("lapse:{"));
	ck_assert(routes_add(routes, &route, &err));
	bridge = bridge_new(&conf, routes, "seed", now);
}

static void teardown(void)
{
	bridge_free(bridge);
	routes_free(routes);
	buf_clear(&store);
}

static const struct ask *expect(enum ask_kind kind)
{
	const struct ask *ask = bridge_ask(bridge, now);

	ck_assert_ptr_nonnull(ask);
	ck_assert_int_eq(ask->kind, kind);
	return ask;
}

#define expect_nothing()	ck_assert_ptr_null(bridge_ask(bridge, now))

/* Up to the first claim, which is owed an answer. */
static struct batch *start(void)
{
	const unsigned slot = 0;
	const usec_t left = TERM;

	expect_nothing();
	bridge_link(bridge, true, now);
	expect(ASK_JOIN);
	bridge_joined(bridge, bridge_lease(bridge)->joins, REDIS + now, 0, 3, 10, NULL, 0, now);
	expect(ASK_RENEW);
	bridge_renewed(bridge, bridge_lease(bridge)->joins, REDIS + now, &slot, &left, 1, NULL, 0, now);
	return expect(ASK_CLAIM)->batch;
}

/* The first `n` of ids, all for topic "t", as batch `b`. */
static void bring_as(struct batch *b, size_t n, msec_t next, enum certainty certainty,
		     const char *const *names)
{
	struct bytes members[8], envelopes[8];
	size_t offsets[9];
	struct batch_answer a = { .redis = REDIS + now, .next = next, .n = n,
				  .members = members, .envelopes = envelopes };

	buf_reset(&store);
	for (size_t i = 0; i < n; i++) {
		struct record rec = { .birth = 1, .topic = BYTES("t"), .payload = BYTES("p") };
		struct buf packed = { 0 };
		struct envelope env = { DUE, certainty, bytes_none };

		ck_assert(record_pack(&rec, &packed, NULL));
		env.record = buf_view(&packed);
		offsets[i] = store.n;
		envelope_pack(&env, &store);
		buf_clear(&packed);
	}
	offsets[n] = store.n;
	for (size_t i = 0; i < n; i++) {
		members[i] = bytes_str(names[i]);
		envelopes[i] = bytes_of(store.p + offsets[i], offsets[i + 1] - offsets[i]);
	}
	bridge_brought(bridge, b, &a, now);
}

static void bring(struct batch *b, size_t n, msec_t next)
{
	bring_as(b, n, next, CERTAINTY_SCHEDULED, ids);
}

static void report_all(enum verdict v)
{
	struct entry *flying[16], *e;
	size_t n = 0;

	while ((e = bridge_next(bridge, now)))
		flying[n++] = e;
	for (size_t i = 0; i < n; i++)
		bridge_verdict(bridge, flying[i], v, "why", now);
}

static bool noted(enum note_kind kind)
{
	struct note n;
	bool found = false;

	while (bridge_note(bridge, &n))
		found |= n.kind == kind;
	return found;
}

/* What each of the four things that a pass does came to. */
START_TEST(sweeps_are_counted)
{
	const struct counters *c = bridge_counters(bridge);

	bring(start(), 2, -1);
	ck_assert_uint_eq(c->sweeps, 1);
	ck_assert_uint_eq(c->swept, 2);
	bridge_wake(bridge, DUE, now);
	bring(expect(ASK_CLAIM)->batch, 1, -1);
	ck_assert_uint_eq(c->swept, 2);
	ck_assert_uint_eq(c->claimed, 3);
	bridge_deaf(bridge, true);
	bridge_deaf(bridge, true);
	bridge_deaf(bridge, false);
	ck_assert_uint_eq(c->deaf, 1);
	report_all(VERDICT_ACKED);
}
END_TEST

START_TEST(a_due_entry_goes_through)
{
	bring(start(), 2, -1);
	expect_nothing();
	report_all(VERDICT_ACKED);
	bridge_settled(bridge, expect(ASK_SETTLE)->batch, false, now);
	expect_nothing();
	ck_assert_uint_eq(bridge_counters(bridge)->settled, 2);
	ck_assert_uint_eq(bridge_lateness(bridge)->count, 2);
	ck_assert_uint_eq(bridge_counters(bridge)->early, 0);
}
END_TEST

START_TEST(the_answer_arms_the_next_claim)
{
	bring(start(), 0, DUE + 500);
	expect_nothing();
	ck_assert_int_eq(bridge_deadline(bridge, now), 500 * USEC_PER_MSEC);
	now = 500 * USEC_PER_MSEC;
	expect(ASK_CLAIM);
}
END_TEST

START_TEST(a_lost_claim_is_asked_again_under_its_number)
{
	struct batch *b = start();
	uint64_t seq = b->seq;

	bridge_refused(bridge, ASK_CLAIM, bridge_lease(bridge)->joins, b, REFUSAL_LOST, now);
	bridge_link(bridge, false, now);
	expect_nothing();
	bridge_link(bridge, true, now);
	expect(ASK_RENEW);
	b = expect(ASK_CLAIM)->batch;
	ck_assert_uint_eq(b->seq, seq);
	bring(b, 1, -1);
	/* A batch that is read again does not tell what is due next. */
	ck_assert_uint_eq(expect(ASK_CLAIM)->batch->seq, seq + 1);
}
END_TEST

START_TEST(without_room_what_is_to_be_adopted_wakes_nobody)
{
	const struct batch_name orphan = { 5, 1 };
	const unsigned slot = 0;
	const usec_t left = TERM;

	bring(start(), 4, DUE);
	bring(expect(ASK_CLAIM)->batch, 4, -1);
	bridge_peer_left(bridge, now);
	expect(ASK_RENEW);
	bridge_renewed(bridge, bridge_lease(bridge)->joins, REDIS + now, &slot, &left, 1,
		       &orphan, 1, now);
	expect_nothing();
	ck_assert(noted(NOTE_FULL));
	ck_assert_int_gt(bridge_deadline(bridge, now), now);
}
END_TEST

START_TEST(no_more_is_claimed_than_there_is_room_for)
{
	bring(start(), 4, DUE);
	bring(expect(ASK_CLAIM)->batch, 4, DUE);
	expect_nothing();
	ck_assert(noted(NOTE_FULL));
	ck_assert_int_gt(bridge_deadline(bridge, now), now);
	report_all(VERDICT_ACKED);
	bridge_settled(bridge, expect(ASK_SETTLE)->batch, false, now);
	ck_assert(noted(NOTE_FREE));
	expect(ASK_SETTLE);
	expect(ASK_CLAIM);
}
END_TEST

START_TEST(a_batch_is_settled_with_its_last_report)
{
	struct entry *first;

	bring(start(), 2, -1);
	first = bridge_next(bridge, now);
	bridge_verdict(bridge, bridge_next(bridge, now), VERDICT_ACKED, NULL, now);
	expect_nothing();
	bridge_verdict(bridge, first, VERDICT_MAYBE, "timed out", now);
	expect_nothing();
	ck_assert_uint_eq(bridge_counters(bridge)->possible_duplicates, 1);
	now = bridge_deadline(bridge, now);
	ck_assert_ptr_eq(bridge_next(bridge, now), first);
	bridge_verdict(bridge, first, VERDICT_ACKED, NULL, now);
	expect(ASK_SETTLE);
}
END_TEST

START_TEST(a_settle_whose_answer_was_lost_finds_nothing_and_that_is_fine)
{
	struct batch *b;

	bring(start(), 1, -1);
	report_all(VERDICT_ACKED);
	b = expect(ASK_SETTLE)->batch;
	bridge_refused(bridge, ASK_SETTLE, bridge_lease(bridge)->joins, b, REFUSAL_LOST, now);
	bridge_settled(bridge, expect(ASK_SETTLE)->batch, true, now);
	bridge_forgot(bridge, expect(ASK_FORGET)->batch, 0, now);
	ck_assert_uint_eq(bridge_counters(bridge)->gone, 0);
	ck_assert_uint_eq(bridge_counters(bridge)->settled, 1);
}
END_TEST

START_TEST(a_batch_that_a_failover_lost_is_forgotten_by_its_lives)
{
	bring(start(), 1, -1);
	report_all(VERDICT_ACKED);
	bridge_settled(bridge, expect(ASK_SETTLE)->batch, true, now);
	bridge_forgot(bridge, expect(ASK_FORGET)->batch, 1, now);
	ck_assert_uint_eq(bridge_counters(bridge)->gone, 1);
	ck_assert_uint_eq(bridge_counters(bridge)->forgotten, 1);
	ck_assert(noted(NOTE_GONE));
}
END_TEST

START_TEST(fenced_it_drops_what_it_holds_and_joins_anew)
{
	struct entry *e;
	struct batch *settling;

	bring(start(), 1, DUE);
	report_all(VERDICT_ACKED);
	settling = expect(ASK_SETTLE)->batch;
	bring(expect(ASK_CLAIM)->batch, 2, DUE);
	e = bridge_next(bridge, now);
	bridge_refused(bridge, ASK_SETTLE, bridge_lease(bridge)->joins, settling, REFUSAL_FENCED, now);
	ck_assert(noted(NOTE_FENCED));
	ck_assert_ptr_null(bridge_next(bridge, now));
	expect(ASK_JOIN);
	/* The report of the one that flew comes to nothing. */
	bridge_verdict(bridge, e, VERDICT_RETRY, "late", now);
	ck_assert_ptr_null(bridge_next(bridge, now + USEC_PER_SEC));
	bridge_joined(bridge, bridge_lease(bridge)->joins, REDIS + now, 0, 5, 20, NULL, 0, now);
	expect(ASK_RENEW);
	ck_assert_uint_gt(expect(ASK_CLAIM)->batch->seq, 20);
	ck_assert_uint_eq(bridge_counters(bridge)->fenced, 1);
}
END_TEST

START_TEST(fenced_while_a_claim_is_out)
{
	struct batch *b = start();

	now += TERM / 3;
	bridge_refused(bridge, ASK_CLAIM, bridge_lease(bridge)->joins, b, REFUSAL_FENCED, now);
	expect(ASK_JOIN);
	ck_assert_ptr_null(bridge_next(bridge, now));
}
END_TEST

START_TEST(a_late_answer_of_a_lost_slot_means_nothing)
{
	struct batch *b = start();
	unsigned life = bridge_lease(bridge)->joins;

	now += TERM / 3;
	expect(ASK_RENEW);
	bridge_refused(bridge, ASK_CLAIM, life, b, REFUSAL_FENCED, now);
	expect(ASK_JOIN);
	bridge_refused(bridge, ASK_RENEW, life, NULL, REFUSAL_FENCED, now);
	expect_nothing();
	ck_assert_uint_eq(bridge_counters(bridge)->fenced, 1);
}
END_TEST

START_TEST(a_record_that_cant_be_read_is_buried_and_others_go_on)
{
	struct bytes members[] = { BYTES("s:bad"), BYTES("s:none"), BYTES("?") };
	struct bytes envelopes[] = { BYTES("\001junk"), BYTES("\1\0\0\0\0\0\0\0\1-"),
				     BYTES("x") };
	struct batch_answer a = { .redis = REDIS + now, .next = -1, .n = 3,
				  .members = members, .envelopes = envelopes };
	struct batch *b = start();

	bridge_brought(bridge, b, &a, now);
	ck_assert(noted(NOTE_BURIED));
	b = expect(ASK_SETTLE)->batch;
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(b->entries[i].state, ENTRY_BURIED);
		ck_assert_ptr_nonnull(b->entries[i].reason);
	}
	ck_assert_uint_eq(bridge_counters(bridge)->buried, 3);
}
END_TEST

START_TEST(what_nobody_saw_is_dropped_where_the_route_says_so)
{
	const char *const keys[] = { "k:0:order:1" };
	struct batch *b = start();

	bring_as(b, 1, -1, CERTAINTY_INFERRED, keys);
	ck_assert_ptr_null(bridge_next(bridge, now));
	ck_assert_uint_eq(bridge_counters(bridge)->inferred_dropped, 1);
	expect(ASK_SETTLE);
}
END_TEST

START_TEST(batches_of_a_dead_slot_are_adopted)
{
	const unsigned slots[] = { 0 };
	const usec_t left[] = { TERM };
	const struct batch_name orphan = { 4, 77 };
	struct batch *b;

	bring(start(), 0, -1);
	now += TERM / 3;
	expect(ASK_RENEW);
	bridge_renewed(bridge, bridge_lease(bridge)->joins, REDIS + now, slots, left, 1, &orphan, 1, now);
	ck_assert_int_eq(bridge_deadline(bridge, now), now);
	b = expect(ASK_ADOPT)->batch;
	ck_assert_uint_eq(b->from_slot, 4);
	ck_assert_uint_eq(b->from_seq, 77);
	bring(b, 2, -1);
	ck_assert(noted(NOTE_ADOPTED));
	ck_assert_int_eq(bridge_next(bridge, now)->batch->trigger, TRIGGER_RECOVERY);
	ck_assert_uint_eq(bridge_counters(bridge)->adopted_entries, 2);
}
END_TEST

START_TEST(what_the_slot_left_open_is_adopted_at_the_start)
{
	const struct batch_name open[] = { { 0, 3 }, { 0, 4 } };

	bridge_link(bridge, true, now);
	expect(ASK_JOIN);
	bridge_joined(bridge, bridge_lease(bridge)->joins, REDIS + now, 0, 3, 10, open, 2, now);
	expect(ASK_RENEW);
	/* Claims and recovery take turns. */
	bring(expect(ASK_CLAIM)->batch, 1, DUE);
	bring(expect(ASK_ADOPT)->batch, 1, -1);
	expect(ASK_CLAIM);
}
END_TEST

START_TEST(an_unknown_topic_is_parked_and_read_again)
{
	struct batch *b;
	uint64_t seq;

	bring(start(), 2, -1);
	report_all(VERDICT_NO_TOPIC);
	ck_assert(noted(NOTE_PARKED));
	b = expect(ASK_SETTLE)->batch;
	seq = b->entries[0].park_seq;
	ck_assert_uint_ne(seq, 0);
	ck_assert_uint_eq(b->entries[1].park_seq, seq);
	bridge_settled(bridge, b, false, now);
	now = bridge_deadline(bridge, now);
	b = expect(ASK_FETCH)->batch;
	ck_assert_uint_eq(b->seq, seq);
	bring(b, 2, -1);
	report_all(VERDICT_ACKED);
	ck_assert(noted(NOTE_UNPARKED));
	ck_assert_uint_eq(expect(ASK_SETTLE)->batch->seq, seq);
}
END_TEST

/* The answer may be that of the first try, of which the key was no part. */
START_TEST(what_is_heard_between_two_tries_of_a_claim_is_asked_for_again)
{
	struct batch *b = start();

	bridge_refused(bridge, ASK_CLAIM, bridge_lease(bridge)->joins, b, REFUSAL_LOST, now);
	bridge_heard(bridge, BYTES("k:0:order:9"), true, now);
	ck_assert_uint_eq(expect(ASK_CLAIM)->nheard, 1);
	bring(b, 1, -1);
	ck_assert_uint_eq(expect(ASK_CLAIM)->nheard, 1);
}
END_TEST

/* We were stopped, or the notification was on its way for long. */
START_TEST(old_news_may_have_been_claimed_by_another_instance)
{
	const struct ask *ask;

	bring(start(), 0, -1);
	bridge_heard(bridge, BYTES("k:0:order:9"), true, now);
	ask = expect(ASK_CLAIM);
	ck_assert_int_eq(ask->window, 2000);
	bring(ask->batch, 0, -1);
	bridge_heard_since(bridge, now - 7 * USEC_PER_SEC);
	bridge_heard(bridge, BYTES("k:0:order:9"), true, now);
	ask = expect(ASK_CLAIM);
	ck_assert_int_ge(ask->window, 7000);
	ck_assert(ask->heard[0].anyway);
	bring(ask->batch, 0, -1);
	/* So old that nobody remembers: only if it is in the shadow. */
	bridge_heard_since(bridge, now - 100 * USEC_PER_SEC);
	bridge_heard(bridge, BYTES("k:0:order:9"), true, now);
	ck_assert(!expect(ASK_CLAIM)->heard[0].anyway);
}
END_TEST

START_TEST(a_heard_key_goes_with_the_claim_until_it_is_answered)
{
	const struct ask *ask;
	struct batch *b;

	bring(start(), 0, -1);
	bridge_heard(bridge, BYTES("k:0:order:9"), false, now);
	ask = expect(ASK_CLAIM);
	b = ask->batch;
	ck_assert_uint_eq(ask->nheard, 1);
	ck_assert_bytes(ask->heard[0].member, BYTES("k:0:order:9"));
	bridge_refused(bridge, ASK_CLAIM, bridge_lease(bridge)->joins, b, REFUSAL_LOST, now);
	ask = expect(ASK_CLAIM);
	ck_assert_uint_eq(ask->nheard, 1);
	/* Nothing came under the old number: the key has yet to be asked for. */
	bring(ask->batch, 0, -1);
	ask = expect(ASK_CLAIM);
	ck_assert_uint_eq(ask->nheard, 1);
	bring(ask->batch, 0, -1);
	expect_nothing();
}
END_TEST

START_TEST(a_redis_that_refuses_is_left_alone_for_a_while)
{
	struct batch *b = start();

	bridge_refused(bridge, ASK_CLAIM, bridge_lease(bridge)->joins, b, REFUSAL_LATER, now);
	expect_nothing();
	ck_assert_int_gt(bridge_deadline(bridge, now), now);
	now = bridge_deadline(bridge, now);
	expect(ASK_CLAIM);
}
END_TEST

/* A right is missing, say; the next renewal names the batch again. */
START_TEST(what_redis_refuses_to_read_keeps_nobody_waiting)
{
	const unsigned slot = 0;
	const usec_t left = TERM;
	const struct batch_name orphan = { 4, 77 };
	struct batch *b = start();
	const unsigned life = bridge_lease(bridge)->joins;

	bring(b, 0, -1);
	now += TERM / 3;
	expect(ASK_RENEW);
	bridge_renewed(bridge, life, REDIS + now, &slot, &left, 1, &orphan, 1, now);
	for (int i = 0; i < 3; i++) {
		b = expect(ASK_ADOPT)->batch;
		bridge_refused(bridge, ASK_ADOPT, life, b, REFUSAL_LATER, now);
		expect_nothing();
		now = bridge_deadline(bridge, now);
	}
	bridge_wake(bridge, DUE, now);
	bring(expect(ASK_CLAIM)->batch, 1, -1);
	now += TERM / 3;
	ck_assert(expect(ASK_RENEW)->own);
	bridge_renewed(bridge, life, REDIS + now, &slot, &left, 1, &orphan, 1, now);
	ck_assert_uint_eq(expect(ASK_ADOPT)->batch->from_seq, 77);
}
END_TEST

/* Whatever is asked is refused, and the loop sleeps between two tries all the same. */
START_TEST(a_topic_to_be_tried_waits_for_a_redis_that_refuses)
{
	const unsigned slot = 0;
	const usec_t left = TERM;
	const struct ask *ask;
	unsigned fetches = 0;

	bring(start(), 1, -1);
	report_all(VERDICT_NO_TOPIC);
	bridge_settled(bridge, expect(ASK_SETTLE)->batch, false, now);
	for (int i = 0; i < 40; i++) {
		while ((ask = bridge_ask(bridge, now))) {
			fetches += ask->kind == ASK_FETCH;
			if (ask->kind == ASK_RENEW)
				bridge_renewed(bridge, ask->life, REDIS + now, &slot, &left, 1, NULL, 0,
					       now);
			else
				bridge_refused(bridge, ask->kind, ask->life, ask->batch,
					       REFUSAL_LATER, now);
		}
		ck_assert_int_gt(bridge_deadline(bridge, now), now);
		now = bridge_deadline(bridge, now);
	}
	ck_assert_uint_ge(fetches, 3);
}
END_TEST

/* The next walk that is asked for; what else is wanted is answered. */
static const struct ask *next_walk(void)
{
	const unsigned slot = 0, life = bridge_lease(bridge)->joins;
	const usec_t left = TERM;

	for (int i = 0; i < 100; i++) {
		const struct ask *ask = bridge_ask(bridge, now);

		if (!ask)
			now = bridge_deadline(bridge, now);
		else if (ask->kind == ASK_WALK)
			return ask;
		else if (ask->kind == ASK_RENEW)
			bridge_renewed(bridge, life, REDIS + now, &slot, &left, 1, NULL, 0, now);
		else
			bring(ask->batch, 0, -1);
	}
	ck_abort_msg("no walk");
	return NULL;
}

START_TEST(what_disagrees_twice_is_repaired_and_told)
{
	const struct walk_found found = {
		BYTES("open-without-batch"), BYTES("0:7"), BYTES("removed"),
	};
	const struct walk_found seen = { found.kind, found.name, bytes_none };
	struct walk_answer a = { .cursor = BYTES("0"), .looked = 3, .found = &seen, .n = 1 };
	const struct ask *ask;
	unsigned life;

	bring(start(), 0, -1);
	life = bridge_lease(bridge)->joins;
	ask = next_walk();
	ck_assert(!ask->walk->repair);
	bridge_walked(bridge, life + 1, &a, now);	/* of another stay */
	ck_assert_uint_eq(bridge_counters(bridge)->walked, 0);
	bridge_walked(bridge, life, &a, now);
	ck_assert_uint_eq(bridge_counters(bridge)->walked, 3);
	ck_assert(!noted(NOTE_REPAIRED));
	ask = next_walk();
	ck_assert(ask->walk->repair);
	ck_assert_uint_eq(ask->walk->n, 1);
	a.found = &found;
	bridge_walked(bridge, life, &a, now);
	ck_assert_uint_eq(bridge_counters(bridge)->repaired, 1);
	ck_assert(noted(NOTE_REPAIRED));
	expect(ASK_CLAIM);		/* entries may have come due by it */
}
END_TEST

START_TEST(a_walk_that_is_refused_is_no_reason_to_wait)
{
	bring(start(), 0, -1);
	next_walk();
	bridge_refused(bridge, ASK_WALK, bridge_lease(bridge)->joins, NULL, REFUSAL_LATER, now);
	bridge_wake(bridge, DUE, now);
	expect(ASK_CLAIM);
}
END_TEST

START_TEST(draining_it_settles_and_leaves)
{
	bring(start(), 1, DUE);
	bridge_drain(bridge);
	expect_nothing();
	ck_assert(!bridge_over(bridge));
	report_all(VERDICT_ACKED);
	bridge_settled(bridge, expect(ASK_SETTLE)->batch, false, now);
	expect(ASK_LEAVE);
	bridge_left(bridge, bridge_lease(bridge)->joins);
	ck_assert(bridge_over(bridge));
}
END_TEST

START_TEST(giving_up_it_settles_what_was_delivered_and_leaves_the_rest)
{
	struct entry *flying;
	struct batch *b;

	bring(start(), 4, DUE);
	bridge_drain(bridge);
	bridge_verdict(bridge, bridge_next(bridge, now), VERDICT_ACKED, NULL, now);
	flying = bridge_next(bridge, now);
	bridge_give_up(bridge);
	expect_nothing();
	bridge_verdict(bridge, flying, VERDICT_RETRY, "purged", now);
	b = expect(ASK_SETTLE)->batch;
	ck_assert_uint_eq(b->entries[0].park_seq, 0);
	for (size_t i = 1; i < 4; i++) {
		ck_assert_int_eq(b->entries[i].state, ENTRY_LEFT);
		ck_assert_uint_ne(b->entries[i].park_seq, 0);
	}
	bridge_settled(bridge, b, false, now);
	expect(ASK_LEAVE);
}
END_TEST

START_TEST(giving_up_an_untouched_batch_stays_as_it_is)
{
	bring(start(), 2, DUE);
	bridge_drain(bridge);
	bridge_give_up(bridge);
	expect(ASK_LEAVE);
}
END_TEST

/* With a topic for dead letters that the route does not name. */
static void tell_dead(size_t max_dead, bool drop)
{
	struct bridge_conf c = conf;

	c.dead_topic = BYTES("dead");
	c.max_dead = max_dead;
	c.drop_dead = drop;
	bridge_configure(bridge, &c, routes);
}

/* The next note of that kind; those before it are gone. */
static struct note take_note(enum note_kind kind)
{
	struct note n;

	while (bridge_note(bridge, &n))
		if (n.kind == kind)
			return n;
	ck_abort_msg("there is no note %d", (int)kind);
}

/* The next entry, which goes to `topic`. */
static struct entry *next_for(const char *topic)
{
	struct entry *e = bridge_next(bridge, now);

	ck_assert_ptr_nonnull(e);
	ck_assert_bytes(topic_name(e->topic), bytes_str(topic));
	return e;
}

START_TEST(a_dead_letter_is_told_to_its_topic_before_the_settle)
{
	struct entry *e;
	struct batch *b;

	tell_dead(0, false);
	bring(start(), 2, -1);
	e = next_for("t");
	bridge_verdict(bridge, e, VERDICT_CULPRIT, "too large", now);
	ck_assert_str_eq(take_note(NOTE_BURIED).why, "too large");
	bridge_verdict(bridge, next_for("t"), VERDICT_ACKED, NULL, now);
	expect_nothing();
	ck_assert_ptr_eq(next_for("dead"), e);
	bridge_verdict(bridge, e, VERDICT_ACKED, NULL, now);
	b = expect(ASK_SETTLE)->batch;
	ck_assert_int_eq(b->entries[0].state, ENTRY_BURIED);
	ck_assert_int_eq(b->entries[1].state, ENTRY_DONE);
	ck_assert(!noted(NOTE_BURIED));
	ck_assert_uint_eq(bridge_counters(bridge)->buried, 1);
	ck_assert_uint_eq(bridge_counters(bridge)->dead_told, 1);
	ck_assert_uint_eq(bridge_counters(bridge)->acknowledged, 1);
	ck_assert_uint_eq(bridge_lateness(bridge)->count, 1);
}
END_TEST

START_TEST(a_route_has_a_topic_for_dead_letters_of_its_own)
{
	const char *const keys[] = { "k:0:order:1" };

	tell_dead(0, false);
	bring_as(start(), 1, -1, CERTAINTY_FOUND, keys);
	bridge_verdict(bridge, next_for("orders"), VERDICT_CULPRIT, "why", now);
	bridge_verdict(bridge, next_for("orders-dead"), VERDICT_ACKED, NULL, now);
	expect(ASK_SETTLE);
}
END_TEST

START_TEST(what_cant_be_read_is_told_too)
{
	struct bytes member = BYTES("s:bad"), envelope = BYTES("\001junk");
	struct batch_answer a = { .redis = REDIS + now, .next = -1, .n = 1,
				  .members = &member, .envelopes = &envelope };

	tell_dead(0, false);
	bridge_brought(bridge, start(), &a, now);
	ck_assert(noted(NOTE_BURIED));
	expect_nothing();
	bridge_verdict(bridge, next_for("dead"), VERDICT_ACKED, NULL, now);
	expect(ASK_SETTLE);
	ck_assert_uint_eq(bridge_counters(bridge)->buried, 1);
}
END_TEST

START_TEST(nothing_waits_for_a_missing_topic_for_dead_letters)
{
	struct entry *a, *other;
	struct note n;

	tell_dead(0, false);
	bring(start(), 2, -1);
	a = next_for("t");
	bridge_verdict(bridge, next_for("t"), VERDICT_CULPRIT, "why", now);
	other = next_for("dead");
	bridge_verdict(bridge, a, VERDICT_CULPRIT, "why", now);
	bridge_verdict(bridge, other, VERDICT_NO_TOPIC, "unknown", now);
	n = take_note(NOTE_PARKED);
	ck_assert_str_eq(n.text, "dead");
	ck_assert_int_eq(n.b, 1);
	n = take_note(NOTE_UNTOLD);
	ck_assert_str_eq(n.text, "dead");
	ck_assert_int_eq(n.a, 2);
	expect(ASK_SETTLE);
	ck_assert_uint_eq(bridge_counters(bridge)->buried, 2);
	ck_assert_uint_eq(bridge_counters(bridge)->dead_untold, 2);
	ck_assert_uint_eq(bridge_counters(bridge)->parked_entries, 0);
}
END_TEST

START_TEST(what_waits_while_its_topic_is_parked_is_settled)
{
	struct entry *a;
	struct batch *b;

	bring(start(), 2, -1);
	a = bridge_next(bridge, now);
	bridge_verdict(bridge, bridge_next(bridge, now), VERDICT_RETRY, "later", now);
	bridge_verdict(bridge, a, VERDICT_NO_TOPIC, "unknown", now);
	expect_nothing();
	now = bridge_deadline(bridge, now);
	ck_assert_ptr_null(bridge_next(bridge, now));
	b = expect(ASK_SETTLE)->batch;
	ck_assert_int_eq(b->entries[1].state, ENTRY_PARKED);
}
END_TEST

START_TEST(a_dead_letter_that_is_under_way_at_the_stop_is_left)
{
	struct entry *e;

	tell_dead(0, false);
	bring(start(), 1, -1);
	bridge_verdict(bridge, next_for("t"), VERDICT_CULPRIT, "why", now);
	e = next_for("dead");
	bridge_drain(bridge);
	bridge_give_up(bridge);
	bridge_verdict(bridge, e, VERDICT_RETRY, "purged", now);
	expect(ASK_LEAVE);
}
END_TEST

START_TEST(many_dead_letters_are_told_once_per_doubling)
{
	bridge_dead(bridge, 9999, 0, bytes_none);
	ck_assert(!noted(NOTE_DEAD_MANY));
	bridge_dead(bridge, 10000, 0, bytes_none);
	ck_assert_int_eq(take_note(NOTE_DEAD_MANY).a, 10000);
	bridge_dead(bridge, 19999, 0, bytes_none);
	ck_assert(!noted(NOTE_DEAD_MANY));
	bridge_dead(bridge, 20000, 0, bytes_none);
	ck_assert(noted(NOTE_DEAD_MANY));
	bridge_dead(bridge, 100, 0, bytes_none);
	bridge_dead(bridge, 10000, 0, bytes_none);
	ck_assert(noted(NOTE_DEAD_MANY));
}
END_TEST

START_TEST(a_limit_of_dead_letters_warns_from_there_on)
{
	tell_dead(2, false);
	bridge_dead(bridge, 2, 0, bytes_none);
	ck_assert(!noted(NOTE_DEAD_MANY));
	bridge_dead(bridge, 3, 0, bytes_none);
	ck_assert_int_eq(take_note(NOTE_DEAD_MANY).b, 2);
}
END_TEST

START_TEST(beyond_the_limit_the_oldest_are_dropped_where_that_is_asked_for)
{
	struct note n;

	bring(start(), 1, -1);
	report_all(VERDICT_CULPRIT);
	tell_dead(2, true);
	ck_assert_uint_eq(expect(ASK_SETTLE)->keep, 2);
	bridge_dead(bridge, 2, 1, BYTES("s:old@1.0"));
	n = take_note(NOTE_DEAD_DROPPED);
	ck_assert_int_eq(n.a, 1);
	ck_assert_int_eq(n.b, 2);
	ck_assert_str_eq(n.text, "s:old@1.0");
	ck_assert(!noted(NOTE_DEAD_MANY));
	ck_assert_uint_eq(bridge_counters(bridge)->dead_dropped, 1);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("bridge");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, sweeps_are_counted);
	tcase_add_test(tests, a_due_entry_goes_through);
	tcase_add_test(tests, the_answer_arms_the_next_claim);
	tcase_add_test(tests, a_lost_claim_is_asked_again_under_its_number);
	tcase_add_test(tests, without_room_what_is_to_be_adopted_wakes_nobody);
	tcase_add_test(tests, no_more_is_claimed_than_there_is_room_for);
	tcase_add_test(tests, a_batch_is_settled_with_its_last_report);
	tcase_add_test(tests, a_settle_whose_answer_was_lost_finds_nothing_and_that_is_fine);
	tcase_add_test(tests, a_batch_that_a_failover_lost_is_forgotten_by_its_lives);
	tcase_add_test(tests, fenced_it_drops_what_it_holds_and_joins_anew);
	tcase_add_test(tests, fenced_while_a_claim_is_out);
	tcase_add_test(tests, a_late_answer_of_a_lost_slot_means_nothing);
	tcase_add_test(tests, a_record_that_cant_be_read_is_buried_and_others_go_on);
	tcase_add_test(tests, what_nobody_saw_is_dropped_where_the_route_says_so);
	tcase_add_test(tests, batches_of_a_dead_slot_are_adopted);
	tcase_add_test(tests, what_the_slot_left_open_is_adopted_at_the_start);
	tcase_add_test(tests, an_unknown_topic_is_parked_and_read_again);
	tcase_add_test(tests, what_is_heard_between_two_tries_of_a_claim_is_asked_for_again);
	tcase_add_test(tests, old_news_may_have_been_claimed_by_another_instance);
	tcase_add_test(tests, a_heard_key_goes_with_the_claim_until_it_is_answered);
	tcase_add_test(tests, a_redis_that_refuses_is_left_alone_for_a_while);
	tcase_add_test(tests, what_redis_refuses_to_read_keeps_nobody_waiting);
	tcase_add_test(tests, a_topic_to_be_tried_waits_for_a_redis_that_refuses);
	tcase_add_test(tests, what_disagrees_twice_is_repaired_and_told);
	tcase_add_test(tests, a_walk_that_is_refused_is_no_reason_to_wait);
	tcase_add_test(tests, draining_it_settles_and_leaves);
	tcase_add_test(tests, giving_up_it_settles_what_was_delivered_and_leaves_the_rest);
	tcase_add_test(tests, giving_up_an_untouched_batch_stays_as_it_is);
	tcase_add_test(tests, a_dead_letter_is_told_to_its_topic_before_the_settle);
	tcase_add_test(tests, a_route_has_a_topic_for_dead_letters_of_its_own);
	tcase_add_test(tests, what_cant_be_read_is_told_too);
	tcase_add_test(tests, nothing_waits_for_a_missing_topic_for_dead_letters);
	tcase_add_test(tests, what_waits_while_its_topic_is_parked_is_settled);
	tcase_add_test(tests, a_dead_letter_that_is_under_way_at_the_stop_is_left);
	tcase_add_test(tests, many_dead_letters_are_told_once_per_doubling);
	tcase_add_test(tests, a_limit_of_dead_letters_warns_from_there_on);
	tcase_add_test(tests, beyond_the_limit_the_oldest_are_dropped_where_that_is_asked_for);
	return unit_main("bridge", tests);
}
