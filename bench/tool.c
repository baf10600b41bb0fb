/* SPDX-License-Identifier: BSD-2-Clause */

#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/mem.h"

void tool_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

const char *tool_text(char **argv, const char *name, const char *otherwise)
{
	size_t n = strlen(name);

	for (char **a = argv + 1; *a; a++)
		if (strncmp(*a, name, n) == 0 && (*a)[n] == '=')
			return *a + n + 1;
	if (!otherwise)
		tool_die("%s=... is missing", name);
	return otherwise;
}

int64_t tool_number(char **argv, const char *name, int64_t otherwise)
{
	const char *text = tool_text(argv, name, "");
	char *end;
	int64_t v;

	if (!*text)
		return otherwise;
	v = strtoll(text, &end, 10);
	if (*end)
		tool_die("%s=%s is not a number", name, text);
	return v;
}

int64_t tool_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

void tool_sleep_until(int64_t at)
{
	struct timespec t = { at / 1000000, at % 1000000 * 1000 };

	while (tool_now() < at)
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &t, NULL);
}

char *tool_payload(size_t n)
{
	char *p = mem_alloc(n + 1, 1);
	uint32_t x = 2463534242u;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		p[i] = (char)('a' + x % 26);
	}
	return p;
}

void tool_id(char to[TOOL_ID_LEN + 1], char letter, uint64_t i)
{
	to[0] = letter;
	for (size_t at = TOOL_ID_LEN - 1; at > 0; at--) {
		to[at] = (char)('0' + i % 10);
		i /= 10;
	}
	to[TOOL_ID_LEN] = '\0';
}

uint64_t tool_id_number(const char *id, size_t n, char letter)
{
	uint64_t v = 0;

	if (n != TOOL_ID_LEN || id[0] != letter)
		return UINT64_MAX;
	for (size_t i = 1; i < n; i++)
		v = v * 10 + (uint64_t)(id[i] - '0');
	return v;
}

redisContext *tool_redis(char **argv)
{
	const char *path = tool_text(argv, "redis", NULL);
	redisContext *c = redisConnectUnix(path);

	if (!c || c->err)
		tool_die("%s: %s", path, c ? c->errstr : "no memory");
	return c;
}

redisReply *tool_reply(redisContext *c)
{
	redisReply *r = NULL;

	if (redisGetReply(c, (void **)&r) != REDIS_OK)
		tool_die("Redis: %s", c->errstr);
	if (r->type == REDIS_REPLY_ERROR)
		tool_die("Redis: %s", r->str);
	return r;
}

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

void tool_print_run(uint64_t n, int64_t us)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	printf("\"events\": %llu, \"seconds\": %.6f, \"cpu_s\": %.6f", (unsigned long long)n,
	       (double)us / 1e6, seconds_of(u.ru_utime) + seconds_of(u.ru_stime));
}

void tool_print_hist(const char *name, const struct hist *h)
{
	printf("\"%s_count\": %llu, \"%s_p50_ms\": %.3f, \"%s_p99_ms\": %.3f, "
	       "\"%s_max_ms\": %.3f", name, (unsigned long long)h->count,
	       name, (double)hist_quantile(h, 0.5) / 1000,
	       name, (double)hist_quantile(h, 0.99) / 1000, name, (double)h->max / 1000);
}
