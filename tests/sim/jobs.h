/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * jobs - who schedules jobs, and who consumes them: some finish in time, some
 * are slow, some touch, fail or fall silent, and some lie.  The judge is
 * joblog.h.
 */
#ifndef LAPSED_TESTS_SIM_JOBS_H
#define LAPSED_TESTS_SIM_JOBS_H

#include "world.h"

struct jobs;

struct jobs *jobs_new(struct world *w);		/* and they begin */
void jobs_free(struct jobs *j);

/* A record with that id is in Kafka: some consumer has it soon. */
void jobs_arrived(struct jobs *j, struct bytes id);

#endif
