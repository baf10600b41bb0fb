/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/link.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define ANSWER_TIMEOUT_S	10
#define SHA1_HEX	40

struct link {
	const struct conf *conf;
	redisContext *redis;
	char *where;
	char *script;			/* its text; NULL until one was asked for */
	char sha[SHA1_HEX + 1];		/* of it */
	enum script_error code;
	char reply_text[256];
	char command[32];		/* what the next answer is to */
};

void call_add(struct call *c, struct bytes word)
{
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 16;
		c->p = mem_resize(c->p, c->cap, sizeof(*c->p));
		c->len = mem_resize(c->len, c->cap, sizeof(*c->len));
	}
	c->p[c->n] = word.p ? word.p : "";
	c->len[c->n++] = word.n;
}

void call_clear(struct call *c)
{
	free(c->p);
	free(c->len);
	*c = (struct call){ .n = 0 };
}

/*
 * What an error reply means for whoever typed the command.  The sentence
 * follows the name of the server; %s is the command that was refused.
 */
static const struct {
	enum script_error code;
	const char *sentence;
} meanings[] = {
	{ SCRIPT_NOAUTH, "wants a password: set LAPSED_REDIS_PASSWORD, or name a file with "
		"--password-file" },
	{ SCRIPT_WRONGPASS, "refuses the user name or password" },
	{ SCRIPT_NOPERM, "does not permit this user to run %s: the ACL has to grant it, with "
		"the keys and channel of the namespace" },
	{ SCRIPT_LOADING, "is still loading its data: try again in a moment" },
	{ SCRIPT_BUSY, "is busy with a long script of somebody's: try again later" },
	{ SCRIPT_MASTERDOWN, "is a replica that has lost its master: name the master" },
	{ SCRIPT_READONLY, "is a read-only replica: name the master" },
	{ SCRIPT_CLUSTERDOWN, "belongs to a cluster that is down" },
	{ SCRIPT_MOVED, "is not the node of the cluster that has these keys: name the one "
		"in the answer with --redis" },
	{ SCRIPT_OOM, "is out of memory (maxmemory) and refuses to store more" },
	{ SCRIPT_MISCONF, "refuses writes because it can't save its data" },
	{ SCRIPT_NOREPLICAS, "refuses writes because too few replicas are in reach" },
	{ SCRIPT_WRONGTYPE, "has keys under this namespace that are not lapsed's: "
		"see --namespace and --database" },
};

/* Refusals of our own scripts: the text behind the code says it all. */
static bool is_ours(enum script_error code)
{
	return strncmp(script_error_name(code), "LAPSE_", strlen("LAPSE_")) == 0;
}

static const char *meaning(enum script_error code)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].code == code)
			return meanings[i].sentence;
	return NULL;
}

static bool refused(struct link *l, const redisReply *reply, struct err *err)
{
	const char *sentence, *text = reply->str;
	const char *percent;

	l->code = script_error_code(bytes_of(text, reply->len));
	snprintf(l->reply_text, sizeof(l->reply_text), "%s", text);
	if (is_ours(l->code))
		return err_set(err, "%s", text + strcspn(text, " ") + (strchr(text, ' ') != NULL));
	sentence = meaning(l->code);
	if (!sentence)
		return err_set(err, "%s refuses %s: %s", l->where, l->command, text);
	percent = strstr(sentence, "%s");
	if (!percent)
		return err_set(err, "%s %s (%s)", l->where, sentence, text);
	return err_set(err, "%s %.*s%s%s (%s)", l->where, (int)(percent - sentence), sentence,
		l->command, percent + 2, text);
}

/* The connection broke.  What was sent may have been carried out or not. */
static bool broke(const struct link *l, struct err *err)
{
	const redisContext *c = l->redis;
	const char *unknown = strcmp(l->command, "EVALSHA") == 0
		? "; whether it was carried out is not known" : "";

	if (c->err == REDIS_ERR_PROTOCOL)
		return err_set(err, "%s does not speak as Redis does: %s", l->where, c->errstr);
	if (c->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT))
		return err_set(err, "%s has not answered %s within %d s%s", l->where,
			l->command, ANSWER_TIMEOUT_S, unknown);
	return err_set(err, "lost the connection to %s before %s was answered: %s%s", l->where,
		l->command, c->errstr, unknown);
}

static void note_command(struct link *l, const char *name)
{
	snprintf(l->command, sizeof(l->command), "%.*s", (int)strcspn(name, " "), name);
}

redisReply *link_receive(struct link *l, struct err *err)
{
	redisReply *reply = NULL;

	l->code = SCRIPT_ERR;
	l->reply_text[0] = '\0';
	if (redisGetReply(l->redis, (void **)&reply) != REDIS_OK) {
		broke(l, err);
		return NULL;
	}
	if (reply->type == REDIS_REPLY_ERROR) {
		refused(l, reply, err);
		freeReplyObject(reply);
		return NULL;
	}
	return reply;
}

void link_send(struct link *l, const struct call *c)
{
	assert(c->n > 0);
	note_command(l, c->p[0]);
	if (redisAppendCommandArgv(l->redis, (int)c->n, c->p, c->len) != REDIS_OK
			&& !l->redis->err)
		abort();	/* no memory for the command */
}

redisReply *link_call(struct link *l, const struct call *c, struct err *err)
{
	link_send(l, c);
	return link_receive(l, err);
}

redisReply *link_command(struct link *l, const char *command, struct err *err)
{
	struct call c = { .n = 0 };
	redisReply *reply;

	for (const char *p = command; *p;) {
		size_t n = strcspn(p, " ");

		call_add(&c, bytes_of(p, n));
		p += n + (p[n] == ' ');
	}
	link_send(l, &c);
	note_command(l, command);
	call_clear(&c);
	reply = link_receive(l, err);
	return reply;
}

redisReply *link_expect(const struct link *l, redisReply *reply, int type, struct err *err)
{
	if (!reply || reply->type == type)
		return reply;
	err_set(err, "%s has answered %s with something else than Redis would", l->where,
		l->command);
	freeReplyObject(reply);
	return NULL;
}

/* Gets the script into the server, and its hash from there. */
static bool load_script(struct link *l, struct err *err)
{
	struct call c = { .n = 0 };
	redisReply *reply;

	call_add(&c, BYTES("SCRIPT"));
	call_add(&c, BYTES("LOAD"));
	call_add(&c, bytes_str(l->script));
	reply = link_expect(l, link_call(l, &c, err), REDIS_REPLY_STRING, err);
	call_clear(&c);
	if (!reply)
		return false;
	snprintf(l->sha, sizeof(l->sha), "%s", reply->str);
	freeReplyObject(reply);
	return true;
}

redisReply *link_script(struct link *l, const char *name, const struct call *c,
			struct err *err)
{
	struct call eval = { .n = 0 };
	redisReply *reply = NULL;

	if (!l->script) {
		l->script = script_text(name, (int)l->conf->database);
		assert(l->script);
	}
	for (int tries = 0; tries < 2 && !reply; tries++) {
		if ((tries > 0 || !l->sha[0]) && !load_script(l, err))
			break;
		call_add(&eval, BYTES("EVALSHA"));
		call_add(&eval, bytes_str(l->sha));
		for (size_t i = 0; i < c->n; i++)
			call_add(&eval, bytes_of(c->p[i], c->len[i]));
		reply = link_call(l, &eval, err);
		call_clear(&eval);
		if (!reply && l->code != SCRIPT_NOSCRIPT)
			break;
	}
	return link_expect(l, reply, REDIS_REPLY_ARRAY, err);
}

static bool answered(redisReply *reply)
{
	freeReplyObject(reply);
	return reply != NULL;
}

/*
 * Asked with something short, since a server that wants a password cuts off
 * whoever sends it a whole script before.
 */
static bool wants_none(struct link *l, struct err *err)
{
	redisReply *reply = link_command(l, "PING", err);

	freeReplyObject(reply);
	return reply || (l->code != SCRIPT_NOAUTH && !l->redis->err);
}

/* A user without a password may still be one: `nopass` takes any. */
static bool authenticate(struct link *l, struct err *err)
{
	const struct conf *conf = l->conf;
	struct call c = { .n = 0 };
	bool ok;

	if (!conf->redis_username && !conf->redis_password)
		return wants_none(l, err);
	call_add(&c, BYTES("AUTH"));
	if (conf->redis_username)
		call_add(&c, bytes_str(conf->redis_username));
	call_add(&c, bytes_str(conf->redis_password));
	ok = answered(link_call(l, &c, err));
	call_clear(&c);
	return ok;
}

static bool select_database(struct link *l, struct err *err)
{
	char command[32];

	if (l->conf->database == 0)
		return true;
	snprintf(command, sizeof(command), "SELECT %lld", (long long)l->conf->database);
	return answered(link_command(l, command, err));
}

static struct timeval timeval_of(int64_t ms)
{
	return (struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
}

static bool connect_to(struct link *l, struct err *err)
{
	const struct conf *conf = l->conf;
	struct timeval limit = timeval_of(conf->connect_timeout_ms);

	errno = 0;
	if (conf->redis_socket)
		l->redis = redisConnectUnixWithTimeout(conf->redis_socket, limit);
	else
		l->redis = redisConnectWithTimeout(conf->redis_host, conf->redis_port, limit);
	if (!l->redis)
		abort();
	if (l->redis->err)
		return err_set(err, "can't connect to %s: %s (is Redis running there? "
			"--redis URL names another)", l->where, l->redis->errstr);
	if (redisSetTimeout(l->redis, timeval_of(ANSWER_TIMEOUT_S * 1000)) != REDIS_OK)
		return err_set(err, "%s: %s", l->where, l->redis->errstr);
	return true;
}

static char *where_of(const struct conf *conf)
{
	struct buf b = { .n = 0 };

	if (conf->redis_socket)
		buf_str(&b, conf->redis_socket);
	else
		buf_printf(&b, strchr(conf->redis_host, ':') ? "[%s]:%d" : "%s:%d",
			conf->redis_host, conf->redis_port);
	buf_cstr(&b);
	return b.p;
}

struct link *link_open(const struct conf *conf, struct err *err)
{
	struct link *l = mem_alloc(1, sizeof(*l));

	l->conf = conf;
	l->where = where_of(conf);
	if (connect_to(l, err) && authenticate(l, err) && select_database(l, err))
		return l;
	link_free(l);
	return NULL;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	if (l->redis)
		redisFree(l->redis);
	free(l->script);
	free(l->where);
	free(l);
}

const char *link_where(const struct link *l)
{
	return l->where;
}

enum script_error link_code(const struct link *l)
{
	return l->code;
}

const char *link_reply_text(const struct link *l)
{
	return l->reply_text;
}

bool link_now(struct link *l, msec_t *now, struct err *err)
{
	redisReply *reply = link_expect(l, link_command(l, "TIME", err), REDIS_REPLY_ARRAY, err);
	bool ok;

	if (!reply)
		return false;
	ok = reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING
		&& reply->element[1]->type == REDIS_REPLY_STRING;
	if (ok)
		*now = strtoll(reply->element[0]->str, NULL, 10) * 1000
			+ strtoll(reply->element[1]->str, NULL, 10) / 1000;
	else
		err_set(err, "%s has answered TIME with no time", l->where);
	freeReplyObject(reply);
	return ok;
}
