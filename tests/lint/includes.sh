#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Dependencies point downwards:
#
#	main -> daemon -> { io, conf, log, ... } -> core      cli -> { io, conf, core }
#
# core knows core and the parts of the C library that touch nothing outside the
# process.  io knows io and core.  Of the files between, only daemon* knows
# both; the others may use core beside io only for its plain tools.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

# shellcheck disable=SC2046 # no file of ours has a blank in its name
set -- $("$here/files" 'src/*.[ch]')
[ $# -gt 0 ] || exit 0

awk -v keep=1 -f "$here/strip.awk" "$@" | awk -F: '
function bad(text) {
	print $1 ":" $2 ": " text
	failed = 1
}

BEGIN {
	n = split("assert ctype float inttypes limits math stdalign stdarg" \
		" stdbool stddef stdint stdio stdlib string", names, " ")
	for (i = 1; i <= n; i++)
		pure["<" names[i] ".h>"] = 1
	n = split("buf bytes err glob hist json mem suggest units when", names, " ")
	for (i = 1; i <= n; i++)
		plain["core/" names[i] ".h"] = 1
}

$3 !~ /^[ \t]*#[ \t]*include/ { next }

{
	name = $3
	sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
	ours = name ~ /^"/
	file = name
	gsub(/"/, "", file)
	if ($1 ~ /^src\/core\//) {
		if (ours ? file !~ /^core\// : !(name in pure))
			bad("core must not include " name)
	} else if (!ours || file == "config.h") {
		next
	} else if ($1 ~ /^src\/io\//) {
		if (file !~ /^(io|core|lua)\//)
			bad("io must not include " name)
	} else if ($1 ~ /^src\/lua\//) {
		if (file !~ /^lua\//)
			bad("lua must not include " name)
	} else if ($1 ~ /^src\/cli\//) {
		if (file !~ /^((cli|core|io|lua)\/|conf|log)/)
			bad("cli must not include " name)
	} else if ($1 !~ /^src\/daemon/) {
		if (file ~ /^cli\//)
			bad("only cli includes " name)
		if (file ~ /^io\//)
			io[$1] = 1
		if (file ~ /^core\// && !(file in plain))
			core[$1] = $1 ":" $2 ": includes io and " name \
				"; only daemon may know both"
		if (file ~ /^daemon/ && $1 !~ /^src\/main\./)
			bad("only main includes " name)
	}
}

END {
	for (f in io)
		if (f in core) {
			print core[f]
			failed = 1
		}
	exit failed
}'
