// From an image that fails to the store to blame: the smallest set of lines that makes it fail.
//
// How   1. From the failing image every pending line is made as new as it can be, as long as the
//          image still fails: what stays old is *missing*. 2. Of the rest, every line is made as
//          old as it can be: what stays new is there *too early*. Each step is one run of recovery,
//          so the result is minimal in the sense that no single line can be left out.
//       Only missing lines: something acknowledged was not made durable. Only early ones: it was
//       overwritten in place, unlogged. Both: the early store overtook the missing one.
#include "crash/explorer.hpp"

#include <algorithm>
#include <cstring>

namespace nearfar::crash {

using storelog::Event;
using storelog::Kind;
using storelog::Log;
using storelog::Site;

namespace {

bool covers(const Event& event, std::uint64_t address, std::size_t bytes) {
  return event.address < address + bytes && address < event.address + event.bytes;
}

bool covers_line(const Event& event, std::uint64_t address) {
  const std::uint64_t line = address / line_bytes;
  return event.bytes > 0 && event.address / line_bytes <= line &&
         (event.address + event.bytes - 1) / line_bytes >= line;
}

/// Whether an event of this kind in [from, to) touches the line of `address`.
bool flushed(const Log& log, std::size_t from, std::size_t to, std::uint64_t address) {
  for (std::size_t i = from; i < to && i < log.events.size(); ++i)
    if (log.events[i].kind == Kind::flush && covers_line(log.events[i], address)) return true;
  return false;
}

/// The first event of the operation around event `at`, behind its beginning.
std::size_t first_of_operation(const Log& log, std::size_t at) {
  std::size_t first = std::min(at, log.events.size());
  while (first > 0 && log.events[first - 1].kind != Kind::begin)
    --first;
  return first;
}

/// Whether the operation around event `at` logs anything, and whether it logs these bytes.
struct Logged {
  bool anything = false;
  bool these = false;
};
Logged logged(const Log& log, std::size_t at, std::uint64_t address, std::size_t bytes) {
  Logged result;
  for (std::size_t i = first_of_operation(log, at);
       i < log.events.size() && log.events[i].kind != Kind::end; ++i) {
    if (log.events[i].kind != Kind::log) continue;
    result.anything = true;
    result.these = result.these || covers(log.events[i], address, bytes);
  }
  return result;
}

/// Whether any operation logs some of these bytes: then they are data. The stores that write a log
/// itself are logged by nobody.
bool ever_logged(const Log& log, const Event& store) {
  return std::any_of(log.events.begin(), log.events.end(), [&](const Event& event) {
    return event.kind == Kind::log && covers(event, store.address, store.bytes);
  });
}

/// Whether a store changed data that its operation did not log, though it logs others.
bool left_out(const Log& log, std::size_t at) {
  const Event& event = log.events[at];
  const Logged range = logged(log, at, event.address, event.bytes);
  return range.anything && !range.these && ever_logged(log, event);
}

/// The first such store of the operation around event `at`, or null.
const Event* first_left_out(const Log& log, std::size_t at) {
  for (std::size_t i = first_of_operation(log, at);
       i < log.events.size() && log.events[i].kind != Kind::end; ++i)
    if (stores(log.events[i]) && left_out(log, i)) return &log.events[i];
  return nullptr;
}

std::uint64_t address_of(std::uint32_t line, const Piece& piece) {
  return std::uint64_t{line} * line_bytes + piece.offset;
}

} // namespace

bool Explorer::fails(const Point& point, const std::vector<std::size_t>& versions) {
  return run(point, versions).failure != Failure::none;
}

void Explorer::found(const Persistency& model, const Point& point, const Verdict& verdict,
                     std::vector<std::size_t> versions) {
  ++result_.violations;
  Finding finding;
  finding.failure = verdict.failure;
  finding.what = verdict.what;
  finding.event = point.event;
  finding.acknowledged = point.acknowledged;
  finding.in_flight = point.in_flight;
  finding.finished = point.finished;
  finding.during_recovery = point.level > 0;
  if (!verdict.second) blame(model, point, versions, finding);
  for (Finding& known : result_.findings)
    if (known.store.place() == finding.store.place() && known.missing == finding.missing &&
        known.failure == finding.failure &&
        std::strcmp(known.store.file(), finding.store.file()) == 0) {
      ++known.violations;
      return;
    }
  if (result_.findings.size() >= options_.findings) return;
  finding.image = durable_;
  for (std::size_t slot = 0; slot < versions.size(); ++slot) {
    const Undecided& choices = undecided_[slot];
    std::memcpy(finding.image.data() + std::size_t{choices.line} * line_bytes,
                choices.versions[versions[slot]].data(), line_bytes);
  }
  result_.findings.push_back(std::move(finding));
}

/// Gives slots [first, last) the `wanted` versions, as far as the image still fails: all at once,
/// or else each half.
void Explorer::keep_failing(const Point& point, std::vector<std::size_t>& versions,
                            const std::vector<std::size_t>& wanted, std::size_t first,
                            std::size_t last) {
  const auto range = [&](const std::vector<std::size_t>& of) {
    return std::span(of).subspan(first, last - first);
  };
  if (std::ranges::equal(range(versions), range(wanted))) return;
  std::vector<std::size_t> tried = versions;
  std::ranges::copy(range(wanted), tried.begin() + static_cast<std::ptrdiff_t>(first));
  if (fails(point, tried)) {
    versions = std::move(tried);
  } else if (last - first > 1) {
    const std::size_t middle = first + (last - first) / 2;
    keep_failing(point, versions, wanted, first, middle);
    keep_failing(point, versions, wanted, middle, last);
  }
}

void Explorer::blame(const Persistency& model, const Point& point,
                     std::vector<std::size_t> versions, Finding& finding) {
  const std::size_t slots = versions.size();
  std::vector<std::size_t> wanted(slots);
  for (std::size_t slot = 0; slot < slots; ++slot)
    wanted[slot] = undecided_[slot].newest;
  keep_failing(point, versions, wanted, 0, slots);
  std::vector<bool> missing(slots);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    missing[slot] = versions[slot] != undecided_[slot].newest;
    wanted[slot] = missing[slot] ? versions[slot] : 0;
  }
  keep_failing(point, versions, wanted, 0, slots);
  for (std::size_t slot = 0; slot < slots; ++slot)
    for (std::size_t version = 1; !missing[slot] && version < versions[slot]; ++version) {
      wanted = versions;
      wanted[slot] = version;
      if (fails(point, wanted)) versions = wanted;
    }
  for (std::size_t slot = 0; slot < versions.size(); ++slot) {
    const Undecided& choices = undecided_[slot];
    const std::vector<Piece>& pieces = model.pending()[slot].pieces;
    const std::uint32_t durable = choices.pieces[versions[slot]];
    const std::uint64_t address = std::uint64_t{choices.line} * line_bytes;
    const auto site = [&](const Piece& piece) {
      return (piece.recovery || point.level == 0 ? log_at(point) : trace_.log)
          .events[piece.event]
          .site;
    };
    if (missing[slot])
      finding.lines.push_back({address, false, site(pieces[durable])});
    else if (versions[slot] > 0)
      finding.lines.push_back({address, true, site(pieces[durable - 1])});
  }
  name_culprit(model, point, versions, finding);
}

/// Of the lines that the failure needs: the store that is not there, and the one that is too early.
Explorer::Suspects Explorer::suspects(const Persistency& model,
                                      const std::vector<std::size_t>& versions,
                                      const Finding& finding) const {
  Suspects found;
  for (std::size_t slot = 0; slot < versions.size(); ++slot) {
    const Undecided& choices = undecided_[slot];
    const std::vector<Piece>& pieces = model.pending()[slot].pieces;
    const std::uint32_t durable = choices.pieces[versions[slot]];
    const std::uint64_t line = std::uint64_t{choices.line} * line_bytes;
    const auto blamed = std::find_if(finding.lines.begin(), finding.lines.end(),
                                     [&](const BlamedLine& one) { return one.address == line; });
    if (blamed == finding.lines.end()) continue;
    if (!blamed->durable) {
      const Piece& piece = pieces[durable];
      const std::uint64_t address = address_of(choices.line, piece);
      // What is logged may be lost, as long as its log is there: rather blame what is not.
      const bool may = logged(log_of(piece), piece.event, address, piece.bytes).these;
      if (found.missing == nullptr ||
          std::pair(may, piece.event) < std::pair(found.missing_may, found.missing->event)) {
        found.missing = &piece;
        found.missing_at = address;
        found.missing_may = may;
      }
    } else if (durable > 0 &&
               (found.early == nullptr || pieces[durable - 1].event > found.early->event)) {
      found.early = &pieces[durable - 1];
      found.early_at = address_of(choices.line, *found.early);
    }
  }
  return found;
}

void Explorer::name_culprit(const Persistency& model, const Point& point,
                            const std::vector<std::size_t>& versions, Finding& finding) {
  const Suspects found = suspects(model, versions, finding);
  if (found.missing == nullptr && found.early == nullptr) return blame_durable(point, finding);
  if (found.missing == nullptr) return blame_early(found, finding);
  const Log& log = log_of(*found.missing);
  const Event& store = log.events[found.missing->event];
  finding.store = store.site;
  if (found.early != nullptr) finding.before = log_of(*found.early).events[found.early->event].site;
  const bool same_log = found.early != nullptr && found.early->recovery == found.missing->recovery;
  const std::size_t until = same_log ? found.early->event : point.event;
  if (left_out(log, found.missing->event))
    finding.missing = Missing::log;
  else if (store.kind == Kind::nt_store ||
           flushed(log, found.missing->event, until, found.missing_at))
    finding.missing = Missing::fence;
  else
    finding.missing = Missing::flush;
}

/// Something was overwritten in place. Where that is the log itself, it lacks what the operation
/// stores without a log call.
void Explorer::blame_early(const Suspects& found, Finding& finding) const {
  const Log& log = log_of(*found.early);
  finding.missing = Missing::log;
  if (const Event* unlogged = first_left_out(log, found.early->event)) {
    finding.store = unlogged->site;
    return;
  }
  finding.store = log.events[found.early->event].site;
  if (logged(log, found.early->event, found.early_at, found.early->bytes).these)
    finding.missing = Missing::logic;
}

/// Nothing pending matters: what is durable already is wrong. The newest durable store of the
/// operation in flight that no log call covers overwrote what was still needed.
void Explorer::blame_durable(const Point& point, Finding& finding) {
  const std::size_t until = point.level == 0 ? point.event : outer_event_;
  finding.missing = Missing::logic;
  if (const Event* unlogged = first_left_out(trace_.log, until)) {
    finding.missing = Missing::log;
    finding.store = unlogged->site;
    return;
  }
  std::size_t newest = std::min(until, trace_.log.events.size());
  if (!point.in_flight && point.acknowledged > 0) // what was acknowledged is wrong: none after it
    while (newest > 0 && trace_.log.events[newest - 1].kind != Kind::end)
      --newest;
  for (std::size_t i = newest; i-- > 0;) {
    const Event& event = trace_.log.events[i];
    if (event.kind == Kind::begin) break;
    if (!stores(event)) continue;
    if (finding.store.line() == 0 && !finding.store.is_code()) finding.store = event.site;
    const Logged range = logged(trace_.log, i, event.address, event.bytes);
    if (!range.anything || range.these) continue;
    finding.missing = Missing::log;
    finding.store = event.site;
    return;
  }
}

const char* name(Failure failure) {
  constexpr const char* names[] = {"none", "refused",        "broken",  "lost", "not_atomic",
                                   "leak", "not_idempotent", "crashed", "hung", "disagreed"};
  return names[static_cast<std::size_t>(failure)];
}

const char* name(Missing missing) {
  constexpr const char* names[] = {"flush", "fence", "log", "logic"};
  return names[static_cast<std::size_t>(missing)];
}

} // namespace nearfar::crash
