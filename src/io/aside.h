/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * aside - what may block, on threads of its own.
 *
 * One thread a job, with every signal blocked.  Jobs are few and short-lived;
 * what they share with the loop is theirs to protect.
 */
#ifndef LAPSED_IO_ASIDE_H
#define LAPSED_IO_ASIDE_H

#include <stdbool.h>

struct aside;

struct aside *aside_new(void);

/* Runs `fn(arg)`.  Where no thread can be had it runs, and blocks, right here. */
void aside_run(struct aside *a, void (*fn)(void *arg), void *arg);

/*
 * Waits for all jobs, for `msec` at most, and frees `a`.  False when some still
 * run: they are left alone, and end with the process.  Accepts NULL.
 */
bool aside_free(struct aside *a, int msec);

#endif
