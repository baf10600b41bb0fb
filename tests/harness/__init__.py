# SPDX-License-Identifier: BSD-2-Clause
"""What the tests against real servers share."""
