# SPDX-License-Identifier: BSD-2-Clause

# LAPSED_TRY_FLAG(VARIABLE, FLAG, compile|link, [IF-YES], [IF-NO])
# ----------------------------------------------------------------
# Appends FLAG to VARIABLE if the compiler takes it without a complaint, with
# the user's flags beside it.  A header of the C library is included because
# some flags are refused only there (_FORTIFY_SOURCE).
AC_DEFUN([LAPSED_TRY_FLAG], [
  AC_MSG_CHECKING([whether $CC takes $2])
  lapsed_save_CFLAGS=$CFLAGS
  CFLAGS="-Werror $2 $CFLAGS"
  m4_if([$3], [link], [AC_LINK_IFELSE], [AC_COMPILE_IFELSE])(
    [AC_LANG_PROGRAM([[#include <stdio.h>]], [[return puts("") < 0;]])],
    [CFLAGS=$lapsed_save_CFLAGS
     AC_MSG_RESULT([yes])
     $1="$$1 $2"
     $4],
    [CFLAGS=$lapsed_save_CFLAGS
     AC_MSG_RESULT([no])
     m4_default([$5], [:])])
])

# LAPSED_WARNINGS
# ---------------
# The language we write in, and what we want to be told about it.
AC_DEFUN([LAPSED_WARNINGS], [
  LAPSED_CPPFLAGS="$LAPSED_CPPFLAGS -D_GNU_SOURCE"
  LAPSED_CFLAGS="$LAPSED_CFLAGS -std=c11"
  m4_foreach_w([flag], [
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wold-style-definition -Wformat=2 -Wundef -Wpointer-arith -Wwrite-strings
    -Wvla -Wlogical-op -Wduplicated-cond
    -Wjump-misses-init -Wno-unused-parameter -Wno-missing-field-initializers
    -Wno-format-truncation
  ], [LAPSED_TRY_FLAG([LAPSED_CFLAGS], flag, [compile])])
  AS_IF([test "$enable_werror" = yes],
    [LAPSED_TRY_FLAG([LAPSED_CFLAGS], [-Werror], [compile])])
  LAPSED_TRY_FLAG([LAPSED_LDFLAGS], [-Wl,--as-needed], [link])
])

# LAPSED_SANITIZERS
# -----------------
# Address and undefined behaviour; both end the program at the first finding.
AC_DEFUN([LAPSED_SANITIZERS], [
  AS_IF([test "$enable_sanitizers" = yes], [
    LAPSED_TRY_FLAG([LAPSED_CFLAGS], [-fsanitize=address,undefined], [link],
      [LAPSED_LDFLAGS="$LAPSED_LDFLAGS -fsanitize=address,undefined"],
      [AC_MSG_ERROR([the compiler has no sanitizers to enable])])
    LAPSED_TRY_FLAG([LAPSED_CFLAGS], [-fno-sanitize-recover=all], [compile])
    LAPSED_TRY_FLAG([LAPSED_CFLAGS], [-fno-omit-frame-pointer], [compile])
  ])
])

# LAPSED_LIBEV
# ------------
# libev comes without a .pc file.
AC_DEFUN([LAPSED_LIBEV], [
  AC_CHECK_HEADER([ev.h], [], [AC_MSG_ERROR([libev's ev.h is missing])])
  AC_CHECK_LIB([ev], [ev_run], [LIBEV_LIBS=-lev],
    [AC_MSG_ERROR([libev 4 or later is missing])])
  AC_SUBST([LIBEV_LIBS])
])
