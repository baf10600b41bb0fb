#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# mandoc finds no error in the man pages.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

command -v mandoc >/dev/null || { echo "mandoc is not here"; exit 77; }

# shellcheck disable=SC2046
set -- $("$here/files" 'docs/*.[1-8]')
[ $# -gt 0 ] || exit 0
mandoc -T lint -W error "$@"
