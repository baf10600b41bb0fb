/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/topics.h"

#include "unit.h"

#define PAUSE	1000
#define PARK	(1 * USEC_PER_SEC)

static struct topics *topics;
static struct batch *batch;

static void setup(void)
{
	const struct topics_conf conf = { PAUSE, PARK, 4 * PARK, 10 };
	struct bytes members[8], envelopes[8];

	topics = topics_new(&conf);
	batch = batch_new(1, BATCH_CLAIMED);
	for (int i = 0; i < 8; i++)
		members[i] = envelopes[i] = bytes_of("abcdefgh" + i, 1);
	batch_fill(batch, members, envelopes, 8);
}

static void teardown(void)
{
	batch->flying = 0;
	batch_free(batch);
	topics_free(topics);
}

static struct entry *entry(int i)
{
	return &batch->entries[i];
}

static void enter(int from, int to, const char *topic)
{
	for (int i = from; i < to; i++)
		topics_enter(topics, entry(i), bytes_str(topic));
}

static enum topic_news say(struct entry *e, enum verdict v)
{
	return topics_verdict(topics, e, v, "why", false, 0);
}

START_TEST(entries_go_in_order)
{
	enter(0, 3, "t");
	for (int i = 0; i < 3; i++)
		ck_assert_ptr_eq(topics_next(topics), entry(i));
	ck_assert_ptr_null(topics_next(topics));
	ck_assert_uint_eq(topics_flying(topics), 3);
	ck_assert_int_eq(say(entry(1), VERDICT_ACKED), NEWS_NONE);
	ck_assert_int_eq(entry(1)->state, ENTRY_DONE);
	ck_assert_uint_eq(batch->undecided, 7);
}
END_TEST

START_TEST(what_there_was_no_room_for_goes_first_again)
{
	enter(0, 2, "t");
	topics_back(topics, topics_next(topics));
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	ck_assert_ptr_eq(topics_next(topics), entry(1));
}
END_TEST

START_TEST(a_retry_waits_its_pause)
{
	enter(0, 1, "t");
	say(topics_next(topics), VERDICT_RETRY);
	ck_assert_ptr_null(topics_next(topics));
	ck_assert_int_eq(topics_deadline(topics), PAUSE);
	topics_tick(topics, PAUSE - 1);
	ck_assert_ptr_null(topics_next(topics));
	topics_tick(topics, PAUSE);
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	ck_assert_int_eq(topics_deadline(topics), USEC_NEVER);
}
END_TEST

START_TEST(the_culprit_of_a_refused_lot_is_buried_alone)
{
	enter(0, 3, "t");
	enter(3, 4, "other");
	for (int i = 0; i < 4; i++)
		topics_next(topics);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(say(entry(i), VERDICT_REFUSED), NEWS_SUSPECT);
	/* One by one, and nothing beside. */
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	ck_assert_ptr_null(topics_next(topics));
	say(entry(0), VERDICT_ACKED);
	ck_assert_ptr_eq(topics_next(topics), entry(1));
	say(entry(1), VERDICT_REFUSED);
	ck_assert_int_eq(entry(1)->state, ENTRY_BURIED);
	ck_assert_str_eq(entry(1)->reason, "why");
	ck_assert_ptr_eq(topics_next(topics), entry(2));
	say(entry(2), VERDICT_ACKED);
	ck_assert_int_eq(entry(3)->state, ENTRY_FLYING);
}
END_TEST

START_TEST(suspects_wait_until_their_topic_is_empty)
{
	enter(0, 3, "t");
	topics_next(topics);
	topics_next(topics);
	say(entry(0), VERDICT_REFUSED);
	ck_assert_ptr_null(topics_next(topics));	/* entry 1 still flies */
	say(entry(1), VERDICT_ACKED);
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	say(entry(0), VERDICT_ACKED);
	ck_assert_ptr_eq(topics_next(topics), entry(2));
}
END_TEST

START_TEST(a_suspect_that_timed_out_is_still_one)
{
	enter(0, 1, "t");
	say(topics_next(topics), VERDICT_REFUSED);
	say(topics_next(topics), VERDICT_MAYBE);
	topics_tick(topics, PAUSE);
	say(topics_next(topics), VERDICT_REFUSED);
	ck_assert_int_eq(entry(0)->state, ENTRY_BURIED);
}
END_TEST

START_TEST(a_topic_that_refuses_is_parked_and_others_flow)
{
	enter(0, 3, "gone");
	enter(3, 4, "here");
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	ck_assert_int_eq(say(entry(0), VERDICT_NO_TOPIC), NEWS_PARKED);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(entry(i)->state, ENTRY_PARKED);
	ck_assert_ptr_eq(topics_next(topics), entry(3));
	enter(4, 5, "gone");
	ck_assert_int_eq(entry(4)->state, ENTRY_PARKED);
	ck_assert_uint_eq(topics_parked_count(topics), 1);
}
END_TEST

static void park(int i)
{
	bool used;

	enter(i, i + 1, "gone");
	if (entry(i)->state == ENTRY_QUEUED)
		say(topics_next(topics), VERDICT_NO_TOPIC);
	entry(i)->park_seq = topics_place(topics, entry(i)->topic, 1, 70 + (uint64_t)i, &used);
	topics_placed(topics, entry(i)->topic, entry(i)->park_seq);
}

START_TEST(parked_entries_share_a_batch_up_to_its_limit)
{
	bool used;

	park(0);
	park(1);
	ck_assert_uint_eq(entry(0)->park_seq, 70);
	ck_assert_uint_eq(entry(1)->park_seq, 70);
	ck_assert_uint_eq(topics_place(topics, entry(0)->topic, 0, 99, &used), 70);
	ck_assert(!used);
}
END_TEST

START_TEST(a_batch_is_not_read_before_it_is_settled)
{
	struct topic *t;
	uint64_t seq;
	bool used;

	enter(0, 1, "gone");
	say(topics_next(topics), VERDICT_NO_TOPIC);
	entry(0)->park_seq = topics_place(topics, entry(0)->topic, 1, 70, &used);
	ck_assert(used);
	ck_assert(!topics_trial(topics, PARK, &seq, &t));
	ck_assert_int_eq(topics_deadline(topics), USEC_NEVER);
	topics_placed(topics, entry(0)->topic, 70);
	ck_assert(topics_trial(topics, PARK, &seq, &t));
}
END_TEST

START_TEST(a_parked_topic_is_tried_when_its_time_has_come)
{
	struct topic *t;
	uint64_t seq;

	park(0);
	ck_assert(!topics_trial(topics, PARK - 1, &seq, &t));
	ck_assert_int_eq(topics_deadline(topics), PARK);
	ck_assert(topics_trial(topics, PARK, &seq, &t));
	ck_assert_uint_eq(seq, 70);
	ck_assert(!topics_trial(topics, PARK, &seq, &t));	/* one at a time */
	/* What is claimed meanwhile does not join in. */
	enter(1, 2, "gone");
	ck_assert_int_eq(entry(1)->state, ENTRY_PARKED);
	batch->source = BATCH_FETCHED;
	enter(2, 3, "gone");
	topics_fetched(topics, t);
	ck_assert_ptr_eq(topics_next(topics), entry(2));
	ck_assert_int_eq(say(entry(2), VERDICT_ACKED), NEWS_UNPARKED);
	ck_assert_uint_eq(topics_parked_count(topics), 0);
}
END_TEST

START_TEST(each_failed_trial_doubles_the_pause_up_to_a_limit)
{
	struct topic *t;
	uint64_t seq;
	usec_t now = 0, pause = PARK;

	park(0);
	batch->source = BATCH_FETCHED;
	for (int i = 1; i < 5; i++) {
		bool used;

		now += pause;
		ck_assert(!topics_trial(topics, now - 1, &seq, &t));
		ck_assert(topics_trial(topics, now, &seq, &t));
		enter(i, i + 1, "gone");
		topics_fetched(topics, t);
		ck_assert_ptr_eq(topics_next(topics), entry(i));
		ck_assert_int_eq(topics_verdict(topics, entry(i), VERDICT_NO_TOPIC, "",
						false, now), NEWS_PARKED);
		entry(i)->park_seq = topics_place(topics, t, 1, 80, &used);
		topics_placed(topics, t, 80);
		pause = 2 * pause < 4 * PARK ? 2 * pause : 4 * PARK;
	}
}
END_TEST

START_TEST(a_trial_without_entries_is_tried_again)
{
	struct topic *t;
	uint64_t seq;
	bool used;

	park(0);
	topics_place(topics, entry(0)->topic, 0, 0, &used);
	topics_placed(topics, entry(0)->topic, 70);
	ck_assert(topics_trial(topics, PARK, &seq, &t));
	topics_fetched(topics, t);
	ck_assert_int_eq(topic_state(t), TOPIC_PARKED);
	/* No batch is left to try with: the next event tries. */
	ck_assert(!topics_trial(topics, PARK, &seq, &t));
	ck_assert_uint_eq(topics_parked_count(topics), 0);
}
END_TEST

/* What is parked during a trial may be all there is when the trial ends. */
START_TEST(a_trial_ends_with_the_last_entry_that_is_placed)
{
	uint64_t seq;
	struct topic *t;
	bool used;

	topics_parked(topics, BYTES("gone"), 80, PARK);
	ck_assert(topics_trial(topics, PARK, &seq, &t));
	enter(0, 1, "gone");
	ck_assert_int_eq(entry(0)->state, ENTRY_PARKED);
	topics_fetched(topics, t);
	entry(0)->park_seq = topics_place(topics, t, 1, 90, &used);
	ck_assert_int_eq(topic_state(t), TOPIC_PARKED);
	ck_assert(!topics_trial(topics, PARK, &seq, &t));
	topics_placed(topics, t, 90);
	ck_assert(topics_trial(topics, PARK, &seq, &t));
	ck_assert_uint_eq(seq, 90);
}
END_TEST

START_TEST(once_it_flows_its_other_batches_are_read)
{
	struct topic *t;
	uint64_t seq;

	topics_parked(topics, BYTES("gone"), 5, 100);
	topics_parked(topics, BYTES("gone"), 6, 100);
	ck_assert(topics_trial(topics, 100, &seq, &t));
	batch->source = BATCH_FETCHED;
	enter(0, 1, "gone");
	topics_fetched(topics, t);
	ck_assert(!topics_trial(topics, 100, &seq, &t));
	say(topics_next(topics), VERDICT_ACKED);
	ck_assert_int_eq(topics_deadline(topics), 0);
	ck_assert(topics_trial(topics, 100, &seq, &t));
	ck_assert_uint_eq(seq, 6);
}
END_TEST

START_TEST(an_abandoned_batch_leaves_no_trace)
{
	enter(0, 3, "t");
	topics_next(topics);
	say(entry(0), VERDICT_RETRY);
	topics_next(topics);
	topics_drop(topics, batch);
	topics_tick(topics, PAUSE);
	ck_assert_ptr_null(topics_next(topics));
	topics_let_go(topics, entry(1));
	ck_assert_uint_eq(topics_flying(topics), 0);
}
END_TEST

START_TEST(at_the_stop_what_waits_is_left)
{
	enter(0, 3, "t");
	topics_next(topics);
	topics_leave(topics);
	ck_assert_int_eq(entry(0)->state, ENTRY_FLYING);
	ck_assert_int_eq(entry(1)->state, ENTRY_LEFT);
	ck_assert_int_eq(entry(2)->state, ENTRY_LEFT);
	ck_assert_ptr_null(topics_next(topics));
}
END_TEST

START_TEST(idle_topics_are_not_kept_for_ever)
{
	char name[16];

	for (int i = 0; i < 100000; i++) {
		struct batch *b = batch_new(2, BATCH_CLAIMED);
		struct bytes one = BYTES("x");

		batch_fill(b, &one, &one, 1);
		snprintf(name, sizeof name, "t%d", i);
		topics_enter(topics, b->entries, bytes_str(name));
		ck_assert_ptr_eq(topics_next(topics), b->entries);
		say(b->entries, VERDICT_ACKED);
		batch_free(b);
	}
	ck_assert_uint_lt(topics_count(topics), 5000);
}
END_TEST

/* Entry `i` flies to topic "t", is refused there and is told to "dead". */
static void die(int i)
{
	enter(i, i + 1, "t");
	ck_assert_ptr_eq(topics_next(topics), entry(i));
	topics_verdict(topics, entry(i), VERDICT_CULPRIT, "too large", true, 0);
	ck_assert_int_eq(entry(i)->state, ENTRY_QUEUED);
	ck_assert_str_eq(entry(i)->reason, "too large");
	topics_tell(topics, entry(i), BYTES("dead"));
}

static void ck_assert_buried(int i, enum entry_death death)
{
	ck_assert_int_eq(entry(i)->state, ENTRY_BURIED);
	ck_assert_int_eq(entry(i)->death, death);
	ck_assert_str_eq(entry(i)->reason, "too large");
}

START_TEST(a_dead_letter_is_told_and_buried)
{
	die(0);
	ck_assert_int_eq(entry(0)->death, DEATH_DYING);
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	ck_assert_bytes(topic_name(entry(0)->topic), BYTES("dead"));
	ck_assert_int_eq(say(entry(0), VERDICT_ACKED), NEWS_NONE);
	ck_assert_buried(0, DEATH_TOLD);
	ck_assert_uint_eq(batch->untold, 0);
	ck_assert_uint_eq(batch->undecided, 7);
}
END_TEST

START_TEST(a_suspect_that_dies_is_none_of_the_dead_letters)
{
	enter(0, 1, "t");
	say(topics_next(topics), VERDICT_REFUSED);
	topics_verdict(topics, topics_next(topics), VERDICT_REFUSED, "too large", true, 0);
	topics_tell(topics, entry(0), BYTES("dead"));
	die(1);
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	ck_assert_ptr_eq(topics_next(topics), entry(1));
}
END_TEST

START_TEST(a_dead_letter_that_is_refused_alone_is_buried_untold)
{
	die(0);
	die(1);
	topics_next(topics);
	topics_next(topics);
	ck_assert_int_eq(say(entry(0), VERDICT_REFUSED), NEWS_SUSPECT);
	ck_assert_int_eq(say(entry(1), VERDICT_REFUSED), NEWS_SUSPECT);
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	say(entry(0), VERDICT_REFUSED);
	ck_assert_buried(0, DEATH_UNTOLD);
	ck_assert_ptr_eq(topics_next(topics), entry(1));
	say(entry(1), VERDICT_ACKED);
	ck_assert_buried(1, DEATH_TOLD);
	ck_assert_uint_eq(batch->untold, 1);
}
END_TEST

START_TEST(what_dies_of_the_dead_letter_topic_itself_is_no_loop)
{
	enter(0, 1, "dead");
	topics_next(topics);
	topics_verdict(topics, entry(0), VERDICT_CULPRIT, "too large", true, 0);
	topics_tell(topics, entry(0), BYTES("dead"));
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	topics_verdict(topics, entry(0), VERDICT_CULPRIT, "again", true, 0);
	ck_assert_buried(0, DEATH_UNTOLD);
	ck_assert_ptr_null(topics_next(topics));
}
END_TEST

START_TEST(a_dead_letter_that_may_pass_is_produced_again)
{
	die(0);
	say(topics_next(topics), VERDICT_MAYBE);
	ck_assert(!topics_tick(topics, PAUSE));
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	say(entry(0), VERDICT_ACKED);
	ck_assert_buried(0, DEATH_TOLD);
}
END_TEST

START_TEST(without_its_topic_a_dead_letter_does_not_wait)
{
	struct topic *t;
	uint64_t seq;

	die(0);
	die(1);
	enter(2, 3, "dead");
	ck_assert_ptr_eq(topics_next(topics), entry(0));
	ck_assert_int_eq(say(entry(0), VERDICT_NO_TOPIC), NEWS_PARKED);
	ck_assert_buried(0, DEATH_UNTOLD);
	ck_assert_buried(1, DEATH_UNTOLD);
	ck_assert_int_eq(entry(2)->state, ENTRY_PARKED);
	die(3);
	ck_assert_buried(3, DEATH_UNTOLD);
	ck_assert_uint_eq(batch->untold, 3);
	/* Of what is parked a trial is made; no dead letter waits for that. */
	entry(2)->park_seq = topics_place(topics, entry(2)->topic, 1, 70, &(bool){ false });
	topics_placed(topics, entry(2)->topic, 70);
	ck_assert(topics_trial(topics, PARK, &seq, &t));
	die(4);
	ck_assert_buried(4, DEATH_UNTOLD);
}
END_TEST

START_TEST(a_dead_letter_whose_topic_went_while_it_waited_is_buried)
{
	die(0);
	die(1);
	topics_next(topics);
	topics_next(topics);
	say(entry(0), VERDICT_RETRY);
	say(entry(1), VERDICT_NO_TOPIC);
	ck_assert_int_eq(entry(0)->state, ENTRY_LATER);
	ck_assert(topics_tick(topics, PAUSE));
	ck_assert_buried(0, DEATH_UNTOLD);
}
END_TEST

START_TEST(an_empty_dead_letter_topic_is_tried_with_the_next)
{
	struct topic *t;
	uint64_t seq;

	die(0);
	say(topics_next(topics), VERDICT_NO_TOPIC);
	ck_assert_int_eq(topics_deadline(topics), PARK);
	ck_assert(!topics_trial(topics, PARK, &seq, &t));
	die(1);
	ck_assert_ptr_eq(topics_next(topics), entry(1));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("topics");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, entries_go_in_order);
	tcase_add_test(tests, what_there_was_no_room_for_goes_first_again);
	tcase_add_test(tests, a_retry_waits_its_pause);
	tcase_add_test(tests, the_culprit_of_a_refused_lot_is_buried_alone);
	tcase_add_test(tests, suspects_wait_until_their_topic_is_empty);
	tcase_add_test(tests, a_suspect_that_timed_out_is_still_one);
	tcase_add_test(tests, a_topic_that_refuses_is_parked_and_others_flow);
	tcase_add_test(tests, parked_entries_share_a_batch_up_to_its_limit);
	tcase_add_test(tests, a_batch_is_not_read_before_it_is_settled);
	tcase_add_test(tests, a_parked_topic_is_tried_when_its_time_has_come);
	tcase_add_test(tests, each_failed_trial_doubles_the_pause_up_to_a_limit);
	tcase_add_test(tests, a_trial_without_entries_is_tried_again);
	tcase_add_test(tests, a_trial_ends_with_the_last_entry_that_is_placed);
	tcase_add_test(tests, once_it_flows_its_other_batches_are_read);
	tcase_add_test(tests, an_abandoned_batch_leaves_no_trace);
	tcase_add_test(tests, at_the_stop_what_waits_is_left);
	tcase_add_test(tests, idle_topics_are_not_kept_for_ever);
	tcase_add_test(tests, a_dead_letter_is_told_and_buried);
	tcase_add_test(tests, a_suspect_that_dies_is_none_of_the_dead_letters);
	tcase_add_test(tests, a_dead_letter_that_is_refused_alone_is_buried_untold);
	tcase_add_test(tests, what_dies_of_the_dead_letter_topic_itself_is_no_loop);
	tcase_add_test(tests, a_dead_letter_that_may_pass_is_produced_again);
	tcase_add_test(tests, without_its_topic_a_dead_letter_does_not_wait);
	tcase_add_test(tests, a_dead_letter_whose_topic_went_while_it_waited_is_buried);
	tcase_add_test(tests, an_empty_dead_letter_topic_is_tried_with_the_next);
	return unit_main("topics", tests);
}
