/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * log_events - the catalogue: every event that can stand in the log.
 *
 * X(NAME, "name", level, "what it means").  LOG_NAME is the event in the code,
 * "name" the `event` field, level the one it is logged at unless the caller
 * says otherwise.  docs/log.md lists the same with their fields; the lint
 * log-catalogue holds the two together.  A name never changes its meaning.
 */
#ifndef LAPSED_LOG_EVENTS_H
#define LAPSED_LOG_EVENTS_H

#define LOG_EVENTS(X) \
	X(DAEMON_START, "daemon.start", INFO, "the process begins") \
	X(DAEMON_CONFIG, "daemon.config", WARN, "something about the configuration") \
	X(DAEMON_RELOAD, "daemon.reload", INFO, "the configuration was read again") \
	X(DAEMON_STOPPING, "daemon.stopping", INFO, "no more claims; open events are finished") \
	X(DAEMON_STOPPED, "daemon.stopped", INFO, "the process ends") \
	X(REDIS_CONNECTED, "redis.connected", INFO, "a connection to Redis is ready") \
	X(REDIS_LOST, "redis.lost", WARN, "a connection to Redis broke") \
	X(REDIS_REFUSED, "redis.refused", WARN, "Redis can't be reached or does not take us") \
	X(REDIS_AUTH, "redis.auth", ERROR, "Redis refuses user or password") \
	X(REDIS_NOTIFY, "redis.notify", WARN, "Redis does not send expiry notifications") \
	X(REDIS_CLOCK, "redis.clock", WARN, "Redis' clock was set back") \
	X(REDIS_DEAF, "redis.deaf", WARN, "expiries are not published to this instance") \
	X(REDIS_SUBSCRIBED, "redis.subscribed", INFO, "the subscription is there; a sweep follows") \
	X(REDIS_SUBSCRIBE_REFUSED, "redis.subscribe_refused", ERROR, "the ACL refuses the subscription") \
	X(SWEEP_REPAIRED, "sweep.repaired", WARN, "structures in Redis disagreed and were repaired") \
	X(GAP_CLOSED, "gap.closed", INFO, "what was missed without a subscription was found") \
	X(SCAN_BEGIN, "scan.begin", INFO, "a pass through the keyspace begins") \
	X(SCAN_PROGRESS, "scan.progress", INFO, "how far a pass through the keyspace is") \
	X(SCAN_DONE, "scan.done", INFO, "a pass through the keyspace is done") \
	X(WATCH_GONE, "watch.gone", WARN, "the watched keys of a database are gone without a word") \
	X(WATCH_EVICTED, "watch.evicted", WARN, "Redis evicts watched keys, and they make no events") \
	X(WATCH_NAME, "watch.name", WARN, "a watched key's name is too long to be forwarded") \
	X(SLOT_JOINED, "slot.joined", INFO, "this instance holds a slot") \
	X(SLOT_FENCED, "slot.fenced", WARN, "the slot has a newer holder; joining anew") \
	X(SLOT_LEFT, "slot.left", INFO, "the slot was given back") \
	X(BATCH_ADOPTED, "batch.adopted", INFO, "a batch of an instance that is gone was taken over") \
	X(BATCH_GONE, "batch.gone", WARN, "a batch was no longer in Redis when it was to be settled") \
	X(KAFKA_READY, "kafka.ready", INFO, "the Kafka cluster answers") \
	X(KAFKA_UNREACHABLE, "kafka.unreachable", WARN, "no broker can be reached; events wait in Redis") \
	X(KAFKA_ERROR, "kafka.error", WARN, "the Kafka client reports an error") \
	X(KAFKA_FATAL, "kafka.fatal", WARN, "the producer failed for good and is made anew") \
	X(KAFKA_LOG, "kafka.log", INFO, "a log line of the Kafka client") \
	X(KAFKA_PARKED, "kafka.parked", WARN, "a topic refuses; its events wait in Redis") \
	X(KAFKA_UNPARKED, "kafka.unparked", INFO, "a parked topic takes events again") \
	X(EVENT_BURIED, "event.buried", ERROR, "an event was given up as a dead letter") \
	X(DEAD_UNTOLD, "dead.untold", WARN, "a dead-letter topic did not take dead letters") \
	X(DEAD_MANY, "dead.many", WARN, "there are many dead letters") \
	X(DEAD_DROPPED, "dead.dropped", WARN, "the oldest dead letters were dropped, as asked for") \
	X(EVENT_SUSPECT, "event.suspect", WARN, "an event is tried alone because its batch was refused") \
	X(WINDOW_FULL, "window.full", WARN, "the limit of events in flight is reached") \
	X(WINDOW_FREE, "window.free", INFO, "there is room in flight again") \
	X(SCRIPT_ERROR, "script.error", ERROR, "Redis answered a script with an error") \
	X(LOG_REPEATED, "log.repeated", WARN, "an event was folded and not seen since") \
	X(STATS, "stats", INFO, "all counters and the lateness since the last such line")

enum log_event {
#define X(name, text, level, meaning)	LOG_##name,
	LOG_EVENTS(X)
#undef X
	LOG_EVENT_COUNT
};

#endif
