#include <algorithm>
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
  std::unique_ptr<Explorer> explorer;
};

Options options_of(const Arguments& given, bool ordered) {
  Options options;
  options.platform =
      std::string_view(given.text("platform")) == "eadr" ? Platform::eadr : Platform::adr;
  options.budget = given.number("budget", 0);
  options.limit_ms = given.number("limit_ms", options.limit_ms);
  options.ordered = ordered;
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
  made.explorer = std::make_unique<Explorer>(*made.chosen.subject, made.chosen.pool_bytes,
                                             options_of(given, made.chosen.ordered));
  const auto operations = mixed_operations(count, given.number("seed", 1), made.chosen.moves);
  if (Status done = made.explorer->record(operations, suppressed_of(given)); !done)
    return done.error();
  return made;
}

} // namespace

int check(const Arguments& given) {
  Result<Recorded> made = record(given);
  if (!made) return print_error(made.error());
  const Exploration result = made->explorer->explore(print_progress);
  return print_exploration(result, given.text("images"));
}

int sites(const Arguments& given) {
  Result<Recorded> made = record(given);
  if (!made) return print_error(made.error());
  const storelog::Log& log = made->explorer->trace().log;
  // For each site of a call: the stores it covers, by which a finding may name its absence.
  std::map<std::pair<std::string, Kind>, std::set<std::string>> covered;
  std::vector<std::size_t> unfenced;
  for (std::size_t i = 0; i < log.events.size(); ++i) {
    const Event& event = log.events[i];
    const std::string at = place(event.site);
    if (event.kind == Kind::flush || event.kind == Kind::log) {
      auto& stores = covered[{at, event.kind}];
      for (std::size_t j = 0; j < log.events.size(); ++j) {
        const Event& store = log.events[j];
        if (store.kind != Kind::store && store.kind != Kind::nt_store) continue;
        if ((event.kind == Kind::flush) != (j < i)) continue;
        const std::uint64_t first = event.address / line_bytes * line_bytes;
        const std::uint64_t last = event.address + event.bytes;
        if (store.address < last && first < store.address + store.bytes)
          stores.insert(place(store.site));
      }
    } else if (event.kind == Kind::fence) {
      // It settles what was stored since the fence before it, and holds back what follows.
      auto& stores = covered[{at, event.kind}];
      for (const std::size_t j : unfenced)
        stores.insert(place(log.events[j].site));
      unfenced.clear();
    } else if (event.kind == Kind::store || event.kind == Kind::nt_store) {
      unfenced.push_back(i);
    }
  }
  for (const auto& [site, stores] : covered) {
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
  if (acknowledged >= made->explorer->trace().models.size())
    return print_error(Error::make(Errc::bad_input, "only %zu operations were done",
                                   made->explorer->trace().models.size() - 1));
  print_finding(made->explorer->replay(*image, acknowledged, given.number("in_flight", 0) != 0),
                nullptr);
  return 0;
}

} // namespace nearfar::crash
