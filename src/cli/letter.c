/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/letter.h"

static struct bytes topic_of(const struct letter *l, const struct routes *routes)
{
	const struct entry *e = &l->entry;
	const struct route *route = NULL;

	if (!l->readable)
		return BYTES("(unreadable)");
	if (e->named && e->member.kind != MEMBER_SCHEDULED)
		route = routes_match(routes, e->member.db, e->member.name, NULL);
	return route ? route->topic : entry_topic(e);
}

void letter_read(struct letter *l, const struct routes *routes, struct bytes ce_id,
		 msec_t died, struct bytes obituary)
{
	struct obituary o;
	struct envelope e = { .due = 0 };

	*l = (struct letter){ .ce_id = ce_id, .died = died };
	l->readable = obituary_unpack(obituary, &o, &l->why);
	if (l->readable) {
		l->reason = o.reason;
		l->enveloped = envelope_unpack(o.envelope, &e, &l->why);
		l->due = e.due;
		entry_read(&l->entry, o.member, e.record);
	}
	if (l->readable && !l->enveloped) {
		l->entry.state = ENTRY_UNREADABLE;
		l->entry.why = l->why;
	}
	l->topic = topic_of(l, routes);
}

struct letter_choice letter_choice(const struct cli *cli)
{
	return (struct letter_choice){
		args_value(&cli->args, "topic"), args_value(&cli->args, "reason"),
	};
}

static bool holds(struct bytes text, const char *part)
{
	size_t n = strlen(part);

	return n == 0 || (text.n >= n && memmem(text.p, text.n, part, n));
}

bool letter_chosen(const struct letter *l, const struct letter_choice *choice)
{
	if (choice->topic && !bytes_eq(l->topic, bytes_str(choice->topic)))
		return false;
	return !choice->reason || (l->readable && holds(l->reason, choice->reason));
}

/* What the record does not say. */
static bool topic_from_route(const struct letter *l)
{
	return l->entry.named && l->entry.member.kind != MEMBER_SCHEDULED &&
		!bytes_eq(l->topic, entry_topic(&l->entry));
}

void letter_json(const struct letter *l, bool all)
{
	struct buf b = { .n = 0 };
	struct json j;

	json_init(&j, &b);
	json_object(&j);
	out_json_bytes(&j, "ce_id", l->ce_id);
	out_json_time(&j, "died", l->died);
	if (l->readable) {
		out_json_bytes(&j, "reason", l->reason);
		if (l->enveloped)
			out_json_time(&j, "due", l->due);
		if (topic_from_route(l))
			out_json_bytes(&j, "topic", l->topic);
		entry_json(&j, &l->entry, all);
	} else {
		json_key(&j, "unreadable");
		json_cstr(&j, l->why.text);
	}
	json_object_end(&j);
	out_json_line(&b);
	buf_clear(&b);
}

void letter_line_head(void)
{
	printf("%-24s  %-24s  %s\n", "DIED", "TOPIC", "CE_ID AND REASON");
}

void letter_line(const struct letter *l)
{
	char time[OUT_TIME];

	printf("%s  ", out_time(l->died, time));
	out_column(l->topic, 24);
	out_text(stdout, l->ce_id, l->ce_id.n);
	fputs("  ", stdout);
	if (l->readable)
		out_text(stdout, l->reason, l->reason.n);
	putchar('\n');
}

void letter_text(const struct letter *l)
{
	char time[OUT_TIME];

	out_label("ce_id");
	out_text(stdout, l->ce_id, l->ce_id.n);
	putchar('\n');
	out_label("died");
	puts(out_time(l->died, time));
	out_label(l->readable ? "reason" : "unreadable");
	if (l->readable)
		out_text(stdout, l->reason, l->reason.n);
	else
		fputs(l->why.text, stdout);
	putchar('\n');
	if (l->enveloped) {
		out_label("due");
		puts(out_time(l->due, time));
	}
	if (l->readable && topic_from_route(l)) {
		out_label("topic");
		out_name(stdout, l->topic);
		putchar('\n');
	}
	if (l->readable)
		entry_text(&l->entry);
}
