/* Global variables in a tier.
 *
 *   #include <nearfar/hmalloc_var.h>
 *   HM_TIER_VAR(far) static double table[1 << 20];
 *   HM_TIER_VAR(far) int filled = 7;
 *
 * Purpose        A variable marked so lies in a section of its own, which begins and ends at page
 *                boundaries; before main() (or at the end of dlopen()) the pages of each program
 *                and shared library are brought to the tier, contents kept. Other tiers than far
 *                are declared once in a file: HM_TIER_VARS(slow), then HM_TIER_VAR(slow).
 *
 * Errors         Where there is no such tier, a sentence on stderr says that they stay near.
 *
 * Thread safety  The pages are replaced while constructors run: constructors of earlier priority
 *                than 103, and threads that they start, must not use the variables.
 *
 * Needs          An ELF linker with __start_ and __stop_ symbols (GNU ld, gold, lld); C or C++ with
 *                GNU attributes. Link with -lhmalloc.
 */
#ifndef NEARFAR_HMALLOC_VAR_H
#define NEARFAR_HMALLOC_VAR_H

#include <nearfar/hmalloc.h>

#define HM_TIER_VAR(tier) __attribute__((section("hm_var_" #tier)))

/* Two sections that the linker lays side by side: the variables, from the beginning of a page, and
 * a page behind them, so that no other data shares their last one. */
#define HM_TIER_VARS(tier)                                                                         \
  __asm__(".pushsection hm_var_" #tier ",\"aw\",@progbits\n.balign 4096\n.popsection\n"            \
          ".pushsection hm_end_" #tier ",\"aw\",@progbits\n.balign 4096\n.zero 1\n.balign 4096\n"  \
          ".popsection\n");                                                                        \
  extern char __start_hm_var_##tier[] __attribute__((visibility("hidden")));                       \
  extern char __stop_hm_var_##tier[] __attribute__((visibility("hidden")));                        \
  extern char __start_hm_end_##tier[] __attribute__((visibility("hidden")));                       \
  static void __attribute__((constructor(103), used)) hm_place_vars_##tier(void) {                 \
    hm_place_variables(#tier, __start_hm_var_##tier, __stop_hm_var_##tier, __start_hm_end_##tier); \
  }

HM_TIER_VARS(far)

#endif
