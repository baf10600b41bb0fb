# SPDX-License-Identifier: BSD-2-Clause

# LAPSED_HARDENING
# ----------------
# Flags that turn a memory error into a clean end, each used only where the
# compiler, the linker and the user's own flags agree with it.  With
# sanitizers those that hide errors from them, or break them, are left out.
AC_DEFUN([LAPSED_HARDENING], [
  lapsed_hardening=no
  AS_IF([test "$enable_hardening" != no], [
    lapsed_hardening=yes
    m4_foreach_w([flag], [
      -fstack-protector-strong -fstack-clash-protection -fcf-protection
    ], [LAPSED_TRY_FLAG([LAPSED_CFLAGS], flag, [link])])
    LAPSED_TRY_FLAG([LAPSED_CFLAGS], [-fPIE], [compile],
      [LAPSED_TRY_FLAG([LAPSED_LDFLAGS], [-pie], [link])])
    LAPSED_TRY_FLAG([LAPSED_LDFLAGS], [-Wl,-z,relro], [link])
    LAPSED_TRY_FLAG([LAPSED_LDFLAGS], [-Wl,-z,now], [link])
    LAPSED_TRY_FLAG([LAPSED_LDFLAGS], [-Wl,-z,noexecstack], [link])
    AS_IF([test "$enable_sanitizers" = yes],
      [lapsed_hardening="yes, as far as sanitizers allow"],
      [LAPSED_TRY_FLAG([LAPSED_CFLAGS], [-ftrivial-auto-var-init=zero], [compile])
       LAPSED_TRY_FLAG([LAPSED_CPPFLAGS], [-D_FORTIFY_SOURCE=3], [compile], [],
         [LAPSED_TRY_FLAG([LAPSED_CPPFLAGS], [-D_FORTIFY_SOURCE=2], [compile])])])
  ])
])
