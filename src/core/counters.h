/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * counters - everything that is counted, as one list.
 *
 * X(name, meaning).  The list makes the storage, the fields of the `stats`
 * log line and their description in docs/log.md, so a new counter is one new
 * line here (and one there, as a lint insists).  Counters only grow, from the
 * start of the process; the event counted is over when it is counted.
 */
#ifndef LAPSED_CORE_COUNTERS_H
#define LAPSED_CORE_COUNTERS_H

#include <stdint.h>

#define COUNTERS(X) \
	X(claims, "claims answered, the empty ones included") \
	X(claimed, "entries claimed") \
	X(produced, "records handed to the producer, resends included") \
	X(acknowledged, "events that Kafka acknowledged") \
	X(settled, "entries whose batch was settled") \
	X(retried, "records produced again after Kafka did not take them") \
	X(possible_duplicates, "records produced again that Kafka may have taken") \
	X(buried, "entries given up as dead letters") \
	X(dead_told, "dead letters that a dead-letter topic took") \
	X(dead_untold, "dead letters that it did not take") \
	X(dead_dropped, "dead letters dropped because there were too many") \
	X(parked_entries, "entries set aside because their topic refuses") \
	X(no_topic, "events whose route's template gave no topic that it allows") \
	X(adopted_batches, "batches taken over from an instance that is gone") \
	X(adopted_entries, "entries in them") \
	X(heard, "expiry notifications that match a route") \
	X(heard_foreign, "notifications of keys that match no route") \
	X(echoes, "notifications of expiries that our own look had caused") \
	X(heard_dropped, "notifications dropped because too many waited") \
	X(absorbed, "notifications that another instance had claimed before") \
	X(followed, "due entries whose key had got a later time to live") \
	X(hints, "notifications that tell of a watched key's life, expiries aside") \
	X(hints_dropped, "those dropped because too many waited; a scan follows") \
	X(registered, "watched keys that came into the shadow") \
	X(moved, "watched keys whose entry went to another time") \
	X(unregistered, "watched keys that lost their time to live") \
	X(cancelled, "watched keys that were deleted, renamed or moved") \
	X(set_again, "lives that expired and whose key was there again when we looked") \
	X(evicted, "watched keys that Redis evicted, made events") \
	X(evicted_dropped, "watched keys that Redis evicted, dropped as the route asks") \
	X(not_copied, "values left out, as too large or of an unknown type") \
	X(names_too_long, "watched keys whose name is too long to be forwarded") \
	X(scans, "passes through the keyspace") \
	X(scanned, "keys looked at in them") \
	X(scan_found, "watched keys found in them that the shadow did not have") \
	X(expired_heard, "watched keys claimed whose expiry Redis had told of") \
	X(expired_found, "watched keys claimed that expired as we looked") \
	X(expired_inferred, "watched keys claimed that were gone without a word") \
	X(inferred_dropped, "expiries nobody saw, dropped as the route asks") \
	X(early, "claimed entries that were not yet due; stays 0") \
	X(fenced, "scripts refused because the slot had a newer holder") \
	X(gone, "settles whose batch was no longer there") \
	X(forgotten, "lives forgotten one by one after such a settle") \
	X(redis_reconnects, "connections to Redis made anew") \
	X(gaps, "times without a subscription") \
	X(wakes, "wake messages heard") \
	X(deaf, "times the canary showed that expiries are not published to us") \
	X(sweeps, "sweep passes") \
	X(swept, "entries that they claimed") \
	X(walked, "members looked at in search of structures that disagree") \
	X(repaired, "those that disagreed and were repaired") \
	X(log_dropped, "log lines dropped because stderr did not take them") \
	X(kafka_errors, "errors the Kafka client reported") \
	X(kafka_restarts, "producers made anew after a fatal error")

struct counters {
#define X(name, meaning)	uint64_t name;
	COUNTERS(X)
#undef X
};

#endif
