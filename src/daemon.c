/* SPDX-License-Identifier: BSD-2-Clause */

#include "daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <ev.h>

#include "config.h"
#include "core/bridge.h"
#include "core/mem.h"
#include "daemon_calls.h"
#include "daemon_report.h"
#include "daemon_server.h"
#include "failpoint.h"
#include "io/alarm.h"
#include "io/clock.h"
#include "io/kafka.h"
#include "metrics.h"

/* Entries handed to the producer before the loop looks at its sockets. */
#define PRODUCE_BUDGET	512
/* Of a burst of reports, so many share one look at the clock. */
#define REPORTS_PER_LOOK	32
/* What librdkafka keeps of each costs memory, and is kept to the end. */
#define MAX_TOPICS	10000
/* Of the watched keys, so many are looked at, with every so many-th canary. */
#define GLANCE_KEYS	20
#define GLANCE_EVERY	2
/* After the purge, for the reports and the last settles. */
#define FLUSH_SECONDS	2.0

#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
#define HIREDIS_VERSION	\
	STRING(HIREDIS_MAJOR) "." STRING(HIREDIS_MINOR) "." STRING(HIREDIS_PATCH)

enum phase { RUNNING, DRAINING, FLUSHING };

struct daemon {
	struct ev_loop *loop;
	struct conf *conf;	/* as of the last reload */
	struct conf *boot;	/* as of the start: what can't change is here */
	const struct conf_source *source;
	struct log *log;
	struct bridge *bridge;
	struct server *server;
	struct calls *calls;
	struct kafka *kafka;
	struct event_conf event_conf;
	struct event_room room;
	struct metrics metrics;
	struct glance glance;
	unsigned canaries;
	char prefix[80];
	enum phase phase;
	bool kafka_full;	/* no room until the next reports */
	int status;
	unsigned reports;	/* of this burst, */
	usec_t report_at;	/* and when the last ones came */
	struct alarm *alarm;
	ev_prepare prepare;
	ev_timer stats, stop;
	ev_signal term, interrupt, hup;
};

/* The producer -------------------------------------------------------- */

static enum verdict verdict_of(enum kafka_outcome outcome)
{
	static const enum verdict table[] = {
		[KAFKA_ACKED] = VERDICT_ACKED, [KAFKA_RETRY] = VERDICT_RETRY,
		[KAFKA_RETRY_MAYBE] = VERDICT_MAYBE, [KAFKA_PERMANENT] = VERDICT_REFUSED,
		[KAFKA_NO_TOPIC] = VERDICT_NO_TOPIC, [KAFKA_DENIED] = VERDICT_NO_TOPIC,
	};

	return table[outcome];
}

static void on_report(void *arg, void *opaque, enum kafka_outcome outcome,
		      const char *error)
{
	struct daemon *d = arg;

	failpoint("report", "");
	if (d->reports++ % REPORTS_PER_LOOK == 0)
		d->report_at = clock_now();
	bridge_verdict(d->bridge, opaque, verdict_of(outcome), error, d->report_at);
}

static void on_reports_done(void *arg)
{
	struct daemon *d = arg;

	d->reports = 0;
	d->kafka_full = false;
}

static void on_kafka_state(void *arg, enum kafka_state state, const char *text)
{
	static const enum log_event events[] = {
		[KAFKA_REACHED] = LOG_KAFKA_READY, [KAFKA_UNREACHABLE] = LOG_KAFKA_UNREACHABLE,
		[KAFKA_RESTARTED] = LOG_KAFKA_FATAL,
	};
	struct daemon *d = arg;
	struct log_line l;

	if (state == KAFKA_RESTARTED)
		bridge_counters(d->bridge)->kafka_restarts++;
	log_begin(&l, d->log, events[state], "%s", text);
	log_end(&l);
}

static void on_kafka_log(void *arg, int level, const char *facility, const char *text)
{
	/* Its "err" is a connection that it makes again: ours are about events. */
	static const enum log_level levels[] = {
		LOG_ERROR, LOG_ERROR, LOG_ERROR,	/* emerg to crit */
		LOG_WARN, LOG_WARN, LOG_INFO, LOG_INFO, LOG_DEBUG,
	};
	struct daemon *d = arg;
	struct log_line l;

	if (d->bridge && level <= 3)
		bridge_counters(d->bridge)->kafka_errors++;
	log_begin_about(&l, d->log, LOG_KAFKA_LOG, levels[level & 7], bytes_str(facility),
			"%s", text);
	log_str(&l, "facility", facility);
	log_end(&l);
}

static void produced(struct daemon *d, struct entry *e, enum kafka_produced p,
		     const char *error)
{
	switch (p) {
	case KAFKA_TAKEN:
		break;
	case KAFKA_FULL:
		d->kafka_full = true;
		bridge_back(d->bridge, e);
		break;
	case KAFKA_TOO_LARGE:
	case KAFKA_INVALID:
		bridge_verdict(d->bridge, e, VERDICT_CULPRIT, error, clock_now());
		break;
	case KAFKA_UNKNOWN_TOPIC:
	case KAFKA_DENIED_TOPIC:
		bridge_verdict(d->bridge, e, VERDICT_NO_TOPIC, error, clock_now());
		break;
	}
}

static enum trigger trigger_of(const struct entry *e)
{
	if (e->batch->trigger != TRIGGER_RECOVERY && e->envelope.n > 9 &&
	    e->envelope.p[9] == CERTAINTY_HEARD)
		return TRIGGER_EXPIRED;
	return e->batch->trigger;
}

static bool make_message(struct daemon *d, const struct entry *e, struct message *m,
			 struct err *err)
{
	struct event ev;

	if (e->death == DEATH_DYING) {
		const struct dead_letter l = {
			e->member, e->envelope, trigger_of(e), bytes_str(e->reason),
			topic_name(e->topic),
		};

		event_build_dead(&l, d->conf->routes, &d->event_conf, &d->room, m);
		return true;
	}
	if (!event_read(&ev, d->conf->routes, e->member, e->envelope, err))
		return false;
	/* Its time to run counts from the settle, which is later. */
	ev.now = bridge_redis_ms(d->bridge, clock_now());
	return event_build(&ev, &d->event_conf, trigger_of(e), &d->room, m, err);
}

static void produce(struct daemon *d, struct entry *e)
{
	struct message m;
	struct err err;
	const char *error = NULL;
	enum kafka_produced taken;
	bool copy;

	if (!make_message(d, e, &m, &err)) {
		bridge_verdict(d->bridge, e, event_waits(topic_name(e->topic)) ?
			       VERDICT_NO_TOPIC : VERDICT_CULPRIT, err.text, clock_now());
		return;
	}
	/* Only the batch stays in place until the report. */
	copy = m.value.p == d->room.value.p;
	failpoint("produce", ".ask");
	failpoint_poison(e->member);
	taken = kafka_produce(d->kafka, &m, copy ? KAFKA_COPY : KAFKA_BORROW, e, &error);
	produced(d, e, taken, error);
	failpoint("produce", ".taken");
}

/* The turn ------------------------------------------------------------ */

static void make_calls(struct daemon *d)
{
	const struct ask *ask;

	while ((ask = bridge_ask(d->bridge, clock_now())))
		calls_make(d->calls, ask);
	server_flush(d->server);
}

/* True when there is more than the budget allowed. */
static bool produce_some(struct daemon *d)
{
	usec_t now = clock_now();

	for (int budget = PRODUCE_BUDGET; budget > 0; budget--) {
		struct entry *e = d->kafka_full ? NULL : bridge_next(d->bridge, now);

		if (!e)
			return false;
		produce(d, e);
	}
	return true;
}

static void turn(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct daemon *d = w->data;
	struct note n;
	usec_t now;
	bool more;

	(void)events;
	make_calls(d);
	more = produce_some(d);
	while (bridge_note(d->bridge, &n))
		report_note(d->log, &n, server_gap_ms(d->server));
	if (d->phase != RUNNING && bridge_over(d->bridge))
		ev_break(loop, EVBREAK_ALL);
	now = clock_now();
	alarm_set(d->alarm, more ? now : bridge_deadline(d->bridge, now), now);
}

static void on_stats(struct ev_loop *loop, ev_timer *w, int events)
{
	struct daemon *d = w->data;

	(void)loop;
	(void)events;
	bridge_counters(d->bridge)->log_dropped = log_dropped(d->log);
	report_stats(&d->metrics, d->log, d->bridge, kafka_outstanding(d->kafka), clock_now());
	log_settle(d->log);
}

/* Redis --------------------------------------------------------------- */

static void on_script_error(void *arg, const char *script, enum script_error code,
			    const char *text)
{
	struct daemon *d = arg;
	bool passes = code >= SCRIPT_LOADING && code <= SCRIPT_TRYAGAIN;
	struct log_line l;

	log_begin_about(&l, d->log, LOG_SCRIPT_ERROR, passes ? LOG_WARN : LOG_ERROR,
			bytes_str(script_error_name(code)),
			"script %s was refused, trying again: %s", script, text);
	log_str(&l, "script", script);
	log_str(&l, "code", script_error_name(code));
	log_end(&l);
}

static void on_loaded(void *arg, const char *error)
{
	struct daemon *d = arg;

	server_scripts_loaded(d->server, error);
}

static void on_greeted(void *arg)
{
	struct daemon *d = arg;

	calls_load(d->calls);
}

static void on_link(void *arg, bool up)
{
	struct daemon *d = arg;

	if (!up)
		bridge_counters(d->bridge)->redis_reconnects++;
	bridge_link(d->bridge, up, clock_now());
}

static void on_subscribed(void *arg)
{
	struct daemon *d = arg;

	if (server_gap_ms(d->server) >= 0)
		bridge_counters(d->bridge)->gaps++;
	bridge_subscribed(d->bridge, clock_now());
}

static void on_canary_answer(void *arg, bool gone, bool set)
{
	struct daemon *d = arg;

	server_canary_answered(d->server, gone, set);
}

static void on_glance_row(void *arg, unsigned db, uint64_t looked, uint64_t gone)
{
	struct daemon *d = arg;
	enum glance_news news = glance_row(&d->glance, db, looked, gone);
	struct log_line l;

	if (news == GLANCE_NOTHING)
		return;
	if (news == GLANCE_GONE)
		log_begin(&l, d->log, LOG_WATCH_GONE,
			  "the watched keys of database %u are gone and nobody told, as after "
			  "FLUSHDB; when they were to expire, each makes an event that is "
			  "`inferred`, or none where its route drops those", db);
	else
		log_begin_about(&l, d->log, LOG_WATCH_GONE, LOG_INFO, BYTES("over"),
				"there are watched keys in database %u again", db);
	log_uint(&l, "db", db);
	log_uint(&l, "looked", looked);
	log_uint(&l, "gone", gone);
	log_end(&l);
}

static void on_glance_end(void *arg)
{
	struct daemon *d = arg;

	glance_answered(&d->glance);
}

/* The first of all looks at keys, if anything would have told of their end. */
static void look_around(struct daemon *d)
{
	const struct lease *lease = bridge_lease(d->bridge);
	const struct counters *c = bridge_counters(d->bridge);
	const struct glance_counts now = {
		c->expired_heard, c->expired_found, c->expired_inferred,
	};
	struct glance_counts add;
	unsigned keys = 0;

	if (lease->state != LEASE_HELD || calls_glancing(d->calls))
		return;
	if (lease->rank == 0 && routes_registers(d->conf->routes) & ROUTE_EVENTS)
		keys = GLANCE_KEYS;
	if (glance_next(&d->glance, &now, &add) || keys)
		calls_glance(d->calls, d->glance.serial, &add, keys, on_glance_row,
			     on_glance_end);
	else
		glance_answered(&d->glance);
}

static void on_canary(void *arg, unsigned db, const char *name, msec_t ttl)
{
	struct daemon *d = arg;

	calls_canary(d->calls, db, name, ttl, on_canary_answer);
	if (++d->canaries % GLANCE_EVERY == 0)
		look_around(d);
}

static void on_deaf(void *arg, bool deaf)
{
	struct daemon *d = arg;

	bridge_deaf(d->bridge, deaf);
}

static void on_unfit(void *arg)
{
	struct daemon *d = arg;

	d->status = 1;
	ev_break(d->loop, EVBREAK_ALL);
}

/* Once: whoever has one such name has many. */
static void name_too_long(struct daemon *d, const struct route *route, struct bytes key)
{
	struct log_line l;

	if (bridge_counters(d->bridge)->names_too_long++)
		return;
	log_begin(&l, d->log, LOG_WATCH_NAME,
		  "a key of route %.*s has a name of %zu bytes; more than %d are not forwarded, "
		  "and from now on only counted", (int)route->name.n, route->name.p, key.n,
		  RECORD_NAME_MAX);
	log_bytes(&l, "route", route->name);
	log_uint(&l, "bytes", key.n);
	log_end(&l);
}

static void watched(struct daemon *d, const struct route *route, enum watch_sign sign,
		    struct bytes member)
{
	usec_t now = clock_now();

	if (sign == WATCH_EXPIRED)
		bridge_heard(d->bridge, member, route_heard(route), now);
	if (route->registers & ROUTE_EVENTS && (sign != WATCH_WRITTEN || route->refresh))
		bridge_hint(d->bridge, member, sign, now);
}

static void on_event(void *arg, unsigned db, struct bytes event, struct bytes key)
{
	struct daemon *d = arg;
	enum watch_sign sign = watch_sign(event, true);
	const struct route *route;
	char member[RECORD_NAME_MAX + 16];
	int head;

	if (sign == WATCH_NOTHING)
		return;
	route = routes_match(d->conf->routes, db, key, NULL);
	if (!route) {
		bridge_counters(d->bridge)->heard_foreign++;
		return;
	}
	if (key.n > RECORD_NAME_MAX) {
		name_too_long(d, route, key);
		return;
	}
	head = snprintf(member, sizeof member, "k:%u:", db);
	memcpy(member + head, key.p, key.n);
	watched(d, route, sign, bytes_of(member, (size_t)head + key.n));
}

static void on_heard_since(void *arg, usec_t since)
{
	struct daemon *d = arg;

	bridge_heard_since(d->bridge, since);
}

static void on_wake(void *arg, struct bytes message)
{
	struct daemon *d = arg;

	if (bytes_eq(message, BYTES("left")))
		bridge_peer_left(d->bridge, clock_now());
	else if (message.n > 0 && message.n < 17)
		bridge_wake(d->bridge, strtoll(message.p, NULL, 10), clock_now());
}

static const struct server_handlers server_handlers = {
	.greeted = on_greeted, .link = on_link, .subscribed = on_subscribed,
	.unfit = on_unfit, .event = on_event, .wake = on_wake,
	.canary = on_canary, .deaf = on_deaf, .heard_since = on_heard_since,
};

static const struct calls_handlers calls_handlers = {
	.loaded = on_loaded, .error = on_script_error,
};

static const struct kafka_handlers kafka_handlers = {
	.report = on_report, .reports_done = on_reports_done,
	.state = on_kafka_state, .log = on_kafka_log,
};

/* Signals ------------------------------------------------------------- */

static void on_stop_timeout(struct ev_loop *loop, ev_timer *w, int events)
{
	struct daemon *d = w->data;

	(void)events;
	if (d->phase == FLUSHING) {
		ev_break(loop, EVBREAK_ALL);
		return;
	}
	d->phase = FLUSHING;
	bridge_give_up(d->bridge);
	kafka_purge(d->kafka);
	ev_timer_set(&d->stop, FLUSH_SECONDS, 0);
	ev_timer_start(loop, &d->stop);
}

static void on_term(struct ev_loop *loop, ev_signal *w, int events)
{
	struct daemon *d = w->data;
	struct log_line l;

	(void)events;
	if (d->phase != RUNNING) {
		log_begin(&l, d->log, LOG_DAEMON_STOPPING, "second signal: stopping now");
		log_end(&l);
		ev_break(loop, EVBREAK_ALL);
		return;
	}
	log_begin(&l, d->log, LOG_DAEMON_STOPPING,
		  "no more claims; what is open is finished within %lld ms",
		  (long long)d->conf->stop_timeout_ms);
	log_int(&l, "open_events", (int64_t)kafka_outstanding(d->kafka));
	log_end(&l);
	d->phase = DRAINING;
	bridge_drain(d->bridge);
	ev_timer_set(&d->stop, (double)d->conf->stop_timeout_ms / 1000, 0);
	ev_timer_start(loop, &d->stop);
}

static struct bridge_conf bridge_conf(const struct conf *c)
{
	return (struct bridge_conf){
		.max_events = (size_t)c->max_inflight,
		.max_bytes = (size_t)c->max_inflight_bytes,
		.claim_limit = (size_t)c->claim_limit,
		.listens = c->role != ROLE_SWEEPER, .sweeps = c->role != ROLE_BRIDGE,
		.lease = c->lease_ms * USEC_PER_MSEC,
		.grace = c->grace_ms * USEC_PER_MSEC,
		.sweep_interval = c->sweep_interval_ms * USEC_PER_MSEC,
		.park_min = c->park_min_ms * USEC_PER_MSEC,
		.park_max = c->park_max_ms * USEC_PER_MSEC,
		.dead_topic = bytes_str(c->dead_topic),
		.max_dead = (size_t)c->max_dead,
		.drop_dead = c->drop_dead,
		.scan_rate = (unsigned)c->scan_rate,
		.rescan = c->rescan_ms * USEC_PER_MSEC,
		.dbs = c->databases.db, .n_dbs = c->databases.all ? 0 : c->databases.n,
	};
}

static void log_conf_notes(struct log *log, const struct conf_report *report)
{
	static const enum log_level levels[] = {
		[CONF_MISTAKE] = LOG_ERROR, [CONF_WARNING] = LOG_WARN, [CONF_CHANGE] = LOG_INFO,
	};

	for (size_t i = 0; i < report->n; i++) {
		struct log_line l;

		log_begin_about(&l, log, LOG_DAEMON_CONFIG, levels[report->notes[i].severity],
				bytes_str(report->notes[i].text), "%s", report->notes[i].text);
		log_end(&l);
	}
}

static void start_stats(struct daemon *d)
{
	double every = (double)d->conf->stats_interval_ms / 1000;

	ev_timer_stop(d->loop, &d->stats);
	ev_timer_set(&d->stats, every, every);
	if (every > 0)
		ev_timer_start(d->loop, &d->stats);
}

/* The first event of a route needn't wait until its topic is looked up. */
static void warm_topics(struct daemon *d)
{
	for (size_t i = 0; i < routes_count(d->conf->routes); i++) {
		const struct route *r = routes_at(d->conf->routes, i);

		if (!r->templates[ROUTE_TOPIC])
			kafka_warm(d->kafka, r->topic);
	}
}

/* What can't be used changes nothing. */
static void on_hup(struct ev_loop *loop, ev_signal *w, int events)
{
	struct daemon *d = w->data;
	struct conf_report report = { 0 };
	struct conf *fresh = conf_load(d->source, &report);
	struct bridge_conf bc;
	struct log_line l;

	(void)loop;
	(void)events;
	if (fresh)
		conf_reload_diff(d->conf, fresh, &report);
	log_unfold(d->log, LOG_DAEMON_CONFIG);
	log_unfold(d->log, LOG_DAEMON_RELOAD);
	log_conf_notes(d->log, &report);
	log_begin_about(&l, d->log, LOG_DAEMON_RELOAD, fresh ? LOG_INFO : LOG_ERROR, bytes_none,
			fresh ? "configuration read again" :
				"configuration not usable; going on with the old one");
	log_uint(&l, "mistakes", report.mistakes);
	log_end(&l);
	conf_report_clear(&report);
	if (!fresh)
		return;
	bc = bridge_conf(fresh);
	bridge_configure(d->bridge, &bc, fresh->routes);
	server_configure(d->server, fresh);
	if (d->conf != d->boot)
		conf_free(d->conf);
	d->conf = fresh;
	log_set_level(d->log, (enum log_level)fresh->log_level);
	warm_topics(d);
	start_stats(d);
}

/* Start and end ------------------------------------------------------- */

static void signal_init(struct daemon *d, ev_signal *w,
			void (*cb)(struct ev_loop *, ev_signal *, int), int number)
{
	ev_signal_init(w, cb, number);
	w->data = d;
	ev_signal_start(d->loop, w);
}

static void watchers_init(struct daemon *d)
{
	d->alarm = alarm_new(d->loop);
	if (!d->alarm)
		abort();	/* no file descriptor, and none for Redis either */
	ev_prepare_init(&d->prepare, turn);
	ev_timer_init(&d->stats, on_stats, 0, 0);
	ev_timer_init(&d->stop, on_stop_timeout, 0, 0);
	d->prepare.data = d->stats.data = d->stop.data = d;
	ev_prepare_start(d->loop, &d->prepare);
	signal_init(d, &d->term, on_term, SIGTERM);
	signal_init(d, &d->interrupt, on_term, SIGINT);
	signal_init(d, &d->hup, on_hup, SIGHUP);
	start_stats(d);
}

/* Random, so that no two processes ever hold a slot under the same nonce. */
static void make_seed(char seed[LEASE_NONCE_LEN])
{
	unsigned char raw[12];

	if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
		abort();
	for (size_t i = 0; i < sizeof raw; i++)
		sprintf(seed + 2 * i, "%02x", raw[i]);
}

static bool start_kafka(struct daemon *d)
{
	struct kafka_setting *settings = mem_alloc(d->conf->n_kafka, sizeof *settings);
	struct kafka_conf kc = { .settings = settings, .nsettings = d->conf->n_kafka,
				 .max_inflight = (size_t)d->conf->max_inflight,
				 .max_topics = MAX_TOPICS };
	struct err err;

	for (size_t i = 0; i < d->conf->n_kafka; i++)
		settings[i] = (struct kafka_setting){ d->conf->kafka[i].name,
						      d->conf->kafka[i].value };
	d->kafka = kafka_new(d->loop, &kc, &kafka_handlers, d, &err);
	free(settings);
	if (!d->kafka) {
		struct log_line l;

		log_begin(&l, d->log, LOG_KAFKA_ERROR, "the producer can't be made: %s", err.text);
		log_end(&l);
	}
	return d->kafka;
}

static void start_bridge(struct daemon *d)
{
	struct bridge_conf bc = bridge_conf(d->conf);
	struct calls_conf cc = { d->prefix, (int)d->conf->database, d->conf->instance,
				 d->conf->lease_ms };
	char seed[LEASE_NONCE_LEN];

	make_seed(seed);
	snprintf(d->prefix, sizeof d->prefix, "%s:{0}", d->conf->namespace);
	d->event_conf.shard = bytes_str(d->prefix);
	d->event_conf.source = bytes_str(d->conf->source);
	d->event_conf.mode = (enum route_mode)d->conf->mode;
	d->bridge = bridge_new(&bc, d->conf->routes, seed, clock_now());
	d->server = server_new(d->loop, d->conf, d->prefix, seed, d->log, &server_handlers, d);
	d->calls = calls_new(server_worker(d->server), d->bridge, &cc, &calls_handlers, d);
	metrics_init(&d->metrics, clock_now());
}

static void say_start(struct daemon *d)
{
	struct log_line l;

	log_begin(&l, d->log, LOG_DAEMON_START, "lapsed %s starts", PACKAGE_VERSION);
	log_str(&l, "version", PACKAGE_VERSION);
	log_str(&l, "librdkafka", kafka_version());
	log_str(&l, "hiredis", HIREDIS_VERSION);
	log_int(&l, "libev", ev_version_major() * 100 + ev_version_minor());
	log_str(&l, "instance", d->conf->instance);
	log_uint(&l, "routes", routes_count(d->conf->routes));
	log_end(&l);
}

static void say_stopped(struct daemon *d)
{
	struct bridge_gauges g;
	struct log_line l;

	on_stats(d->loop, &d->stats, 0);
	bridge_gauges(d->bridge, &g);
	log_begin(&l, d->log, LOG_DAEMON_STOPPED, "lapsed ends");
	log_uint(&l, "open_events", g.inflight_events);
	log_int(&l, "status", d->status);
	log_end(&l);
}

/* The producer goes first: it reads payloads from the batches. */
static void finish(struct daemon *d)
{
	bool all_reported = !d->kafka || kafka_free(d->kafka);

	alarm_free(d->alarm);
	server_free(d->server);
	calls_free(d->calls);
	if (all_reported)
		bridge_free(d->bridge);
	event_room_clear(&d->room);
	ev_loop_destroy(d->loop);
	if (d->conf != d->boot)
		conf_free(d->conf);
	conf_free(d->boot);
}

int daemon_main(struct conf *conf, const struct conf_source *source, struct log *log)
{
	struct daemon d = { .conf = conf, .boot = conf, .source = source, .log = log };

	kafka_tune_malloc();
	d.loop = ev_loop_new(EVFLAG_AUTO);
	say_start(&d);
	if (!start_kafka(&d)) {
		ev_loop_destroy(d.loop);
		conf_free(conf);
		return 1;
	}
	warm_topics(&d);
	start_bridge(&d);
	watchers_init(&d);
	server_start(d.server);
	ev_run(d.loop, 0);
	say_stopped(&d);
	finish(&d);
	return d.status;
}
