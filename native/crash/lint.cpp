#include "crash/lint.hpp"

#include <algorithm>
#include <tuple>

#include "crash/library.hpp"

namespace nearfar::crash {

using storelog::Site;

std::vector<LintFinding> with_sites(std::span<const JudgedFinding> found,
                                    std::span<const Site> sites,
                                    std::span<const std::vector<Site>> stacks) {
  std::vector<JudgedFinding> ordered(found.begin(), found.end());
  std::sort(ordered.begin(), ordered.end(), [](const JudgedFinding& a, const JudgedFinding& b) {
    return std::tie(a.rule, a.site) < std::tie(b.rule, b.site);
  });
  const auto named = [&](std::uint32_t site) { return site < sites.size() ? sites[site] : Site(); };
  std::vector<LintFinding> all;
  for (const JudgedFinding& finding : ordered) {
    const Site site = named(finding.site);
    if (of_library(site)) continue;
    all.push_back({finding.rule, site, named(finding.other), finding.address, finding.bytes,
                   finding.count,
                   finding.site < stacks.size() ? stacks[finding.site] : std::vector<Site>()});
  }
  return all;
}

const char* name(Rule rule) {
  constexpr const char* names[] = {"unflushed",    "unfenced",       "unlogged",
                                   "late_log",     "short_log",      "freed_store",
                                   "unended",      "repeated_flush", "needless_flush",
                                   "repeated_log", "unlogged_flush", "unchanged"};
  return names[static_cast<std::size_t>(rule)];
}

} // namespace nearfar::crash
