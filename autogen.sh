#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Makes ./configure in a checkout.  A release tarball has it already.
set -eu

cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --force --install --warnings=all
