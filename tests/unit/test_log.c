/* SPDX-License-Identifier: BSD-2-Clause */

#include "log.h"

#include <assert.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "metrics.h"
#include "unit.h"

static_assert(LOG_LINE_MAX <= PIPE_BUF, "a pipe takes a line whole");

static int fds[2];		/* where it is read, where it is written */
static struct log *log_;
static msec_t now;

static msec_t test_clock(void)
{
	return now;
}

static void make(enum log_format format, enum log_level level)
{
	log_free(log_);
	log_ = log_new(fds[1], format, level, test_clock);
}

static void setup(void)
{
	ck_assert_int_eq(pipe2(fds, O_NONBLOCK), 0);
	now = 1796041800123;		/* 2026-11-30T12:30:00.123Z */
	make(LOG_JSON, LOG_DEBUG);
}

static void teardown(void)
{
	log_free(log_);
	log_ = NULL;
	close(fds[0]);
	close(fds[1]);
}

/* What was written since the last call. */
static const char *written(void)
{
	static char text[200000];
	ssize_t n = read(fds[0], text, sizeof text - 1);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

/* The one line that was written, which must be JSON. */
static json_t *line(void)
{
	const char *text = written();
	json_error_t error;
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	ck_assert_msg(j != NULL, "%s: %s", error.text, text);
	ck_assert_uint_le(strlen(text), LOG_LINE_MAX);
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
	return j;
}

static const char *str(json_t *j, const char *name)
{
	const char *s = json_string_value(json_object_get(j, name));

	return s ? s : "(none)";
}

static json_int_t num(json_t *j, const char *name)
{
	return json_integer_value(json_object_get(j, name));
}

static void write_event(enum log_event event, const char *subject)
{
	struct log_line l;

	log_begin_about(&l, log_, event, LOG_WARN, bytes_str(subject), "hello");
	log_end(&l);
}

START_TEST(a_line_has_all_fields)
{
	struct log_line l;

	log_begin(&l, log_, LOG_REDIS_LOST, "connection to %s lost", "h:1");
	log_int(&l, "a", -5);
	log_uint(&l, "b", UINT64_MAX);
	log_double(&l, "c", 1.23456);
	log_double(&l, "d", NAN);
	log_bool(&l, "e", true);
	log_str(&l, "f", "x \"y\"\n");
	log_str(&l, "g", NULL);
	log_bytes(&l, "h", BYTES("k\0\xff"));
	log_bytes(&l, "i", BYTES(""));
	log_object(&l, "j");
	log_int(&l, "k", 1);
	log_int(&l, "l", 2);
	log_object_end(&l);
	log_object(&l, "m");
	log_object_end(&l);
	log_end(&l);
	ck_assert_str_eq(written(),
		"{\"ts\":\"2026-11-30T12:30:00.123Z\",\"level\":\"warn\",\"event\":\"redis.lost\","
		"\"msg\":\"connection to h:1 lost\",\"a\":-5,\"b\":18446744073709551615,"
		"\"c\":1.235,\"d\":null,\"e\":true,\"f\":\"x \\\"y\\\"\\n\",\"g\":null,"
		"\"h\":\"k\\u0000\\\\xff\",\"i\":\"\",\"j\":{\"k\":1,\"l\":2},\"m\":{}}\n");
}
END_TEST

START_TEST(text_is_for_people)
{
	struct log_line l;

	make(LOG_TEXT, LOG_DEBUG);
	log_begin(&l, log_, LOG_REDIS_LOST, "connection to %s lost", "\"h\"\n");
	log_int(&l, "a", -5);
	log_str(&l, "b", "plain");
	log_str(&l, "c", "two words");
	log_str(&l, "d", "");
	log_str(&l, "e", NULL);
	log_bool(&l, "f", false);
	log_double(&l, "g", 0.5);
	log_object(&l, "h");
	log_int(&l, "i", 1);
	log_object_end(&l);
	log_end(&l);
	ck_assert_str_eq(written(), "2026-11-30T12:30:00.123Z warn  redis.lost: connection to "
			 "\\\"h\\\"\\n lost a=-5 b=plain c=\"two words\" d=\"\" e=null f=false "
			 "g=0.500 h.i=1\n");
}
END_TEST

START_TEST(auto_is_json_but_on_a_terminal)
{
	make(LOG_AUTO, LOG_INFO);
	write_event(LOG_REDIS_LOST, NULL);
	ck_assert_int_eq(written()[0], '{');
}
END_TEST

START_TEST(the_level_can_be_changed)
{
	struct log_line l;

	make(LOG_JSON, LOG_INFO);
	ck_assert(log_wants(log_, LOG_INFO));
	ck_assert(!log_wants(log_, LOG_DEBUG));
	log_begin_about(&l, log_, LOG_SLOT_JOINED, LOG_DEBUG, bytes_none, "x");
	log_int(&l, "a", 1);
	log_end(&l);
	ck_assert_str_eq(written(), "");
	log_set_level(log_, LOG_DEBUG);
	log_begin_about(&l, log_, LOG_SLOT_JOINED, LOG_DEBUG, bytes_none, "x");
	log_end(&l);
	ck_assert_has(written(), "slot.joined");
	log_set_level(log_, LOG_ERROR);
	write_event(LOG_REDIS_LOST, NULL);
	ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(repeats_are_folded_and_counted)
{
	json_t *j;

	for (int i = 0; i < 1000; i++) {
		write_event(LOG_REDIS_LOST, NULL);
		now += 5;
	}
	j = line();
	ck_assert_ptr_null(json_object_get(j, "repeated"));
	json_decref(j);
	now += LOG_FOLD_MS;
	write_event(LOG_REDIS_LOST, NULL);
	j = line();
	ck_assert_str_eq(str(j, "event"), "redis.lost");
	ck_assert_int_eq(num(j, "repeated"), 999);
	json_decref(j);
	now += LOG_FOLD_MS;
	write_event(LOG_REDIS_LOST, NULL);
	j = line();
	ck_assert_ptr_null(json_object_get(j, "repeated"));
	json_decref(j);
}
END_TEST

START_TEST(a_repeat_that_stays_away_is_told_of_too)
{
	json_t *j;

	write_event(LOG_REDIS_LOST, NULL);
	write_event(LOG_REDIS_LOST, NULL);
	json_decref(line());
	log_settle(log_);
	ck_assert_str_eq(written(), "");
	now += LOG_FOLD_MS;
	log_settle(log_);
	j = line();
	ck_assert_str_eq(str(j, "event"), "log.repeated");
	ck_assert_str_eq(str(j, "of"), "redis.lost");
	ck_assert_int_eq(num(j, "repeated"), 1);
	json_decref(j);
	log_settle(log_);
	ck_assert_str_eq(written(), "");
	write_event(LOG_REDIS_LOST, "subscription");
	write_event(LOG_REDIS_LOST, "subscription");
	json_decref(line());
	log_free(log_);
	log_ = NULL;
	j = line();
	ck_assert_str_eq(str(j, "event"), "log.repeated");
	ck_assert_str_eq(str(j, "about"), "subscription");
	json_decref(j);
}
END_TEST

START_TEST(subjects_and_events_are_folded_apart)
{
	write_event(LOG_KAFKA_PARKED, "a");
	json_decref(line());
	write_event(LOG_KAFKA_PARKED, "b");
	json_decref(line());
	write_event(LOG_KAFKA_ERROR, "a");
	json_decref(line());
	write_event(LOG_KAFKA_PARKED, "a");
	ck_assert_str_eq(written(), "");
}
END_TEST

START_TEST(what_is_asked_for_is_not_folded)
{
	json_t *j;

	write_event(LOG_DAEMON_CONFIG, "a");
	json_decref(line());
	write_event(LOG_DAEMON_CONFIG, "a");
	ck_assert_str_eq(written(), "");
	log_unfold(log_, LOG_DAEMON_CONFIG);
	j = line();
	ck_assert_str_eq(str(j, "event"), "log.repeated");
	json_decref(j);
	write_event(LOG_DAEMON_CONFIG, "a");
	j = line();
	ck_assert_str_eq(str(j, "event"), "daemon.config");
	json_decref(j);
}
END_TEST

START_TEST(info_is_not_folded)
{
	struct log_line l;

	for (int i = 0; i < 3; i++) {
		log_begin(&l, log_, LOG_SLOT_JOINED, "x");
		log_end(&l);
		json_decref(line());
	}
}
END_TEST

START_TEST(endless_subjects_are_not_endless_lines)
{
	size_t lines = 0;
	char subject[16];

	for (int i = 0; i < 5000; i++) {
		snprintf(subject, sizeof subject, "%d", i);
		write_event(LOG_KAFKA_PARKED, subject);
		lines += *written() != '\0';
	}
	ck_assert_uint_ge(lines, 50);
	ck_assert_uint_le(lines, 100);
}
END_TEST

START_TEST(a_clock_that_jumps_back_ends_the_window)
{
	write_event(LOG_REDIS_LOST, NULL);
	json_decref(line());
	now -= 3600000;
	write_event(LOG_REDIS_LOST, NULL);
	json_decref(line());
}
END_TEST

/* Any bytes, of any length, in any place: a whole line of JSON comes out. */
START_TEST(what_does_not_fit_is_cut)
{
	static const char *const units[] = {
		"x", "\x01", "\"", "\xc3\xa9", "\xff", "\xf0\x9f\x98\x80", "\xe2\x82",
	};
	static char big[20000];
	struct log_line l;
	size_t n = 0, size = strlen(units[_i]);

	while (n + size < sizeof big) {
		memcpy(big + n, units[_i], size);
		n += size;
	}
	big[n] = '\0';
	for (int place = 0; place < 3; place++) {
		log_begin(&l, log_, LOG_SLOT_JOINED, "%s", place == 0 ? big : "short");
		log_bytes(&l, "first", place == 1 ? bytes_of(big, n) : BYTES("1"));
		for (int i = 0; i < 500 && place == 2; i++) {
			char name[16];

			snprintf(name, sizeof name, "f%d", i);
			log_bytes(&l, name, bytes_of(big, size));
		}
		log_object(&l, "in");
		log_bytes(&l, "deep", bytes_of(big, n));
		log_int(&l, "last", INT64_MIN);
		log_object_end(&l);
		log_int(&l, "very_last", INT64_MIN);
		log_end(&l);

		json_t *j = line();

		ck_assert(json_is_true(json_object_get(j, "truncated")));
		json_decref(j);
	}
}
END_TEST

START_TEST(text_is_cut_as_well)
{
	static char big[20000];
	struct log_line l;

	make(LOG_TEXT, LOG_DEBUG);
	memset(big, '\x01', sizeof big - 1);
	log_begin(&l, log_, LOG_SLOT_JOINED, "%s", big);
	log_str(&l, "a", big);
	log_end(&l);
	ck_assert_uint_le(strlen(written()), LOG_LINE_MAX);
	log_begin(&l, log_, LOG_SLOT_JOINED, "x");
	log_str(&l, "a", big);
	log_end(&l);
	ck_assert_has(written(), " truncated=true\n");
}
END_TEST

START_TEST(keys_of_the_greatest_length_are_whole)
{
	static char key[1024];
	struct log_line l;
	json_t *j;

	memset(key, 'k', sizeof key);
	log_begin(&l, log_, LOG_EVENT_BURIED, "x");
	log_bytes(&l, "key", bytes_of(key, sizeof key));
	log_bytes(&l, "id", bytes_of(key, sizeof key));
	log_end(&l);
	j = line();
	ck_assert_uint_eq(json_string_length(json_object_get(j, "id")), sizeof key);
	ck_assert_ptr_null(json_object_get(j, "truncated"));
	json_decref(j);
}
END_TEST

START_TEST(a_full_pipe_drops_lines_and_never_waits)
{
	struct log_line l;
	char pad[1000];
	size_t lines = 0, dropped;

	/* as it comes from the shell: it would wait */
	ck_assert_int_eq(fcntl(fds[1], F_SETFL, 0), 0);
	memset(pad, 'x', sizeof pad - 1);
	pad[sizeof pad - 1] = '\0';
	for (int i = 0; i < 1000; i++) {
		log_begin(&l, log_, LOG_SLOT_JOINED, "x");
		log_str(&l, "pad", pad);
		log_end(&l);
	}
	dropped = log_dropped(log_);
	ck_assert_uint_gt(dropped, 0);
	for (const char *text; *(text = written());)
		for (const char *c = text; *c; c++)
			lines += *c == '\n';
	ck_assert_uint_eq(lines + dropped, 1000);
	log_begin(&l, log_, LOG_SLOT_JOINED, "y");
	log_end(&l);
	json_decref(line());
	ck_assert_uint_eq(log_dropped(log_), dropped);
}
END_TEST

static void write_padded(const char *pad)
{
	struct log_line l;

	log_begin(&l, log_, LOG_SLOT_JOINED, "x");
	log_str(&l, "pad", pad);
	log_end(&l);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_line_taken_in_part_is_finished_first)
{
	char pad[1000], name[] = "/tmp/lapsed-log.XXXXXX", text[10000];
	int file = mkstemp(name);
	ssize_t n;

	/* a file that may not grow takes the beginning of a line */
	ck_assert_int_ge(file, 0);
	unlink(name);
	dup2(file, fds[1]);
	signal(SIGXFSZ, SIG_IGN);
	memset(pad, 'x', sizeof pad - 1);
	pad[sizeof pad - 1] = '\0';
	limit_file_size(1500);
	for (int i = 0; i < 5; i++)
		write_padded(pad);
	ck_assert_uint_eq(log_dropped(log_), 3);
	limit_file_size(1600);
	write_padded(pad);
	ck_assert_uint_eq(log_dropped(log_), 4);
	limit_file_size(RLIM_INFINITY);
	write_padded(pad);
	ck_assert_uint_eq(log_dropped(log_), 4);

	n = pread(file, text, sizeof text - 1, 0);
	close(file);
	ck_assert_int_gt(n, 0);
	text[n] = '\0';

	char *at = text;

	for (int i = 0; i < 3; i++) {
		json_error_t error;
		json_t *j = json_loads(at, JSON_DISABLE_EOF_CHECK, &error);

		ck_assert_msg(j != NULL, "line %d: %s", i, error.text);
		json_decref(j);
		at = strchr(at, '\n') + 1;
	}
	ck_assert_int_eq(*at, '\0');
}
END_TEST

START_TEST(a_closed_stderr_costs_lines_only)
{
	close(fds[1]);
	write_event(LOG_REDIS_LOST, NULL);
	ck_assert_uint_eq(log_dropped(log_), 1);
	fds[1] = open("/dev/full", O_WRONLY);
	write_event(LOG_REDIS_REFUSED, NULL);
	ck_assert_uint_eq(log_dropped(log_), 2);
}
END_TEST

START_TEST(names_are_of_the_catalogue)
{
	for (int i = 0; i < LOG_EVENT_COUNT; i++) {
		const char *name = log_event_name((enum log_event)i);

		ck_assert_ptr_nonnull(name);
		ck_assert_uint_eq(strspn(name, "abcdefghijklmnopqrstuvwxyz._"), strlen(name));
	}
	ck_assert_str_eq(log_level_name(LOG_ERROR), "error");
	ck_assert_str_eq(log_level_name(LOG_DEBUG), "debug");
}
END_TEST

/* The stats line. */

START_TEST(stats_have_counters_gauges_and_lateness)
{
	struct counters c = { .claims = 7, .acknowledged = 5 };
	struct gauge gauges[] = { { "inflight", 3 }, { "slot", -1 } };
	struct metrics m;
	struct hist h = { 0 };
	json_t *j;

	metrics_init(&m, 1000000);
	for (int i = 1; i <= 100; i++)
		hist_add(&h, i * 1000);
	metrics_stats(&m, log_, &c, &h, gauges, 2, 11000000);
	j = line();
	ck_assert_str_eq(str(j, "event"), "stats");
	ck_assert_double_eq_tol(json_real_value(json_object_get(j, "interval_s")), 10, 0.001);
	ck_assert_int_eq(num(j, "claims"), 7);
	ck_assert_int_eq(num(j, "log_dropped"), 0);
	ck_assert_int_eq(num(j, "inflight"), 3);
	ck_assert_int_eq(num(j, "slot"), -1);
	ck_assert_int_eq(num(j, "lateness_count"), 100);
	ck_assert_double_eq_tol(json_real_value(json_object_get(j, "lateness_p50_ms")), 50, 3);
	ck_assert_double_eq_tol(json_real_value(json_object_get(j, "lateness_max_ms")), 100, 0.1);
	ck_assert_int_eq(num(json_object_get(j, "delta"), "acknowledged"), 5);
	ck_assert_ptr_null(json_object_get(json_object_get(j, "delta"), "gaps"));
	json_decref(j);

	c.acknowledged = 6;
	hist_add(&h, 900000);
	metrics_stats(&m, log_, &c, &h, gauges, 2, 12000000);
	j = line();
	ck_assert_int_eq(num(j, "lateness_count"), 1);
	ck_assert_int_eq(num(j, "lateness_total_count"), 101);
	ck_assert_int_eq(num(j, "acknowledged"), 6);
	ck_assert_int_eq(num(json_object_get(j, "delta"), "acknowledged"), 1);
	ck_assert_ptr_null(json_object_get(json_object_get(j, "delta"), "claims"));
	json_decref(j);
	ck_assert_uint_eq(h.count, 0);
}
END_TEST

START_TEST(stats_fit_into_a_line)
{
	struct gauge gauges[12];
	struct counters c;
	struct metrics m;
	struct hist h = { 0 };
	char names[12][32];
	uint64_t *all = (uint64_t *)&c;
	json_t *j;

	metrics_init(&m, 0);
	for (size_t i = 0; i < sizeof c / sizeof *all; i++)
		all[i] = 999999999999;
	for (size_t i = 0; i < 12; i++) {
		snprintf(names[i], sizeof names[i], "a_gauge_of_some_length_%zu", i);
		gauges[i] = (struct gauge){ names[i], 999999999999 };
	}
	hist_add(&h, HIST_TOP);
	metrics_stats(&m, log_, &c, &h, gauges, 12, INT64_MAX);
	j = line();
	ck_assert_ptr_null(json_object_get(j, "truncated"));
	json_decref(j);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *tc = tcase_create("log");

	tcase_add_checked_fixture(tc, setup, teardown);
	suite_add_tcase(s, tc);
	tcase_add_test(tc, a_line_has_all_fields);
	tcase_add_test(tc, text_is_for_people);
	tcase_add_test(tc, auto_is_json_but_on_a_terminal);
	tcase_add_test(tc, the_level_can_be_changed);
	tcase_add_test(tc, repeats_are_folded_and_counted);
	tcase_add_test(tc, a_repeat_that_stays_away_is_told_of_too);
	tcase_add_test(tc, subjects_and_events_are_folded_apart);
	tcase_add_test(tc, what_is_asked_for_is_not_folded);
	tcase_add_test(tc, info_is_not_folded);
	tcase_add_test(tc, endless_subjects_are_not_endless_lines);
	tcase_add_test(tc, a_clock_that_jumps_back_ends_the_window);
	tcase_add_loop_test(tc, what_does_not_fit_is_cut, 0, 7);
	tcase_add_test(tc, text_is_cut_as_well);
	tcase_add_test(tc, keys_of_the_greatest_length_are_whole);
	tcase_add_test(tc, a_full_pipe_drops_lines_and_never_waits);
	tcase_add_test(tc, a_line_taken_in_part_is_finished_first);
	tcase_add_test(tc, a_closed_stderr_costs_lines_only);
	tcase_add_test(tc, names_are_of_the_catalogue);
	tcase_add_test(tc, stats_have_counters_gauges_and_lateness);
	tcase_add_test(tc, stats_fit_into_a_line);
	return unit_run(s);
}
