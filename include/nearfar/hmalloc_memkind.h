/* The part of memkind's interface that programs use most, on libhmalloc: include this in place of
 * <memkind.h> and link with -lhmalloc.
 *
 * Kinds           MEMKIND_DEFAULT and MEMKIND_REGULAR are near, MEMKIND_DAX_KMEM is far;
 *                 memkind_create_pmem() makes a tier in a file, at most six of them.
 * Not there       the other kinds, policies, statistics, hbwmalloc.
 * Thread safety   as hmalloc.h.
 */
#ifndef NEARFAR_HMALLOC_MEMKIND_H
#define NEARFAR_HMALLOC_MEMKIND_H

#include <errno.h>
#include <stdio.h>

#include <nearfar/hmalloc.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  MEMKIND_SUCCESS = 0,
  MEMKIND_ERROR_UNAVAILABLE = -1,
  MEMKIND_ERROR_INVALID = -3,
  MEMKIND_ERROR_TOOMANY = -7
};

/** A kind is a tier; NULL is none. */
typedef const struct hm_memkind_kind* memkind_t;

#define HM_MEMKIND(tier) ((memkind_t)(intptr_t)((tier) + 1))
#define MEMKIND_DEFAULT HM_MEMKIND(HM_NEAR)
#define MEMKIND_REGULAR HM_MEMKIND(HM_NEAR)
#define MEMKIND_DAX_KMEM HM_MEMKIND(HM_FAR)

static inline hm_tier hm_memkind_tier(memkind_t kind) { return (hm_tier)((intptr_t)kind - 1); }

static inline int memkind_check_available(memkind_t kind) {
  return hm_tier_name(hm_memkind_tier(kind)) ? MEMKIND_SUCCESS : MEMKIND_ERROR_UNAVAILABLE;
}
static inline void* memkind_malloc(memkind_t kind, size_t size) {
  return size == 0 ? NULL : hm_malloc(hm_memkind_tier(kind), size);
}
static inline void* memkind_calloc(memkind_t kind, size_t count, size_t size) {
  return count == 0 || size == 0 ? NULL : hm_calloc(hm_memkind_tier(kind), count, size);
}
/** A NULL kind keeps the block's own. */
static inline void* memkind_realloc(memkind_t kind, void* ptr, size_t size) {
  return hm_realloc(kind ? hm_memkind_tier(kind) : HM_KEEP, ptr, size);
}
static inline int memkind_posix_memalign(memkind_t kind, void** result, size_t alignment,
                                         size_t size) {
  const int before = errno;
  int code = EINVAL;
  if (alignment % sizeof(void*) == 0) {
    void* block = hm_memalign(hm_memkind_tier(kind), alignment, size);
    code = block ? 0 : errno;
    if (block) *result = block;
  }
  errno = before;
  return code;
}
static inline void memkind_free(memkind_t kind, void* ptr) {
  (void)kind; /* the address tells it */
  hm_free(ptr);
}
static inline size_t memkind_malloc_usable_size(memkind_t kind, void* ptr) {
  (void)kind;
  return hm_usable_size(ptr);
}
/** The kind of an address, NULL if it is not of this library. */
static inline memkind_t memkind_detect_kind(void* ptr) {
  const hm_tier tier = hm_tier_of(ptr);
  return tier == HM_FOREIGN ? (memkind_t)0 : HM_MEMKIND(tier);
}
/** A kind in a file in a directory, at most `bytes` (0: what the file system has). */
static inline int memkind_create_pmem(const char* directory, size_t bytes, memkind_t* kind) {
  char specification[600];
  char name[32];
  hm_tier tier = -1;
  int number = 0;
  const int length =
      bytes == 0
          ? snprintf(specification, sizeof specification, "file:%s", directory)
          : snprintf(specification, sizeof specification, "file:%s,capacity=%zu", directory, bytes);
  if (length < 0 || (size_t)length >= sizeof specification) return MEMKIND_ERROR_INVALID;
  for (; number < HM_TIER_COUNT && tier < 0; ++number) {
    snprintf(name, sizeof name, "pmem-%d", number);
    tier = hm_tier_create(name, specification);
    if (tier < 0 && errno != EEXIST) return MEMKIND_ERROR_INVALID;
  }
  if (tier < 0) return MEMKIND_ERROR_TOOMANY;
  *kind = HM_MEMKIND(tier);
  return MEMKIND_SUCCESS;
}

#ifdef __cplusplus
}
#endif
#endif
