#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every file that is built or installed is in the sources.am of its directory
# (or of one above), and what is listed is there: a file that is forgotten
# there is missing from the tarball.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

# shellcheck disable=SC2046
listed=$(sed -n 's/#.*//; s/\\$//; s/.*=//; p' Makefile.am \
	$("$here/files" '*/sources.am') | tr -s '[:space:]' '\n' | LC_ALL=C sort -u)
status=0

is_listed() {
	echo "$listed" | grep -qxF -e "$1" -e "${1%.c}" -e "${1%.in}"
}

for file in $("$here/files" 'src/*.[ch]' 'src/*.lua' 'tests/unit/*.[ch]' \
	'tests/sim/*.[ch]' 'tests/fuzz/*.[ch]' 'bench/*.[ch]' 'docs/*' 'etc/*'); do
	case $file in
	*/sources.am) continue ;;
	esac
	if ! is_listed "$file"; then
		echo "$file: not in a sources.am"
		status=1
	fi
done

for file in $(echo "$listed" | grep -E '\.(c|h|lua|md|[1-8])$'); do
	case $file in
	*'$'* | src/lua/lua_sources.c) continue ;;
	esac
	if ! [ -f "$file" ]; then
		echo "$file: in a sources.am, but not there"
		status=1
	fi
done
exit $status
