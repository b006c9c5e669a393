// Loops that are compiled for three instruction sets; one is chosen when the library is loaded.
#pragma once

// Builds with sanitizers or clang, which measure nothing, have one version only. Sanitizers do not
// support the resolvers of such functions, and clang 14 cannot clone functions in a namespace.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define NEARFAR_DISPATCH
#else
#define NEARFAR_DISPATCHES
#define NEARFAR_DISPATCH __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
