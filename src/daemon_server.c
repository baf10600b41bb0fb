/* SPDX-License-Identifier: BSD-2-Clause */

#include "daemon_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/canary.h"
#include "core/mem.h"
#include "core/watch.h"
#include "io/clock.h"
#include "io/server.h"

#define OLDEST		60200	/* 6.2.0 */
#define CHANNEL_MAX	128
#define CANARY_SECONDS	1.5	/* and an answer_timeout of 3 s: dead ones are noticed in 5 */
#define CANARY_TTL_MS	1000	/* run out by the next look */

struct server {
	const struct conf *conf;
	const char *prefix;
	struct log *log;
	struct server_handlers handlers;
	void *arg;
	struct redis *worker, *subscriber;
	char where[256];	/* the address, for the log */
	bool linked;		/* link(up) was told */
	char version[32];
	size_t owed;		/* confirmations of channels */
	struct ev_loop *loop;
	ev_timer canary_timer;
	struct canary canary;
	char canary_name[64], canary_key[160];
	bool canary_set;	/* by the last call */
	usec_t word_asked;	/* when the word that we wait for was; 0: we don't */
	usec_t deaf_since;	/* when the subscription ended; 0: it never was */
	int64_t gap_ms;
};

/* Greeting the worker's server --------------------------------------- */

static void say_down(struct server *s, enum redis_trouble trouble, bool was_up,
		     const char *what, const char *why, int retry_ms)
{
	enum log_event event = was_up ? LOG_REDIS_LOST : LOG_REDIS_REFUSED;
	char about[80];		/* another reason is another line */
	struct log_line l;

	if (trouble == REDIS_DENIED)
		event = LOG_REDIS_REFUSED;
	if (trouble == REDIS_AUTH)
		event = LOG_REDIS_AUTH;
	snprintf(about, sizeof about, "%s: %s", what, why);
	log_begin_about(&l, s->log, event, trouble == REDIS_AUTH ? LOG_ERROR : LOG_WARN,
			bytes_str(about), "%s to Redis at %s: %s; trying again in %d ms", what,
			s->where, why, retry_ms);
	log_str(&l, "connection", what);
	log_str(&l, "address", s->where);
	log_str(&l, "error", why);
	log_int(&l, "retry_ms", retry_ms);
	log_end(&l);
}

static void unfit(struct server *s, const char *why)
{
	struct log_line l;

	log_begin_about(&l, s->log, LOG_REDIS_REFUSED, LOG_ERROR, bytes_none, "Redis at %s %s",
			s->where, why);
	log_str(&l, "address", s->where);
	log_end(&l);
	s->handlers.unfit(s->arg);
}

static bool is_error(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR;
}

static void on_info(void *arg, void *priv, redisReply *reply)
{
	struct server *s = arg;
	struct server_info info;

	(void)priv;
	if (!reply || is_error(reply))
		return;		/* the ACL may not allow it */
	server_info(bytes_of(reply->str, (size_t)reply->len), &info);
	snprintf(s->version, sizeof s->version, "%s%s", info.valkey ? "valkey " : "",
		 info.version);
	if (info.cluster)
		unfit(s, "is in cluster mode, which this version does not serve; "
			 "use a server that is not");
	else if (info.number && info.number < OLDEST)
		unfit(s, "is older than 6.2, the oldest version that is served; update it");
}

static void on_role(void *arg, void *priv, redisReply *reply)
{
	struct server *s = arg;

	(void)priv;
	if (!reply || is_error(reply) || reply->elements == 0)
		return;
	if (strcmp(reply->element[0]->str, "master") != 0)
		redis_drop(s->worker, REDIS_DENIED,
			   "this server is a replica; lapsed needs the master");
}

static void say_notify(struct server *s, const char *missing, const char *flags)
{
	struct log_line l;

	log_begin(&l, s->log, LOG_REDIS_NOTIFY,
		  "Redis does not publish %s: notify-keyspace-events is \"%s\" and lacks %s; "
		  "until CONFIG SET notify-keyspace-events %s%s, only registered keys are noticed",
		  strpbrk(missing, "Ex") ? "expiries" : "all that the routes ask for", flags,
		  missing, flags, missing);
	log_str(&l, "flags", flags);
	log_str(&l, "missing", missing);
	log_end(&l);
}

static void on_flags_set(void *arg, void *priv, redisReply *reply)
{
	struct server *s = arg;
	struct log_line l;

	(void)priv;
	if (!reply)
		return;
	if (is_error(reply))
		log_begin(&l, s->log, LOG_REDIS_NOTIFY,
			  "notify-keyspace-events can't be set from here (%s); set it where "
			  "your provider keeps it", reply->str);
	else
		log_begin_about(&l, s->log, LOG_REDIS_NOTIFY, LOG_INFO, BYTES("set"),
				"notify-keyspace-events was set, as set_notify allows");
	log_end(&l);
}

/* What is set already stays set. */
static void set_flags(struct server *s, const char *flags, const char *missing)
{
	char all[48];
	struct bytes argv[] = { BYTES("CONFIG"), BYTES("SET"), BYTES("notify-keyspace-events"),
				bytes_none };

	snprintf(all, sizeof all, "%s%s", flags, missing);
	argv[3] = bytes_str(all);
	(void)redis_call(s->worker, 4, argv, on_flags_set, NULL);
}

/* Expiries, and what registers a key: `set` is of the strings' class, `expire`,
 * `del` and so on of the generic one.  What is written to, of any class. */
static const char *flags_needed(const struct server *s)
{
	if (routes_refresh(s->conf->routes))
		return "Exg$lshzted";
	return routes_registers(s->conf->routes) & ROUTE_EVENTS ? "Exg$e" : "Ex";
}

static void on_notify(void *arg, void *priv, redisReply *reply)
{
	struct server *s = arg;
	const char *flags;
	char missing[16];

	(void)priv;
	if (!reply || is_error(reply) || reply->elements < 2)
		return;
	flags = reply->element[1]->str;
	server_notify_missing(bytes_str(flags), flags_needed(s), missing);
	if (!*missing || routes_count(s->conf->routes) == 0)
		return;
	say_notify(s, missing, flags);
	if (s->conf->set_notify)
		set_flags(s, flags, missing);
}

static void on_greeted(void *arg, void *priv, redisReply *reply)
{
	struct server *s = arg;

	(void)priv;
	if (reply && redis_is_up(s->worker))
		s->handlers.greeted(s->arg);
}

/* The order matters: what refuses comes before what loads. */
static void worker_up(void *arg)
{
	static const struct {
		struct bytes argv[3];
		size_t argc;
		redis_callback *cb;
	} greeting[] = {
		{ { { "INFO", 4 }, { "server", 6 } }, 2, on_info },
		{ { { "ROLE", 4 } }, 1, on_role },
		{ { { "CONFIG", 6 }, { "GET", 3 }, { "notify-keyspace-events", 22 } }, 3,
		  on_notify },
		{ { { "PING", 4 } }, 1, on_greeted },
	};
	struct server *s = arg;

	for (size_t i = 0; i < sizeof greeting / sizeof greeting[0]; i++)
		(void)redis_call(s->worker, greeting[i].argc, greeting[i].argv,
				 greeting[i].cb, NULL);
}

static enum redis_trouble trouble_of_load(const char *error)
{
	if (strncmp(error, "NOAUTH", 6) == 0)
		return REDIS_AUTH;
	return strncmp(error, "NOPERM", 6) ? REDIS_BUSY : REDIS_DENIED;
}

void server_scripts_loaded(struct server *s, const char *error)
{
	struct log_line l;

	if (error) {
		redis_drop(s->worker, trouble_of_load(error), error);
		return;
	}
	if (s->linked)
		return;
	s->linked = true;
	log_begin(&l, s->log, LOG_REDIS_CONNECTED, "connected to Redis %s at %s", s->version,
		  s->where);
	log_str(&l, "address", s->where);
	log_str(&l, "server", s->version);
	log_end(&l);
	s->handlers.link(s->arg, true);
}

static void worker_down(void *arg, enum redis_trouble trouble, bool was_up,
			const char *why, int retry_ms)
{
	struct server *s = arg;

	if (s->linked)
		s->handlers.link(s->arg, false);
	s->linked = false;
	say_down(s, trouble, was_up, "connection", why, retry_ms);
	/* Without this connection there is no canary to find the other one dead. */
	if (trouble == REDIS_SILENT && redis_is_up(s->subscriber))
		redis_drop(s->subscriber, REDIS_SILENT, why);
}

/* The canary ---------------------------------------------------------- */

static bool listens_to_keys(const struct server *s)
{
	return routes_count(s->conf->routes) > 0;
}

static void say_silent(struct server *s, bool silent)
{
	struct log_line l;

	if (silent)
		log_begin(&l, s->log, LOG_REDIS_DEAF,
			  "expiries are not published to us; registered keys are on time "
			  "by the timer, others are not noticed");
	else
		log_begin_about(&l, s->log, LOG_REDIS_DEAF, LOG_INFO, BYTES("over"),
				"expiries are published to us again");
	log_bool(&l, "deaf", silent);
	log_end(&l);
	s->handlers.deaf(s->arg, silent);
}

/* The flags may have been changed, or lost in a restart. */
static void look_at_flags(struct server *s)
{
	const struct bytes argv[] = { BYTES("CONFIG"), BYTES("GET"),
				      BYTES("notify-keyspace-events") };

	(void)redis_call(s->worker, 3, argv, on_notify, NULL);
}

static void on_canary(struct ev_loop *loop, ev_timer *w, int events)
{
	struct server *s = w->data;
	unsigned db = s->conf->databases.all ? (unsigned)s->conf->database :
					       s->conf->databases.db[0];

	(void)loop;
	(void)events;
	if (!s->linked || !redis_is_up(s->subscriber) || s->owed)
		return;
	switch (canary_tick(&s->canary)) {
	case CANARY_DEAF:
		redis_drop(s->subscriber, REDIS_SILENT, "what is published does not arrive");
		return;
	case CANARY_SILENT:
		say_silent(s, true);
		look_at_flags(s);
		break;
	case CANARY_BACK:
		say_silent(s, false);
		break;
	case CANARY_FINE:
		break;
	}
	if (!s->word_asked)
		s->word_asked = clock_now();
	s->handlers.canary(s->arg, db, s->canary_name, CANARY_TTL_MS);
}

/* What comes behind our word was published later than we asked for it. */
static void on_word(struct server *s)
{
	canary_word(&s->canary);
	if (s->word_asked)
		s->handlers.heard_since(s->arg, s->word_asked);
	s->word_asked = 0;
}

void server_canary_answered(struct server *s, bool gone, bool set)
{
	canary_answered(&s->canary, gone && s->canary_set);
	s->canary_set = set;
}

/* The subscription ---------------------------------------------------- */

static void subscribed(struct server *s)
{
	usec_t now = clock_now();
	struct log_line l;

	if (--s->owed)
		return;
	canary_subscribed(&s->canary, listens_to_keys(s));
	s->canary_set = false;
	s->gap_ms = s->deaf_since ? (now - s->deaf_since) / USEC_PER_MSEC : -1;
	log_begin(&l, s->log, LOG_REDIS_SUBSCRIBED, "subscribed at %s; sweeping now", s->where);
	log_str(&l, "address", s->where);
	log_end(&l);
	s->handlers.subscribed(s->arg);
}

static void heard(struct server *s, const redisReply *channel, const redisReply *payload)
{
	struct bytes name = bytes_of(channel->str, (size_t)channel->len), event;
	struct bytes body = bytes_of(payload->str, (size_t)payload->len);
	unsigned db;

	if (!server_keyevent(name, &db, &event)) {
		if (!bytes_starts(body, BYTES("canary ")))
			s->handlers.wake(s->arg, body);
		else if (bytes_eq(bytes_skip(body, 7), bytes_str(s->canary_name)))
			on_word(s);
	} else if (bytes_eq(event, BYTES("expired")) &&
		   bytes_eq(body, bytes_str(s->canary_key))) {
		canary_expiry(&s->canary);
	} else {
		s->handlers.event(s->arg, db, event, body);
	}
}

static void on_message(void *arg, void *priv, redisReply *reply)
{
	struct server *s = arg;
	const char *kind;

	(void)priv;
	if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < 3)
		return;
	kind = reply->element[0]->str;
	if (strcmp(kind, "message") == 0)
		heard(s, reply->element[1], reply->element[2]);
	else if (strcmp(kind, "pmessage") == 0 && reply->elements == 4)
		heard(s, reply->element[2], reply->element[3]);
	else if (strcmp(kind, "subscribe") == 0 || strcmp(kind, "psubscribe") == 0)
		subscribed(s);
}

/* What is to be subscribed to: channels, then patterns. */
struct wanted {
	char (*names)[CHANNEL_MAX];
	size_t n, cap;
};

static char *wanted_add(struct wanted *w)
{
	if (w->n == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 16;
		w->names = mem_resize(w->names, w->cap, sizeof *w->names);
	}
	return w->names[w->n++];
}

/* Of one database, as text: `*` in a pattern for all. */
static void wanted_events(const struct server *s, struct wanted *w, const char *db)
{
	bool events = routes_registers(s->conf->routes) & ROUTE_EVENTS;

	snprintf(wanted_add(w), CHANNEL_MAX, "__keyevent@%s__:expired", db);
	for (size_t i = 0; events && watch_event(i).n; i++)
		snprintf(wanted_add(w), CHANNEL_MAX, "__keyevent@%s__:%.*s", db,
			 (int)watch_event(i).n, watch_event(i).p);
}

/* To hear of what is written to a key takes everything that is published. */
static void wanted_of_keys(const struct server *s, struct wanted *channels,
			   struct wanted *patterns)
{
	const struct conf_databases *dbs = &s->conf->databases;
	bool everything = routes_refresh(s->conf->routes);

	if (dbs->all && everything)
		snprintf(wanted_add(patterns), CHANNEL_MAX, "__keyevent@*__:*");
	else if (dbs->all)
		wanted_events(s, patterns, "*");
	for (size_t i = 0; !dbs->all && i < dbs->n; i++) {
		char db[16];

		snprintf(db, sizeof db, "%u", dbs->db[i]);
		if (everything)
			snprintf(wanted_add(patterns), CHANNEL_MAX, "__keyevent@%s__:*", db);
		else
			wanted_events(s, channels, db);
	}
}

/* Exact channels cost the server less than a pattern. */
static void wanted_make(const struct server *s, struct wanted *channels,
			struct wanted *patterns)
{
	snprintf(wanted_add(channels), CHANNEL_MAX, "%s:wake", s->prefix);
	if (listens_to_keys(s))
		wanted_of_keys(s, channels, patterns);
}

static void subscribe(struct server *s, bool pattern, const struct wanted *w)
{
	struct bytes *names = mem_alloc(w->n, sizeof *names);

	for (size_t i = 0; i < w->n; i++)
		names[i] = bytes_str(w->names[i]);
	if (w->n)
		(void)redis_subscribe(s->subscriber, pattern, names, w->n, on_message, NULL);
	free(names);
}

static void subscriber_up(void *arg)
{
	struct server *s = arg;
	struct wanted channels = { 0 }, patterns = { 0 };

	wanted_make(s, &channels, &patterns);
	s->handlers.heard_since(s->arg, clock_now());
	s->word_asked = 0;
	s->owed = channels.n + patterns.n;
	subscribe(s, false, &channels);
	subscribe(s, true, &patterns);
	free(channels.names);
	free(patterns.names);
}

/* The ACL has to have a pattern just as it is subscribed to; channels may match one. */
static void rules_write(const struct server *s, struct buf *rules)
{
	struct wanted channels = { 0 }, patterns = { 0 };

	wanted_make(s, &channels, &patterns);
	buf_printf(rules, "&%s:wake", s->prefix);
	for (size_t i = 0; i < patterns.n; i++)
		buf_printf(rules, " &%s", patterns.names[i]);
	if (!patterns.n && channels.n > 1) {
		struct wanted events = { 0 };

		wanted_events(s, &events, "*");
		for (size_t i = 0; i < events.n; i++)
			buf_printf(rules, " &%s", events.names[i]);
		free(events.names);
	}
	free(channels.names);
	free(patterns.names);
}

static void say_denied(struct server *s, const char *why, int retry_ms)
{
	struct buf rules = { 0 };
	struct log_line l;

	rules_write(s, &rules);
	log_begin(&l, s->log, LOG_REDIS_SUBSCRIBE_REFUSED,
		  "the ACL refuses the subscription; grant it with ACL SETUSER %s %.*s; "
		  "meanwhile the sweep finds what is registered; trying again in %d ms",
		  s->conf->redis_username ? s->conf->redis_username : "default",
		  (int)rules.n, rules.p, retry_ms);
	log_str(&l, "error", why);
	log_end(&l);
	buf_clear(&rules);
}

static void subscriber_down(void *arg, enum redis_trouble trouble, bool was_up,
			    const char *why, int retry_ms)
{
	struct server *s = arg;

	if (was_up && s->owed == 0)
		s->deaf_since = clock_now();
	if (trouble == REDIS_DENIED)
		say_denied(s, why, retry_ms);
	else
		say_down(s, trouble, was_up, "subscription", why, retry_ms);
}

/* Life ---------------------------------------------------------------- */

struct server *server_new(struct ev_loop *loop, const struct conf *conf, const char *prefix,
			  const char *name, struct log *log, const struct server_handlers *handlers, void *arg)
{
	static const struct redis_handlers worker = { worker_up, worker_down };
	static const struct redis_handlers subscriber = { subscriber_up, subscriber_down };
	struct server *s = mem_alloc(1, sizeof *s);
	struct redis_conf rc = {
		.host = conf->redis_host, .port = conf->redis_port,
		.socket = conf->redis_socket, .username = conf->redis_username,
		.password = conf->redis_password, .database = (int)conf->database,
		.name = "lapsed", .connect_timeout = conf->connect_timeout_ms * USEC_PER_MSEC,
		.answer_timeout = conf->answer_timeout_ms * USEC_PER_MSEC,
	};

	s->loop = loop;
	ev_timer_init(&s->canary_timer, on_canary, CANARY_SECONDS, CANARY_SECONDS);
	s->canary_timer.data = s;
	snprintf(s->canary_name, sizeof s->canary_name, "%s", name);
	snprintf(s->canary_key, sizeof s->canary_key, "%s:canary:%s", prefix, name);
	s->conf = conf;
	s->prefix = prefix;
	s->log = log;
	s->handlers = *handlers;
	s->arg = arg;
	snprintf(s->version, sizeof s->version, "(version unknown)");
	if (conf->redis_socket)
		snprintf(s->where, sizeof s->where, "unix:%s", conf->redis_socket);
	else
		snprintf(s->where, sizeof s->where, "%s:%d", conf->redis_host, conf->redis_port);
	s->worker = redis_new(loop, &rc, &worker, s);
	rc.name = "lapsed-subscriber";
	rc.database = 0;
	s->subscriber = redis_new(loop, &rc, &subscriber, s);
	return s;
}

void server_start(struct server *s)
{
	redis_start(s->worker);
	if (s->conf->role == ROLE_SWEEPER)
		return;
	redis_start(s->subscriber);
	ev_timer_start(s->loop, &s->canary_timer);
}

void server_free(struct server *s)
{
	if (!s)
		return;
	ev_timer_stop(s->loop, &s->canary_timer);
	redis_free(s->subscriber);
	redis_free(s->worker);
	free(s);
}

static bool same_wishes(const struct wanted *a, const struct wanted *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++)
		same = strcmp(a->names[i], b->names[i]) == 0;
	return same;
}

void server_configure(struct server *s, const struct conf *conf)
{
	struct wanted channels[2] = { { 0 } }, patterns[2] = { { 0 } };

	wanted_make(s, &channels[0], &patterns[0]);
	s->conf = conf;
	wanted_make(s, &channels[1], &patterns[1]);
	if ((!same_wishes(&channels[0], &channels[1]) ||
	     !same_wishes(&patterns[0], &patterns[1])) && redis_is_up(s->subscriber)) {
		redis_drop(s->subscriber, REDIS_LOST, "the routes ask for another subscription");
		look_at_flags(s);
	}
	for (size_t i = 0; i < 2; i++) {
		free(channels[i].names);
		free(patterns[i].names);
	}
}

struct redis *server_worker(struct server *s)
{
	return s->worker;
}

void server_flush(struct server *s)
{
	redis_flush(s->worker);
}

int64_t server_gap_ms(const struct server *s)
{
	return s->gap_ms;
}
