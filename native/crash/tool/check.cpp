#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "crash/explorer.hpp"
#include "crash/tool/commands.hpp"
#include "crash/tool/output.hpp"
#include "crash/tool/subjects.hpp"
#include "crash/workload.hpp"

namespace nearfar::crash {

using storelog::Event;
using storelog::Kind;
using storelog::Site;

namespace {

/// A structure that was filled and recorded as the arguments say.
struct Recorded {
  Chosen chosen;
  std::unique_ptr<Arena> arena;
  Trace trace;
  Options options;
};

Options options_of(const Arguments& given) {
  Options options;
  options.platform = platform_of(given);
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
  const Kind what = name == "flush" ? Kind::flush : name == "fence" ? Kind::fence : Kind::log;
  return storelog::Suppressed{what, Site(text + file, line)};
}

Result<Recorded> record(const Arguments& given) {
  const std::size_t count = given.number("n", 200);
  Recorded made;
  made.chosen = choose_subject(given.text("structure"), count);
  if (made.chosen.subject == nullptr)
    return Error::make(Errc::bad_input, "there is no structure '%s'", given.text("structure"))
        .try_next("nearfar crash check --help");
  made.options = options_of(given);
  made.arena = std::make_unique<Arena>(made.chosen.pool_bytes);
  Result<Trace> trace =
      record_trace(*made.chosen.subject, *made.arena,
                   mixed_operations(count, given.number("seed", 1), made.chosen.moves),
                   made.chosen.ordered, suppressed_of(given));
  if (!trace) return trace.error();
  made.trace = std::move(*trace);
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
  Explorer explorer(*made->chosen.subject, *made->arena, made->trace, made->options);
  const Exploration result = explorer.explore(print_progress);
  return print_exploration(result, given.text("images"));
}

/// For each call: the stores it makes durable or logs, one of which a finding must name when the
/// call is taken away.
int sites(const Arguments& given) {
  Result<Recorded> made = record(given);
  if (!made) return print_error(made.error());
  const storelog::Log& log = made->trace.log;
  std::map<std::pair<std::string, Kind>, std::set<std::string>> covered;
  std::vector<std::size_t> unflushed; // and, below, unfenced: stores
  std::vector<std::size_t> unfenced;
  for (std::size_t i = 0; i < log.events.size(); ++i) {
    const Event& event = log.events[i];
    if (event.kind == Kind::store || event.kind == Kind::nt_store) {
      unflushed.push_back(i);
      unfenced.push_back(i);
    }
    if (event.kind != Kind::flush && event.kind != Kind::fence && event.kind != Kind::log) continue;
    auto& stores = covered[{place(event.site), event.kind}];
    if (event.kind == Kind::flush)
      std::erase_if(unflushed, [&](std::size_t j) {
        if (!touches(event, log.events[j])) return false;
        stores.insert(place(log.events[j].site));
        return true;
      });
    else if (event.kind == Kind::fence)
      for (const std::size_t j : std::exchange(unfenced, {}))
        stores.insert(place(log.events[j].site));
    else
      for (std::size_t j = i; j < log.events.size() && log.events[j].kind != Kind::end; ++j)
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

int replay(const Arguments& given) {
  Result<Recorded> made = record(given);
  if (!made) return print_error(made.error());
  Result<std::vector<std::byte>> image = read_image(given.text("image"));
  if (!image) return print_error(image.error());
  if (image->size() != made->chosen.pool_bytes)
    return print_error(Error::make(Errc::bad_input, "'%s' has %zu bytes, not the %zu of the pool",
                                   given.text("image"), image->size(), made->chosen.pool_bytes)
                           .try_next("give an image as `nearfar crash check` kept it"));
  const std::uint64_t acknowledged = given.number("acknowledged", 0);
  if (acknowledged >= made->trace.models.size())
    return print_error(Error::make(Errc::bad_input, "only %zu operations were done",
                                   made->trace.models.size() - 1));
  Explorer explorer(*made->chosen.subject, *made->arena, made->trace, made->options);
  print_finding(explorer.replay(*image, acknowledged, given.number("in_flight", 0) != 0), nullptr);
  return 0;
}

} // namespace nearfar::crash
