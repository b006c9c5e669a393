// From an image that fails to the store to blame: the smallest set of lines that makes it fail.
//
// How   1. From the failing image every pending line is made as new as it can be, as long as the
//          image still fails: what stays old is *missing*. 2. Of the rest, every line is made as
//          old as it can be: lines that must stay new for the failure became durable *too early*.
//          Each step is one run of recovery, so the result is minimal in the sense that no single
//          line can be left out.
//       Only missing lines: something acknowledged was not made durable. Only early ones: it was
//       overwritten in place, unlogged. Both: the early store overtook the missing one.
//       Stores of the program are blamed before those of libpmemobj, whose log follows from them.
#include "crash/explorer.hpp"

#include <algorithm>
#include <cstring>

#include "crash/hash.hpp"
#include "crash/library.hpp"
#include "crash/omissions.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;
using storelog::Log;
using storelog::Site;

namespace {

/// Whether the program acts at the same line, reached by the same calls. Which of the stores of a
/// library it is does not matter.
bool same_place(const Site& a, const Site& b) {
  return hash_calls(in_program(a)) == hash_calls(in_program(b));
}

bool is_place(const Site& site) { return site.line() != 0 || site.is_code(); }

/// After so many violations, another one by the same store and kind hardly says more.
constexpr std::uint64_t well_known = 3;

/// A violation that takes as long as many others counts as many.
constexpr std::uint64_t hung_counts = 10;

std::uint64_t address_of(std::uint32_t line, const Piece& piece) {
  return std::uint64_t{line} * line_bytes + piece.offset;
}

} // namespace

bool Explorer::fails(const Point& point, const std::vector<std::size_t>& versions) {
  return run(point, versions).failure != Failure::none;
}

/// Returns whether this is a finding that is known well.
bool Explorer::found(const Persistency& model, const Point& point, const Verdict& verdict,
                     std::vector<std::size_t> versions) {
  ++result_.violations;
  in_a_row_ += verdict.failure == Failure::hung ? hung_counts : 1;
  Finding finding;
  finding.failure = verdict.failure;
  finding.what = verdict.what;
  finding.event = point.event;
  if (point.level == 0 && point.event < trace_.log.events.size()) {
    finding.kind = trace_.log.events[point.event].kind;
    finding.at = trace_.log.events[point.event].site;
  }
  finding.acknowledged = point.acknowledged;
  const std::span<const std::uint64_t> operations = operations_at(point.acknowledged);
  finding.operations.assign(operations.begin(), operations.end());
  finding.in_flight = point.in_flight;
  finding.finished = point.finished;
  finding.during_recovery = point.level > 0;
  finding.loss = options_.loss;
  finding.found_at = result_.states;
  if (!verdict.second) blame(model, point, versions, finding);
  for (Finding& known : result_.findings)
    if (same_place(known.store, finding.store) && known.missing == finding.missing &&
        known.failure == finding.failure) {
      ++known.violations;
      // An image that shows what the store had to come before explains more.
      const bool well = known.violations > well_known;
      if (is_place(known.before) || !is_place(finding.before)) return well;
      finding.violations = known.violations;
      finding.found_at = known.found_at;
      keep_image(versions, finding);
      known = std::move(finding);
      return well;
    }
  if (result_.findings.size() >= options_.findings) return false;
  keep_image(versions, finding);
  result_.findings.push_back(std::move(finding));
  in_a_row_ = 1;
  return false;
}

void Explorer::keep_image(const std::vector<std::size_t>& versions, Finding& finding) const {
  finding.image = durable_;
  for (std::size_t slot = 0; slot < versions.size(); ++slot) {
    const Undecided& choices = undecided_[slot];
    std::memcpy(finding.image.data() + std::size_t{choices.line} * line_bytes,
                choices.versions[versions[slot]].data(), line_bytes);
  }
  finding.image.resize(trace_.log.image.size());
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
    wanted[slot] = undecided_[slot].newest();
  keep_failing(point, versions, wanted, 0, slots);
  std::vector<bool> missing(slots);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    missing[slot] = versions[slot] != undecided_[slot].newest();
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
  const auto later = [&](const Piece& a, const Piece& b) {
    const auto own = [&](const Piece& piece) {
      return !of_library(log_of(piece).events[piece.event].site);
    };
    return std::pair(own(a), a.event) > std::pair(own(b), b.event);
  };
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
      // What is logged may be lost, as long as its log is there: rather blame what is not. A store
      // of the program comes before those of a library, which follow from it.
      const Log& log = log_of(piece);
      const bool may = of_library(log.events[piece.event].site) ||
                       logged(log, piece.event, address, piece.bytes).before;
      if (found.missing == nullptr ||
          std::pair(may, piece.event) < std::pair(found.missing_may, found.missing->event)) {
        found.missing = &piece;
        found.missing_at = address;
        found.missing_may = may;
      }
    } else if (durable > 0 &&
               (found.early == nullptr || later(pieces[durable - 1], *found.early))) {
      found.early = &pieces[durable - 1];
      found.early_at = address_of(choices.line, *found.early);
    }
  }
  return found;
}

void Explorer::name_culprit(const Persistency& model, const Point& point,
                            const std::vector<std::size_t>& versions, Finding& finding) {
  const Suspects found = suspects(model, versions, finding);
  if (found.missing == nullptr && found.early == nullptr) {
    if (!model.torn() || !only_torn_fails(model, point, versions))
      return blame_durable(point, finding);
    finding.missing = Missing::torn;
    finding.store = log_at(point).events[point.event - 1].site;
    return;
  }
  // A library's log is late where the program stores before it calls the library.
  const auto by_library = [&](const Piece& piece) {
    return of_library(log_of(piece).events[piece.event].site);
  };
  const auto unlogged = [&](const Piece& piece) {
    return left_out(log_of(piece), piece.event) != Missing::logic;
  };
  // What a transaction stores to a new object may be missing, unless an unlogged store refers to it.
  if (found.missing == nullptr ||
      (found.early != nullptr && ((by_library(*found.missing) && !by_library(*found.early)) ||
                                  (unlogged(*found.early) && !unlogged(*found.missing)))))
    return blame_early(found, finding);
  const Log& log = log_of(*found.missing);
  const Event& store = log.events[found.missing->event];
  finding.store = store.site;
  if (found.early != nullptr) finding.before = log_of(*found.early).events[found.early->event].site;
  const bool same_log = found.early != nullptr && found.early->recovery == found.missing->recovery;
  const std::size_t until = same_log ? found.early->event : point.event;
  if (const Missing log_call = left_out(log, found.missing->event); log_call != Missing::logic)
    finding.missing = log_call;
  else if (store.kind == EventKind::nt_store ||
           flushed(log, found.missing->event, until, found.missing_at))
    finding.missing = Missing::fence;
  else
    finding.missing = missing_flush(log, found.missing->event, found.missing_at);
  const bool comes = finding.missing == Missing::fence || finding.missing == Missing::late_flush;
  if (comes && !of_library(store.site) && is_torn(found, point, finding)) {
    finding.missing = Missing::torn;
    finding.before = {};
  }
}

/// Whether a part of the store that is missing is durable, and nothing that was stored after it: no
/// order of flushes would help.
bool Explorer::is_torn(const Suspects& found, const Point& point, const Finding& finding) const {
  const Log& log = log_of(*found.missing);
  const Copy copy = copy_around(log, found.missing->event);
  if (found.early != nullptr)
    return found.early->recovery == found.missing->recovery && found.early->event >= copy.first &&
           found.early->event < copy.last;
  const auto at = [&](std::size_t event) {
    return log.events.begin() + static_cast<std::ptrdiff_t>(event);
  };
  const auto lines = std::count_if(finding.lines.begin(), finding.lines.end(),
                                   [](const BlamedLine& line) { return !line.durable; });
  return copy.last <= point.event && static_cast<std::uint64_t>(lines) < copy.lines &&
         std::none_of(at(copy.last), at(point.event), [](const Event& one) { return stores(one); });
}

/// Whether the image is good without the store at the failure point, and with all of it.
bool Explorer::only_torn_fails(const Persistency& model, const Point& point,
                               const std::vector<std::size_t>& versions) {
  const Event& store = log_at(point).events[point.event - 1];
  const std::uint64_t end = store.address + store.bytes;
  std::vector<Changed> torn, whole; // the lines of the store, as they are and with all of it
  for (std::uint64_t at = store.address; at < end; at = (at / line_bytes + 1) * line_bytes) {
    Changed line{static_cast<std::uint32_t>(at / line_bytes), {}};
    std::memcpy(line.before.data(), durable_.data() + at / line_bytes * line_bytes, line_bytes);
    torn.push_back(line);
    std::memcpy(line.before.data() + at % line_bytes,
                log_at(point).data.data() + store.data + (at - store.address),
                std::min(end - at, line_bytes - at % line_bytes));
    whole.push_back(line);
  }
  const auto fails_with = [&](const std::vector<Changed>& lines) {
    for (const Changed& line : lines)
      rewrite(line.line, line.before);
    const bool failed = fails(point, versions);
    for (const Changed& line : torn)
      rewrite(line.line, line.before);
    return failed;
  };
  return !fails_with(model.before_torn()) && !fails_with(whole);
}

/// A store became durable too early. Where it is one of the log itself, the log lacks what the
/// operation stores without a log call, or before it.
void Explorer::blame_early(const Suspects& found, Finding& finding) const {
  const Log& log = log_of(*found.early);
  finding.missing = left_out(log, found.early->event);
  finding.store = log.events[found.early->event].site;
  if (finding.missing != Missing::logic) return;
  if (const LeftOut unlogged = first_left_out(log, found.early->event); unlogged.store != nullptr) {
    finding.store = unlogged.store->site;
    finding.missing = unlogged.missing;
    return;
  }
  const Logged range = logged(log, found.early->event, found.early_at, found.early->bytes);
  if (!range.before && !of_library(finding.store))
    finding.missing = uses_logs(log) ? Missing::log : Missing::in_place;
}

/// Nothing pending matters: what is durable already is wrong. The newest durable store of the
/// operation in flight that no log call covers overwrote what was still needed.
void Explorer::blame_durable(const Point& point, Finding& finding) {
  const std::size_t until = point.level == 0 ? point.event : outer_event_;
  finding.missing = Missing::logic;
  if (const LeftOut unlogged = first_left_out(trace_.log, until); unlogged.store != nullptr) {
    finding.missing = unlogged.missing;
    finding.store = unlogged.store->site;
    return;
  }
  std::size_t newest = std::min(until, trace_.log.events.size());
  if (!point.in_flight && point.acknowledged > 0) // what was acknowledged is wrong: none after it
    while (newest > 0 && trace_.log.events[newest - 1].kind != EventKind::end)
      --newest;
  for (std::size_t i = newest; i-- > 0;) {
    const Event& event = trace_.log.events[i];
    if (event.kind == EventKind::begin) break;
    if (!stores(event)) continue;
    const bool named = is_place(finding.store);
    if (!named || (of_library(finding.store) && !of_library(event.site)))
      finding.store = event.site;
    const Logged range = logged(trace_.log, i, event.address, event.bytes);
    if (!range.anything || range.before || of_library(event.site)) continue;
    finding.missing = Missing::log;
    finding.store = event.site;
    return;
  }
}

} // namespace nearfar::crash
