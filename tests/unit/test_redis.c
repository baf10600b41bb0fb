/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A storm of connections that end in every way there is, case 61: within a
 * callback or between two, with calls pending, while it greets, in the middle of
 * an answer.  AddressSanitizer looks on in `./dev check asan`.
 */

#include "io/redis.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"

#define CLIENTS	200
#define DOWNS	10000
#define LIMIT_S	60.0
#define PATIENCE_S	0.02	/* of the server, with a client that asks nothing more */

/* What becomes of a connection; each client's go through them in turn. */
enum fate {
	CLOSED_AT_ONCE,
	CLOSED_WITH_CALLS,	/* greeted, and then no answer to anything */
	CLOSED_IN_AN_ANSWER,
	NONSENSE,
	DROPPED_IN_A_CALLBACK,
	DROPPED_BY_A_MESSAGE,
	FATES
};

struct client {
	struct redis *redis;
	unsigned ups;
};

/* The server's side of a connection. */
struct peer {
	ev_io io;
	ev_timer patience;
	enum fate fate;
	unsigned answered;
};

static struct {
	struct ev_loop *loop;
	struct client clients[CLIENTS];
	char path[64];
	int listener;
	ev_io io;
	ev_timer limit;
	size_t peers, accepted, ups, downs, calls, answers;
} world;

/* The server ---------------------------------------------------------- */

static void peer_say(struct peer *p, const char *text)
{
	ssize_t n = send(p->io.fd, text, strlen(text), MSG_NOSIGNAL);

	ck_assert(n == (ssize_t)strlen(text) || errno == EPIPE || errno == ECONNRESET);
}

static void peer_close(struct peer *p)
{
	ev_io_stop(world.loop, &p->io);
	ev_timer_stop(world.loop, &p->patience);
	close(p->io.fd);
	free(p);
	world.peers--;
}

static void on_patience(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)events;
	peer_close(w->data);
}

/* What it says to calls; the greeting has been answered. */
static const char *const speech[FATES] = {
	[CLOSED_WITH_CALLS] = "",
	[CLOSED_IN_AN_ANSWER] = "*2\r\n$5\r\nhel",
	[DROPPED_IN_A_CALLBACK] = "+PONG\r\n",
	[DROPPED_BY_A_MESSAGE] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
				 "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
};

static void on_request(struct ev_loop *loop, ev_io *w, int events)
{
	struct peer *p = w->data;
	char room[4096];
	ssize_t n = read(w->fd, room, sizeof room);

	(void)loop;
	(void)events;
	if (n <= 0) {
		peer_close(p);
		return;
	}
	if (p->fate == NONSENSE)
		peer_say(p, "?what\r\n");
	else if (p->answered == 0)
		peer_say(p, "+OK\r\n");		/* to SELECT */
	else
		peer_say(p, speech[p->fate]);
	if (p->answered++ && (p->fate == CLOSED_WITH_CALLS || p->fate == CLOSED_IN_AN_ANSWER))
		peer_close(p);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int events)
{
	struct peer *p;
	int fd = accept(w->fd, NULL, NULL);

	(void)events;
	if (fd < 0)
		return;
	p = calloc(1, sizeof *p);
	ck_assert_ptr_nonnull(p);
	world.peers++;
	p->fate = (enum fate)(world.accepted++ % FATES);
	p->io.data = p->patience.data = p;
	ev_io_init(&p->io, on_request, fd, EV_READ);
	ev_io_start(loop, &p->io);
	ev_timer_init(&p->patience, on_patience, PATIENCE_S, 0);
	ev_timer_start(loop, &p->patience);
	if (p->fate == CLOSED_AT_ONCE)
		peer_close(p);
}

static void serve(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(world.path, sizeof world.path, "/tmp/lapsed-test-redis-%ld", (long)getpid());
	snprintf(a.sun_path, sizeof a.sun_path, "%s", world.path);
	world.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_ge(world.listener, 0);
	ck_assert_int_eq(bind(world.listener, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(listen(world.listener, CLIENTS), 0);
	ck_assert_int_eq(fcntl(world.listener, F_SETFL, O_NONBLOCK), 0);
	ev_io_init(&world.io, on_accept, world.listener, EV_READ);
	ev_io_start(world.loop, &world.io);
}

/* The clients --------------------------------------------------------- */

static void on_pong(void *arg, void *priv, redisReply *reply)
{
	struct client *c = arg;

	ck_assert_ptr_eq(priv, c);
	world.answers++;
	if (reply)
		redis_drop(c->redis, REDIS_LOST, "dropped in a callback");
}

static void on_message(void *arg, void *priv, redisReply *reply)
{
	struct client *c = arg;

	(void)priv;
	if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	    strcmp(reply->element[0]->str, "message") == 0)
		redis_drop(c->redis, REDIS_LOST, "dropped by a message");
}

/* Either subscribes or calls, whatever the server means to do with it. */
static void up(void *arg)
{
	struct client *c = arg;
	struct bytes ping = BYTES("PING"), channel = BYTES("c");

	world.ups++;
	if (c->ups++ % 3 == 0) {
		redis_subscribe(c->redis, false, &channel, 1, on_message, NULL);
		return;
	}
	for (int i = 0; i < 3; i++)
		if (redis_call(c->redis, 1, &ping, on_pong, c))
			world.calls++;
}

static void down(void *arg, enum redis_trouble trouble, bool was_up, const char *why,
		 int retry_ms)
{
	struct client *c = arg;
	struct bytes ping = BYTES("PING");

	(void)trouble;
	(void)was_up;
	ck_assert(*why && retry_ms > 0 && !redis_is_up(c->redis));
	/* Nothing is taken now. */
	ck_assert(!redis_call(c->redis, 1, &ping, on_pong, c));
	redis_drop(c->redis, REDIS_LOST, "once more");
	if (++world.downs == DOWNS)
		ev_break(world.loop, EVBREAK_ALL);
}

static void on_limit(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	ev_break(loop, EVBREAK_ALL);
}

START_TEST(a_storm_of_reconnections)
{
	static const struct redis_handlers handlers = { up, down };
	struct redis_conf conf = {
		.socket = world.path,
		.connect_timeout = USEC_PER_SEC, .answer_timeout = USEC_PER_SEC,
	};

	signal(SIGPIPE, SIG_IGN);	/* as main() does */
	world.loop = ev_loop_new(EVFLAG_AUTO);
	serve();
	ev_timer_init(&world.limit, on_limit, LIMIT_S, 0);
	ev_timer_start(world.loop, &world.limit);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &world.clients[i];

		c->redis = redis_new(world.loop, &conf, &handlers, c);
		redis_start(c->redis);
	}
	ev_run(world.loop, 0);
	ck_assert_uint_ge(world.downs, DOWNS);
	ck_assert_uint_ge(world.ups, DOWNS / FATES);
	for (size_t i = 0; i < CLIENTS; i++)
		redis_free(world.clients[i].redis);
	/* Each exactly once, be it with NULL. */
	ck_assert_uint_gt(world.calls, 0);
	ck_assert_uint_eq(world.answers, world.calls);
	ev_io_stop(world.loop, &world.io);
	ev_timer_stop(world.loop, &world.limit);
	while (world.peers > 0)
		ev_run(world.loop, EVRUN_ONCE);
	close(world.listener);
	unlink(world.path);
	ev_loop_destroy(world.loop);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("redis");

	tcase_set_timeout(tests, LIMIT_S + 10);
	tcase_add_test(tests, a_storm_of_reconnections);
	return unit_main("redis", tests);
}
