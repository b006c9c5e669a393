/* The most used part of memkind's interface, implemented with libhmalloc. Unchanged programs find it
 * as <memkind.h> in the folder nearfar/memkind; others include this header. Link with -lhmalloc.
 *
 * Kinds           MEMKIND_DEFAULT and MEMKIND_REGULAR are near, MEMKIND_DAX_KMEM is far;
 *                 memkind_create_pmem() creates a heap in a tier in files of the directory.
 * Limits          Kinds in at most six directories, and at most 255 kinds at a time
 *                 (MEMKIND_ERROR_TOOMANY).
 * Missing         the other kinds, policies, statistics, hbwmalloc. The memory usage policy of a
 *                 configuration has no effect: NEARFAR_HMALLOC_DECAY_MS applies to all tiers.
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

/* The values are memkind's. */
enum {
  MEMKIND_SUCCESS = 0,
  MEMKIND_ERROR_UNAVAILABLE = -1,
  MEMKIND_ERROR_MMAP = -3,
  MEMKIND_ERROR_MALLOC = -6,
  MEMKIND_ERROR_INVALID = -13,
  MEMKIND_ERROR_TOOMANY = -15,
  MEMKIND_ERROR_OPERATION_FAILED = -21,
  MEMKIND_ERROR_RUNTIME = -255
};
enum { MEMKIND_ERROR_MESSAGE_SIZE = 128 };
enum { MEMKIND_PMEM_MIN_SIZE = 16 * 1024 * 1024 };

typedef enum memkind_mem_usage_policy {
  MEMKIND_MEM_USAGE_POLICY_DEFAULT = 0,
  MEMKIND_MEM_USAGE_POLICY_CONSERVATIVE = 1,
  MEMKIND_MEM_USAGE_POLICY_MAX_VALUE
} memkind_mem_usage_policy;

/** A kind is a tier or a heap; NULL means none. */
typedef struct memkind* memkind_t;

struct memkind_config {
  const char* pmem_dir;
  size_t pmem_size;
  memkind_mem_usage_policy policy;
};

/** Creates a heap in the tier in files of a directory. Returns an error of memkind. */
HM_API int hm_memkind_create_pmem(const char* directory, size_t bytes, hm_heap** heap) HM_NOTHROW;

/** Returns 0 if a file in the directory can be mapped with MAP_SYNC, else an errno. */
HM_API int hm_memkind_check_dax(const char* directory) HM_NOTHROW;

#define HM_MEMKIND(tier) ((memkind_t)(intptr_t)((tier) + 1))
#define MEMKIND_DEFAULT HM_MEMKIND(HM_NEAR)
#define MEMKIND_REGULAR HM_MEMKIND(HM_NEAR)
#define MEMKIND_DAX_KMEM HM_MEMKIND(HM_FAR)

/** The heap of a kind, NULL if it is a tier. */
static inline hm_heap* hm_memkind_heap(memkind_t kind) {
  return (uintptr_t)kind > HM_TIER_COUNT ? (hm_heap*)kind : (hm_heap*)0;
}
static inline hm_tier hm_memkind_tier(memkind_t kind) { return (hm_tier)((intptr_t)kind - 1); }

/** The size that memkind's kinds in files give to a block above 1 MiB: four sizes a doubling. */
static inline size_t hm_memkind_size(size_t size) {
  const size_t step = size > ((size_t)1 << 20) && size <= SIZE_MAX / 2
                          ? (size_t)1 << (61 - __builtin_clzl(size - 1))
                          : 1;
  return (size + step - 1) / step * step;
}

static inline int memkind_check_available(memkind_t kind) {
  return hm_memkind_heap(kind) || hm_tier_name(hm_memkind_tier(kind)) ? MEMKIND_SUCCESS
                                                                      : MEMKIND_ERROR_UNAVAILABLE;
}
static inline void* memkind_malloc(memkind_t kind, size_t size) {
  hm_heap* heap = hm_memkind_heap(kind);
  if (size == 0) return NULL;
  return heap ? hm_heap_malloc(heap, hm_memkind_size(size)) : hm_malloc(hm_memkind_tier(kind), size);
}
static inline void* memkind_calloc(memkind_t kind, size_t count, size_t size) {
  hm_heap* heap = hm_memkind_heap(kind);
  if (count == 0 || size == 0) return NULL;
  return heap ? hm_heap_calloc(heap, count, size) : hm_calloc(hm_memkind_tier(kind), count, size);
}
/** With a NULL kind, the block keeps its kind. */
static inline void* memkind_realloc(memkind_t kind, void* ptr, size_t size) {
  hm_heap* heap = hm_memkind_heap(kind);
  if (heap) return hm_heap_realloc(heap, ptr, hm_memkind_size(size));
  return hm_realloc(kind ? hm_memkind_tier(kind) : HM_KEEP, ptr, size);
}
static inline int memkind_posix_memalign(memkind_t kind, void** result, size_t alignment,
                                         size_t size) {
  const int before = errno;
  int code = EINVAL;
  if (alignment % sizeof(void*) == 0) {
    hm_heap* heap = hm_memkind_heap(kind);
    void* block = heap ? hm_heap_memalign(heap, alignment, size)
                       : hm_memalign(hm_memkind_tier(kind), alignment, size);
    code = block ? 0 : errno;
    if (block) *result = block;
  }
  errno = before;
  return code;
}
static inline void memkind_free(memkind_t kind, void* ptr) {
  (void)kind; /* follows from the address */
  hm_free(ptr);
}
static inline size_t memkind_malloc_usable_size(memkind_t kind, void* ptr) {
  (void)kind;
  return hm_usable_size(ptr);
}
/** Returns the kind of an address, NULL if it is not an address of this library. */
static inline memkind_t memkind_detect_kind(void* ptr) {
  hm_heap* heap = hm_heap_of(ptr);
  const hm_tier tier = hm_tier_of(ptr);
  if (heap) return (memkind_t)heap;
  return tier == HM_FOREIGN ? (memkind_t)0 : HM_MEMKIND(tier);
}
static inline void memkind_error_message(int err, char* msg, size_t size) {
  const char* text = "unknown error";
  switch (err) {
  case MEMKIND_SUCCESS: text = "success"; break;
  case MEMKIND_ERROR_UNAVAILABLE: text = "the kind is not available"; break;
  case MEMKIND_ERROR_MMAP: text = "the file cannot be mapped"; break;
  case MEMKIND_ERROR_MALLOC: text = "out of memory"; break;
  case MEMKIND_ERROR_INVALID: text = "invalid argument"; break;
  case MEMKIND_ERROR_TOOMANY: text = "too many kinds, or directories of kinds"; break;
  case MEMKIND_ERROR_OPERATION_FAILED: text = "the operation failed"; break;
  case MEMKIND_ERROR_RUNTIME: text = "unexpected error"; break;
  default: break;
  }
  snprintf(msg, size, "%s", text);
}

static inline int memkind_check_dax_path(const char* pmem_dir) {
  return hm_memkind_check_dax(pmem_dir) == 0 ? MEMKIND_SUCCESS : MEMKIND_ERROR_MMAP;
}

/** Creates a kind in a file in a directory, at most `bytes` (0: the file system's free space). */
static inline int memkind_create_pmem(const char* directory, size_t bytes, memkind_t* kind) {
  hm_heap* heap = NULL;
  const int err = bytes != 0 && bytes < MEMKIND_PMEM_MIN_SIZE
                      ? MEMKIND_ERROR_INVALID
                      : hm_memkind_create_pmem(directory, bytes, &heap);
  if (err == MEMKIND_SUCCESS) *kind = (memkind_t)heap;
  return err;
}

/** Frees all blocks of a kind. Only kinds of memkind_create_pmem() can be destroyed. */
static inline int memkind_destroy_kind(memkind_t kind) {
  hm_heap* heap = hm_memkind_heap(kind);
  if (heap == NULL) return MEMKIND_ERROR_INVALID;
  const hm_tier tier = hm_heap_tier(heap);
  hm_heap_destroy(heap);
  hm_trim(tier);
  return MEMKIND_SUCCESS;
}

/** Returns NULL if memory is exhausted. */
static inline struct memkind_config* memkind_config_new(void) {
  return (struct memkind_config*)hm_calloc(HM_NEAR, 1, sizeof(struct memkind_config));
}
static inline void memkind_config_delete(struct memkind_config* cfg) { hm_free(cfg); }
static inline void memkind_config_set_path(struct memkind_config* cfg, const char* pmem_dir) {
  cfg->pmem_dir = pmem_dir;
}
static inline void memkind_config_set_size(struct memkind_config* cfg, size_t pmem_size) {
  cfg->pmem_size = pmem_size;
}
static inline void memkind_config_set_memory_usage_policy(struct memkind_config* cfg,
                                                          memkind_mem_usage_policy policy) {
  cfg->policy = policy;
}
static inline int memkind_create_pmem_with_config(struct memkind_config* cfg, memkind_t* kind) {
  return memkind_create_pmem(cfg->pmem_dir, cfg->pmem_size, kind);
}

#ifdef __cplusplus
}
#endif
#endif
