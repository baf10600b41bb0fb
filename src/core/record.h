/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * record - what stands in Redis for one entry, taken apart.
 *
 * The formats are those of docs/protocol.md: the record, the envelope that a
 * batch holds it in, the obituary of a dead letter, the member and `ce_id`.
 * What is unpacked borrows from the bytes it was unpacked from; nothing is
 * allocated.  Any bytes may come in: what can't be read is refused with a
 * text that becomes the reason of a burial.
 *
 *   member    s:<id> | k:<db>:<key> | e:<birth>:<db>:<key> | p:<birth>:<id>
 *   envelope  01 due:8 certainty:1 record
 *   record    01 birth:8 attempt:2 (tag:1 length:2 bytes)* ['p' payload]
 *   obituary  01 length:2 reason length:2 member envelope
 */
#ifndef LAPSED_CORE_RECORD_H
#define LAPSED_CORE_RECORD_H

#include <stdint.h>

#include "core/buf.h"
#include "core/bytes.h"
#include "core/err.h"
#include "core/when.h"

#define RECORD_HEADERS_MAX	32
#define RECORD_NAME_MAX		1024	/* of an id or key */
#define RECORD_TOPIC_MAX	249
#define RECORD_DB_MAX		INT32_MAX

/* The last millisecond of the year 9999. */
#define RECORD_DUE_MAX		INT64_C(253402300799999)

#define RECORD_TTR_MAX		INT64_C(604800000)	/* a week */
#define RECORD_HISTORY_MAX	8

/* The terms of an event with a time to run. */
struct job {
	msec_t ttr;		/* 0: it is none */
	unsigned attempts;	/* 1 or more */
	msec_t first, most;	/* the pause between attempts: at first, at most */
	unsigned factor;	/* by which it grows, in thousandths */
	bool spent;		/* no attempt is left: to be buried */
};

/* An attempt that ended. */
struct attempt {
	unsigned number;	/* 0: the first */
	msec_t ended;
	bool failed;		/* was given back; else: was not finished in time */
	struct bytes reason;	/* of a failure */
};

/* A NUL stands behind the name of a header, so it serves as a C string. */
struct header {
	struct bytes name;
	struct bytes value;
};

struct record {
	uint64_t birth;		/* Redis' TIME when it was stored, us */
	unsigned attempt;	/* 0 at first; at most 65535 */
	/* bytes_none when absent, which is not the same as empty */
	struct bytes topic;
	struct bytes key;
	struct bytes content_type;
	struct bytes type;
	struct bytes payload;
	char ended;		/* how a life that was put aside ended: a certainty; 0: it was not */
	struct job job;
	size_t nhistory;	/* the latest attempts, the oldest first */
	struct attempt history[RECORD_HISTORY_MAX];
	size_t nheaders;
	struct header headers[RECORD_HEADERS_MAX];	/* the first nheaders are set */
};

enum certainty {
	CERTAINTY_SCHEDULED = '-',	/* a scheduled event */
	CERTAINTY_HEARD = 'h',		/* a notification came */
	CERTAINTY_FOUND = 'f',		/* our look expired the key */
	CERTAINTY_INFERRED = 'i',	/* already gone; nobody told us */
};

struct envelope {
	msec_t due;
	enum certainty certainty;
	struct bytes record;	/* empty: there was none where one was needed */
};

enum member_kind {
	MEMBER_SCHEDULED = 's',
	MEMBER_WATCHED = 'k',
	MEMBER_EXPIRED = 'e',	/* a life of a watched key that was set again since */
};

struct member {
	enum member_kind kind;
	unsigned db;		/* 0 for a scheduled event */
	uint64_t birth;		/* in the names e: and p:, else 0 */
	struct bytes name;	/* the id or key, 1 to RECORD_NAME_MAX bytes */
};

struct obituary {
	struct bytes reason;
	struct bytes member;
	struct bytes envelope;
};

struct ce_id {
	struct member member;	/* never MEMBER_EXPIRED */
	struct bytes raw;	/* the member as it stands in Redis */
	uint64_t birth;
	unsigned attempt;
};

bool record_unpack(struct bytes from, struct record *r, struct err *err) MUST_CHECK;
bool envelope_unpack(struct bytes from, struct envelope *e, struct err *err) MUST_CHECK;
bool obituary_unpack(struct bytes from, struct obituary *o, struct err *err) MUST_CHECK;
bool member_parse(struct bytes from, struct member *m, struct err *err) MUST_CHECK;

/*
 * The way back, added to `out`.  record_pack() and obituary_pack() refuse what
 * has no room in the format and then leave `out` as it was.
 */
bool record_pack(const struct record *r, struct buf *out, struct err *err) MUST_CHECK;
void envelope_pack(const struct envelope *e, struct buf *out);
bool obituary_pack(const struct obituary *o, struct buf *out, struct err *err) MUST_CHECK;
void member_write(const struct member *m, struct buf *out);

/* "scheduled", "heard", "found" or "inferred". */
struct bytes certainty_name(enum certainty c);

/*
 * The `ce_id` of a life: the member, an expired life in the form of its key,
 * percent-encoded, and the token.  No more than CE_ID_MAX bytes are added.
 */
#define CE_ID_MAX	(3 * RECORD_NAME_MAX + 2 + 11 + 1 + 20 + 1 + 10)
void ce_id_write(const struct member *m, uint64_t birth, unsigned attempt,
		 struct buf *out);

/*
 * Reads what ce_id_write() wrote and nothing else, so that one life has one
 * text.  The decoded member is put in `room`, which is reset first; `id`
 * borrows from it.
 */
bool ce_id_parse(struct bytes text, struct buf *room, struct ce_id *id,
		 struct err *err) MUST_CHECK;

/* Every byte but `!` to `~`, and `%` itself, as %XX; at most 3 x from.n bytes. */
void percent_encode(struct bytes from, struct buf *out);

/* Whether Kafka takes it: 1 to 249 of A-Za-z0-9._- and neither . nor .. */
bool topic_valid(struct bytes topic);

#endif
