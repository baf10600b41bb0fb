/* SPDX-License-Identifier: BSD-2-Clause */

#include "core/scan.h"

#include <assert.h>
#include <stdio.h>

#define PAUSE	(1 * USEC_PER_SEC)

static usec_t pace(const struct scan *s)
{
	return (usec_t)SCAN_COUNT * USEC_PER_SEC / (s->conf.rate ? s->conf.rate : 1);
}

void scan_init(struct scan *s, const struct scan_conf *conf, usec_t now)
{
	*s = (struct scan){ .conf = *conf, .next = now };
}

void scan_configure(struct scan *s, const struct scan_conf *conf, usec_t now)
{
	bool was_on = s->conf.on;

	s->conf = *conf;
	if (!was_on || !conf->on)
		scan_want(s, now);
	else if (!s->going && conf->rescan && s->next > now + conf->rescan)
		s->next = now + conf->rescan;
}

void scan_want(struct scan *s, usec_t now)
{
	if (s->going)
		s->again = true;
	else
		s->next = now;
}

const struct scan_step *scan_next(struct scan *s, usec_t now)
{
	if (!s->conf.on || s->owed || now < s->next)
		return NULL;
	if (!s->going) {
		s->going = true;
		s->begun = now;
		s->looked = s->found = 0;
		s->place[0] = '\0';
	}
	s->owed = true;
	s->step = (struct scan_step){ s->place, s->conf.pattern, s->conf.dbs, s->conf.n_dbs };
	return &s->step;
}

usec_t scan_deadline(const struct scan *s)
{
	return s->conf.on && !s->owed ? s->next : USEC_NEVER;
}

static void pass_ends(struct scan *s, usec_t now)
{
	s->going = false;
	s->next = s->conf.rescan ? now + s->conf.rescan : USEC_NEVER;
	if (s->again)
		s->next = now;
	s->again = false;
}

bool scan_answered(struct scan *s, const struct scan_answer *a, size_t found, usec_t now)
{
	assert(s->owed);
	s->owed = false;
	s->looked += a->looked;
	s->found += found;
	if (a->place.n == 0 || a->place.n >= SCAN_PLACE) {
		pass_ends(s, now);
		return true;
	}
	snprintf(s->place, sizeof s->place, "%.*s", (int)a->place.n, a->place.p);
	s->next = now + pace(s);
	return false;
}

void scan_lost(struct scan *s, usec_t now)
{
	if (!s->owed)
		return;
	s->owed = false;
	s->next = now + PAUSE;
}
