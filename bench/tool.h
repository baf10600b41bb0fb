/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * tool - what the programs of the performance suite share.
 *
 * Each takes arguments of the form name=value and prints one JSON object on a
 * line when it is done.  Each ends with a message and status 1 when anything
 * goes wrong: a figure that is doubtful is worse than none.
 */
#ifndef LAPSED_BENCH_TOOL_H
#define LAPSED_BENCH_TOOL_H

#include <hiredis/hiredis.h>
#include <stdint.h>

#include "core/hist.h"
#include "core/when.h"

/* The value of `name`, or `otherwise`; NULL there makes it required. */
const char *tool_text(char **argv, const char *name, const char *otherwise);
int64_t tool_number(char **argv, const char *name, int64_t otherwise);

void tool_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The wall clock, which Redis on the same machine reads too; us. */
int64_t tool_now(void);
void tool_sleep_until(int64_t at);

/* Printable bytes that do not compress to nothing; `n` of them. */
char *tool_payload(size_t n);

/* The 16 characters of event `i`: a letter and 15 digits. */
#define TOOL_ID_LEN	16
void tool_id(char to[TOOL_ID_LEN + 1], char letter, uint64_t i);
/* Its `i`; UINT64_MAX if `id` is of another kind. */
uint64_t tool_id_number(const char *id, size_t n, char letter);

/* Connects to the socket that `redis=` names. */
redisContext *tool_redis(char **argv);
/* The next answer; to be freed.  An error reply ends the program. */
redisReply *tool_reply(redisContext *c);

/* "events": n, "seconds": `us`, "cpu_s": of this process; no comma at the end. */
void tool_print_run(uint64_t n, int64_t us);
/* "<name>_p50_ms": ..., with p99, max and count; no comma at the end. */
void tool_print_hist(const char *name, const struct hist *h);

#endif
