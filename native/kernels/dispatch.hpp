// Loops compiled three times and chosen by the processor when the library is loaded.
#pragma once

// Sanitizers start before the resolvers of such functions may run, and clang 14 cannot clone in a
// namespace: those builds, which measure nothing, keep to one version.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define NEARFAR_DISPATCH
#else
#define NEARFAR_DISPATCHES
#define NEARFAR_DISPATCH __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
