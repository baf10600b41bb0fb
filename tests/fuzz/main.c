/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * main - runs a fuzz target without libFuzzer, as replay_NAME.
 *
 * With arguments: each names a file, which the target gets once; so a finding
 * is replayed.  Without: the seeds in tests/fuzz/corpus/NAME, and then a fixed
 * number of inputs made from them, the same in every run (another
 * LAPSED_FUZZ_SEED gives others, LAPSED_FUZZ_RUNS more).
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define RUNS		50000
#define INPUT_MAX	1024
#define SEEDS_MAX	64

struct input {
	uint8_t p[INPUT_MAX];
	size_t n;
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 16;
}

static bool load(const char *path, struct input *in)
{
	FILE *f = fopen(path, "rb");

	if (!f) {
		perror(path);
		return false;
	}
	in->n = fread(in->p, 1, sizeof in->p, f);
	fclose(f);
	return true;
}

/* In a block of its own size, so that sanitizers see an overrun. */
static void run(const struct input *in)
{
	uint8_t *copy = malloc(in->n ? in->n : 1);

	if (!copy)
		abort();
	memcpy(copy, in->p, in->n);
	LLVMFuzzerTestOneInput(copy, in->n);
	free(copy);
}

static size_t seeds_load(const char *name, struct input *seeds)
{
	const char *top = getenv("srcdir");
	char folder[4096], path[8192];
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s",
		 top ? top : ".", name);
	dir = opendir(folder);
	while (dir && n < SEEDS_MAX && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		n += load(path, &seeds[n]);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void insert(struct input *in, size_t at, uint8_t c)
{
	if (in->n == INPUT_MAX)
		return;
	memmove(in->p + at + 1, in->p + at, in->n - at);
	in->p[at] = c;
	in->n++;
}

static void mutate(struct input *in, uint64_t *state)
{
	static const char likely[] = "\0\1\2\xff:@.%{}[]^\\*?-a0skethcypn\"";
	uint8_t c = next(state) % 4 ? (uint8_t)likely[next(state) % (sizeof likely - 1)] :
		(uint8_t)next(state);
	size_t at = next(state) % (in->n + 1);

	switch (next(state) % 6) {
	case 0:
		in->n = at;
		break;
	case 1:
		if (at < in->n)
			memmove(in->p + at, in->p + at + 1, --in->n - at);
		break;
	case 2:
	case 3:
		insert(in, at, c);
		break;
	default:
		if (at < in->n)
			in->p[at] = c;
	}
}

static void random_input(struct input *in, uint64_t *state)
{
	in->n = next(state) % 24;
	for (size_t i = 0; i < in->n; i++)
		in->p[i] = (uint8_t)next(state);
}

/* The end of another seed behind the start of this one. */
static void splice(struct input *in, const struct input *other, uint64_t *state)
{
	size_t keep = next(state) % (in->n + 1);
	size_t from = next(state) % (other->n + 1);
	size_t n = other->n - from;

	if (n > INPUT_MAX - keep)
		n = INPUT_MAX - keep;
	memcpy(in->p + keep, other->p + from, n);
	in->n = keep + n;
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void run_all(const struct input *seeds, size_t n)
{
	uint64_t runs = number_from("LAPSED_FUZZ_RUNS", RUNS);
	uint64_t state = number_from("LAPSED_FUZZ_SEED", 1) * 2 + 1;

	for (size_t i = 0; i < n; i++)
		run(&seeds[i]);
	for (uint64_t i = 0; i < runs; i++) {
		struct input in;

		if (n && next(&state) % 16) {
			in = seeds[next(&state) % n];
			if (next(&state) % 8 == 0)
				splice(&in, &seeds[next(&state) % n], &state);
		} else {
			random_input(&in, &state);
		}
		for (uint64_t k = next(&state) % 6; k; k--)
			mutate(&in, &state);
		run(&in);
	}
}

int main(int argc, char **argv)
{
	static struct input seeds[SEEDS_MAX];
	const char *name = strrchr(argv[0], '_');

	if (argc < 2) {
		run_all(seeds, seeds_load(name ? name + 1 : argv[0], seeds));
		return EXIT_SUCCESS;
	}
	for (int i = 1; i < argc; i++) {
		if (!load(argv[i], &seeds[0]))
			return EXIT_FAILURE;
		run(&seeds[0]);
	}
	return EXIT_SUCCESS;
}
