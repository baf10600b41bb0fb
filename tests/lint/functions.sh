#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# No C function has more than 80 lines.  Bodies begin with `{` and end with
# `}` in the first column.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

# shellcheck disable=SC2046
set -- $("$here/files" '*.c')
[ $# -gt 0 ] || exit 0

awk '
FNR == 1 { start = 0; head = "" }
/^\{/ { start = FNR }
/^\}/ {
	if (start && FNR - start + 1 > 80) {
		print FILENAME ":" start ": " FNR - start + 1 " lines: " head
		failed = 1
	}
	start = 0
}
/^[A-Za-z_]/ { head = $0 }
END { exit failed }' "$@"
