#include "crash/explorer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "crash/hash.hpp"
#include "crash/library.hpp"
#include "os/clock.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;

Explorer::Explorer(Checked& checked, Arena& arena, const Trace& trace, const Options& options)
    : checked_(checked), arena_(arena), trace_(trace), options_(options),
      recovery_(arena_.memory(), arena_.bytes(), storelog::Recorder::Image::leave_out) {}

/// An image is explored by lines. A file may end within one; what follows there is zero.
std::vector<std::byte> Explorer::in_lines(std::span<const std::byte> image) {
  std::vector<std::byte> lines(image.begin(), image.end());
  lines.resize((image.size() + line_bytes - 1) / line_bytes * line_bytes);
  return lines;
}

void Explorer::prepare() {
  durable_ = in_lines(trace_.log.image);
  arena_.copy_all(durable_);
  durable_hash_ = 0;
  for (std::uint32_t line = 0; std::size_t{line} * line_bytes < durable_.size(); ++line)
    durable_hash_ += hash_line(line, durable_.data() + std::size_t{line} * line_bytes);
}

/// Counts the stores of the program and their places, of all and of those that were tried.
void Explorer::count_stores() {
  std::unordered_set<std::uint64_t> places, tried;
  const std::vector<Event>& events = trace_.log.events;
  tried_.resize(events.size());
  result_.stores = result_.stores_tried = 0;
  for (std::size_t i = options_.from; i < events.size(); ++i) {
    if (!stores(events[i]) || of_library(events[i].site)) continue;
    ++result_.stores;
    result_.stores_tried += tried_[i];
    const std::uint64_t place = hash_place(in_program(events[i].site));
    places.insert(place);
    if (tried_[i]) tried.insert(place);
  }
  result_.places = places.size();
  result_.places_tried = tried.size();
}

/// Marks the stores since the previous failure point as tried, each durable and not.
void Explorer::note_tried_stores(const Point& point) {
  if (point.level > 0 || exhausted()) return;
  std::fill(tried_.begin() + static_cast<std::ptrdiff_t>(point.since),
            tried_.begin() + static_cast<std::ptrdiff_t>(point.event), true);
}

Exploration Explorer::explore(const std::function<void(const Progress&)>& progress) {
  const std::uint64_t start = os::now_ns();
  progress_ = progress;
  result_ = {};
  seen_.clear();
  uncrashed_.clear();
  overdue_.clear();
  tried_.assign(trace_.log.events.size(), false);
  reached_.assign(trace_.log.events.size() + 1, false);
  all_ = covered_ = 0;
  states_before_ = in_a_row_ = 0;
  if (trace_.ending != Failure::none) {
    Finding finding;
    finding.failure = trace_.ending;
    finding.what = trace_.ended;
    finding.event = trace_.log.events.size();
    finding.acknowledged = trace_.models.size() - 2;
    finding.in_flight = true;
    result_.findings.push_back(std::move(finding)); // without an image: no crash was needed
    result_.violations = in_a_row_ = 1;
  }
  guard_ = std::make_unique<os::Guard>(options_.limit_ms);
  pass_ = 0;
  explore_first();
  do {
    result_.states_left = 0;
    prepare();
    Persistency model(trace_.log, options_.loss, durable_);
    explore_points(model, {}, nullptr);
  } while (options_.read_all && another_pass());
  guard_.reset();
  result_.cut_off = in_a_row_ >= options_.violations;
  if (os::stop_wanted()) count_what_is_left();
  if (result_.states_left == 0 && !exhausted()) tried_.assign(tried_.size(), true);
  count_stores();
  result_.seconds = static_cast<double>(os::now_ns() - start) * 1e-9;
  return std::move(result_);
}

std::span<const std::uint64_t> Explorer::operations_at(std::uint64_t acknowledged) const {
  const std::span<const std::uint64_t> all(trace_.operations);
  const std::vector<std::size_t>& after = trace_.operations_after;
  return after.empty() ? all
                       : all.first(after[std::min<std::size_t>(acknowledged, after.size() - 1)]);
}

const storelog::Log& Explorer::log_at(const Point& point) const {
  return point.level == 0 ? trace_.log : nested_log_;
}

void Explorer::explore_points(Persistency& model, Point point, const Contents* recovered) {
  const storelog::Log& log = log_at(point);
  std::size_t counted = 0;
  while (!is_walk_over(point) && model.next()) {
    follow(model.take_changed());
    point.since = std::exchange(point.event, model.event());
    for (; counted < point.event; ++counted) {
      if (log.events[counted].kind == EventKind::begin) ++point.running;
      if (log.events[counted].kind == EventKind::end) {
        point.running -= point.running > 0;
        ++point.acknowledged;
      }
      point.in_flight = point.running > 0;
    }
    if (recovered != nullptr && model.at_end()) point.expected_contents = recovered;
    if (point.level == 0) outer_event_ = point.event;
    if (point.level == 0) point.finished = model.at_end();
    if (point.level == 0 && point.event < options_.from) continue;
    if (stage_of_ == Stage::suspects) {
      explore_suspects_at(model, point);
      continue;
    }
    if (stage_of_ != Stage::all) {
      explore_new_places_at(model, point);
      continue;
    }
    list_versions(model, undecided_);
    if (options_.read_all)
      explore_unknown_reads(model, point);
    else {
      explore_known_reads(model, point);
      note_tried_stores(point);
    }
  }
}

/// Whether the walk through the log has no effect any longer; what is left is counted by another.
bool Explorer::is_walk_over(const Point& point) const {
  const bool counts = stage_of_ == Stage::all && (!options_.read_all || is_share_pass());
  return os::stop_wanted() || (exhausted() && point.level == 0 && !counts);
}

/// Keeps hash and arena in step with the durable image.
void Explorer::follow(std::vector<Changed> changed) {
  // A line that changed twice is listed twice: its first `before` was hashed.
  std::stable_sort(changed.begin(), changed.end(),
                   [](const Changed& a, const Changed& b) { return a.line < b.line; });
  if (undo_ != nullptr) undo_->insert(undo_->end(), changed.begin(), changed.end());
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (i > 0 && changed[i].line == changed[i - 1].line) continue;
    const std::uint32_t line = changed[i].line;
    durable_hash_ -= hash_line(line, changed[i].before.data());
    durable_hash_ += hash_line(line, durable_.data() + std::size_t{line} * line_bytes);
    arena_.update(durable_, line);
  }
}

void Explorer::rewrite(std::uint32_t line, const Line& content) {
  std::byte* at = durable_.data() + std::size_t{line} * line_bytes;
  durable_hash_ -= hash_line(line, at);
  std::memcpy(at, content.data(), line_bytes);
  durable_hash_ += hash_line(line, at);
  arena_.update(durable_, line);
}

/// Failure points with equal keys leave the same images, which must satisfy the same.
std::uint64_t Explorer::key(const Point& point) const {
  std::uint64_t versions = 0;
  for (const Undecided& choices : undecided_)
    versions = std::accumulate(choices.hashes.begin(), choices.hashes.end(), versions);
  std::uint64_t hash = mix(mix(durable_hash_, versions), point.demands());
  if (point.expected_contents != nullptr)
    for (const auto& [key, value] : *point.expected_contents)
      hash = mix(mix(hash, key), value);
  return hash;
}

/// Number of images represented by the last run.
double Explorer::covered() const {
  double images = count_images(undecided_);
  for (const Decision& decision : path_)
    images /= static_cast<double>(undecided_[decision.slot].versions.size());
  return images;
}

void Explorer::explore_known_reads(const Persistency& model, const Point& point) {
  double left = count_images(undecided_);
  if (!seen_.insert(key(point)).second) {
    covered_ += point.level == 0 ? left : 0;
    return;
  }
  ++result_.points;
  path_.clear();
  do {
    if (exhausted()) break;
    Verdict verdict = run(point);
    ++result_.states;
    if (verdict.failure == Failure::none && options_.confirm_every != 0 &&
        result_.states % options_.confirm_every == 0)
      verdict = confirm();
    result_.recovery_states += point.level > 0;
    const double stands_for = covered();
    left -= stands_for;
    covered_ += point.level == 0 ? stands_for : 0;
    if (verdict.failure != Failure::none) {
      std::vector<std::size_t> versions(undecided_.size(), 0);
      for (const Decision& decision : path_)
        versions[decision.slot] = decision.version;
      const std::vector<Decision> path = path_;
      found(model, point, verdict, versions);
      path_ = path;
    } else if (point.level == 0 && options_.crash_recovery && !recovery_.log().events.empty()) {
      explore_nested(model.pending(), point, recovery_.log());
      list_versions(model, undecided_);
    }
    report_progress();
  } while (advance());
  if (!exhausted()) return;
  result_.states_left += std::max(left, 0.0);
}

/// The next decisions in depth-first order: newest versions first, which is program order first.
bool Explorer::advance() {
  while (!path_.empty() && path_.back().version == 0)
    path_.pop_back();
  if (path_.empty()) return false;
  --path_.back().version;
  return true;
}

std::size_t Explorer::choose(std::size_t slot) {
  if (forced_ != nullptr) return (*forced_)[slot];
  if (depth_ == path_.size()) path_.push_back({slot, undecided_[slot].versions.size() - 1});
  return path_[depth_++].version;
}

Explorer::Verdict Explorer::run(const Point& point) {
  depth_ = 0;
  recovery_.restart();
  arena_.begin(undecided_, *this);
  if (options_.read_all) arena_.decide_all();
  moment_ = {point.acknowledged, point.in_flight, point.finished, options_.loss,
             operations_at(point.acknowledged)};
  reason_ = nullptr;
  stage_ = 0;
  const os::Guarded guarded = guard_->run(
      [](void* context) {
        auto& self = *static_cast<Explorer*>(context);
        {
          const storelog::Attached attached(&self.recovery_);
          self.reason_ =
              self.checked_.open(self.arena_.memory(), self.arena_.bytes(), self.moment_);
        }
        if (self.reason_ != nullptr) return;
        self.stage_ = 1;
        self.contents_.clear();
        self.reason_ = self.checked_.contents(self.contents_);
        self.leaked_ = self.reason_ == nullptr ? self.checked_.leaked_bytes() : 0;
        self.checked_.close();
      },
      this);
  // A longjmp out of the guarded call skips the destructor that detaches.
  storelog::thread_state.listener = nullptr;
  changed_ = arena_.end(durable_);
  const char* who = stage_ == 0 ? "recovery" : "the check";
  char text[200];
  if (guarded.ending == os::Ending::hung) {
    std::snprintf(text, sizeof text, "%s did not end within %llu ms of CPU time", who,
                  static_cast<unsigned long long>(options_.limit_ms));
    return {Failure::hung, text};
  }
  if (guarded.ending == os::Ending::crashed) {
    std::snprintf(text, sizeof text, "%s was killed by signal %d (%s)", who, guarded.signal,
                  strsignal(guarded.signal));
    return {Failure::crashed, text};
  }
  return judge(point);
}

/// The image of these versions, one for each slot.
Explorer::Verdict Explorer::run(const Point& point, const std::vector<std::size_t>& versions) {
  forced_ = &versions;
  Verdict verdict = run(point);
  forced_ = nullptr;
  return verdict;
}

Explorer::Verdict Explorer::judge(const Point& point) {
  if (reason_ != nullptr) {
    const Failure reported = checked_.failure();
    if (reported != Failure::none) return {reported, reason_};
    return {stage_ == 0 ? Failure::refused : Failure::broken, reason_};
  }
  if (!trace_.ordered && !std::is_sorted(contents_.begin(), contents_.end()))
    std::sort(contents_.begin(), contents_.end());
  char text[200];
  if (point.expected_contents != nullptr && contents_ != *point.expected_contents)
    return {Failure::not_idempotent,
            "recovery crashed at its end; the next recovery returned other contents"};
  if (trace_.models.empty()) return {}; // the checker alone decides
  const Contents& before = trace_.models[point.acknowledged];
  if (contents_ != before &&
      (!point.in_flight || contents_ != trace_.models[point.acknowledged + 1])) {
    const bool earlier =
        point.acknowledged > 0 && contents_ == trace_.models[point.acknowledged - 1];
    std::snprintf(text, sizeof text,
                  earlier ? "operation %llu was acknowledged but is missing"
                          : "after %llu acknowledged operations, the contents match neither that "
                            "state nor the next one",
                  static_cast<unsigned long long>(point.acknowledged));
    return {earlier ? Failure::lost : Failure::not_atomic, text};
  }
  if (leaked_ != 0) {
    std::snprintf(text, sizeof text, "%llu allocated bytes are unreachable (leak)",
                  static_cast<unsigned long long>(leaked_));
    return {Failure::leak, text};
  }
  return {};
}

/// Copies the image that passed into the mirror and asks for a second opinion. Lines that recovery
/// did not read get random contents.
Explorer::Verdict Explorer::confirm() {
  const auto put = [&](std::size_t slot, const Line& content) {
    std::memcpy(arena_.mirror() + std::size_t{undecided_[slot].line} * line_bytes, content.data(),
                line_bytes);
  };
  for (std::size_t slot = 0; slot < undecided_.size(); ++slot) {
    const std::vector<Line>& versions = undecided_[slot].versions;
    put(slot, versions[random_.below(versions.size())]);
  }
  for (const Decision& decision : path_)
    put(decision.slot, undecided_[decision.slot].versions[decision.version]);
  const char* otherwise = checked_.confirm(moment_, contents_);
  for (std::size_t slot = 0; slot < undecided_.size(); ++slot)
    put(slot, undecided_[slot].versions[0]);
  ++result_.confirmed;
  if (otherwise == nullptr) return {};
  return {checked_.failure(), otherwise, true};
}

/// Crashes at each point of the recovery that has just run, and that stored what `log` says.
void Explorer::explore_nested(const std::vector<PendingLine>& pending, const Point& point,
                              const storelog::Log& log) {
  nested_log_ = log;
  nested_log_.pool_bytes = arena_.bytes();
  const Contents recovered = contents_;
  std::vector<Changed> undo;
  std::vector<bool> decided(pending.size());
  for (const Decision& decision : path_) { // a version that recovery read is the durable one
    const Undecided& choices = undecided_[decision.slot];
    Changed changed{choices.line, choices.versions[0]};
    undo.push_back(changed);
    rewrite(choices.line, Line(choices.versions[decision.version]));
    decided[decision.slot] = true;
  }
  std::vector<PendingLine> carried;
  for (std::size_t slot = 0; slot < pending.size(); ++slot)
    if (!decided[slot]) carried.push_back(pending[slot]);
  const std::vector<Decision> path = std::exchange(path_, {});
  Point nested = point;
  nested.level = 1;
  nested.event = 0;
  // Where one host has died, the survivor recovers; a crash of it loses what it did not flush.
  const CacheLoss loss = options_.loss == CacheLoss::none ? CacheLoss::none : CacheLoss::all;
  Persistency model(nested_log_, loss, durable_, std::move(carried), true);
  undo_ = &undo;
  explore_points(model, nested, &recovered);
  undo_ = nullptr;
  for (std::size_t i = undo.size(); i-- > 0;)
    rewrite(undo[i].line, undo[i].before);
  path_ = path;
}

/// How many images all failure points leave; crashes during recovery are not among them.
double Explorer::count_all() const {
  std::vector<std::byte> durable = in_lines(trace_.log.image);
  Persistency model(trace_.log, options_.loss, durable);
  std::vector<Undecided> undecided;
  double all = 0;
  for (; model.next(); all += count_images(undecided))
    list_versions(model, undecided);
  return all;
}

/// Images at most that no run stands for; those of crashes during recovery are not among them.
double Explorer::left_of_all() {
  if (all_ == 0) all_ = count_all();
  return std::max(all_ - (options_.read_all ? static_cast<double>(result_.states) : covered_), 0.0);
}

/// Where the exploration was stopped, no pass has counted images and failure points.
void Explorer::count_what_is_left() {
  result_.states_left = std::max(left_of_all(), 1.0);
  if (options_.read_all)
    result_.points = static_cast<std::uint64_t>(std::count(reached_.begin(), reached_.end(), true));
}

void Explorer::report_progress() {
  if (!progress_ || result_.states % options_.progress_interval != 0) return;
  const double left = left_of_all();
  const double events = static_cast<double>(trace_.log.events.size());
  const double states = static_cast<double>(result_.states);
  const double seen = options_.read_all ? states : covered_;
  double done = static_cast<double>(outer_event_) / events;
  if (options_.read_all) done = seen / (seen + left);
  if (options_.budget != 0) done = std::max(done, states / static_cast<double>(options_.budget));
  progress_({result_.states, left, result_.violations, done});
}

Finding Explorer::replay(std::span<const std::byte> image, std::uint64_t acknowledged,
                         bool in_flight, bool finished) {
  durable_ = in_lines(image);
  arena_.copy_all(durable_);
  undecided_.clear();
  path_.clear();
  guard_ = std::make_unique<os::Guard>(options_.limit_ms);
  Verdict verdict = run({0, 0, acknowledged, in_flight, in_flight, finished, 0, nullptr});
  if (verdict.failure == Failure::none && options_.confirm_every != 0) verdict = confirm();
  guard_.reset();
  Finding finding;
  finding.failure = verdict.failure;
  finding.what = verdict.what;
  finding.acknowledged = acknowledged;
  finding.in_flight = in_flight;
  finding.loss = options_.loss;
  return finding;
}

} // namespace nearfar::crash
