// Places each access in near or far memory: by a static plan, or by a policy of kernels or
// hardware.
//
//   fixed        by object, else by address range, else the default
//   interleave   N pages near, then M pages far, and so on (Linux' weighted interleave)
//   first_touch  pages are near in the order of their first touch until near is full; pages do not
//                move (Linux' default policy)
//   memory_mode  near is a direct-mapped, write-back hardware cache of far, with lines of 64 bytes
//   clock_dwf    CLOCK-DWF (Lee, Bahn, Noh 2014), simplified: a page is allocated near if its first
//                access is a write, else far; a write to a far page moves it near; CLOCK evicts
//                pages without recent writes
//   hot_pages    NUMA balancing: pages are near until near is full; a far page that is touched
//                `hot_touches` times in a scan period moves near within the rate limit; CLOCK
//                demotes pages that were not touched since its last round
// A page migration takes `move_cost` of kernel time, and reads and writes all lines of the page.
//
// Thread safety  none.
#pragma once

#include <string_view>
#include <vector>

#include "sim/page_table.hpp"
#include "sim/requests.hpp"

namespace nearfar::sim {

constexpr unsigned page_shift = 12;
constexpr unsigned lines_a_page = 1u << (page_shift - line_shift);

enum class PlacementRule : unsigned char {
  fixed,
  interleave,
  first_touch,
  memory_mode,
  clock_dwf,
  hot_pages
};
/// Names by value.
inline constexpr std::string_view placement_rule_names[] = {
    "fixed", "interleave", "first_touch", "memory_mode", "clock_dwf", "hot_pages"};

struct PlacementRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0; ///< exclusive
  bool near = false;
};

struct Plan {
  PlacementRule rule = PlacementRule::fixed;
  bool near_by_default = false;
  std::vector<PlacementRange> ranges; ///< fixed: disjoint, ascending
  std::vector<std::uint8_t> objects;  ///< fixed, by Request::object: 0 far, 1 near, 2 by address
  std::uint64_t near_weight = 1;      ///< interleave
  std::uint64_t far_weight = 1;
  std::uint64_t near_bytes = 0; ///< all but fixed and interleave: capacity of near memory
  Time move_cost = 2'000'000;   ///< kernel time per page migration: 2 us
  unsigned hot_touches = 2;
  Time scan_period = 1'000'000'000'000; ///< 1 s
  double moves_bytes_per_s = 256e6;     ///< hot_pages: rate limit
};

/// An access to a line of a memory.
struct PlacedAccess {
  std::uint64_t line = 0;
  bool near = false;
  bool write = false;
};

class Placer {
public:
  /// `physical`: the frame of a page is its page number until a rule moves it. Otherwise a page
  /// gets the next free frame at its first touch. Errors: bad_input (ranges out of order, weights
  /// of 0, near_bytes of a rule that requires them).
  static Result<Placer> create(const Plan& plan, bool physical = false);

  /// Whether the plan is static: pages do not move, and place_static() is sufficient.
  bool is_static() const {
    return plan_.rule == PlacementRule::fixed || plan_.rule == PlacementRule::interleave;
  }

  /// Whether place_static() looks up pages. prefetch() is of use only then.
  bool has_page_table() const { return !physical_; }
  void prefetch(const Request& request) const { pages_.prefetch(key_of(request)); }

  /// Places a request by a static plan.
  PlacedAccess place_static(const Request& request) {
    PlacedAccess placed;
    place_static(request, placed);
    return placed;
  }
  void place_static(const Request& request, PlacedAccess& placed) {
    placed.write = request.write;
    if (physical_) {
      placed.line = request.address >> line_shift;
      placed.near = is_near(request);
      return;
    }
    const std::uint64_t key = key_of(request);
    const bool near = key & 1;
    if (key != last_key_) {
      std::uint64_t& frame = pages_[key];
      if (frame == PageTable::absent) [[unlikely]]
        frame = frames_[near]++;
      last_key_ = key;
      last_frame_ = frame;
    }
    placed.line = last_frame_ * lines_a_page + line_in_page(request.address);
    placed.near = near;
  }

  /// Places a request at `now` by any rule. Appends the accesses of migrations to `moved`, and adds
  /// their kernel time to `stall`.
  PlacedAccess place(const Request& request, Time now, std::vector<PlacedAccess>& moved,
                     Time& stall);

  std::uint64_t moved_pages() const { return moved_pages_; }
  std::uint64_t pages(bool near) const { return frames_[near]; }

private:
  Placer(const Plan& plan, bool physical)
      : plan_(plan), physical_(physical), one_memory_(plan.rule == PlacementRule::fixed &&
                                                      plan.objects.empty() && plan.ranges.empty()) {
  }

  static std::uint64_t line_in_page(std::uint64_t address) {
    return (address >> line_shift) & (lines_a_page - 1);
  }
  /// Key of a static plan: page and memory. A page with objects in both memories has two frames.
  std::uint64_t key_of(const Request& request) const {
    return (request.address >> page_shift) << 1 | static_cast<std::uint64_t>(is_near(request));
  }
  bool is_near(const Request& request) const {
    if (one_memory_) return plan_.near_by_default;
    const std::uint32_t object = request.object;
    if (object < plan_.objects.size() && plan_.objects[object] < 2) return plan_.objects[object];
    if (plan_.rule == PlacementRule::interleave)
      return (request.address >> page_shift) % (plan_.near_weight + plan_.far_weight) <
             plan_.near_weight;
    return plan_.ranges.empty() ? plan_.near_by_default : near_by_range(request.address);
  }
  bool near_by_range(std::uint64_t address) const;

  PlacedAccess place_first_touch(const Request& request, std::vector<PlacedAccess>& moved,
                                 Time& stall);
  PlacedAccess place_memory_mode(const Request& request, std::vector<PlacedAccess>& moved);
  PlacedAccess place_clock_dwf(const Request& request, std::vector<PlacedAccess>& moved,
                               Time& stall);
  PlacedAccess place_hot_pages(const Request& request, Time now, std::vector<PlacedAccess>& moved,
                               Time& stall);

  /// A page that a rule may move.
  struct Page {
    std::uint64_t number = 0;
    std::uint64_t frame = 0;
    bool near = false;
    bool used = false; ///< touched (clock_dwf: written) since the last round of CLOCK
    std::uint8_t write_rounds =
        0; ///< clock_dwf: CLOCK rounds with writes minus those without, 0 to 3
    std::uint32_t touches = 0;
    std::uint64_t period = 0;
  };
  std::uint64_t near_pages() const { return plan_.near_bytes >> page_shift; }
  Page& page_of(const Request& request, bool prefer_near, std::vector<PlacedAccess>& moved,
                Time& stall);
  void promote(std::uint64_t page, std::vector<PlacedAccess>& moved, Time& stall);
  std::uint64_t new_far_frame(std::uint64_t page) { return physical_ ? page : frames_[0]++; }
  std::uint64_t free_far_frame(std::uint64_t page);
  std::uint64_t free_near_frame(std::vector<PlacedAccess>& moved, Time& stall);
  void move(Page& page, std::uint64_t frame, bool near, std::vector<PlacedAccess>& moved,
            Time& stall);
  PlacedAccess access_to(const Page& page, const Request& request) const {
    return {page.frame * lines_a_page + line_in_page(request.address), page.near, request.write};
  }

  Plan plan_;
  bool physical_;
  bool one_memory_;                            ///< all accesses are placed in the same memory
  PageTable pages_;                            ///< to frames, or to indices in movable_
  std::uint64_t last_key_ = PageTable::absent; ///< of the last place_static()
  std::uint64_t last_frame_ = 0;
  std::uint64_t frames_[2] = {0, 0}; ///< frames in use: far, near
  std::vector<Page> movable_;
  std::vector<std::uint64_t> near_owner_; ///< by near frame: index in movable_
  std::vector<std::uint64_t> free_far_;   ///< frames of pages that moved near
  std::size_t hand_ = 0;
  std::vector<std::uint64_t> cached_; ///< memory_mode, by near line: far line << 1 | dirty
  std::uint64_t moved_pages_ = 0;
};

} // namespace nearfar::sim
