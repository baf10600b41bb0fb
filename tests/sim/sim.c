/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * sim - many runs of the world, one for each seed.
 *
 *	sim [--seeds N] [--first N]	N runs; the first failing seed ends it
 *	sim --seed N [--trace]		one run, told as it happens
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

static bool one(uint64_t seed, bool trace_it, struct counters *sum, size_t *duplicates)
{
	struct world *w = world_new(seed, trace_it);
	bool fine = world_run(w);

	for (size_t i = 0; i < w->ninstances; i++)
		instance_sum(w->instances[i], sum);
	*duplicates += ledger_duplicates(w->ledger);
	world_free(w);
	return fine;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t first = 1, n = 50;
	bool trace_it = false;
	struct counters sum = { 0 };
	size_t duplicates = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n') {
			n = strtoull(optarg, NULL, 10);
		} else if (c == 'f') {
			first = strtoull(optarg, NULL, 10);
		} else if (c == 's') {
			first = strtoull(optarg, NULL, 10);
			n = 1;
		} else if (c == 't') {
			trace_it = true;
		} else {
			fputs("usage: sim [--seeds N] [--first N] | --seed N [--trace]\n", stderr);
			return 2;
		}
	}
	for (uint64_t seed = first; seed < first + n; seed++)
		if (!one(seed, trace_it, &sum, &duplicates)) {
			printf("seed %llu fails; sim --seed %llu --trace tells the story\n",
			       (unsigned long long)seed, (unsigned long long)seed);
			return 1;
		}
	printf("%llu seeds, %llu events acknowledged, %zu duplicates "
	       "(%llu doubtful, %llu adopted), %llu fenced, %llu buried\n",
	       (unsigned long long)n, (unsigned long long)sum.acknowledged, duplicates,
	       (unsigned long long)sum.possible_duplicates,
	       (unsigned long long)sum.adopted_entries, (unsigned long long)sum.fenced,
	       (unsigned long long)sum.buried);
	return 0;
}
