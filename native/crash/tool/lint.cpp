#include "crash/lint.hpp"

#include <cinttypes>
#include <cstdio>

#include "crash/tool/commands.hpp"
#include "crash/tool/output.hpp"
#include "crash/tool/recorded.hpp"
#include "os/file.hpp"
#include "os/pages.hpp"

namespace nearfar::crash {

namespace {

/// What the judge left in the file that was its memory.
Result<os::MappedRange> read_judgement(const char* path, std::uint64_t pool_bytes) {
  Result<os::File> file = os::open_existing(path, false);
  if (!file) return file.error();
  return os::map_range(Judge::memory_bytes(pool_bytes), os::PageSize::small_4k, file->fd(), false);
}

} // namespace

int lint(const Arguments& given) {
  Result<storelog::ReadLog> read = read_written(given.text("log"), false);
  if (!read) return print_error(read.error());
  if (read->log.pool_bytes == 0) {
    print_log(*read, 0);
    return print_error(without_record(nothing_mapped()));
  }
  Result<os::MappedRange> memory = read_judgement(given.text("judge"), read->log.pool_bytes);
  if (!memory) return print_error(memory.error());
  Judge judge(memory->data(), read->log.pool_bytes);
  judge.finish(read->complete);
  print_log(*read, judge.events());
  if (judge.stores() == 0 && judge.findings().empty())
    return print_error(without_record(nothing_stored(*read), read->unseen_bytes));
  if (judge.is_full())
    std::printf("warning\tthe program left too much undone at once; some of it was not judged\n");
  for (const LintFinding& finding : with_sites(judge.findings(), read->sites, read->stacks)) {
    // What was stored unseen is durable for the judge.
    if (read->unseen_bytes > 0 && finding.rule == Rule::needless_flush) continue;
    std::printf("lint\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu32 "\t%" PRIu64 "\n", name(finding.rule),
                place(finding.site).c_str(), place(finding.other).c_str(), finding.address,
                finding.bytes, finding.count);
    for (const storelog::Site& call : finding.calls)
      std::printf("call\t%s\n", place(call).c_str());
  }
  return 0;
}

} // namespace nearfar::crash
