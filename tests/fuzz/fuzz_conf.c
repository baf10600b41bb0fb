/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A configuration is refused with a reason, or can be used: then what
 * conf_dump() prints is a configuration that comes to the same, and a reload
 * of it changes nothing.
 */

#include "conf.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

static char path[64];
static int file = -1;

static struct conf *load(const void *text, size_t n, bool tool, struct conf_report *report)
{
	struct conf_source source = { .path = path, .tool = tool };
	struct conf *c;

	if (file < 0) {
		unsetenv("LAPSED_REDIS_URL");
		unsetenv("LAPSED_REDIS_PASSWORD");
		unsetenv("LAPSED_KAFKA_BOOTSTRAP_SERVERS");
		file = memfd_create("lapsed.conf", 0);
		snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	}
	FUZZ_CHECK(ftruncate(file, 0) == 0);
	FUZZ_CHECK(pwrite(file, text, n, 0) == (ssize_t)n);
	c = conf_load(&source, report);
	FUZZ_CHECK(!c == (report->mistakes > 0));
	FUZZ_CHECK(c || report->n);
	return c;
}

static char *dump(const struct conf *c, size_t *n)
{
	char *text;
	FILE *f = open_memstream(&text, n);

	conf_dump(c, f);
	fclose(f);
	return text;
}

static void check_dump(const struct conf *c)
{
	struct conf_report report = { 0 };
	size_t n, notes;
	char *text = dump(c, &n);
	struct conf *again = load(text, n, false, &report);

	FUZZ_CHECK(again);
	notes = report.n;
	/* secrets are not in a dump */
	for (size_t i = 0; i < c->n_kafka; i++)
		if (c->kafka[i].secret)
			goto done;
	if (c->redis_password)
		goto done;
	conf_reload_diff(c, again, &report);
	FUZZ_CHECK(report.n == notes);
done:
	conf_report_clear(&report);
	conf_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_report report = { 0 };
	struct conf *c = load(data, size, false, &report);

	conf_report_clear(&report);
	if (c)
		check_dump(c);
	conf_free(c);
	conf_free(load(data, size, true, &report));
	conf_report_clear(&report);
	return 0;
}
