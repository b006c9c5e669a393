// Clang's thread-safety annotations; other compilers ignore them. -Wthread-safety checks them, and
// -Wthread-safety-beta the order of locks (preset `clang`).
//
// Source  https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#ifdef __clang__
#define NEARFAR_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define NEARFAR_THREAD_ATTRIBUTE(x)
#endif

#define NEARFAR_CAPABILITY(name) NEARFAR_THREAD_ATTRIBUTE(capability(name))
#define NEARFAR_SCOPED_CAPABILITY NEARFAR_THREAD_ATTRIBUTE(scoped_lockable)
#define NEARFAR_GUARDED_BY(lock) NEARFAR_THREAD_ATTRIBUTE(guarded_by(lock))
#define NEARFAR_ACQUIRE(...) NEARFAR_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define NEARFAR_TRY_ACQUIRE(...) NEARFAR_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define NEARFAR_RELEASE(...) NEARFAR_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define NEARFAR_REQUIRES(...) NEARFAR_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define NEARFAR_EXCLUDES(...) NEARFAR_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define NEARFAR_ACQUIRED_AFTER(...) NEARFAR_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
#define NEARFAR_ACQUIRED_BEFORE(...) NEARFAR_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define NEARFAR_RETURNS_LOCK(lock) NEARFAR_THREAD_ATTRIBUTE(lock_returned(lock))
#define NEARFAR_NO_THREAD_SAFETY_ANALYSIS NEARFAR_THREAD_ATTRIBUTE(no_thread_safety_analysis)
