/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Who holds which slot, told from the answers alone: a join takes a slot from
 * whoever had it, so does an adoption from a slot that is not the adopter's,
 * a leave gives it up.  What any other script does must come from the holder, and
 * nobody loses a slot before its lease has ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "world.h"

#define SLOTS	64

struct holder {
	char nonce[48];			/* empty: nobody */
	int64_t until;			/* end of its lease, ms of Redis' clock */
	uint64_t adopted;		/* number of its latest adopted batch */
};

struct holders {
	struct holder slots[SLOTS];
};

struct holders *holders_new(void)
{
	return mem_alloc(1, sizeof(struct holders));
}

struct holders *holders_clone(const struct holders *h)
{
	struct holders *copy = holders_new();

	*copy = *h;
	return copy;
}

void holders_free(struct holders *h)
{
	free(h);
}

bool holders_has(const struct holders *h, const char *nonce)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (strcmp(h->slots[i].nonce, nonce) == 0)
			return true;
	return false;
}

static int64_t number(struct bytes b)
{
	return strtoll(b.p, NULL, 10);
}

static struct holder *holder_of(struct holders *h, struct bytes slot)
{
	return &h->slots[(uint64_t)number(slot) % SLOTS];
}

static void hold(struct holder *h, struct bytes nonce, int64_t until)
{
	snprintf(h->nonce, sizeof h->nonce, "%.*s", (int)nonce.n, nonce.p);
	h->until = until;
	h->adopted = 0;
}

/*
 * `h` loses its slot, which may not be while its lease goes on.  One that had
 * ended by a clock that has stepped back since does not go on again.
 */
static void oust(struct world *w, struct holder *h, struct bytes by)
{
	if (*h->nonce && !bytes_eq(bytes_str(h->nonce), by) && h->until > redis_ms(w) &&
	    !struck(w, FAULT_CLOCK))
		complain(w, "%s loses its slot to %.*s before its lease ends", h->nonce,
			 (int)by.n, by.p);
}

static void joined(struct world *w, const struct bytes *argv, const struct reply *r)
{
	struct holder *h = holder_of(w->holders, r->items[1].str);

	oust(w, h, argv[1]);
	hold(h, argv[1], redis_ms(w) + number(argv[2]));
}

/* True unless it is asked again under the same number. */
static bool adopted(struct world *w, const struct bytes *argv, const struct reply *r)
{
	struct holder *h = holder_of(w->holders, argv[0]), *from = holder_of(w->holders, argv[4]);
	uint64_t seq = (uint64_t)number(argv[3]);

	if ((r->n == 7 && !r->items[5].str.n) || seq == h->adopted)
		return false;
	h->adopted = seq;
	if (from != h) {
		oust(w, from, argv[2]);
		hold(from, bytes_none, 0);
	}
	return true;
}

bool holders_saw(struct world *w, const char *script, const struct bytes *argv, size_t argc,
		 const struct reply *r)
{
	struct holder *h;

	if (r->kind != REPLY_ARRAY || strcmp(script, "canary") == 0 ||
	    strcmp(script, "walk") == 0 || strcmp(script, "scan") == 0 ||
	    strcmp(script, "register") == 0)
		return false;
	if (strcmp(script, "join") == 0) {
		joined(w, argv, r);
		return false;
	}
	h = holder_of(w->holders, argv[0]);
	if (argc < 3 || !bytes_eq(bytes_str(h->nonce), argv[2]))
		complain(w, "%s of slot %.*s succeeds for %.*s, but %s holds it", script,
			 (int)argv[0].n, argv[0].p, (int)argv[2].n, argv[2].p,
			 *h->nonce ? h->nonce : "nobody");
	if (strcmp(script, "leave") == 0)
		hold(h, bytes_none, 0);
	else if (strcmp(script, "renew") == 0)
		h->until = redis_ms(w) + number(argv[3]);
	return strcmp(script, "adopt") == 0 && adopted(w, argv, r);
}
