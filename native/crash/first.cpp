// Images that are likely to fail, before all others: those without a suspicious store, and those
// around the first store of each line of source. A small budget goes there.
#include <algorithm>

#include "crash/explorer.hpp"
#include "crash/hash.hpp"
#include "crash/library.hpp"

namespace nearfar::crash {

void Explorer::explore_suspects() {
  if (options_.loss == CacheLoss::none) return; // nothing is flushed, and order is kept
  stage_of_ = Stage::suspects;
  for (std::vector<Suspect>& batch : list_suspects(trace_.log)) {
    if (batch.empty() || exhausted()) continue;
    suspects_ = std::move(batch);
    next_suspect_ = 0;
    prepare();
    Persistency model(trace_.log, options_.loss, durable_);
    explore_points(model, {}, nullptr);
  }
  stage_of_ = Stage::all;
}

void Explorer::explore_new_places() {
  if (options_.loss == CacheLoss::none || exhausted()) return;
  stage_of_ = Stage::new_places;
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
  for (; due() && !exhausted(); ++next_suspect_) {
    const Suspect& suspect = suspects_[next_suspect_];
    std::vector<std::size_t> newest(undecided_.size()), without, alone(undecided_.size());
    for (std::size_t slot = 0; slot < newest.size(); ++slot)
      newest[slot] = undecided_[slot].newest;
    without = newest;
    bool pending = false;
    for (std::size_t slot = 0; slot < newest.size(); ++slot) {
      const std::vector<Piece>& pieces = model.pending()[slot].pieces;
      const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                      [&](const Piece& one) { return one.event == suspect.store; });
      if (piece == pieces.end()) continue;
      pending = true;
      const auto before = static_cast<std::uint32_t>(piece - pieces.begin());
      const std::vector<std::uint32_t>& counts = undecided_[slot].pieces;
      without[slot] = static_cast<std::size_t>(
          std::upper_bound(counts.begin(), counts.end(), before) - counts.begin() - 1);
      alone[slot] = newest[slot];
    }
    if (suspect.early) explore_image(model, point, newest);
    if (pending) explore_image(model, point, suspect.early ? alone : without);
  }
}

void Explorer::explore_new_places_at(const Persistency& model, const Point& point) {
  if (exhausted()) return;
  bool any = false;
  for (std::size_t i = point.since; i < point.event; ++i) {
    const storelog::Event& event = trace_.log.events[i];
    if (stores(event) && !of_library(event.site) && places_.insert(hash_place(event.site)).second)
      any = true;
  }
  if (!any) return;
  explore_single_lines(model, point, true);
  explore_prefixes(model, point, true);
  note_tried_stores(point);
}

} // namespace nearfar::crash
