// Contents of a trace: the types that recorders, filters and simulators have in common.
//
// Purpose        the values of docs/formats/trace.md; TraceWriter and TraceReader turn them into
//                bytes.
// Units          addresses and sizes are bytes, lines are addresses / Header::line_bytes.
// Thread safety  values, no shared state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nearfar::trace {

/// Reason for the transfer of a line. The numbers are those of the file.
enum class RecordKind : std::uint8_t {
  load = 0,       ///< read by a load
  store = 1,      ///< read to be written (write-allocate)
  prefetch = 2,   ///< read by a prefetcher; its code is what triggered it
  write_back = 3, ///< a dirty line went down; no code
  nt_store = 4,   ///< non-temporal store: written, not read
};
inline constexpr unsigned kinds = 5;

/// Whether the line is written towards memory.
inline bool writes(RecordKind kind) {
  return kind == RecordKind::write_back || kind == RecordKind::nt_store;
}

/// The level of caches below which a trace was taken.
enum class After : std::uint8_t { l1, l2, llc };
inline constexpr std::string_view after_names[] = {"l1", "l2", "llc"}; ///< as files and verbs say
inline std::string_view name_of(After after) { return after_names[static_cast<unsigned>(after)]; }

inline constexpr unsigned process_shift = 48; ///< a line's address above: number of the process

/// One line that was transferred from or to the level below.
struct Record {
  std::uint64_t line = 0;
  std::uint64_t code = 0;         ///< address of the instruction, 0 for write-backs
  std::uint64_t instructions = 0; ///< that the thread had executed
  std::uint32_t object = 0;       ///< 0: unknown
  std::uint32_t depends = 0; ///< distance, in records of this thread, to the load of its address
  std::uint16_t thread = 0;
  RecordKind kind = RecordKind::load;

  friend bool operator==(const Record&, const Record&) = default;
};

/// An ELF file that was mapped.
struct Module {
  std::string path;
  std::string build_id; ///< in hex; empty if it has none
  std::uint32_t process = 0;
  std::uint64_t base = 0; ///< what is subtracted from an address to get an offset in the file
  std::uint64_t bytes = 0;

  friend bool operator==(const Module&, const Module&) = default;
};

/// Kind of the site that made an object.
enum class SiteKind : std::uint8_t { unknown, heap, stack, statics, mapping, code };
inline constexpr unsigned site_kinds = 6;

struct Frame {
  std::int32_t module = -1; ///< number of the module, -1: none, the offset is an address
  std::uint64_t offset = 0; ///< of the return address

  friend bool operator==(const Frame&, const Frame&) = default;
};

/// A place in the program that made objects: its call chain, innermost first.
struct Site {
  SiteKind kind = SiteKind::unknown;
  std::vector<Frame> frames;
  std::uint64_t allocations = 0; ///< totals: written at the end
  std::uint64_t bytes = 0;       ///< allocated in all; of a realloc, what it grew
  std::uint64_t peak_bytes = 0;  ///< most that were alive at once

  friend bool operator==(const Site&, const Site&) = default;
};

inline constexpr std::uint64_t alive = ~std::uint64_t{0};

/// A range of addresses with a lifetime. Numbers of records and instructions count from 0.
struct Object {
  std::uint32_t site = 0;
  std::uint64_t address = 0; ///< with the process in the bits above, as lines have it
  std::uint64_t bytes = 0;
  std::uint64_t born_record = 0; ///< number of records before it, left out or not
  std::uint64_t born_instruction = 0;
  std::uint64_t died_record = alive;
  std::uint64_t died_instruction = alive;

  friend bool operator==(const Object&, const Object&) = default;
};

/// Counts of a whole run, in the order of the file.
enum class Total : std::uint8_t {
  instructions,
  loads,
  stores,
  l1_misses,
  l2_misses,
  llc_misses,
  writebacks,
  prefetches,
  tlb_walks,
  nt_stores,
  flushes,
  left_out, ///< records that passed, and stand in no block: a long run is traced in windows
};
inline constexpr std::size_t total_count = 12;
inline constexpr std::array<const char*, total_count> total_names = {
    "instructions", "loads",      "stores",    "l1_misses", "l2_misses", "llc_misses",
    "writebacks",   "prefetches", "tlb_walks", "nt_stores", "flushes",   "left_out"};

/// The part of a record that decides where its page is placed. With a trace in windows, those of
/// the beginning of the run are kept in addition.
struct PageTouch {
  std::uint64_t instructions;
  std::uint64_t line_and_write; ///< the line, shifted left, and whether it is written
};
using TouchLog = std::deque<PageTouch>;

struct Totals {
  std::array<std::uint64_t, total_count> of{};
  std::uint64_t& operator[](Total which) { return of[static_cast<std::size_t>(which)]; }
  std::uint64_t operator[](Total which) const { return of[static_cast<std::size_t>(which)]; }

  friend bool operator==(const Totals&, const Totals&) = default;
};

/// Header: fields that are known before the first record.
struct Header {
  unsigned line_bytes = 64;
  After after = After::llc;
  std::vector<std::pair<std::string, std::string>> fields; ///< the other keys, in order

  /// The first value of a key.
  std::optional<std::string> find(const std::string& key) const {
    for (const auto& [name, value] : fields)
      if (name == key) return value;
    return std::nullopt;
  }
  /// Whether addresses are those of the memory, not of a program.
  bool has_physical_addresses() const { return find("addresses") == "physical"; }
};

/// Tables that records refer to by number. Object 0 and site 0 always exist: unknown.
struct Tables {
  std::vector<Module> modules;
  std::vector<Site> sites = std::vector<Site>(1);
  std::vector<Object> objects = std::vector<Object>(1);
  std::vector<std::uint32_t> threads;     ///< the process of each
  std::optional<std::uint32_t> exit_code; ///< of the program, as a shell reports it
};

// The bytes of the file.
inline constexpr std::uint32_t trace_version = 2;
inline constexpr char trace_magic[9] = "NFTRACE\n";
inline constexpr char footer_magic[9] = "NFTRACE.";
inline constexpr std::uint32_t block_magic = 0x4b42464e;
inline constexpr std::uint32_t max_plain = 1u << 24;
inline constexpr std::uint32_t max_entries = 1u << 20;
inline constexpr std::size_t block_records = 1u << 16; ///< what a writer puts into a block

enum class BlockKind : std::uint8_t {
  records = 1,
  modules = 2,
  sites = 3,
  objects = 4,
  deaths = 5,
  threads = 6,
  site_totals = 7,
  index = 8,
  exit_code = 9,
};
inline constexpr BlockKind last_block_kind = BlockKind::exit_code;

struct BlockHead {
  std::uint32_t magic = block_magic;
  std::uint8_t kind = 0;
  std::uint8_t method = 0;
  std::uint16_t reserved = 0;
  std::uint32_t stored = 0;
  std::uint32_t plain = 0;
  std::uint32_t count = 0;
  std::uint32_t first_low = 0; ///< two halves, so that nothing is padded
  std::uint32_t first_high = 0;
  std::uint32_t checksum = 0;

  std::uint64_t first() const { return std::uint64_t{first_high} << 32 | first_low; }
};
static_assert(sizeof(BlockHead) == 32);

struct IndexEntry {
  std::uint64_t offset;
  std::uint64_t first;
  std::uint32_t count;
  std::uint32_t kind;
};
static_assert(sizeof(IndexEntry) == 24);

} // namespace nearfar::trace
