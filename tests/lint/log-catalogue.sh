#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# The log and its description are the same: every event of src/log_events.h is
# logged somewhere and described in docs/log.md with its level, which has no
# other events; so are the counters of src/core/counters.h, and every field
# that is written is mentioned.
# shellcheck disable=SC2016 # backquotes are quotes of Markdown
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

bad() {
	echo "$*"
	status=1
}

# differ WHAT FILE-IN-CODE FILE-IN-DOCUMENT
differ() {
	sort "$2" >"$scratch/a"
	sort "$3" >"$scratch/b"
	comm -23 "$scratch/a" "$scratch/b" | sed "s|^|docs/log.md: lacks the $1 |"
	comm -13 "$scratch/a" "$scratch/b" | sed "s|^|docs/log.md: describes what is no $1 of the code: |"
	cmp -s "$scratch/a" "$scratch/b" || status=1
}

# The rows of a table begin with `name`; those of events go on with a level.
sed -nE 's/^\tX\(([A-Z_]+), "([a-z._]+)", ([A-Z]+), .*/\1 \2 \3/p' src/log_events.h >"$scratch/events"
sed -nE 's/^\| `([a-z_]+\.[a-z_]+|stats)` \| (error|warn|info|debug) \|.*/\1 \2/p' docs/log.md \
	>"$scratch/described"
awk '{ print $2, tolower($3) }' "$scratch/events" >"$scratch/listed"
[ -s "$scratch/listed" ] || bad "src/log_events.h: no events found"
differ event "$scratch/listed" "$scratch/described"

# shellcheck disable=SC2046
set -- $("$here/files" 'src/*.c')
while read -r name text level; do
	expected=$(echo "$text" | tr 'a-z.' 'A-Z_')
	[ "$name" = "$expected" ] || bad "src/log_events.h: $text ($level) is not LOG_$name"
	grep -qw "LOG_$name" -- "$@" || bad "src/log_events.h: nothing logs $text"
done <"$scratch/events"

sed -nE 's/^\tX\(([a-z_]+), ".*/\1/p' src/core/counters.h >"$scratch/listed"
awk '/^\| counter \|/ { on = 1 } on && !/^\|/ { exit } on' docs/log.md |
	sed -nE 's/^\| `([a-z_]+)` \|.*/\1/p' >"$scratch/described"
[ -s "$scratch/listed" ] || bad "src/core/counters.h: no counters found"
differ counter "$scratch/listed" "$scratch/described"

# Fields and gauges.  Those of metrics.c are made of parts.
{
	sed -nE 's/.*log_(int|uint|double|bool|str|bytes|object)\(&l, "([a-z0-9_]+)".*/\2/p' "$@"
	sed -nE 's/^\t\t\{ "([a-z0-9_]+)", .* \},$/\1/p' src/daemon_*.c
} | sort -u >"$scratch/fields"
while read -r field; do
	grep -qF "\`$field\`" docs/log.md || bad "docs/log.md: lacks the field $field"
done <"$scratch/fields"
exit $status
