/* SPDX-License-Identifier: BSD-2-Clause */
#include "metrics.h"

#include <stdio.h>

void metrics_init(struct metrics *m, usec_t now)
{
	*m = (struct metrics){ .since = now };
}

static void put_counters(struct log_line *l, const struct counters *c)
{
#define X(name, meaning)	log_uint(l, #name, c->name);
	COUNTERS(X)
#undef X
}

static void put_delta(struct log_line *l, const struct counters *c,
		      const struct counters *last)
{
	log_object(l, "delta");
#define X(name, meaning)				\
	if (c->name != last->name)			\
		log_uint(l, #name, c->name - last->name);
	COUNTERS(X)
#undef X
	log_object_end(l);
}

static double ms(int64_t us)
{
	return (double)us / USEC_PER_MSEC;
}

static void put_lateness(struct log_line *l, const char *prefix, const struct hist *h)
{
	static const struct {
		const char *name;
		double q;
	} quantiles[] = {
		{ "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 },
	};
	char name[64];

	snprintf(name, sizeof(name), "%s_count", prefix);
	log_uint(l, name, h->count);
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		snprintf(name, sizeof(name), "%s_%s_ms", prefix, quantiles[i].name);
		log_double(l, name, ms(hist_quantile(h, quantiles[i].q)));
	}
	snprintf(name, sizeof(name), "%s_max_ms", prefix);
	log_double(l, name, ms(h->max));
}

void metrics_stats(struct metrics *m, struct log *log, const struct counters *c,
		   struct hist *lateness, const struct gauge *gauges, size_t n,
		   usec_t now)
{
	struct log_line l;

	hist_merge(&m->lateness, lateness);
	log_begin(&l, log, LOG_STATS, "%llu events acknowledged since the last such line",
		  (unsigned long long)(c->acknowledged - m->last.acknowledged));
	log_double(&l, "interval_s", (double)(now - m->since) / USEC_PER_SEC);
	for (size_t i = 0; i < n; i++)
		log_int(&l, gauges[i].name, gauges[i].value);
	put_lateness(&l, "lateness", lateness);
	put_lateness(&l, "lateness_total", &m->lateness);
	put_counters(&l, c);
	put_delta(&l, c, &m->last);
	log_end(&l);
	hist_reset(lateness);
	m->last = *c;
	m->since = now;
}
