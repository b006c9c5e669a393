// For checkers in other programs: their reads are unknown, so every pending line may matter and
// only a sample can be checked.
//
// Passes  cover the whole log, after the images of first.cpp: first coarsely, then in detail.
//         1 overdue       lines not flushed although a fence has passed (up to 1/4 of the budget)
//         2 own_prefixes  all stores up to a point durable
//         3 own_few       one line missing, or one line early
//         4, 5            the same for all stores, those of libraries too
//         6 recoveries    crashes during recovery (up to 1/2 of the budget)
//         7 and later     a share of all images, four times larger in each pass
// Known   After two images of a series fail by a well-known finding, passes before 7 skip its rest.
// Old     Lines not stored to since the previous failure point are varied together, not one by one:
//         a library that never flushes them would cost hundreds of images per point.
#include <algorithm>
#include <cmath>
#include <utility>

#include "crash/explorer.hpp"
#include "crash/hash.hpp"
#include "crash/library.hpp"

namespace nearfar::crash {

namespace {

enum Pass { overdue, own_prefixes, own_few, prefixes, few, recoveries, first_share };
constexpr unsigned overdue_points = 8; ///< at which a line that is not flushed is missing alone
constexpr double share_at_first = 16;  ///< images of each failure point

/// Whether the program, or the recovery that is being crashed, stored it since the point before.
bool is_new(const Piece& piece, std::size_t since, bool recovery) {
  return piece.recovery == recovery && piece.event >= since;
}

} // namespace

/// Whether another pass is needed and possible. states_left is valid only after a share pass.
bool Explorer::another_pass() {
  // Of crashes of the program itself; those of recoveries are added below.
  const bool every = result_.states_left == 0;
  const bool idle = result_.states == std::exchange(states_before_, result_.states);
  for (const auto& [image, left] : uncrashed_)
    result_.states_left += left;
  const bool known = is_share_pass();
  pass_ = exhausted() ? std::max<int>(pass_ + 1, first_share) : pass_ + 1;
  return !known || (result_.states_left > 0 && !exhausted() && !(every && idle));
}

/// Whether this pass counts what is left.
bool Explorer::is_share_pass() const { return pass_ >= first_share; }

void Explorer::explore_unknown_reads(const Persistency& model, const Point& point) {
  result_.points += pass_ == first_share && point.level == 0;
  const bool both = pass_ == recoveries || point.level > 0;
  if (pass_ == overdue) explore_overdue(model, point);
  if (pass_ == own_few && explore_single_lines(model, point, true)) note_tried_stores(point);
  if (pass_ == own_prefixes) explore_prefixes(model, point, true);
  if (pass_ == prefixes || both) explore_prefixes(model, point, false);
  if (pass_ == few || both) explore_single_lines(model, point, false);
  if (is_share_pass() || point.level > 0) explore_share(model, point);
}

/// Whether the program itself, or its recovery, made this store, and no library.
bool Explorer::is_own(const Piece& piece) const {
  return !of_library(log_of(piece).events[piece.event].site);
}

/// Lines of the program that no flush has reached although a fence has passed since: all of them
/// missing, and each alone while it is new.
void Explorer::explore_overdue(const Persistency& model, const Point& point) {
  if (exhausted() || (options_.budget != 0 && result_.states * 4 >= options_.budget)) return;
  std::vector<std::size_t> newest(undecided_.size()), late;
  for (std::size_t slot = 0; slot < undecided_.size(); ++slot) {
    newest[slot] = undecided_[slot].newest();
    const PendingLine& pending = model.pending()[slot];
    std::uint32_t flushed = 0;
    for (const auto& entry : pending.awaiting)
      flushed = std::max(flushed, entry.second);
    if (std::any_of(pending.pieces.begin() + flushed, pending.pieces.end(),
                    [&](const Piece& piece) {
                      return is_own(piece) && (piece.event < point.since || model.at_end());
                    }))
      late.push_back(slot);
  }
  std::vector<std::size_t> missing = newest;
  for (const std::size_t slot : late) {
    missing[slot] = 0;
    if (overdue_[undecided_[slot].line]++ >= overdue_points && !model.at_end()) continue;
    std::vector<std::size_t> versions = newest;
    versions[slot] = 0;
    explore_image(model, point, versions);
  }
  if (!late.empty()) explore_image(model, point, missing);
}

/// The image in which, of what was stored since the previous failure point, exactly the stores before
/// event `end` are durable.
std::vector<std::size_t> Explorer::versions_until(const Persistency& model, const Point& point,
                                                  std::size_t end) const {
  std::vector<std::size_t> versions(undecided_.size());
  for (std::size_t slot = 0; slot < versions.size(); ++slot) {
    const auto& pieces = model.pending()[slot].pieces;
    std::size_t count = pieces.size();
    while (count > 0 && pieces[count - 1].event >= end &&
           is_new(pieces[count - 1], point.since, point.level > 0))
      --count;
    versions[slot] = undecided_[slot].after[count];
  }
  return versions;
}

/// Images in which exactly the stores up to each point since the previous failure point are
/// durable. Returns whether it tried all.
bool Explorer::explore_prefixes(const Persistency& model, const Point& point, bool own) {
  const bool recovery = point.level > 0;
  std::vector<std::size_t> ends{point.since}; // events before one of these have happened
  for (const PendingLine& pending : model.pending())
    for (const Piece& piece : pending.pieces)
      if (is_new(piece, point.since, recovery) && (!own || is_own(piece)))
        ends.push_back(piece.event + 1);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  Patience patience;
  for (const std::size_t end : ends) {
    if (exhausted() || patience.is_over()) return false;
    patience.left -= explore_image(model, point, versions_until(model, point, end));
  }
  return true;
}

/// For each line stored to since the previous point: all durable but it, and it alone durable.
/// Returns whether it tried all.
bool Explorer::explore_single_lines(const Persistency& model, const Point& point, bool own) {
  const std::size_t slots = undecided_.size();
  const std::vector<std::size_t> oldest(slots, 0);
  std::vector<std::size_t> newest(slots);
  std::vector<std::size_t> old_missing(slots);
  std::vector<std::size_t> fresh;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    newest[slot] = undecided_[slot].newest();
    if (!is_new(model.pending()[slot].pieces.back(), point.since, point.level > 0)) continue;
    old_missing[slot] = newest[slot];
    const auto& pieces = model.pending()[slot].pieces;
    if (!own ||
        std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) { return is_own(p); }))
      fresh.push_back(slot);
  }
  const std::vector<std::size_t> before = versions_until(model, point, point.since);
  Patience of_missing, of_alone;
  bool all = true;
  for (const std::size_t slot : fresh) {
    all = explore_line(model, point, {slot, before[slot]}, newest, of_missing) && all;
    all = explore_line(model, point, {slot, before[slot]}, oldest, of_alone) && all;
  }
  explore_image(model, point, oldest);
  explore_image(model, point, old_missing);
  return all;
}

/// The versions of a line from `first` on, and that without any of its stores, with these of the others.
/// Returns whether it tried all.
bool Explorer::explore_line(const Persistency& model, const Point& point, const Decision& first,
                            const std::vector<std::size_t>& others, Patience& patience) {
  std::vector<std::size_t> versions = others;
  std::size_t& version = versions[first.slot];
  for (version = 0; version < undecided_[first.slot].versions.size();
       version = std::max(version + 1, first.version)) {
    if (exhausted() || patience.is_over()) return false;
    patience.left -= explore_image(model, point, versions);
  }
  return true;
}

/// A fraction of all images; all of them without a budget. The newest lines vary first.
void Explorer::explore_share(const Persistency& model, const Point& point) {
  const double all = count_images(undecided_);
  const double share =
      options_.budget == 0 ? all : std::min(all, share_at_first * std::pow(4, pass_ - first_share));
  const std::size_t slots = undecided_.size();
  const auto last = [&](std::size_t slot) { return undecided_[slot].versions.size() - 1; };
  std::vector<std::size_t> versions(slots);
  for (std::size_t slot = 0; slot < slots; ++slot)
    versions[slot] = last(slot);
  double looked_at = 0;
  for (; looked_at < share && !exhausted(); ++looked_at) {
    explore_image(model, point, versions);
    for (std::size_t slot = slots; slot-- > 0;) {
      if (versions[slot]-- > 0) break;
      versions[slot] = last(slot);
    }
  }
  (point.level == 0 ? result_.states_left : nested_left_) += all - looked_at;
}

/// Returns whether the image failed by what is known well.
bool Explorer::explore_image(const Persistency& model, const Point& point,
                             const std::vector<std::size_t>& versions) {
  if (exhausted()) return false;
  bool repeats = false;
  std::uint64_t hash = durable_hash_;
  for (std::size_t slot = 0; slot < versions.size(); ++slot) {
    const Undecided& choices = undecided_[slot];
    hash += choices.hashes[versions[slot]] - choices.hashes[0];
  }
  const std::uint64_t image = mix(hash, point.demands());
  if (seen_.insert(image).second) {
    Verdict verdict = run(point, versions);
    ++result_.states;
    if (point.level == 0) reached_[point.event] = true;
    result_.recovery_states += point.level > 0;
    if (verdict.failure == Failure::none && options_.confirm_every != 0 &&
        result_.states % options_.confirm_every == 0) {
      path_of(versions);
      verdict = confirm();
    }
    if (verdict.failure != Failure::none)
      repeats = found(model, point, verdict, versions);
    else if (changed_ && point.level == 0 && options_.crash_recovery)
      uncrashed_.emplace(image, 1);
    report_progress();
  }
  const bool spared = pass_ < recoveries || (pass_ == recoveries && options_.budget != 0 &&
                                             result_.states * 2 >= options_.budget);
  const auto uncrashed = uncrashed_.find(image);
  if (spared || uncrashed == uncrashed_.end()) return repeats;
  uncrashed->second = explore_recovery(model, point, versions);
  if (uncrashed->second == 0) uncrashed_.erase(uncrashed);
  return repeats;
}

/// Takes these versions for the decisions of a run.
void Explorer::path_of(const std::vector<std::size_t>& versions) {
  path_.clear();
  for (std::size_t slot = 0; slot < versions.size(); ++slot)
    path_.push_back({slot, versions[slot]});
}

/// Reruns recovery with the recorder and crashes it at each point. Returns the number of images
/// left; 1 if the recorder saw no store.
double Explorer::explore_recovery(const Persistency& model, const Point& point,
                                  const std::vector<std::size_t>& versions) {
  checked_.record(true);
  run(point, versions);
  checked_.record(false);
  const storelog::Log* log = checked_.log();
  if (log == nullptr || log->events.empty()) return 1;
  path_of(versions);
  nested_left_ = 0;
  explore_nested(model.pending(), point, *log);
  list_versions(model, undecided_);
  return nested_left_;
}

} // namespace nearfar::crash
