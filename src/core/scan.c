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
	*s = (struct scan){ .conf = *conf, .next = now, .since = now };
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
	s->since = now;
	s->inherits = false;
	if (s->going)
		s->again = true;
	else
		s->next = now;
}

/* A pass of our own that stood still meanwhile is one of those. */
void scan_inherit(struct scan *s, usec_t now)
{
	if (!s->owed)
		s->going = false;
	if (s->going) {
		s->again = true;
		return;
	}
	s->inherits = true;
	s->next = now;
}

static void place_write(struct scan *s, bool registered, usec_t now)
{
	if (*s->place)
		snprintf(s->asked, sizeof s->asked, "%s%s", registered ? "=" : "", s->place);
	else if (s->inherits)
		snprintf(s->asked, sizeof s->asked, "?%lld",
			 (long long)((now - s->since) / USEC_PER_MSEC));
	else
		s->asked[0] = '\0';
}

const struct scan_step *scan_next(struct scan *s, bool registered, usec_t now)
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
	place_write(s, registered, now);
	s->step = (struct scan_step){ s->asked, !*s->place, s->conf.pattern, s->conf.dbs,
				      s->conf.n_dbs };
	return &s->step;
}

usec_t scan_deadline(const struct scan *s)
{
	return s->conf.on && !s->owed ? s->next : USEC_NEVER;
}

static void pass_ends(struct scan *s, usec_t now)
{
	s->going = s->inherits = false;
	s->next = s->conf.rescan ? now + s->conf.rescan : USEC_NEVER;
	if (s->again)
		s->next = now;
	s->again = false;
}

enum scan_news scan_answered(struct scan *s, const struct scan_answer *a, size_t found,
			     usec_t now)
{
	bool begins = s->step.begins;

	assert(s->owed);
	s->owed = false;
	s->looked += a->looked;
	s->found += found;
	if (a->place.n < 2 || a->place.n >= SCAN_PLACE - 1) {
		pass_ends(s, now);
		return a->place.n == 1 ? SCAN_NOTHING : SCAN_DONE;
	}
	snprintf(s->place, sizeof s->place, "%.*s", (int)a->place.n, a->place.p);
	s->next = now + pace(s);
	if (!begins && now - s->told < SCAN_TOLD_EVERY)
		return SCAN_NOTHING;
	s->told = now;
	return begins ? SCAN_BEGUN : SCAN_GOES_ON;
}

void scan_lost(struct scan *s, usec_t now)
{
	if (!s->owed)
		return;
	s->owed = false;
	s->next = now + PAUSE;
}
