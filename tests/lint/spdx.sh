#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Every source file names its licence in its first lines.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

status=0
for file in $("$here/files"); do
	case $file in
	*.[ch] | *.lua | *.sh | *.py | *.awk | *.m4 | *.am | *.ac) ;;
	*) head -c 2 "$file" | grep -q '^#!' || continue ;;
	esac
	[ -s "$file" ] || continue
	if ! head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-2-Clause'; then
		echo "$file:1: no SPDX line"
		status=1
	fi
done
exit $status
