#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every option of the table in src/conf_table.c stands in docs/lapsed.conf.5
# and in etc/lapsed.conf, under its section and, where the manual tells it
# apart, with its default and whether a reload takes it; neither has others.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

table=src/conf_table.c
manual=docs/lapsed.conf.5
sample=etc/lapsed.conf
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0

# differ FILE: what one says and the other does not, both sorted.
differ() {
	comm -23 "$scratch/table" "$scratch/found" | sed "s|^|$1: lacks |"
	comm -13 "$scratch/table" "$scratch/found" | sed "s|^|$1: has, but $table has not: |"
	cmp -s "$scratch/table" "$scratch/found" || status=1
}

# section name
awk '
/^\t\{ SECTION_[A-Z]+, "/ {
	section = tolower($2)
	gsub(/section_|,/, "", section)
	name = $3
	gsub(/[",]/, "", name)
	print section, name
}' $table | sort >"$scratch/table"
if ! [ -s "$scratch/table" ]; then
	echo "$table: no options found"
	exit 1
fi

# .It Cm name No = ...; librdkafka's properties are .It Ar.
awk '
/^\.Sh SECTION / { section = $3; next }
/^\.Sh / { section = "" }
section != "" && /^\.It Cm / { print section, $3 }' $manual | sort >"$scratch/found"
differ $manual

# `name = value`, perhaps commented out.  Of [kafka] only ours are looked for.
awk -v table="$scratch/table" '
BEGIN {
	while ((getline line <table) > 0)
		ours[line]
}
/^;?\[/ { section = $1; gsub(/[];[]/, "", section); next }
/^;?[a-z_.]+ = / {
	name = $1
	sub(/^;/, "", name)
	if (section != "kafka" || (section " " name) in ours)
		print section, name
}' $sample | sort -u >"$scratch/found"
differ $sample

# Defaults and reloads, option by option.
awk '
/^\t\{ SECTION_(LAPSED|REDIS), "/ {
	name = $3
	gsub(/[",]/, "", name)
	value = $NF
	gsub(/[",]/, "", value)
	getline
	print name, value, /OPTION_RELOAD/ ? "reload" : "restart"
}' $table | sort >"$scratch/table"
awk '
/^\.Sh SECTION (lapsed|redis)/ { on = 1; next }
/^\.Sh / { on = 0 }
on && /^\.It Cm / {
	if (name != "")
		print name, value, reload
	name = $3
	value = "NULL"
	reload = /Em \(reload\)/ ? "reload" : "restart"
}
on && /^The default is [^t]/ { value = $4; sub(/\.$/, "", value) }
on && /^The default is$/ { getline; value = $2 }
on && /^The default,$/ { getline; value = $2 }
END { print name, value, reload }' $manual | sort >"$scratch/found"
differ $manual
exit $status
