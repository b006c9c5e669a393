#include "crash/explorer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

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

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

} // namespace

Explorer::Explorer(Subject& subject, std::size_t bytes, const Options& options)
    : subject_(subject), options_(options), arena_(bytes),
      recovery_(arena_.memory(), bytes, storelog::Recorder::Image::leave_out) {}

Result<Done> Explorer::record(const std::vector<Operation>& operations,
                              std::optional<storelog::Suppressed> suppressed) {
  std::memset(arena_.memory(), 0, arena_.bytes());
  if (Status made = subject_.create(arena_.memory(), arena_.bytes()); !made) return made;
  storelog::Recorder recorder(arena_.memory(), arena_.bytes());
  recorder.suppress(suppressed);
  trace_ = {};
  Contents model;
  trace_.models.push_back(model);
  {
    const storelog::Attached attached(&recorder);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      storelog::begin(i);
      if (Status done = subject_.apply(operations[i]); !done) return done;
      storelog::end(i);
      subject_.apply_to_model(operations[i], model);
      trace_.models.push_back(model);
      if (!options_.ordered) std::sort(trace_.models.back().begin(), trace_.models.back().end());
    }
  }
  subject_.close();
  trace_.log = recorder.log();
  std::vector<std::byte> replayed = trace_.log.image;
  for (const Event& event : trace_.log.events)
    if (event.kind == Kind::store || event.kind == Kind::nt_store)
      std::memcpy(replayed.data() + event.address, trace_.log.data.data() + event.data,
                  event.bytes);
  const auto [mine, theirs] = std::mismatch(replayed.begin(), replayed.end(), arena_.memory());
  if (mine != replayed.end())
    return Error::make(Errc::failed_check, "a store to pool offset %zu was not reported",
                       static_cast<std::size_t>(mine - replayed.begin()))
        .try_next("report every store to the pool to storelog");
  return Done{};
}

Exploration Explorer::explore(const std::function<void(const Progress&)>& progress) {
  const double start = cpu_seconds();
  progress_ = progress;
  result_ = {};
  seen_.clear();
  durable_ = trace_.log.image;
  arena_.copy_all(durable_);
  durable_hash_ = 0;
  for (std::uint32_t line = 0; line * line_bytes < durable_.size(); ++line)
    durable_hash_ += hash_line(line, durable_.data() + std::size_t{line} * line_bytes);
  guard_ = std::make_unique<os::Guard>(options_.limit_ms);
  Persistency model(trace_.log, options_.platform, durable_);
  explore_points(model, {}, nullptr);
  guard_.reset();
  result_.seconds = cpu_seconds() - start;
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
    explore_point(model, point);
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
  std::uint64_t hash = mix(mix(durable_hash_, versions), point.acknowledged * 2 + point.in_flight);
  hash = mix(hash, static_cast<std::uint64_t>(point.level));
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

void Explorer::explore_point(const Persistency& model, const Point& point) {
  list_versions(model);
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
      found(model, point, verdict);
    } else if (point.level == 0 && options_.crash_recovery && !recovery_.log().events.empty()) {
      explore_nested(model.pending(), point);
      list_versions(model);
    }
    if (result_.states % 4096 == 0) tell();
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
  reason_ = nullptr;
  stage_ = 0;
  const os::Guarded guarded = guard_->run(
      [](void* context) {
        auto& self = *static_cast<Explorer*>(context);
        {
          const storelog::Attached attached(&self.recovery_);
          self.reason_ = self.subject_.open(self.arena_.memory(), self.arena_.bytes());
        }
        if (self.reason_ != nullptr) return;
        self.stage_ = 1;
        self.contents_.clear();
        self.reason_ = self.subject_.contents(self.contents_);
        self.leaked_ = self.reason_ == nullptr ? self.subject_.leaked_bytes() : 0;
        self.subject_.close();
      },
      this);
  storelog::thread_state.recorder = nullptr; // where a jump left it attached
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
  if (reason_ != nullptr) return {stage_ == 0 ? Failure::refused : Failure::broken, reason_};
  if (!options_.ordered) std::sort(contents_.begin(), contents_.end());
  char text[200];
  if (point.exactly != nullptr && contents_ != *point.exactly)
    return {Failure::not_idempotent,
            "recovery was crashed at its end, and the next one found something else"};
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

void Explorer::tell() {
  if (progress_)
    progress_({result_.states, outer_event_, trace_.log.events.size(), result_.violations});
}

Finding Explorer::replay(std::span<const std::byte> image, std::uint64_t acknowledged,
                         bool in_flight) {
  durable_.assign(image.begin(), image.end());
  arena_.copy_all(durable_);
  undecided_.clear();
  path_.clear();
  guard_ = std::make_unique<os::Guard>(options_.limit_ms);
  const Verdict verdict = run({0, acknowledged, in_flight, 0, nullptr});
  guard_.reset();
  Finding finding;
  finding.failure = verdict.failure;
  finding.what = verdict.what;
  finding.acknowledged = acknowledged;
  finding.in_flight = in_flight;
  return finding;
}

} // namespace nearfar::crash
