/* libhmalloc: memory allocation in tiers.
 *
 * Purpose        One heap for each tier of memory (DRAM, a NUMA node, CXL, persistent memory, a
 *                file). The address of a block determines its tier, so one hm_free() serves all
 *                tiers.
 *
 * Thread safety  Every function may be called by any thread at any time, unless noted otherwise;
 *                a block may be freed by another thread than the one that allocated it. No
 *                function may be called in a signal handler.
 *
 * Units          Sizes are bytes. A tier is a small number; HM_NEAR and HM_FAR are always valid
 *                numbers, whether or not the machine has such memory.
 *
 * Errors         Functions that return a pointer return NULL and set errno; those that return an
 *                int return -1 and set errno. hm_error() returns the message.
 *                - EINVAL: an invalid tier number, alignment or specification
 *                - ENODEV: the tier is not configured, or this machine has no such memory
 *                - ENOMEM: the tier is full (and does not spill), or the size overflows
 *                An invalid or double free ends the program (SIGABRT) after a message on stderr
 *                with the pointer, its tier and the error.
 *
 * Tier memory    Allocating and freeing stores nothing in the memory of a tier, except with canary
 *                and wipe below: only the program accesses a slow or wearing medium. hm_calloc() clears memory unless it is known
 *                to be zero.
 * Fork           A child has the near heap as after any fork. The option fork= of a tier in a
 *                shared file defines what the child gets of it; memory is never shared silently.
 * Environment    Read once, when the library is loaded, before main():
 *                NEARFAR_HMALLOC_NEAR, NEARFAR_HMALLOC_FAR
 *                    specifications of the two tiers, see hm_tier_create()
 *                NEARFAR_HMALLOC_TIERS
 *                    further tiers: NAME=SPEC, separated by ';'
 *                NEARFAR_HMALLOC_DEFAULT
 *                    libhmalloc-preload.so: the tier of malloc() (default "near")
 *                NEARFAR_HMALLOC_PLAN
 *                    libhmalloc-preload.so: a plan file (docs/formats/plan.md)
 *                NEARFAR_HMALLOC_DECAY_MS
 *                    minimum time for which freed memory is kept before a later call returns it
 *                    to the system (default 1000; -1 keeps it)
 *                NEARFAR_HMALLOC_STATS
 *                    exit, signal:NUMBER, separated by ',': when statistics are written; rules:
 *                    include what each rule of the plan placed
 *                NEARFAR_HMALLOC_STATS_FILE
 *                    the file for statistics (default: stderr); %p is replaced by the process ID
 *                NEARFAR_HMALLOC_HARDEN
 *                    guard, canary, wipe, quarantine=SIZE, separated by ','; all: all of them with
 *                    quarantine=1MiB
 *                The names of version 0.1, without NEARFAR_, work with a warning until the next
 *                release.
 *                An invalid value is reported on stderr and ends the program (exit code 2); a tier
 *                that this machine does not have ends it with exit code 3. A program with raised
 *                privileges ignores all variables.
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
  HM_NEAR = 0, /**< near memory: NEARFAR_HMALLOC_NEAR, else DRAM */
  /** far memory: NEARFAR_HMALLOC_FAR, else the first CPU-less NUMA node */
  HM_FAR = 1,
  HM_TIER_COUNT = 8, /**< tiers are numbered 0 to 7 */
  HM_FOREIGN = -1,   /**< hm_tier_of(): not an address of this library */
  HM_KEEP = -2       /**< hm_realloc(): the tier of the block */
};

#ifndef HM_NO_SHORT_NAMES
enum { DRAM = HM_NEAR, PCM = HM_FAR }; /**< names of the Seoul 2014 thesis [4] */
#endif

/* ---- allocation ------------------------------------------------------------------------------ */

/** Allocates `size` bytes in a tier, aligned to 16. A size of 0 returns a block that can be
 *  freed. */
HM_API void* hmalloc(size_t size, hm_tier tier) HM_NOTHROW
    __attribute__((malloc, alloc_size(1), warn_unused_result));

/** The same with the tier as the first argument, like all functions below. */
HM_API void* hm_malloc(hm_tier tier, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(2), warn_unused_result));

/** Allocates zeroed memory; ENOMEM if count * size overflows. */
HM_API void* hm_calloc(hm_tier tier, size_t count, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(2, 3), warn_unused_result));

/** Resizes a block, which may move. With HM_KEEP it stays in its tier (a NULL pointer allocates
 *  near); with another tier it moves there. A size of 0 frees and returns NULL. On failure the
 *  block is unchanged. */
HM_API void* hm_realloc(hm_tier tier, void* ptr, size_t size) HM_NOTHROW
    __attribute__((alloc_size(3), warn_unused_result));

/** Allocates at a multiple of `alignment`, a power of two; ENOMEM if the tier has no
 *  such address. */
HM_API void* hm_memalign(hm_tier tier, size_t alignment, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(3), warn_unused_result));

/** Frees a block of any tier; NULL is ignored; errno is preserved. */
HM_API void hm_free(void* ptr) HM_NOTHROW;

/** Returns the usable bytes at `ptr`, at least the requested size; 0 for NULL. */
HM_API size_t hm_usable_size(const void* ptr) HM_NOTHROW;

/** Returns the usable bytes of a block that is allocated with `size`: the largest size that takes
 *  the same memory. */
HM_API size_t hm_good_size(size_t size) HM_NOTHROW;

/** Moves a block to another tier and returns its new address; `ptr` is then invalid. Returns the
 *  same pointer if the block is in that tier already. On failure the block is unchanged. */
HM_API void* hm_move(void* ptr, hm_tier tier) HM_NOTHROW __attribute__((warn_unused_result));

/* ---- where memory is ------------------------------------------------------------------------- */

/** Address ranges of the tiers: tier t spans 2^shift bytes from base + (t << shift). For
 *  hm_tier_of(). Written once, before the first block exists. */
struct hm_address_window {
  uintptr_t base; /**< 0 until the first allocation */
  unsigned shift;
};
extern HM_API struct hm_address_window hm_window;

/** Returns the tier of any address, or HM_FOREIGN. Costs a subtraction and a shift. */
HM_API hm_tier hm_tier_of(const void* ptr) HM_NOTHROW;

static inline hm_tier hm_tier_of_inline(const void* ptr) {
  const uintptr_t tier = ((uintptr_t)ptr - hm_window.base) >> hm_window.shift;
  return tier < HM_TIER_COUNT ? (hm_tier)tier : HM_FOREIGN;
}
#define hm_tier_of(ptr) hm_tier_of_inline(ptr)

enum { HM_MAX_NODES = 64 }; /**< NUMA nodes are numbered below this */

/** Pages of a range as the kernel reports them. */
struct hm_pages {
  size_t page_bytes;            /**< size of a page as counted here */
  size_t pages;                 /**< pages that the range touches */
  size_t absent;                /**< of these: not in memory, never written or returned */
  size_t on_node[HM_MAX_NODES]; /**< of these: in memory on each NUMA node */
};

/** Asks the kernel (move_pages) for the nodes of the pages of any range of this process. Errors:
 * EINVAL for an empty range; ENOSYS without NUMA in the kernel. */
HM_API int hm_residency(const void* ptr, size_t bytes, struct hm_pages* found) HM_NOTHROW;

/** Moves all pages of a tier in anonymous memory (dram, numa) to the NUMA nodes of a bit mask and
 *  keeps new ones there. Errors: ENOTSUP for tiers in files, EINVAL for nodes that do not exist. */
HM_API int hm_migrate(hm_tier tier, unsigned long nodes) HM_NOTHROW;

/* ---- tiers ----------------------------------------------------------------------------------- */

/** Creates a tier and returns its number. `name` is at most 31 letters, digits, '-' or '_'; "near"
 * and "far" name HM_NEAR (exists always: EEXIST) and HM_FAR. The specification is
 *
 *    dram  numa:N  shm:[DIR]  fsdax:PATH  devdax:/dev/daxX.Y  file:PATH     followed by any of
 *    ,bind ,prefer ,weighted    numa: only that node (default); that node if it has free memory;
 *                               interleaved over nodes by the kernel's weights
 *                               (numa:0+1,weighted)
 *    ,weights=N:M               numa: so many pages of each node in turns (numa:0+1,weights=5:3), by
 *                               the kernel if its weights have these proportions, else in stripes
 *    ,capacity=SIZE             maximum size of the tier (64KiB, 2GB, 1.5GiB; K, M, G are binary);
 *                               default: the free space of the node, device or file system,
 *                               without limit for dram
 *    ,overflow=fail|spill:TIER  behavior of a full tier: fail (default) or allocate in another
 *                               tier
 *    ,reserve=sparse|chunk|full when space in a file or on a node is reserved: never (a full
 *                               disk then causes SIGBUS), by chunks (default), at once
 *    ,fork=private|copy|deny    what a child gets of a file or device: a copy in near memory
 *                               (default), a copy in such a file, or nothing (its accesses
 *                               fault, its allocations fail with ENODEV)
 *    ,pages=thp|4k  ,populate   huge pages if the kernel can; touch each chunk when it is mapped
 *
 *  The file of a tier has no name in the file system and disappears with the process. MAP_SYNC is
 *  used for fsdax:; it is an error if the file system does not support it. Tiers stay until the
 *  program ends. Errors: EINVAL (also for a NULL argument), EEXIST, ENODEV, ENOSPC (no number or no
 *  space left), EACCES. */
HM_API hm_tier hm_tier_create(const char* name, const char* specification) HM_NOTHROW;

/** Returns the tier of that name, or -1 (ENODEV), also for NULL. */
HM_API hm_tier hm_tier_find(const char* name) HM_NOTHROW;

/** Returns the name of a tier, or NULL for an unused number. */
HM_API const char* hm_tier_name(hm_tier tier) HM_NOTHROW;

/* ---- heaps ----------------------------------------------------------------------------------- */

/** A heap of its own in a tier, for data that is freed together. Its blocks are freed one by one by
 *  hm_free(), as all others, or all at once by hm_heap_destroy(). They are not kept in caches of
 *  threads, so that allocating costs a lock; a full tier does not spill them. hm_realloc() leaves a
 *  block in its heap unless it goes to another tier. At most 255 heaps exist at a time. */
typedef struct hm_heap hm_heap;

/** Creates a heap of at most `capacity` bytes, in units of 64 KiB; 0: the tier's capacity. Errors:
 *  EINVAL (also for a capacity below 64 KiB), ENODEV, ENOSPC (too many heaps). */
HM_API hm_heap* hm_heap_create(hm_tier tier, size_t capacity) HM_NOTHROW
    __attribute__((warn_unused_result));

/** Frees all blocks of a heap, and the heap; NULL is ignored. No other thread may use the heap or its
 *  blocks. A heap that does not exist ends the program. */
HM_API void hm_heap_destroy(hm_heap* heap) HM_NOTHROW;

/** As hm_malloc(), hm_calloc(), hm_memalign() and hm_realloc(), in a heap; hm_heap_realloc() moves
 *  blocks of other heaps and tiers into it. Errors: ENOMEM, EINVAL; ENODEV in a child of fork() that
 *  does not have the tier. */
HM_API void* hm_heap_malloc(hm_heap* heap, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(2), warn_unused_result));
HM_API void* hm_heap_calloc(hm_heap* heap, size_t count, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(2, 3), warn_unused_result));
HM_API void* hm_heap_memalign(hm_heap* heap, size_t alignment, size_t size) HM_NOTHROW
    __attribute__((malloc, alloc_size(3), warn_unused_result));
HM_API void* hm_heap_realloc(hm_heap* heap, void* ptr, size_t size) HM_NOTHROW
    __attribute__((alloc_size(3), warn_unused_result));

/** Returns the heap of a block, or NULL for a block that is in no heap and any other address. */
HM_API hm_heap* hm_heap_of(const void* ptr) HM_NOTHROW;

/** Returns the tier of a heap. */
HM_API hm_tier hm_heap_tier(hm_heap* heap) HM_NOTHROW;

/** Returns the message of the last failure in this thread, "" if there was none. Valid until the
 *  next failure. */
HM_API const char* hm_error(void) HM_NOTHROW;

/** Moves the pages of variables to a tier; called for HM_TIER_VAR() of nearfar/hmalloc_var.h.
 *  `begin` and `pages_end` are page boundaries, `end` is the end of the variables. On failure a
 *  message is written to stderr, -1 is returned, and the variables stay where they are. */
HM_API int hm_place_variables(const char* tier, char* begin, char* end, char* pages_end) HM_NOTHROW;

/* ---- statistics ------------------------------------------------------------------------------ */

/** Statistics of a tier. Counters of running threads are read without stopping them, so sums may
 *  miss concurrent changes. Bytes are those of size classes, as hm_usable_size() returns them.
 */
struct hm_tier_stats {
  uint64_t allocations;     /**< blocks allocated since the start */
  uint64_t frees;           /**< blocks freed since the start */
  uint64_t allocated_bytes; /**< sum over all blocks allocated */
  uint64_t live_bytes;      /**< in blocks that are not freed */
  uint64_t spilled;         /**< allocations for this tier that were served by another tier */
  uint64_t failed;          /**< allocations that failed */
  uint64_t span_bytes;      /**< address space used so far, counts against the capacity */
  uint64_t cached_bytes;    /**< in free blocks: of threads' caches and of slabs */
  uint64_t returned_bytes;  /**< returned to the system since the start */
  uint64_t metadata_bytes;  /**< metadata, in near memory (HM_NEAR has the sum of all tiers) */
  uint64_t capacity_bytes;  /**< 0: without limit */
};

/** Fills the statistics of a tier. Errors: EINVAL, ENODEV. */
HM_API int hm_stats(hm_tier tier, struct hm_tier_stats* stats) HM_NOTHROW;

/** Fills the statistics of a heap; spilled, returned_bytes and metadata_bytes are 0. The
 *  statistics of the tier include those of its heaps. */
HM_API void hm_heap_stats(hm_heap* heap, struct hm_tier_stats* stats) HM_NOTHROW;

/** What the two calls above compile to: `bytes` is the size of the struct in the header that the
 *  program was built with. At most so many bytes are written; fields that the library does not know
 *  are 0. The functions without a size fill the eleven fields of version 1.0. */
HM_API int hm_stats_sized(hm_tier tier, struct hm_tier_stats* stats, size_t bytes) HM_NOTHROW;
HM_API void hm_heap_stats_sized(hm_heap* heap, struct hm_tier_stats* stats,
                                size_t bytes) HM_NOTHROW;
#define hm_stats(tier, stats) hm_stats_sized(tier, stats, sizeof(struct hm_tier_stats))
#define hm_heap_stats(heap, stats) hm_heap_stats_sized(heap, stats, sizeof(struct hm_tier_stats))

/** Reads one statistic by its name: `tier.NAME.KEY`, as hm_stats_write() writes it (but for the weights
 *  of nodes), for instance "tier.far.live_bytes". Errors: EINVAL for NULL, ENOENT for an unknown name, ENODEV for a tier
 *  that does not exist. */
HM_API int hm_ctl(const char* name, uint64_t* value) HM_NOTHROW;

/** Writes the statistics of all tiers and threads as text to a descriptor: lines of `key value`,
 * see hmalloc(3). Errors: those of write(2). */
HM_API int hm_stats_write(int fd) HM_NOTHROW;

/** Returns free memory to the system now, without waiting for the decay, including the calling
 *  thread's cache. Returns the number of bytes. */
HM_API size_t hm_trim(hm_tier tier) HM_NOTHROW;

/* ---- heap profilers -------------------------------------------------------------------------- */

/** A heap profiler defines these two, in the program or in a preloaded library; `nearfar advise` does.
 *  They are called for the blocks of this header's functions, in the thread that allocates or frees:
 *  after a block of `bytes` was allocated, and before it is freed, also by hm_heap_destroy(). A block
 *  that is resized or moved is freed and allocated. `caller` is the return address of the call, and
 *  the first word of `frame` the caller's frame pointer. They must not allocate, resize or free blocks
 *  with this header's functions. */
HM_API void hm_on_allocate(const void* block, size_t bytes, const void* caller,
                           const void* frame) HM_NOTHROW __attribute__((weak));
HM_API void hm_on_free(const void* block, size_t usable_bytes) HM_NOTHROW __attribute__((weak));

#ifdef __cplusplus
}
#endif
#endif
