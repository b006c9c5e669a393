/* libhmalloc: the program says which memory.
 *
 * Purpose        One heap for each tier of memory (DRAM, a NUMA node, CXL, persistent memory, a
 *                file). The address of a block alone tells its tier, so that one hm_free() serves
 *                all.
 *
 * Thread safety  Every function may be called by any thread at any time, unless it says otherwise;
 *                a block may be freed by another thread than the one that allocated it. None may
 *                be called in a signal handler.
 *
 * Units          Sizes are bytes. A tier is a small number; HM_NEAR and HM_FAR always exist as
 *                numbers, whether or not the machine has such memory.
 *
 * Errors         Functions that return a pointer return NULL and set errno; those that return an
 *                int return -1 and set errno. hm_error() tells the sentence behind it.
 *                - EINVAL: a tier number, an alignment or a specification that makes no sense
 *                - ENODEV: the tier is not configured, or this machine has no such memory
 *                - ENOMEM: the tier is full (and does not spill), or the size overflows
 *                Freeing what was not allocated, or twice, ends the program (SIGABRT) after a
 *                sentence on stderr that names the pointer, its tier and what is wrong with it.
 *
 * Tier memory    Allocating and freeing stores nothing in the memory of a tier, so that a slow or
 *                wearing medium is touched by the program alone. hm_calloc() clears what is not
 *                known to be zero.
 * Fork           A child has the near heap as after any fork. What it gets of a tier in a shared
 *                file is told by the option fork= of the tier; it never shares one silently.
 * Environment    Read once, when the library is loaded, before main():
 *                  HMALLOC_NEAR, HMALLOC_FAR  specifications of the two tiers, see hm_tier_create()
 *                  HMALLOC_TIERS     further ones: NAME=SPEC, separated by ';'
 *                  HMALLOC_DEFAULT   libhmalloc-preload.so: the tier of malloc() (default "near")
 *                  HMALLOC_PLAN      libhmalloc-preload.so: a plan file (docs/formats/plan.md)
 *                  HMALLOC_DECAY_MS  how long freed memory is kept before the system gets it back
 *                                    (default 250; -1 keeps it)
 *                  HMALLOC_STATS     exit, signal:NUMBER, separated by ',': when statistics are
 *                                    written; rules: with what each rule of the plan placed
 *                  HMALLOC_STATS_FILE  where to, stderr by default; %p in it is the process
 *                  HMALLOC_HARDEN    guard | quarantine=SIZE | both, separated by ','
 *                A value that makes no sense is told on stderr and ends the program (exit 2); a
 * tier that this machine cannot give does so with exit 3. A program with raised privileges ignores
 * them all.
 */
#ifndef NEARFAR_HMALLOC_H
#define NEARFAR_HMALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define HM_NOTHROW noexcept
#else
#define HM_NOTHROW
#endif
#define HM_API __attribute__((visibility("default")))

#define HM_VERSION_MAJOR 1
#define HM_VERSION_MINOR 0

typedef int hm_tier;

enum {
  HM_NEAR = 0,       /**< near memory: DRAM unless HMALLOC_NEAR says otherwise */
  HM_FAR = 1,        /**< far memory: HMALLOC_FAR, else the first NUMA node without processors */
  HM_TIER_COUNT = 8, /**< tiers are numbered 0 to 7 */
  HM_FOREIGN = -1,   /**< hm_tier_of(): not of this library */
  HM_KEEP = -2       /**< hm_realloc(): the tier the block has */
};

#ifndef HM_NO_SHORT_NAMES
enum { DRAM = HM_NEAR, PCM = HM_FAR }; /**< the names of the call's first appearance */
#endif

/* ---- allocation ------------------------------------------------------------------------------ */

/** Allocates `size` bytes in a tier, aligned to 16. A size of 0 gives a block that may be freed. */
HM_API void* hmalloc(size_t size, hm_tier tier) HM_NOTHROW
    __attribute__((malloc, alloc_size(1), warn_unused_result));

/** The same with the tier first, as all below have it. */
HM_API void* hm_malloc(hm_tier tier, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/** Zeroed; ENOMEM where count * size overflows. */
HM_API void* hm_calloc(hm_tier tier, size_t count, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(2, 3), warn_unused_result));

/** Resizes a block, which may move. With HM_KEEP it stays in its tier (a NULL pointer allocates
 *  near); with a tier it goes there if it is elsewhere. A size of 0 frees and returns NULL. On
 *  failure the block is as it was. */
HM_API void* hm_realloc(hm_tier tier, void* ptr, size_t size) HM_NOTHROW
    __attribute__((alloc_size(3), warn_unused_result));

/** Allocates at a multiple of `alignment`, a power of two up to 1 GiB. */
HM_API void* hm_memalign(hm_tier tier, size_t alignment, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(3), warn_unused_result));

/** Frees a block of any tier; NULL is left alone; errno is kept. */
HM_API void hm_free(void* ptr) HM_NOTHROW;

/** Bytes that may be used at `ptr`, at least as many as were asked for; 0 for NULL. */
HM_API size_t hm_usable_size(const void* ptr) HM_NOTHROW;

/** Moves a block to another tier and returns where it is now; `ptr` is gone then. The same pointer
 *  is returned if it is there already. On failure the block is as it was. */
HM_API void* hm_move(void* ptr, hm_tier tier) HM_NOTHROW __attribute__((warn_unused_result));

/* ---- where memory is ------------------------------------------------------------------------- */

/** Where the tiers lie: tier t spans 2^shift bytes from base + (t << shift). For hm_tier_of(). */
struct hm_address_window {
  uintptr_t base; /**< 0 until the first allocation */
  unsigned shift;
};
extern HM_API struct hm_address_window hm_window;

/** The tier that an address belongs to, or HM_FOREIGN. Costs a subtraction and a shift; the address
 *  need not be one that was allocated. */
HM_API hm_tier hm_tier_of(const void* ptr) HM_NOTHROW;

static inline hm_tier hm_tier_of_inline(const void* ptr) {
  const uintptr_t tier = ((uintptr_t)ptr - hm_window.base) >> hm_window.shift;
  return tier < HM_TIER_COUNT ? (hm_tier)tier : HM_FOREIGN;
}
#define hm_tier_of(ptr) hm_tier_of_inline(ptr)

enum { HM_MAX_NODES = 64 }; /**< NUMA nodes are numbered below this */

/** What the kernel says of a range's pages. */
struct hm_pages {
  size_t page_bytes;            /**< size of a page as counted here */
  size_t pages;                 /**< pages that the range touches */
  size_t absent;                /**< of these: not in memory, never written or given back */
  size_t on_node[HM_MAX_NODES]; /**< of these: in memory on each NUMA node */
};

/** Asks the kernel (move_pages) where the pages of any range of this process are. Errors: EINVAL
 * for an empty range; ENOSYS without NUMA in the kernel. */
HM_API int hm_residency(const void* ptr, size_t bytes, struct hm_pages* found) HM_NOTHROW;

/** Moves all pages of a tier in anonymous memory (dram, numa) to the NUMA nodes of a bit mask and
 *  keeps new ones there. Errors: ENOTSUP for tiers in files, EINVAL for nodes that do not exist. */
HM_API int hm_migrate(hm_tier tier, unsigned long nodes) HM_NOTHROW;

/* ---- tiers ----------------------------------------------------------------------------------- */

/** Makes a tier and returns its number. `name` is at most 31 letters, digits, '-' or '_'; "near"
 * and "far" name HM_NEAR (always made already: EEXIST) and HM_FAR. The specification is
 *
 *    dram  numa:N  shm:[DIR]  fsdax:PATH  devdax:/dev/daxX.Y  file:PATH     followed by any of
 *    ,bind ,prefer ,weighted    numa: only there (default); there if there is room; spread over the
 *                               nodes A+B+.. by the kernel's weights (numa:0+1,weighted)
 *    ,capacity=SIZE             bytes that the tier may span at most (64KiB, 2GB, 1.5GiB; K, M, G
 *                               are binary); default: what the node, device or file system has
 *                               free now, without limit for dram
 *    ,overflow=fail|spill:TIER  what a full tier does: fail (default) or allocate in another one
 *    ,reserve=sparse|chunk|full when room in a file or on a node is made sure of: never (a full
 *                               disk then kills by SIGBUS), by chunks (default), at once
 *    ,fork=private|copy|deny    what a child gets of a file or device: its own copy in near
 *                               memory (default), its own copy in such a file, or nothing (its
 *                               accesses fault, its allocations fail with ENODEV)
 *    ,pages=thp|4k  ,populate   huge pages where the kernel can; touch each chunk when it is taken
 *
 *  A tier in a file has no name in the file system, and is gone with the process. MAP_SYNC is used
 *  for fsdax:, and is an error where the file system does not grant it. Tiers stay until the
 * program ends. Errors: EINVAL (NULL for either, too), EEXIST, ENODEV, ENOSPC (no number is left, or
 * no room), EACCES. */
HM_API hm_tier hm_tier_create(const char* name, const char* specification) HM_NOTHROW;

/** The tier of that name, or -1 (ENODEV); NULL names none. */
HM_API hm_tier hm_tier_find(const char* name) HM_NOTHROW;

/** The name of a tier, or NULL if there is none of that number. */
HM_API const char* hm_tier_name(hm_tier tier) HM_NOTHROW;

/** The sentence of the last failure in this thread, "" if there was none. Valid until the next. */
HM_API const char* hm_error(void) HM_NOTHROW;

/** Brings the pages of variables to a tier; HM_TIER_VAR() of nearfar/hmalloc_var.h has this called.
 *  `begin` and `pages_end` are page boundaries, `end` is where the variables end. Where it fails a
 *  sentence on stderr says so, -1 is returned, and the variables stay where they are. */
HM_API int hm_place_variables(const char* tier, char* begin, char* end, char* pages_end) HM_NOTHROW;

/* ---- accounts -------------------------------------------------------------------------------- */

/** Accounts of a tier. Counters of running threads are read without stopping them, so that sums may
 *  be off by what happens meanwhile. Bytes are those of size classes, as hm_usable_size() has them.
 */
struct hm_tier_stats {
  uint64_t allocations;     /**< blocks handed out since the start */
  uint64_t frees;           /**< blocks freed since the start */
  uint64_t allocated_bytes; /**< sum over all blocks handed out */
  uint64_t live_bytes;      /**< in blocks that are not freed now */
  uint64_t spilled;         /**< allocations that were meant for this tier and went elsewhere */
  uint64_t failed;          /**< allocations that failed */
  uint64_t span_bytes;      /**< address space used so far, counts against the capacity */
  uint64_t cached_bytes;    /**< free, kept in threads or by size class */
  uint64_t returned_bytes;  /**< given back to the system since the start */
  uint64_t metadata_bytes;  /**< bookkeeping, in near memory (told for HM_NEAR, for all tiers) */
  uint64_t capacity_bytes;  /**< 0: without limit */
};

/** Fills the accounts of a tier. Errors: EINVAL, ENODEV. */
HM_API int hm_stats(hm_tier tier, struct hm_tier_stats* stats) HM_NOTHROW;

/** Writes the accounts of all tiers and threads as text to a descriptor: lines of `key value`, see
 *  hmalloc(3). */
HM_API int hm_stats_write(int fd) HM_NOTHROW;

/** Gives what is free back to the system now, without waiting for the decay, the calling thread's
 *  cache included. Returns the bytes given back. */
HM_API size_t hm_trim(hm_tier tier) HM_NOTHROW;

#ifdef __cplusplus
}
#endif
#endif
