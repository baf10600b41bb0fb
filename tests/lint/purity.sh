#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# core calls nothing that reads a clock, does I/O, or asks the surroundings;
# that is what lets a simulation run years of it.  The one exception is the
# last word of mem.c when memory has run out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

# shellcheck disable=SC2046
set -- $("$here/files" 'src/core/*.[ch]')
[ $# -gt 0 ] || exit 0

awk -f "$here/strip.awk" "$@" | awk -F: '
BEGIN {
	calls = "time|clock|clock_gettime|gettimeofday|timespec_get|localtime" \
		"|localtime_r|mktime|sleep|usleep|nanosleep" \
		"|printf|vprintf|fprintf|vfprintf|dprintf|puts|fputs|putchar|putc" \
		"|fputc|perror|scanf|fscanf|getchar|getc|fgetc|fgets|getline" \
		"|fopen|fdopen|freopen|fclose|fread|fwrite|fflush|fseek|popen" \
		"|open|openat|close|read|write|pread|pwrite|send|recv|socket" \
		"|connect|bind|listen|accept|poll|select|ioctl|fcntl" \
		"|getenv|setenv|system|fork|signal|raise|getpid|syslog" \
		"|rand|srand|random|srandom|drand48|getrandom|arc4random"
}

# A name that the file gives to a function of its own means that one.
{
	text = $0
	sub(/^[^:]*:[^:]*:/, "", text)
	where = $1 ":" $2 ": "
	if (text ~ /^static[^=;]*\(/) {
		name = text
		sub(/[ \t]*\(.*/, "", name)
		sub(/.*[ \t*]/, "", name)
		own[$1, name] = 1
	}
	while (match(text, /[A-Za-z_][A-Za-z_0-9]*[ \t]*\(/)) {
		name = substr(text, RSTART, RLENGTH - 1)
		sub(/[ \t]+$/, "", name)
		before = substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + RLENGTH)
		if (before ~ /(->|\.)$/ || name !~ "^(" calls ")$" ||
		    ($1, name) in own)
			continue
		if ($1 == "src/core/mem.c" && name == "fputs")
			continue
		print where "core must not call " name "()"
		failed = 1
	}
	if ($0 ~ /[^A-Za-z_0-9](stdin|stdout|FILE)[^A-Za-z_0-9]/) {
		print where "core must not touch streams"
		failed = 1
	}
}

END { exit failed }'
