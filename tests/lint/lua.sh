#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# luacheck finds nothing in the scripts.  They are checked as Redis sees them:
# behind the parts that their `-- uses:` line names, and called with KEYS and
# ARGV.  A part's function is unused only if no script at all uses it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}/src/lua"

command -v luacheck >/dev/null || { echo "luacheck is not here"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

parts=$(sed -n 's/^-- uses://p' ./*.lua | tr -s ' ' '\n' | sort -u)

is_part() {
	echo "$parts" | grep -qx "$1"
}

# compose NAME: the whole text to $work/text, where each line came from to
# $work/origin.
compose() {
	echo 'local NSDB = 0' >"$work/text"
	echo '- 0' >"$work/origin"
	for piece in $(sed -n 's/^-- uses://p' "$1.lua") "$1"; do
		cat "$piece.lua" >>"$work/text"
		awk -v piece="$piece" '{ print piece, NR }' "$piece.lua" >>"$work/origin"
	done
	echo "return lapse_$1(KEYS, ARGV)" >>"$work/text"
	echo '- 0' >>"$work/origin"
}

check() {
	luacheck --no-config --no-color --codes --formatter plain \
		--std lua51 --read-globals redis server cjson cmsgpack struct bit \
		KEYS ARGV --no-max-line-length -- "$work/text" || :
}

scripts=0
for file in *.lua; do
	[ -f "$file" ] || continue
	name=${file%.lua}
	is_part "$name" && continue
	scripts=$((scripts + 1))
	compose "$name"
	check | awk -F: -v script="$name" -v origin="$work/origin" '
		BEGIN {
			while ((getline line <origin) > 0) {
				split(line, at, " ")
				n++
				piece[n] = at[1]
				row[n] = at[2]
			}
		}
		{
			text = $0
			sub(/^[^:]*:[^:]*:[^:]*: /, "", text)
			kind = piece[$2] != script && text ~ /W211|W221|W231/ ? "unused" : "bad"
			print kind, "src/lua/" piece[$2] ".lua:" row[$2] ": " text
		}'
done >"$work/found"

status=0
grep '^bad' "$work/found" | sed 's/^bad //' | sort -u >"$work/bad" || :
# What is unused in a part must be so wherever that part is used.
grep '^unused' "$work/found" | sort | uniq -c | while read -r times _ at text; do
	piece=${at#src/lua/}
	piece=${piece%%.lua*}
	users=$(grep -lE "^-- uses:.* $piece( |\$)" ./*.lua | wc -l)
	[ "$times" -lt "$users" ] || echo "$at $text"
done >>"$work/bad"
[ ! -s "$work/bad" ] || status=1
cat "$work/bad"
exit $status
