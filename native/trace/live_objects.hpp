// Live objects: finds the object at an address, in each process, and the site that made it.
//
// Purpose        from events of allocation and mapping to the objects and sites of a trace. An
//                object gets a number, and a place in the file, when a record first names it.
// Order          if several objects contain an address, the first kind applies: blocks of the heap,
//                stacks, static data, other mappings.
// Thread safety  none.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/format.hpp"
#include "trace/page_touches.hpp"
#include "trace/ranges.hpp"
#include "trace/writer.hpp"

namespace nearfar::trace {

class LiveObjects {
public:
  explicit LiveObjects(TraceWriter& writer) : writer_(&writer) {}

  /// A site of the program: return addresses, innermost first.
  void site(std::uint64_t key, const std::vector<std::uint64_t>& chain);
  void allocated(std::uint32_t process, std::uint64_t address, std::uint64_t bytes,
                 std::uint64_t key, std::uint64_t instruction);
  void freed(std::uint32_t process, std::uint64_t address, std::uint64_t instruction);
  /// It keeps its site. The site allocated as many bytes more as it grew.
  void reallocated(std::uint32_t process, std::uint64_t before, std::uint64_t address,
                   std::uint64_t bytes, std::uint64_t instruction);
  void mapped(std::uint32_t process, std::uint64_t address, std::uint64_t bytes,
              std::uint64_t instruction);
  void unmapped(std::uint32_t process, std::uint64_t address, std::uint64_t bytes,
                std::uint64_t instruction);
  /// Moved by mremap. Blocks of the heap end when the allocator reports the new ones.
  void remapped(std::uint32_t process, std::uint64_t before, std::uint64_t bytes,
                std::uint64_t instruction);
  void stack(std::uint32_t process, std::uint64_t low, std::uint64_t high,
             std::uint64_t instruction);
  void module(std::uint32_t process, std::uint64_t address, std::uint64_t offset,
              const std::string& path);
  /// A child has the objects of its parent.
  void forked(std::uint32_t parent, std::uint32_t child);

  /// Number of the object that holds the line of an address, 0 if none is known.
  std::uint32_t ensure_object_at(std::uint32_t process, std::uint64_t address);

  /// The site (by its number in the file) that made the object of this number.
  PageOwner owner_of(std::uint32_t object) const {
    return object < owners_.size() ? owners_[object] : PageOwner{};
  }

  /// Writes the total allocations of the sites.
  void write_totals();

private:
  /// Addresses in which the same object is found, until anything is allocated, mapped or ended.
  struct Found {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::uint32_t number = 0;
  };
  struct Process {
    Ranges heap, stacks, statics, mappings;
    std::array<Found, 4> found; ///< in turn
    unsigned next = 0;
    std::array<Ranges*, 4> kinds() { return {&heap, &stacks, &statics, &mappings}; } ///< in order
  };
  struct KnownSite {
    Site site;
    std::uint64_t live_bytes = 0;
    std::uint32_t number = 0; ///< in the file; 0: not yet
  };
  struct KnownModule {
    std::uint64_t low, high;
    Module module;
    std::int32_t number; ///< in the file; -1: not yet
  };

  Process& process(std::uint32_t number);
  std::uint32_t add_site(Site site);
  std::uint32_t ensure_site_number(std::uint32_t place);
  Frame intern_frame(std::uint64_t code);
  /// A new allocation, or mapping.
  void insert(Ranges& ranges, const ObjectRange& range);
  void place(Ranges& ranges, const ObjectRange& range);
  /// Ends the objects in [low, high); parts outside of it stay.
  void cut(Ranges& ranges, std::uint64_t low, std::uint64_t high, std::uint64_t instruction);
  void ended(const ObjectRange& range, std::uint64_t instruction);
  std::uint32_t named(std::uint32_t process, ObjectRange& range);
  ObjectRange fresh(std::uint64_t begin, std::uint64_t end, std::uint32_t site,
                    std::uint64_t instruction) const;

  TraceWriter* writer_;
  std::vector<Process> processes_;
  std::vector<KnownSite> sites_{1};
  std::unordered_map<std::uint64_t, std::uint32_t> by_key_;
  std::vector<KnownModule> modules_;
  std::vector<PageOwner> owners_; ///< by object
  std::uint32_t stack_site_ = 0;
  std::uint32_t mapping_site_ = 0;
};

} // namespace nearfar::trace
