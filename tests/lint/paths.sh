#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Nothing names a place on somebody's machine, or a package registry: those
# are the business of whoever builds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "${srcdir:-$here/../..}"

places='(^|[^A-Za-z0-9_.$}/-])/(work|root|home)/'
hosts='repo1?\.maven|maven\.org|repo\.maven|pypi\.org|pythonhosted|npmjs'
hosts="$hosts|deb\\.debian\\.org|docker\\.io|ghcr\\.io|quay\\.io|proxy\\.golang"

# shellcheck disable=SC2046
set -- $("$here/files" | grep -v '^tests/lint/paths\.sh$')
[ $# -gt 0 ] || exit 0
if grep -nIE -e "$places" -e "$hosts" -- "$@"; then
	exit 1
fi
