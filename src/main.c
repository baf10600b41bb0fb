/* SPDX-License-Identifier: BSD-2-Clause */

#include "config.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conf.h"
#include "daemon.h"
#include "log.h"

#define EXIT_USAGE	2
/* The loop's own, two to Redis, and some of librdkafka beside one a broker. */
#define FILES_MIN	32

static const char usage[] =
	"usage: lapsed [-c FILE] [--check | --dump]\n"
	"       lapsed --help | --version\n"
	"\n"
	"Turns Redis key expiry and due events into Kafka records.\n"
	"\n"
	"  -c, --config FILE  the configuration; without it, defaults and environment\n"
	"      --check        say what is wrong with the configuration, and stop\n"
	"      --dump         print every option, its value and where that is from\n"
	"  -h, --help         this text\n"
	"  -V, --version      the version\n"
	"\n"
	"See lapsed(8), lapsed.conf(5) and lapse(1).\n";

enum what { RUN, CHECK, DUMP };

/* The libraries abort where they can't get a descriptor at their start. */
static bool files_suffice(struct log *log)
{
	struct rlimit files;
	struct log_line l;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= FILES_MIN)
		return true;
	log_begin_about(&l, log, LOG_DAEMON_CONFIG, LOG_ERROR, BYTES("files"),
			"the limit of open files is %u and at least %d are needed; "
			"raise it (ulimit -n, or LimitNOFILE= of the unit)",
			(unsigned)files.rlim_cur, FILES_MIN);
	log_end(&l);
	return false;
}

static int run(const struct conf_source *source)
{
	struct conf_report report = { 0 };
	struct conf *conf = conf_load(source, &report);
	struct log *log;
	int status;

	conf_report_print(&report, "", stderr);
	conf_report_clear(&report);
	if (!conf)
		return EXIT_USAGE;
	log = log_new(STDERR_FILENO, (enum log_format)conf->log_format,
		      (enum log_level)conf->log_level, NULL);
	if (files_suffice(log)) {
		status = daemon_main(conf, source, log);
	} else {
		conf_free(conf);
		status = 1;
	}
	log_free(log);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, 'k' },
		{ "dump", no_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	struct conf_source source = { 0 };
	enum what what = RUN;
	int c;

	log_secure_stdio();
	signal(SIGPIPE, SIG_IGN);	/* the log may be a pipe that nobody reads */
	while ((c = getopt_long(argc, argv, "c:hV", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			source.path = optarg;
			break;
		case 'k':
			what = CHECK;
			break;
		case 'd':
			what = DUMP;
			break;
		case 'h':
			return fputs(usage, stdout) < 0;
		case 'V':
			return puts("lapsed " PACKAGE_VERSION) < 0;
		default:
			fputs("try lapsed --help\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "lapsed: surplus argument: %s\n", argv[optind]);
		return EXIT_USAGE;
	}
	if (what == CHECK)
		return conf_check_main(&source);
	return what == DUMP ? conf_dump_main(&source) : run(&source);
}
