#include "crash/turns.hpp"

#include <cinttypes>
#include <cstdio>

#include "crash/tool/commands.hpp"
#include "crash/tool/output.hpp"
#include "crash/tool/recorded.hpp"

namespace nearfar::crash {

int turns(const Arguments& given) {
  Result<storelog::ReadLog> read = read_written(given.text("log"), false);
  if (!read) return print_error(read.error());
  for (const Turn& turn : list_turns(read->log))
    std::printf("turn\t%u\t%" PRIu64 "\t%s\n", turn.thread, turn.flush, place(turn.store).c_str());
  return 0;
}

} // namespace nearfar::crash
