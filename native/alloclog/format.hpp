// The shared memory of the allocation log: the preloaded library writes, the reader reads.
//
// Control        one region, named by the environment variable. It lists slots; a process claims a
//                ready one and opens its file by the reader's /proc/PID/fd.
// Slot           one sparse file for each process image: header, sites, mappings, tracked blocks,
//                and three arrays that map an address to a site. Only touched pages use memory.
// Addresses      level 0 has an entry for each granule of 32 bytes, set where a block begins: the
//                smallest block of glibc, so that each has its own. An entry costs 6 % of the
//                small blocks' memory; granules of 64 bytes would cost half, and confuse neighbors
//                such as the nodes of lists and maps.
//                Level 1 has an entry for each page that begins in a large block, level 2 one for
//                each unit of 2 MiB that lies wholly in a large block, in place of level 1.
// Tracked blocks all large ones and a sample of the others, with their sizes (poisson.hpp).
// Mappings       a ring of events: mappings that the program itself made and removed, with their
//                sites. The reader follows them (mappings.hpp).
// Clock samples  a ring of samples of CPU time, if the reader requests them (clock_period_ns): by
//                signals, for machines whose kernel refuses perf_event_open().
// Untrusted      the program may write anything. A reader copies a value before it checks it.
// Units          bytes, unless a name says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearfar::alloclog {

/// Names the control region: /proc/PID/fd/N of the reader.
inline constexpr char variable[] = "NEARFAR_ALLOCATION_LOG";

inline constexpr char magic[8] = {'N', 'F', 'A', 'L', 'L', 'O', 'C', '\n'};
inline constexpr std::uint32_t version = 4;

inline constexpr unsigned address_bits = 47; ///< addresses above are not logged
inline constexpr unsigned granule_bits = 5;
inline constexpr unsigned page_bits = 12;
inline constexpr unsigned unit_bits = 21;
inline constexpr std::size_t large_bytes = 32 << 10; ///< blocks of at least this size are large

/// A number of a site, with bits of its block. 0: unknown.
using Entry = std::uint16_t;
inline constexpr Entry site_mask = 0x3fff;
inline constexpr Entry half_bit = 0x4000; ///< the block begins in the upper half of its granule
/// The block was freed. Its site is kept for samples that are read after that.
inline constexpr Entry freed_bit = 0x8000;
/// In the log of a forked child: the parent's entry is no longer valid.
inline constexpr Entry freed_entry = site_mask;
/// The site of all blocks whose own site did not fit.
inline constexpr Entry other_sites = freed_entry - 1;

/// The half of its granule in which the block of an entry begins.
constexpr Entry half_of(std::uint64_t address) {
  constexpr unsigned to_half_bit = 14 - (granule_bits - 1);
  return static_cast<Entry>(address << to_half_bit & half_bit);
}
inline constexpr unsigned max_frames = 4;

/// A call chain and its allocations. Totals are unbiased estimates (poisson.hpp).
struct SiteRecord {
  std::uint64_t chain[max_frames]; ///< return addresses, innermost first; [0] is written last
  std::uint64_t allocations;       ///< in units of 1/256
  std::uint64_t allocated_bytes;
  std::int64_t live_bytes;
  std::int64_t peak_live_bytes;
};
inline constexpr std::uint64_t allocation_unit = 256;

/// A block that is counted in live_bytes. `address` is 0 for a free record.
struct TrackedBlock {
  std::uint64_t address;
  std::uint64_t site_and_bytes; ///< site in the low 16 bits
};
inline constexpr std::size_t bucket_blocks = 8;
inline constexpr std::size_t buckets = 1 << 17;

/// A change of the program's mappings. Unmapping is entered before the call, mapping after it, so
/// that events at one address are in the order of the calls.
struct MappingEvent {
  std::uint64_t number; ///< of the event, from 1; written last
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t source; ///< a site; unmapped; or the old address of a mapping that was moved here
};
inline constexpr std::uint64_t unmapped = 0;
inline constexpr std::size_t mapping_events = 1 << 16;

/// A sample of a thread that executed its own code.
struct ClockSample {
  std::uint64_t number;  ///< of the sample, from 1; written last
  std::uint64_t time_ns; ///< CLOCK_MONOTONIC
  std::uint32_t thread;
  std::uint32_t period_ns; ///< of user CPU time that it stands for
  std::uint64_t instruction;
  std::uint64_t registers[16]; ///< by the processor's numbers
};
inline constexpr std::size_t clock_samples = 1 << 14;

/// Identifies a use of a slot. 0: none.
using SlotUse = std::uint64_t;
constexpr SlotUse slot_use(std::uint32_t serial, std::uint32_t index) {
  return std::uint64_t{serial} << 32 | (index + 1);
}

struct SlotHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t site_count;    ///< numbers 1 to site_count are taken, or being taken
  SlotUse self;                ///< written by the reader
  SlotUse parent;              ///< of a forked child
  std::uint64_t order;         ///< of joining
  std::uint64_t slow_lookups;  ///< of sites that the fast path did not find
  std::uint64_t lost_tracked;  ///< blocks that had no room in their bucket
  std::uint64_t mapping_count; ///< events in the ring so far
  std::uint64_t clock_count;   ///< clock samples in their ring so far
};

constexpr std::uint64_t entries(unsigned bits) { return std::uint64_t{1} << (address_bits - bits); }

inline constexpr std::uint64_t sites_offset = 4 << 10;
inline constexpr std::uint64_t mappings_offset = 2 << 20;
inline constexpr std::uint64_t tracked_offset = 4 << 20;
inline constexpr std::uint64_t clock_offset = 24 << 20;
inline constexpr std::uint64_t level2_offset = 32 << 20;
inline constexpr std::uint64_t level1_offset = 256 << 20;
inline constexpr std::uint64_t level0_offset = std::uint64_t{128} << 30;
inline constexpr std::uint64_t slot_bytes = level0_offset + entries(granule_bits) * sizeof(Entry);

static_assert(sizeof(SiteRecord) == 64 && sizeof(TrackedBlock) == 16);
static_assert(sites_offset + (other_sites + 1u) * sizeof(SiteRecord) <= mappings_offset);
static_assert(mappings_offset + mapping_events * sizeof(MappingEvent) <= tracked_offset);
static_assert(tracked_offset + buckets * bucket_blocks * sizeof(TrackedBlock) <= clock_offset);
static_assert(clock_offset + clock_samples * sizeof(ClockSample) <= level2_offset);
static_assert(level2_offset + entries(unit_bits) * sizeof(Entry) <= level1_offset);
static_assert(level1_offset + entries(page_bits) * sizeof(Entry) <= level0_offset);

/// The state of a slot is stored with the process that has it: pid << 32 | state.
enum class SlotState : std::uint32_t { empty = 0, ready = 1, claimed = 2, active = 3, failed = 4 };
constexpr std::uint64_t state_word(SlotState state, std::uint32_t pid) {
  return std::uint64_t{pid} << 32 | static_cast<std::uint32_t>(state);
}

struct ControlSlot {
  std::uint64_t state;
  SlotUse use;
  std::int32_t descriptor; ///< of the slot's file, in the reader
  std::uint32_t reserved;
};
inline constexpr std::uint32_t max_slots = 4096;

struct Control {
  char magic[8];
  std::uint32_t version;
  std::uint32_t clock_period_ns; ///< of CPU time between clock samples of a thread; 0: none
  std::uint64_t joined;          ///< processes so far
  std::uint64_t lost_processes;  ///< that found no ready slot, or could not map it
  ControlSlot slots[max_slots];
};

/// The bucket of a block. Neighboring pages have neighboring buckets, and units are spread.
constexpr std::size_t bucket_of(std::uint64_t address) {
  const std::uint64_t unit = address >> unit_bits;
  return static_cast<std::size_t>(((address >> page_bits) + (unit * 0x9e3779b97f4a7c15u >> 47)) %
                                  buckets);
}

} // namespace nearfar::alloclog
