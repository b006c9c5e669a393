/* Global variables in a tier.
 *
 *   #include <nearfar/hmalloc_var.h>
 *   HM_TIER_VAR(far) static double table[1 << 20];
 *   HM_TIER_VAR(far) int filled = 7;
 *
 * Purpose        Such a variable is in a section of its own, which starts and ends at page
 *                boundaries. Before main() (or at the end of dlopen()) the pages of each program
 *                and shared library are moved to the tier with their contents. Other tiers than
 *                far are declared once per file: HM_TIER_VARS(slow), then HM_TIER_VAR(slow).
 *
 * Errors         If there is no such tier, a message on stderr reports that they stay near.
 *
 * Thread safety  The pages are replaced while constructors run: constructors of earlier priority
 *                than 103, and threads that they start, must not use the variables.
 *
 * Requires       An ELF linker with __start_ and __stop_ symbols (GNU ld, gold, lld); C or C++ with
 *                GNU attributes. Link with -lhmalloc.
 */
#ifndef NEARFAR_HMALLOC_VAR_H
#define NEARFAR_HMALLOC_VAR_H

#include <nearfar/hmalloc.h>

#define HM_TIER_VAR(tier) __attribute__((section("hm_var_" #tier)))

/* Two sections that the linker places next to each other: the variables, aligned to a page, and a
 * page behind them, so that no other data shares their last page. */
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
