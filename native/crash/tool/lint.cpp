#include "crash/lint.hpp"

#include <cinttypes>
#include <cstdio>

#include "crash/tool/commands.hpp"
#include "crash/tool/output.hpp"
#include "crash/tool/recorded.hpp"

namespace nearfar::crash {

int lint(const Arguments& given) {
  Result<storelog::ReadLog> read = read_recorded(given.text("log"), false);
  if (!read) return print_error(read.error());
  for (const LintFinding& finding : lint(read->log))
    std::printf("lint\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n", name(finding.rule),
                place(finding.site).c_str(), place(finding.other).c_str(), finding.address,
                finding.bytes, finding.count);
  return 0;
}

} // namespace nearfar::crash
