#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# No shell script gives shellcheck anything to say.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

command -v shellcheck >/dev/null || { echo "shellcheck is not here"; exit 77; }

scripts=
for file in $("$here/files"); do
	if head -n 1 "$file" | grep -qE '^#!.*[ /](sh|bash|dash)( |$)'; then
		scripts="$scripts $file"
	fi
done
# shellcheck disable=SC2086
shellcheck --color=never --format=gcc $scripts
