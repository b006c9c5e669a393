#include "crash/explorer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "os/clock.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::Kind;

namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

/// Of a line at its place; sums of these tell images apart whatever the order of changes.
std::uint64_t hash_line(std::uint32_t line, const std::byte* content) {
  std::uint64_t hash = line + 1;
  for (std::size_t at = 0; at < line_bytes; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, content + at, 8);
    hash = mix(hash, word);
  }
  return hash;
}

} // namespace

Explorer::Explorer(Checked& checked, Arena& arena, const Trace& trace, const Options& options)
    : checked_(checked), arena_(arena), trace_(trace), options_(options),
      recovery_(arena_.memory(), arena_.bytes(), storelog::Recorder::Image::leave_out) {}

void Explorer::prepare() {
  durable_ = trace_.log.image;
  arena_.copy_all(durable_);
  durable_hash_ = 0;
  for (std::uint32_t line = 0; std::size_t{line} * line_bytes < durable_.size(); ++line)
    durable_hash_ += hash_line(line, durable_.data() + std::size_t{line} * line_bytes);
}

Exploration Explorer::explore(const std::function<void(const Progress&)>& progress) {
  const std::uint64_t start = os::now_ns();
  progress_ = progress;
  result_ = {};
  seen_.clear();
  guard_ = std::make_unique<os::Guard>(options_.limit_ms);
  passes_ = options_.read_all ? 2 : 1;
  for (pass_ = 0; pass_ < passes_; ++pass_) {
    prepare();
    Persistency model(trace_.log, options_.platform, durable_);
    explore_points(model, {}, nullptr);
  }
  guard_.reset();
  result_.seconds = static_cast<double>(os::now_ns() - start) * 1e-9;
  return std::move(result_);
}

const storelog::Log& Explorer::log_at(const Point& point) const {
  return point.level == 0 ? trace_.log : nested_log_;
}

void Explorer::explore_points(Persistency& model, Point point, const Contents* recovered) {
  const storelog::Log& log = log_at(point);
  std::size_t counted = 0;
  while (model.next()) {
    follow(model.take_changed());
    point.event = model.event();
    for (; counted < point.event; ++counted) {
      if (log.events[counted].kind == Kind::begin) point.in_flight = true;
      if (log.events[counted].kind != Kind::end) continue;
      point.in_flight = false;
      ++point.acknowledged;
    }
    if (recovered != nullptr && point.event == log.events.size()) point.exactly = recovered;
    if (point.level == 0) outer_event_ = point.event;
    point.finished = point.level == 0 && point.event == log.events.size();
    list_versions(model);
    if (options_.read_all)
      explore_every(model, point);
    else
      explore_read(model, point);
  }
}

/// Keeps hash and arena in step with the durable image.
void Explorer::follow(std::vector<Changed> changed) {
  // A line that changed twice is told twice: its first `before` is what was hashed.
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

void Explorer::list_versions(const Persistency& model) {
  const std::vector<PendingLine>& pending = model.pending();
  undecided_.resize(pending.size());
  for (std::size_t slot = 0; slot < pending.size(); ++slot) {
    Undecided& choices = undecided_[slot];
    choices.line = pending[slot].line;
    choices.versions.clear();
    choices.pieces.clear();
    for (std::size_t pieces = 0; pieces <= pending[slot].pieces.size(); ++pieces) {
      const Line version = model.version(pending[slot], pieces);
      if (std::find(choices.versions.begin(), choices.versions.end(), version) !=
          choices.versions.end())
        continue;
      choices.versions.push_back(version);
      choices.pieces.push_back(static_cast<std::uint32_t>(pieces));
    }
  }
}

/// Failure points with equal keys leave the same images, which must satisfy the same.
std::uint64_t Explorer::key(const Point& point) const {
  std::uint64_t versions = 0;
  for (const Undecided& choices : undecided_)
    for (const Line& version : choices.versions)
      versions += hash_line(choices.line, version.data());
  std::uint64_t hash = mix(mix(durable_hash_, versions), point.demands());
  if (point.exactly != nullptr)
    for (const auto& [key, value] : *point.exactly)
      hash = mix(mix(hash, key), value);
  return hash;
}

/// How many images the pending lines can make, and for how many of them the last run stands.
double Explorer::images() const {
  double images = 1;
  for (const Undecided& choices : undecided_)
    images *= static_cast<double>(choices.versions.size());
  return images;
}

double Explorer::covered() const {
  double images = this->images();
  for (const Decision& decision : path_)
    images /= static_cast<double>(undecided_[decision.slot].versions.size());
  return images;
}

void Explorer::explore_read(const Persistency& model, const Point& point) {
  if (!seen_.insert(key(point)).second) return;
  ++result_.points;
  double left = images();
  path_.clear();
  do {
    if (exhausted()) break;
    const Verdict verdict = run(point);
    ++result_.states;
    result_.recovery_states += point.level > 0;
    left -= covered();
    if (verdict.failure != Failure::none) {
      std::vector<std::size_t> versions(undecided_.size(), 0);
      for (const Decision& decision : path_)
        versions[decision.slot] = decision.version;
      const std::vector<Decision> path = path_;
      found(model, point, verdict, versions);
      path_ = path;
    } else if (point.level == 0 && options_.crash_recovery && !recovery_.log().events.empty()) {
      explore_nested(model.pending(), point);
      list_versions(model);
    }
    tell();
  } while (advance());
  if (exhausted()) result_.states_left += std::max(left, 0.0);
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
  moment_ = {point.acknowledged, point.in_flight, point.finished};
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
  storelog::thread_state.listener = nullptr; // where a jump left it attached
  arena_.end(durable_);
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

Explorer::Verdict Explorer::judge(const Point& point) {
  if (reason_ != nullptr) {
    const Failure told = checked_.failure();
    if (told != Failure::none) return {told, reason_};
    return {stage_ == 0 ? Failure::refused : Failure::broken, reason_};
  }
  if (!trace_.ordered) std::sort(contents_.begin(), contents_.end());
  char text[200];
  if (point.exactly != nullptr && contents_ != *point.exactly)
    return {Failure::not_idempotent,
            "recovery was crashed at its end, and the next one found something else"};
  if (trace_.models.empty()) return {}; // whoever checks knows no more
  const Contents& before = trace_.models[point.acknowledged];
  if (contents_ != before &&
      (!point.in_flight || contents_ != trace_.models[point.acknowledged + 1])) {
    const bool earlier =
        point.acknowledged > 0 && contents_ == trace_.models[point.acknowledged - 1];
    std::snprintf(text, sizeof text,
                  earlier ? "operation %llu was acknowledged, but is not there"
                          : "%llu operations were acknowledged; what is there is neither that nor "
                            "one more",
                  static_cast<unsigned long long>(point.acknowledged));
    return {earlier ? Failure::lost : Failure::not_atomic, text};
  }
  if (leaked_ != 0) {
    std::snprintf(text, sizeof text, "%llu bytes are taken, but nothing reaches them",
                  static_cast<unsigned long long>(leaked_));
    return {Failure::leak, text};
  }
  return {};
}

/// Crashes at each point of the recovery that has just run.
void Explorer::explore_nested(const std::vector<PendingLine>& pending, const Point& point) {
  nested_log_ = recovery_.log();
  nested_log_.pool_bytes = arena_.bytes();
  const Contents recovered = contents_;
  std::vector<Changed> undo;
  std::vector<bool> decided(pending.size());
  for (const Decision& decision : path_) { // what was read after the crash is what was durable
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
  Persistency model(nested_log_, options_.platform, durable_, std::move(carried), true);
  undo_ = &undo;
  explore_points(model, nested, &recovered);
  undo_ = nullptr;
  for (std::size_t i = undo.size(); i-- > 0;)
    rewrite(undo[i].line, undo[i].before);
  path_ = path;
}

/// All images, whatever recovery reads: first those that few decisions make, then the rest.
void Explorer::explore_every(const Persistency& model, const Point& point) {
  result_.points += pass_ == 0;
  std::vector<std::size_t> newest(undecided_.size());
  for (std::size_t slot = 0; slot < newest.size(); ++slot)
    newest[slot] = undecided_[slot].versions.size() - 1;
  std::vector<std::size_t> versions = newest;
  if (pass_ == 0) {
    explore_image(model, point, versions);
    explore_prefixes(model, point);
    for (std::size_t slot = 0; slot < newest.size(); ++slot) {
      for (versions[slot] = 0; versions[slot] < newest[slot]; ++versions[slot])
        explore_image(model, point, versions);
    }
    std::vector<std::size_t> oldest(newest.size(), 0);
    for (std::size_t slot = 0; slot < newest.size(); ++slot) {
      for (oldest[slot] = newest[slot]; oldest[slot] > 0; --oldest[slot])
        explore_image(model, point, oldest);
    }
    return;
  }
  double left = images();
  for (bool more = true; more && !exhausted(); left -= 1) {
    explore_image(model, point, versions);
    std::size_t slot = 0;
    while (slot < versions.size() && versions[slot] == 0) {
      versions[slot] = newest[slot];
      ++slot;
    }
    more = slot < versions.size();
    if (more) --versions[slot];
  }
  result_.states_left += exhausted() ? std::max(left, 0.0) : 0;
}

/// As if the power had failed after each store since the failure point before, all of them durable.
void Explorer::explore_prefixes(const Persistency& model, const Point& point) {
  std::vector<std::uint32_t> events;
  for (const PendingLine& pending : model.pending())
    for (const Piece& piece : pending.pieces)
      events.push_back(piece.event);
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  std::vector<std::size_t> versions(undecided_.size());
  for (const std::uint32_t last : events) {
    for (std::size_t slot = 0; slot < versions.size(); ++slot) {
      const auto& pieces = model.pending()[slot].pieces;
      const auto count = static_cast<std::size_t>(std::count_if(
          pieces.begin(), pieces.end(), [&](const Piece& piece) { return piece.event <= last; }));
      const Line content = model.version(model.pending()[slot], count);
      const auto& known = undecided_[slot].versions;
      versions[slot] =
          static_cast<std::size_t>(std::find(known.begin(), known.end(), content) - known.begin());
    }
    explore_image(model, point, versions);
  }
}

void Explorer::explore_image(const Persistency& model, const Point& point,
                             const std::vector<std::size_t>& versions) {
  if (exhausted()) return;
  std::uint64_t hash = durable_hash_;
  for (std::size_t slot = 0; slot < versions.size(); ++slot) {
    const Undecided& choices = undecided_[slot];
    hash += hash_line(choices.line, choices.versions[versions[slot]].data());
    hash -= hash_line(choices.line, choices.versions[0].data());
  }
  if (!seen_.insert(mix(hash, point.demands())).second) return;
  forced_ = &versions;
  const Verdict verdict = run(point);
  forced_ = nullptr;
  ++result_.states;
  if (verdict.failure != Failure::none) found(model, point, verdict, versions);
  tell();
}

void Explorer::tell() {
  if (!progress_ || result_.states % options_.told_every != 0) return;
  progress_({result_.states, outer_event_, trace_.log.events.size(), result_.violations, pass_ + 1,
             passes_});
}

Finding Explorer::replay(std::span<const std::byte> image, std::uint64_t acknowledged,
                         bool in_flight, bool finished) {
  durable_.assign(image.begin(), image.end());
  arena_.copy_all(durable_);
  undecided_.clear();
  path_.clear();
  guard_ = std::make_unique<os::Guard>(options_.limit_ms);
  const Verdict verdict = run({0, acknowledged, in_flight, finished, 0, nullptr});
  guard_.reset();
  Finding finding;
  finding.failure = verdict.failure;
  finding.what = verdict.what;
  finding.acknowledged = acknowledged;
  finding.in_flight = in_flight;
  return finding;
}

} // namespace nearfar::crash
