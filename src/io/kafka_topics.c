/* SPDX-License-Identifier: BSD-2-Clause */

#include "io/kafka_topics.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/mem.h"

struct topic {
	struct bytes name;	/* ours; NUL-terminated */
	uint64_t hash;
	rd_kafka_topic_t *rkt;	/* NULL: an empty place */
	usec_t refreshed;
};

/* Open addressing, never more than half full; nothing is ever removed. */
struct kafka_topics {
	rd_kafka_t *rk;
	size_t max;
	size_t n;
	size_t nplaces;		/* a power of two */
	struct topic *places;
	struct topic *last;	/* asked for; most often the next one, too */
};

static uint64_t hash_of(struct bytes b)
{
	uint64_t h = UINT64_C(14695981039346656037);	/* FNV-1a */
	size_t i;

	for (i = 0; i < b.n; i++)
		h = (h ^ (unsigned char)b.p[i]) * UINT64_C(1099511628211);
	return h;
}

static struct topic *place_of(struct kafka_topics *t, struct bytes name,
			      uint64_t hash)
{
	size_t i = hash & (t->nplaces - 1);

	while (t->places[i].rkt && (t->places[i].hash != hash ||
				    !bytes_eq(t->places[i].name, name)))
		i = (i + 1) & (t->nplaces - 1);
	return &t->places[i];
}

static void grow(struct kafka_topics *t)
{
	struct topic *old = t->places;
	size_t i, n = t->nplaces;

	t->nplaces = n ? 2 * n : 16;
	t->places = mem_alloc(t->nplaces, sizeof *t->places);
	t->last = NULL;
	for (i = 0; i < n; i++) {
		if (old[i].rkt)
			*place_of(t, old[i].name, old[i].hash) = old[i];
	}
	free(old);
}

struct kafka_topics *kafka_topics_new(rd_kafka_t *rk, size_t max)
{
	struct kafka_topics *t = mem_alloc(1, sizeof *t);

	t->rk = rk;
	t->max = max;
	grow(t);
	return t;
}

void kafka_topics_free(struct kafka_topics *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->nplaces; i++) {
		if (!t->places[i].rkt)
			continue;
		rd_kafka_topic_destroy(t->places[i].rkt);
		free((char *)t->places[i].name.p);
	}
	free(t->places);
	free(t);
}

/* Fills the empty place `to`; NULL when librdkafka refuses the name. */
static struct topic *topic_open(struct kafka_topics *t, struct topic *to,
				struct bytes name, uint64_t hash)
{
	char *copy = mem_copy(name);

	to->rkt = rd_kafka_topic_new(t->rk, copy, NULL);
	if (!to->rkt) {
		free(copy);
		return NULL;
	}
	to->name = bytes_of(copy, name.n);
	to->hash = hash;
	t->n++;
	return to;
}

rd_kafka_topic_t *kafka_topics_get(struct kafka_topics *t, struct bytes name,
				   const char **error)
{
	uint64_t hash;
	struct topic *found;

	if (t->last && bytes_eq(t->last->name, name))
		return t->last->rkt;
	hash = hash_of(name);
	found = place_of(t, name, hash);
	if (!found->rkt) {
		if (t->n >= t->max) {
			*error = "TOO_MANY_TOPICS";
			return NULL;
		}
		if (2 * (t->n + 1) > t->nplaces) {
			grow(t);
			found = place_of(t, name, hash);
		}
		found = topic_open(t, found, name, hash);
		if (!found) {
			*error = rd_kafka_err2name(rd_kafka_last_error());
			return NULL;
		}
	}
	t->last = found;
	return found->rkt;
}

void kafka_topics_refresh(struct kafka_topics *t, struct bytes name,
			  usec_t now)
{
	const struct rd_kafka_metadata *md = NULL;
	struct topic *found = place_of(t, name, hash_of(name));

	if (!found->rkt || (found->refreshed &&
			    now - found->refreshed < USEC_PER_SEC))
		return;
	found->refreshed = now;
	rd_kafka_metadata(t->rk, 0, found->rkt, &md, 0);
	if (md)
		rd_kafka_metadata_destroy(md);
}
