#include "crash/tool/recorded.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <unistd.h>

namespace nearfar::crash {

Error nothing_mapped() {
  return Error::make(Errc::bad_input, "the program mapped no file to be recorded")
      .try_next("map the pool shared and writable, from a regular file");
}

Error nothing_stored(const storelog::ReadLog& read) {
  return Error::make(Errc::bad_input, "no store of the program into '%s' was seen",
                     read.pool_path.c_str())
      .try_next("record it with --recorder preload, or compile it for the instrumented recorder: "
                "docs/tutorials/crash.md");
}

void print_log(const storelog::ReadLog& read, std::uint64_t events) {
  std::printf("log\t%" PRIu64 "\t%zu\t%d\t%s\t%s\n", events, read.log.pool_bytes, read.complete,
              read.ending.c_str(), read.pool_path.c_str());
  for (const auto& [module, count] : read.unseen)
    std::printf("warning\t%" PRIu64
                " flush and fence instructions of %s were not seen: a store may be called never "
                "flushed that they flush\n",
                count, module.c_str());
}

Result<storelog::ReadLog> read_written(const char* file, bool contents) {
  if (access(file, F_OK) != 0)
    return nothing_mapped(); // the recorder makes it with the first mapping
  return storelog::read_log(file, contents);
}

Result<storelog::ReadLog> read_recorded(const char* file) {
  Result<storelog::ReadLog> read = read_written(file, true);
  if (!read) return read;
  const storelog::Log& log = read->log;
  print_log(*read, log.events.size());
  if (log.pool_bytes == 0) return nothing_mapped();
  if (std::any_of(log.events.begin(), log.events.end(), storelog::stores)) return read;
  return nothing_stored(*read);
}

} // namespace nearfar::crash
