#include "sim/placement.hpp"

#include <algorithm>

namespace nearfar::sim {

namespace {

constexpr std::uint8_t max_write_rounds = 3;

Error bad_plan(const char* what, const char* next) {
  return Error::make(Errc::bad_input, "%s", what).try_next("%s", next);
}

} // namespace

Result<Placer> Placer::create(const Plan& plan, bool physical) {
  for (std::size_t i = 0; i < plan.ranges.size(); ++i)
    if (plan.ranges[i].end <= plan.ranges[i].begin ||
        (i && plan.ranges[i].begin < plan.ranges[i - 1].end))
      return bad_plan("address ranges of a placement are empty, overlap or are out of order",
                      "give disjoint ranges in ascending order");
  if (plan.rule == PlacementRule::interleave && (plan.near_weight == 0 || plan.far_weight == 0))
    return bad_plan("a weight of an interleave is 0", "use all-near or all-far instead");
  const bool has_capacity =
      plan.rule != PlacementRule::fixed && plan.rule != PlacementRule::interleave;
  if (has_capacity && plan.near_bytes >> page_shift == 0)
    return bad_plan("near memory holds no page", "give a capacity of near memory of 4 KiB or more");
  if (has_capacity && plan.near_bytes > std::uint64_t{1} << 44)
    return bad_plan("near memory of more than 16 TiB is not modeled", "give less");
  Placer placer(plan, physical);
  if (plan.rule == PlacementRule::memory_mode)
    placer.cached_.assign(plan.near_bytes >> line_shift, PageTable::absent);
  return placer;
}

bool Placer::near_by_range(std::uint64_t address) const {
  const auto after = std::upper_bound(
      plan_.ranges.begin(), plan_.ranges.end(), address,
      [](std::uint64_t at, const PlacementRange& range) { return at < range.begin; });
  if (after == plan_.ranges.begin()) return plan_.near_by_default;
  const PlacementRange& range = *(after - 1);
  return address < range.end ? range.near : plan_.near_by_default;
}

PlacedAccess Placer::place(const Request& request, Time now, std::vector<PlacedAccess>& moved,
                           Time& stall) {
  switch (plan_.rule) {
  case PlacementRule::first_touch: return place_first_touch(request, moved, stall);
  case PlacementRule::memory_mode: return place_memory_mode(request, moved);
  case PlacementRule::clock_dwf: return place_clock_dwf(request, moved, stall);
  case PlacementRule::hot_pages: return place_hot_pages(request, now, moved, stall);
  case PlacementRule::fixed:
  case PlacementRule::interleave: break;
  }
  return place_static(request);
}

PlacedAccess Placer::place_first_touch(const Request& request, std::vector<PlacedAccess>& moved,
                                       Time& stall) {
  const bool room = near_owner_.size() < near_pages();
  return access_to(page_of(request, room, moved, stall), request);
}

PlacedAccess Placer::place_memory_mode(const Request& request, std::vector<PlacedAccess>& moved) {
  const std::uint64_t page = request.address >> page_shift;
  std::uint64_t& frame = pages_[page];
  if (frame == PageTable::absent) frame = new_far_frame(page);
  const std::uint64_t far = frame * lines_a_page + line_in_page(request.address);
  const std::uint64_t near = far % cached_.size();
  std::uint64_t& held = cached_[near];
  const bool hit = held != PageTable::absent && held >> 1 == far;
  if (hit) {
    held |= static_cast<std::uint64_t>(request.write);
    return {near, true, request.write};
  }
  if (held != PageTable::absent && (held & 1)) { // write-back: read near, write far
    moved.push_back({near, true, false});
    moved.push_back({held >> 1, false, true});
  }
  held = far << 1 | static_cast<std::uint64_t>(request.write);
  moved.push_back({near, true, true}); // fill, merged with the write of the program
  return {far, false, false};          // a miss reads far memory, also if it is a write
}

void Placer::move(Page& page, std::uint64_t frame, bool near, std::vector<PlacedAccess>& moved,
                  Time& stall) {
  for (unsigned line = 0; line < lines_a_page; ++line) {
    moved.push_back({page.frame * lines_a_page + line, page.near, false});
    moved.push_back({frame * lines_a_page + line, near, true});
  }
  if (page.near)
    near_owner_[page.frame] = PageTable::absent;
  else if (!physical_)
    free_far_.push_back(page.frame);
  page.frame = frame;
  page.near = near;
  page.touches = 0;
  stall += plan_.move_cost;
  ++moved_pages_;
}

/// Frame of a page that moves far: a free one, or a new one.
std::uint64_t Placer::free_far_frame(std::uint64_t page) {
  if (free_far_.empty()) return new_far_frame(page);
  const std::uint64_t frame = free_far_.back();
  free_far_.pop_back();
  return frame;
}

/// Returns a free near frame. If there is none, CLOCK demotes a page.
std::uint64_t Placer::free_near_frame(std::vector<PlacedAccess>& moved, Time& stall) {
  if (near_owner_.size() < near_pages()) {
    near_owner_.push_back(PageTable::absent);
    return frames_[1]++;
  }
  for (;; hand_ = (hand_ + 1) % near_owner_.size()) {
    Page& page = movable_[near_owner_[hand_]];
    if (page.used) {
      page.used = false;
      if (page.write_rounds < max_write_rounds) ++page.write_rounds;
    } else if (plan_.rule == PlacementRule::clock_dwf && page.write_rounds > 0) {
      --page.write_rounds;
    } else {
      const std::uint64_t freed = page.frame;
      move(page, free_far_frame(page.number), false, moved, stall);
      page.write_rounds = 0;
      return freed;
    }
  }
}

void Placer::promote(std::uint64_t index, std::vector<PlacedAccess>& moved, Time& stall) {
  const std::uint64_t frame = free_near_frame(moved, stall);
  move(movable_[index], frame, true, moved, stall);
  near_owner_[frame] = index;
}

Placer::Page& Placer::page_of(const Request& request, bool prefer_near,
                              std::vector<PlacedAccess>& moved, Time& stall) {
  std::uint64_t& index = pages_[request.address >> page_shift];
  if (index != PageTable::absent) return movable_[index];
  const std::uint64_t made = index = movable_.size();
  movable_.emplace_back().number = request.address >> page_shift;
  if (prefer_near) {
    const std::uint64_t frame = free_near_frame(moved, stall);
    near_owner_[frame] = made;
    movable_[made].frame = frame;
    movable_[made].near = true;
  } else {
    movable_[made].frame = new_far_frame(movable_[made].number);
  }
  return movable_[made];
}

PlacedAccess Placer::place_clock_dwf(const Request& request, std::vector<PlacedAccess>& moved,
                                     Time& stall) {
  Page* page = &page_of(request, request.write, moved, stall);
  if (request.write && !page->near) {
    promote(static_cast<std::uint64_t>(page - movable_.data()), moved, stall);
    page = &page_of(request, true, moved, stall);
  }
  page->used |= request.write;
  return access_to(*page, request);
}

PlacedAccess Placer::place_hot_pages(const Request& request, Time now,
                                     std::vector<PlacedAccess>& moved, Time& stall) {
  const bool room = near_owner_.size() < near_pages();
  Page& page = page_of(request, room, moved, stall);
  page.used = true;
  if (page.near) return access_to(page, request);
  const std::uint64_t period = now / plan_.scan_period;
  if (page.period != period) {
    page.period = period;
    page.touches = 0;
  }
  const double allowed = static_cast<double>(now) * 1e-12 * plan_.moves_bytes_per_s;
  const double done = static_cast<double>(moved_pages_ << page_shift);
  const auto index = static_cast<std::uint64_t>(&page - movable_.data());
  if (++page.touches >= plan_.hot_touches && done < allowed) promote(index, moved, stall);
  return access_to(movable_[index], request);
}

} // namespace nearfar::sim
