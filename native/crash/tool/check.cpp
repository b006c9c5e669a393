#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "crash/explorer.hpp"
#include "crash/tool/commands.hpp"
#include "crash/tool/output.hpp"
#include "crash/tool/pmdk.hpp"
#include "crash/tool/shared_image.hpp"
#include "crash/tool/subjects.hpp"
#include "crash/workload.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::EventKind;
using storelog::Site;

namespace {

/// A structure that was filled and recorded as the arguments say.
struct Recorded {
  std::unique_ptr<Checked> subject;
  std::unique_ptr<Arena> arena;
  Trace trace;
  Options options;
  storelog::ReadLog read;           ///< of a log from a file: names that sites point to
  SharedImage image;                ///< what libpmemobj opens
  std::unique_ptr<Library> library; ///< that does
};

Options options_of(const Arguments& given) {
  Options options;
  options.loss = loss_of(given);
  options.budget = given.number("budget", 0);
  options.violations = given.number("violations", options.violations);
  options.limit_ms = given.number("limit_ms", options.limit_ms);
  return options;
}

/// "flush|fence|log LINE FILE", as `sites` wrote it.
std::optional<storelog::Suppressed> suppressed_of(const Arguments& given) {
  const char* text = given.text("suppress");
  char kind[8] = "";
  unsigned line = 0;
  int file = 0;
  if (std::sscanf(text, "%7s %u %n", kind, &line, &file) < 2) return {};
  const std::string_view name = kind;
  const EventKind what = name == "flush"   ? EventKind::flush
                         : name == "fence" ? EventKind::fence
                                           : EventKind::log;
  return storelog::Suppressed{what, Site(text + file, line)};
}

std::vector<Operation> operations_of(const Arguments& given, bool moves) {
  return mixed_operations(given.number("n", 200), given.number("seed", 1), moves);
}

/// One of PMDK's maps, from the log of the process that filled it; where one image is replayed,
/// from that.
Result<Recorded> load_pmdk(const Arguments& given) {
  Recorded made;
  const std::string_view structure = given.text("structure");
  if (std::strlen(given.text("image")) != 0) {
    Result<std::vector<std::byte>> image = read_image(given.text("image"));
    if (!image) return image.error();
    made.trace.log.image = std::move(*image);
    made.trace.log.pool_bytes = made.trace.log.image.size();
  } else {
    Result<storelog::ReadLog> read = storelog::read_log(given.text("log"));
    if (!read) return read.error();
    made.read = std::move(*read);
    made.trace.log = std::move(made.read.log);
  }
  const std::vector<Operation> operations = operations_of(given, false);
  made.trace.models.resize(1);
  for (const Operation& operation : operations) {
    made.trace.models.push_back(made.trace.models.back());
    apply_to_pmdk_model(structure, operation, made.trace.models.back());
    std::sort(made.trace.models.back().begin(), made.trace.models.back().end());
  }
  made.options = options_of(given);
  made.options.confirm_every = given.number("confirm_every", 1);
  made.arena = std::make_unique<Arena>(made.trace.log.pool_bytes);
  Result<SharedImage> image = share("/dev/shm", made.trace.log.pool_bytes);
  if (!image) return image.error();
  made.image = std::move(*image);
  made.arena->mirror(made.image.range.data());
  made.library = std::make_unique<Library>(structure, made.image.file, max_key(operations.size()),
                                           10 * made.options.limit_ms);
  made.subject = pmdk_subject(structure, made.trace, *made.library);
  if (made.subject == nullptr)
    return Error::make(Errc::bad_input, "the image is not a pool of libpmemobj")
        .try_next("give an image as `nearfar crash check` kept it");
  return made;
}

Result<Recorded> record(const Arguments& given) {
  const char* structure = given.text("structure");
  if (is_pmdk(structure)) return load_pmdk(given);
  Recorded made;
  Chosen chosen = choose_subject(structure, given.number("n", 200));
  if (chosen.subject == nullptr)
    return Error::make(Errc::bad_input, "unknown structure '%s'", structure)
        .try_next("nearfar crash check --help");
  made.options = options_of(given);
  made.arena = std::make_unique<Arena>(chosen.pool_bytes);
  Result<Trace> trace =
      record_trace(*chosen.subject, *made.arena, operations_of(given, chosen.moves), chosen.ordered,
                   suppressed_of(given));
  if (!trace) return trace.error();
  made.trace = std::move(*trace);
  made.subject = std::move(chosen.subject);
  return made;
}

/// Whether a flush or log call reaches the lines of a store.
bool touches(const Event& call, const Event& store) {
  const std::uint64_t first = call.address / line_bytes * line_bytes;
  const std::uint64_t last = call.address + call.bytes;
  return store.address < (last + line_bytes - 1) / line_bytes * line_bytes &&
         first < store.address + store.bytes;
}

} // namespace

int check(const Arguments& given) {
  Result<Recorded> made = record(given);
  if (!made) return print_error(made.error());
  Explorer explorer(*made->subject, *made->arena, made->trace, made->options);
  const Exploration result = explorer.explore(print_progress);
  return print_exploration(result, given.text("images"));
}

/// For each call: the stores it makes durable or logs, one of which a finding must name when the
/// call is taken away.
int sites(const Arguments& given) {
  Result<Recorded> made = record(given);
  if (!made) return print_error(made.error());
  const storelog::Log& log = made->trace.log;
  std::map<std::pair<std::string, EventKind>, std::set<std::string>> covered;
  std::vector<std::size_t> unflushed; // and, below, unfenced: stores
  std::vector<std::size_t> unfenced;
  for (std::size_t i = 0; i < log.events.size(); ++i) {
    const Event& event = log.events[i];
    if (event.kind == EventKind::store || event.kind == EventKind::nt_store) {
      unflushed.push_back(i);
      unfenced.push_back(i);
    }
    if (event.kind != EventKind::flush && event.kind != EventKind::fence &&
        event.kind != EventKind::log)
      continue;
    auto& stores = covered[{place(event.site), event.kind}];
    if (event.kind == EventKind::flush)
      std::erase_if(unflushed, [&](std::size_t j) {
        if (!touches(event, log.events[j])) return false;
        stores.insert(place(log.events[j].site));
        return true;
      });
    else if (event.kind == EventKind::fence)
      for (const std::size_t j : std::exchange(unfenced, {}))
        stores.insert(place(log.events[j].site));
    else
      for (std::size_t j = i; j < log.events.size() && log.events[j].kind != EventKind::end; ++j)
        if (log.events[j].bytes > 0 && touches(event, log.events[j]))
          stores.insert(place(log.events[j].site));
  }
  const std::string pool = place(pool_site);
  for (const auto& [site, stores] : covered) {
    if (site.first == pool) continue;
    std::printf("site\t%s\t%s", name(site.second), site.first.c_str());
    for (const std::string& store : stores)
      std::printf("\t%s", store.c_str());
    std::printf("\n");
  }
  return 0;
}

int make(const Arguments& given) {
  const Status made =
      make_pool(given.text("structure"), given.text("pool"), given.number("n", 200));
  return made ? 0 : print_error(made.error());
}

int fill(const Arguments& given) {
  const Status filled =
      fill_pool(given.text("structure"), given.text("pool"), operations_of(given, false));
  return filled ? 0 : print_error(filled.error());
}

int replay(const Arguments& given) {
  Result<Recorded> made = record(given);
  if (!made) return print_error(made.error());
  Result<std::vector<std::byte>> image = read_image(given.text("image"));
  if (!image) return print_error(image.error());
  if (image->size() != made->trace.log.pool_bytes)
    return print_error(Error::make(Errc::bad_input, "'%s' has %zu bytes, not the %zu of the pool",
                                   given.text("image"), image->size(), made->trace.log.pool_bytes)
                           .try_next("give an image as `nearfar crash check` kept it"));
  const std::uint64_t acknowledged = given.number("acknowledged", 0);
  if (acknowledged >= made->trace.models.size())
    return print_error(Error::make(Errc::bad_input, "only %zu operations were done",
                                   made->trace.models.size() - 1));
  Explorer explorer(*made->subject, *made->arena, made->trace, made->options);
  print_finding(explorer.replay(*image, acknowledged, given.number("in_flight", 0) != 0), nullptr);
  return 0;
}

} // namespace nearfar::crash
