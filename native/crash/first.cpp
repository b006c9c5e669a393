// Images that are likely to fail, before all others: those without a suspicious store, and those
// around the first store of each line of source. In this order: two batches of suspects; if the
// checker's reads are unknown, power fails just before, within and just after the first store of each line;
// the other suspects; more images around those stores. A small budget is used up here.
#include <algorithm>

#include "crash/explorer.hpp"
#include "crash/hash.hpp"
#include "crash/library.hpp"

namespace nearfar::crash {

namespace {

constexpr std::size_t first_batches = 2; ///< of suspects, with one image for each line

} // namespace

void Explorer::explore_first() {
  if (options_.loss == CacheLoss::none) return; // nothing is flushed, and order is kept
  std::vector<std::vector<Suspect>> batches = list_suspects(trace_.log);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (i == first_batches && options_.read_all) explore_new_places(true);
    explore_batch(std::move(batches[i]));
  }
  explore_new_places(false);
}

void Explorer::explore_batch(std::vector<Suspect> batch) {
  if (batch.empty() || exhausted()) return;
  stage_of_ = Stage::suspects;
  suspects_ = std::move(batch);
  next_suspect_ = 0;
  prepare();
  Persistency model(trace_.log, options_.loss, durable_);
  explore_points(model, {}, nullptr);
  stage_of_ = Stage::all;
}

void Explorer::explore_new_places(bool briefly) {
  if (exhausted()) return;
  stage_of_ = briefly ? Stage::brief_places : Stage::new_places;
  places_.clear();
  prepare();
  Persistency model(trace_.log, options_.loss, durable_);
  explore_points(model, {}, nullptr);
  stage_of_ = Stage::all;
}

void Explorer::explore_suspects_at(const Persistency& model, const Point& point) {
  const auto due = [&] {
    return next_suspect_ < suspects_.size() &&
           (model.at_end() || suspects_[next_suspect_].after < point.event);
  };
  if (due()) list_versions(model, undecided_);
  for (; due() && !exhausted(); ++next_suspect_) {
    const Suspect& suspect = suspects_[next_suspect_];
    std::vector<std::size_t> newest(undecided_.size()), without, alone(undecided_.size());
    for (std::size_t slot = 0; slot < newest.size(); ++slot)
      newest[slot] = undecided_[slot].newest();
    without = newest;
    bool pending = false;
    for (std::size_t slot = 0; slot < newest.size(); ++slot) {
      const std::vector<Piece>& pieces = model.pending()[slot].pieces;
      const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                      [&](const Piece& one) { return one.event == suspect.store; });
      if (piece == pieces.end()) continue;
      pending = true;
      without[slot] = undecided_[slot].after[static_cast<std::size_t>(piece - pieces.begin())];
      alone[slot] = newest[slot];
    }
    if (suspect.early) explore_image(model, point, newest);
    if (pending) explore_image(model, point, suspect.early ? alone : without);
  }
}

void Explorer::explore_new_places_at(const Persistency& model, const Point& point) {
  if (exhausted()) return;
  const std::vector<std::size_t> stores = new_places(point);
  if (stores.empty()) return;
  list_versions(model, undecided_);
  if (stage_of_ == Stage::brief_places) {
    for (const std::size_t store : stores)
      explore_around(model, point, store);
  } else {
    const bool lines = explore_single_lines(model, point, true);
    if (explore_prefixes(model, point, true) && lines) note_tried_stores(point);
  }
}

/// Power fails just before a store, just after it, and between its lines.
void Explorer::explore_around(const Persistency& model, const Point& point, std::size_t store) {
  const std::vector<std::size_t> before = versions_until(model, point, store);
  const std::vector<std::size_t> after = versions_until(model, point, store + 1);
  explore_image(model, point, before);
  explore_image(model, point, after);
  const storelog::Event& event = trace_.log.events[store];
  const std::uint64_t first = event.address / line_bytes;
  const std::uint64_t last = (event.address + event.bytes - 1) / line_bytes;
  if (first == last) return;
  std::vector<std::size_t> lower = before, upper = after; // halves that are durable
  for (std::size_t slot = 0; slot < undecided_.size(); ++slot)
    if (undecided_[slot].line <= (first + last) / 2) std::swap(lower[slot], upper[slot]);
  explore_image(model, point, lower);
  explore_image(model, point, upper);
}

/// Stores since the point before that are the first of their place and calls, as events. One that
/// overwrites is another than one to memory that is still zero.
std::vector<std::size_t> Explorer::new_places(const Point& point) {
  std::vector<std::size_t> found;
  for (std::size_t i = point.since; i < point.event; ++i) {
    const storelog::Event& event = trace_.log.events[i];
    if (!stores(event) || of_library(event.site)) continue;
    const auto bytes = std::span(durable_).subspan(event.address, event.bytes);
    const bool overwrites =
        std::any_of(bytes.begin(), bytes.end(), [](std::byte one) { return one != std::byte{0}; });
    if (places_.insert(mix(hash_calls(event.site), overwrites)).second) found.push_back(i);
  }
  return found;
}

} // namespace nearfar::crash
