/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * sim - many runs of the world, one for each seed.
 *
 *	sim [--seeds N] [--first N] [--jobs N] [--no-shrink] [--go-on]
 *						N runs; the first failing seed
 *						ends it, made as small as it gets;
 *						or all of them are told
 *	sim --seed N [--trace] [--without KIND,...] [--app-ms N] [--instances N]
 *						one run, told as it happens
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "joblog.h"
#include "ledger.h"
#include "world.h"

#define JOBS		16
#define SEED_SECONDS	120	/* a run that takes longer hangs */

struct totals {
	uint64_t at, done;	/* the seed of now, and how many are over */
	uint64_t nbad;		/* seeds that failed */
	struct counters sum;
	uint64_t duplicates, calm;
	struct job_sums jobs;
	uint64_t faults[FAULT_KINDS];	/* runs in which they happened */
	int64_t latest;
};

static bool run(const struct world_conf *conf, struct totals *t)
{
	struct world *w = world_new(conf);
	bool fine = world_run(w);

	for (size_t i = 0; i < w->ninstances; i++)
		instance_sum(w->instances[i], &t->sum);
	for (unsigned i = 0; i < FAULT_KINDS; i++)
		t->faults[i] += struck(w, i);
	t->duplicates += ledger_duplicates(w->ledger);
	t->calm += w->calm;
	joblog_sum(w->joblog, &t->jobs);
	if (ledger_latest_ms(w->ledger) > t->latest)
		t->latest = ledger_latest_ms(w->ledger);
	world_free(w);
	return fine;
}

/* Smaller ---------------------------------------------------------------- */

/* In a process of its own, since a failure may be an assertion. */
static bool fails(const struct world_conf *conf)
{
	struct totals t = { 0 };
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(SEED_SECONDS);
		if (conf->quiet && !freopen("/dev/null", "w", stderr))
			_exit(1);
		status = run(conf, &t) ? 0 : 1;
		fflush(stdout);
		_exit(status);
	}
	return waitpid(pid, &status, 0) != pid || status != 0;
}

static void shrink(struct world_conf *c)
{
	static const unsigned lengths[] = { 500, 1000, 2000, 4000, 8000 };
	struct world_conf best = *c, try;

	best.quiet = true;
	for (unsigned n = 1; n < INSTANCES; n++) {
		try = best;
		try.instances = n;
		if (fails(&try)) {
			best = try;
			break;
		}
	}
	for (unsigned i = 0; i < FAULT_KINDS; i++) {
		try = best;
		try.without |= 1u << i;
		if (fails(&try))
			best = try;
	}
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		try = best;
		try.app_ms = lengths[i];
		if (fails(&try)) {
			best = try;
			break;
		}
	}
	*c = best;
	c->quiet = false;
}

static void tell(const struct world_conf *c)
{
	const char *sep = " --without ";

	printf("sim --seed %llu", (unsigned long long)c->seed);
	if (c->app_ms)
		printf(" --app-ms %u", c->app_ms);
	if (c->instances)
		printf(" --instances %u", c->instances);
	for (unsigned i = 0; i < FAULT_KINDS; i++)
		if (c->without & 1u << i) {
			printf("%s%s", sep, fault_name(i));
			sep = ",";
		}
	printf(" --trace\n");
}

static void failed(uint64_t seed, bool as_it_is)
{
	struct world_conf c = { .seed = seed };

	printf("seed %llu fails\n", (unsigned long long)seed);
	if (!as_it_is)
		shrink(&c);
	fails(&c);
	if (as_it_is)
		return;
	printf("the story, as small as it gets: ");
	tell(&c);
}

/* Many ------------------------------------------------------------------- */

struct options {
	uint64_t first, n;
	unsigned jobs;
	bool one, as_it_is;	/* a failure is not made smaller */
	bool go_on;		/* after one, too */
	struct world_conf conf;
};

static unsigned told_failed(uint64_t seed)
{
	printf("seed %llu fails\n", (unsigned long long)seed);
	fflush(stdout);
	return 1;
}

static void work(struct totals *t, uint64_t first, uint64_t end, uint64_t step, bool go_on)
{
	struct host *hosts[HOSTS] = { NULL };

	for (uint64_t seed = first; seed < end; seed += step) {
		struct world_conf c = { .seed = seed, .quiet = true, .hosts = hosts };

		t->at = seed;
		alarm(SEED_SECONDS);
		if (run(&c, t))
			t->done++;
		else if (!go_on)
			_exit(1);
		else
			t->nbad += told_failed(seed);
	}
	_exit(0);
}

static void job_sums_add(struct job_sums *all, const struct job_sums *s)
{
	all->lives += s->lives;
	all->stale += s->stale;
	all->deliveries += s->deliveries;
	for (unsigned k = 0; k < JOB_ENDS; k++)
		all->ends[k] += s->ends[k];
}

static void tell_jobs(const struct totals *t)
{
	static const char *const ends[JOB_ENDS] = {
		[JOB_LIVES] = "undone by a failover", [JOB_DYING] = "undone as they died",
		[JOB_FINISHED] = "finished", [JOB_CANCELLED] = "cancelled",
		[JOB_REPLACED] = "replaced", [JOB_REPLAYED] = "dead and replayed",
		[JOB_DROPPED] = "dead and dropped", [JOB_DEAD] = "dead",
	};

	printf("jobs: %llu lives, %llu deliveries, %llu stale tokens refused",
	       (unsigned long long)t->jobs.lives, (unsigned long long)t->jobs.deliveries,
	       (unsigned long long)t->jobs.stale);
	for (unsigned k = 0; k < JOB_ENDS; k++)
		printf(", %llu %s", (unsigned long long)t->jobs.ends[k], ends[k]);
	printf("; %llu dead letters told, %llu untold\n", (unsigned long long)t->sum.dead_told,
	       (unsigned long long)t->sum.dead_untold);
}

static void sum_up(const struct totals *t, size_t n)
{
	struct totals all = { 0 };

	for (size_t i = 0; i < n; i++) {
		all.done += t[i].done;
#define X(name, meaning)	all.sum.name += t[i].sum.name;
		COUNTERS(X)
#undef X
		all.duplicates += t[i].duplicates;
		all.calm += t[i].calm;
		job_sums_add(&all.jobs, &t[i].jobs);
		for (unsigned k = 0; k < FAULT_KINDS; k++)
			all.faults[k] += t[i].faults[k];
		all.latest = t[i].latest > all.latest ? t[i].latest : all.latest;
	}
	printf("%llu seeds, %llu events acknowledged, %llu duplicates (%llu doubtful, "
	       "%llu adopted), %llu fenced, %llu gone, %llu buried, "
	       "%llu calm runs at most %lld ms late\n",
	       (unsigned long long)all.done, (unsigned long long)all.sum.acknowledged,
	       (unsigned long long)all.duplicates,
	       (unsigned long long)all.sum.possible_duplicates,
	       (unsigned long long)all.sum.adopted_entries, (unsigned long long)all.sum.fenced,
	       (unsigned long long)all.sum.gone, (unsigned long long)all.sum.buried,
	       (unsigned long long)all.calm, (long long)all.latest);
	tell_jobs(&all);
	for (unsigned k = 0; k < FAULT_KINDS; k++)
		printf("%s%s %llu", k ? ", " : "runs with: ", fault_name(k),
		       (unsigned long long)all.faults[k]);
	putchar('\n');
}

static bool any_failed(const struct totals *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].nbad)
			return true;
	return false;
}

/* The first process that ends badly ends all. */
static int many(const struct options *o)
{
	unsigned jobs = o->jobs;
	struct totals *t = mmap(NULL, jobs * sizeof *t, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[JOBS];
	uint64_t bad = 0;
	bool ok = t != MAP_FAILED;

	for (unsigned j = 0; ok && j < jobs; j++) {
		pids[j] = fork();
		if (pids[j] == 0)
			work(&t[j], o->first + j, o->first + o->n, jobs, o->go_on);
	}
	for (unsigned left = jobs; ok && left; left--) {
		int status;
		pid_t pid = wait(&status);

		for (unsigned j = 0; status && j < jobs; j++) {
			if (pids[j] == pid)
				bad = t[j].at;
			else
				kill(pids[j], SIGKILL);
		}
		ok = !status;
	}
	while (wait(NULL) > 0)
		;
	if (!ok) {
		failed(bad, o->as_it_is);
		return 1;
	}
	sum_up(t, jobs);
	return any_failed(t, jobs);
}

/* Options ---------------------------------------------------------------- */

static unsigned kinds_of(const char *list)
{
	unsigned kinds = 0;

	for (unsigned i = 0; i < FAULT_KINDS; i++) {
		const char *name = fault_name(i);
		size_t n = strlen(name);

		for (const char *p = list; (p = strstr(p, name)); p += n)
			if ((p == list || p[-1] == ',') && (p[n] == ',' || !p[n]))
				kinds |= 1u << i;
	}
	return kinds;
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{ "seeds", required_argument, NULL, 'n' },
		{ "first", required_argument, NULL, 'f' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "seed", required_argument, NULL, 's' },
		{ "trace", no_argument, NULL, 't' },
		{ "no-shrink", no_argument, NULL, 'x' },
		{ "go-on", no_argument, NULL, 'g' },
		{ "without", required_argument, NULL, 'w' },
		{ "app-ms", required_argument, NULL, 'a' },
		{ "instances", required_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned long long number = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (c) {
		case 'n': o->n = number; break;
		case 'f': o->first = number; break;
		case 'j': o->jobs = (unsigned)number; break;
		case 's': o->conf.seed = number; o->one = true; break;
		case 't': o->conf.trace = true; break;
		case 'x': o->as_it_is = true; break;
		case 'g': o->go_on = true; break;
		case 'w': o->conf.without = kinds_of(optarg); break;
		case 'a': o->conf.app_ms = (unsigned)number; break;
		case 'i': o->conf.instances = (unsigned)number; break;
		default: return false;
		}
	}
	return optind == argc && o->jobs >= 1 && o->jobs <= JOBS &&
	       o->conf.instances <= INSTANCES;
}

int main(int argc, char **argv)
{
	struct options o = { .first = 1, .n = 50, .jobs = 1 };
	struct totals t = { 0 };

	if (!parse(argc, argv, &o)) {
		fputs("usage: sim [--seeds N] [--first N] [--jobs N] [--no-shrink] [--go-on]\n"
		      "       sim --seed N [--trace] [--without KIND,...] [--app-ms N] "
		      "[--instances N]\n", stderr);
		return 2;
	}
	if (!o.one)
		return many(&o);
	alarm(SEED_SECONDS);
	if (!run(&o.conf, &t))
		return 1;
	sum_up(&t, 1);
	return 0;
}
