/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/tally.h"

#include <stdlib.h>

#include "cli/out.h"
#include "core/buf.h"
#include "core/mem.h"

#define SLOTS	2048	/* a power of two, twice the pairs */

struct pair {
	struct bytes topic, reason;	/* owned */
	uint64_t n;
	msec_t oldest, newest;
};

struct tally {
	struct pair pairs[TALLY_PAIRS + 1];	/* the last: all others */
	size_t n;
	unsigned short slots[SLOTS];		/* index of a pair + 1 */
};

struct tally *tally_new(void)
{
	struct tally *t = mem_alloc(1, sizeof(*t));

	t->pairs[TALLY_PAIRS].topic = BYTES("(others)");
	return t;
}

void tally_free(struct tally *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		free((char *)t->pairs[i].topic.p);
		free((char *)t->pairs[i].reason.p);
	}
	free(t);
}

static unsigned hash(unsigned h, struct bytes b)
{
	for (size_t i = 0; i < b.n; i++)
		h = (h ^ (unsigned char)b.p[i]) * 16777619u;
	return (h ^ h >> 15) * 16777619u;
}

static struct pair *pair_of(struct tally *t, struct bytes topic, struct bytes reason)
{
	unsigned at = hash(hash(2166136261u, topic), reason);
	struct pair *p;

	for (;; at++) {
		unsigned short *slot = &t->slots[at & (SLOTS - 1)];

		if (*slot == 0 && t->n == TALLY_PAIRS)
			return &t->pairs[TALLY_PAIRS];
		if (*slot == 0) {
			p = &t->pairs[t->n++];
			*p = (struct pair){ bytes_of(mem_copy(topic), topic.n),
					    bytes_of(mem_copy(reason), reason.n), 0, 0, 0 };
			*slot = (unsigned short)t->n;
			return p;
		}
		p = &t->pairs[*slot - 1];
		if (bytes_eq(p->topic, topic) && bytes_eq(p->reason, reason))
			return p;
	}
}

void tally_add(struct tally *t, struct bytes topic, struct bytes reason, msec_t died)
{
	struct pair *p;

	if (reason.n > TALLY_REASON)
		reason.n = TALLY_REASON;
	p = pair_of(t, topic, reason);
	if (p->n == 0 || died < p->oldest)
		p->oldest = died;
	if (p->n == 0 || died > p->newest)
		p->newest = died;
	p->n++;
}

static int by_count(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->oldest > y->oldest) - (x->oldest < y->oldest);
}

static void print_json(const struct pair *p)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	json_key(&j, "count");
	json_uint(&j, p->n);
	out_json_bytes(&j, "topic", p->topic);
	if (p->reason.p)
		out_json_bytes(&j, "reason", p->reason);
	out_json_time(&j, "oldest", p->oldest);
	out_json_time(&j, "newest", p->newest);
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

static void print_line(const struct pair *p)
{
	char time[OUT_TIME];

	printf("%10llu  %s  ", (unsigned long long)p->n, out_time(p->oldest, time));
	printf("%s  ", out_time(p->newest, time));
	out_column(p->topic, 24);
	out_text(stdout, p->reason, p->reason.n);
	putchar('\n');
}

void tally_print(struct tally *t, bool json)
{
	const struct pair *others = &t->pairs[TALLY_PAIRS];

	qsort(t->pairs, t->n, sizeof(t->pairs[0]), by_count);
	if (!json && t->n > 0)
		printf("%10s  %-24s  %-24s  %-24s  %s\n", "LETTERS", "OLDEST", "NEWEST",
			"TOPIC", "REASON");
	for (size_t i = 0; i < t->n; i++)
		json ? print_json(&t->pairs[i]) : print_line(&t->pairs[i]);
	if (others->n)
		json ? print_json(others) : print_line(others);
}
