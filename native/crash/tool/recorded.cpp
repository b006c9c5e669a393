#include "crash/tool/recorded.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <unistd.h>
#include <vector>

namespace nearfar::crash {

namespace {

constexpr std::uint64_t word_bytes = 4; ///< unseen stores are counted in whole words

} // namespace

std::string at_least_words(std::uint64_t bytes) {
  const std::uint64_t words = bytes / word_bytes;
  return "at least " + std::to_string(words) + (words == 1 ? " word" : " words") + " of " +
         std::to_string(word_bytes) + " bytes";
}

Error nothing_mapped() {
  return Error::make(Errc::bad_input, "the program mapped no file to be recorded")
      .try_next(
          "map the pool shared and writable, from a regular file, with mmap() of the C library "
          "as a shared library");
}

Error nothing_stored(const storelog::ReadLog& read) {
  if (read.unseen_bytes > 0)
    return Error::make(Errc::os_error, "no store to '%s' was seen, although it has changed",
                       read.pool_path.c_str())
        .try_next("docs/tutorials/crash.md lists what is recorded");
  if (!read.complete)
    return Error::make(Errc::unsupported, "no store was recorded: %s", read.ending.c_str())
        .try_next("docs/tutorials/crash.md lists what can be recorded");
  if (!read.other_files.empty())
    return Error::make(Errc::os_error,
                       "the program changed nothing in '%s', the first file that it maps; it also "
                       "maps '%s'",
                       read.pool_path.c_str(), read.other_files.front().c_str())
        .try_next("name the pool by --pool FILE");
  return Error::make(Errc::bad_input, "the program changed nothing in '%s'", read.pool_path.c_str())
      .try_next("start with a new pool, or have the program store other values");
}

void print_log(const storelog::ReadLog& read, std::uint64_t events) {
  std::string ending;
  if (!read.complete)
    ending = read.ending + "; " + std::to_string(events) + " events before that are used";
  else if (read.unseen_bytes > 0)
    ending = at_least_words(read.unseen_bytes) + " of the pool " +
             (read.unseen_bytes > word_bytes ? "were" : "was") +
             " stored unseen and not judged; if the recorder is instrumented, --recorder preload "
             "sees more (docs/tutorials/crash.md: stored unseen)";
  std::printf("log\t%" PRIu64 "\t%zu\t%d\t%s\t%s\n", events, read.log.pool_bytes, ending.empty(),
              ending.c_str(), read.pool_path.c_str());
  for (const std::string& path : read.other_files)
    std::printf("warning\tonly %s is judged; the program also maps %s (see --pool)\n",
                read.pool_path.c_str(), path.c_str());
  if (!read.unseen.empty()) std::printf("unseen_flushes\n");
  for (const auto& [module, count] : read.unseen)
    std::printf("warning\t%" PRIu64
                " flush and fence instructions of %s were not seen: a store may be called never "
                "flushed that they flush\n",
                count, module.c_str());
}

Error without_record(Error error, std::uint64_t unseen_bytes) {
  std::printf("nothing\t%" PRIu64 "\n", unseen_bytes);
  return error;
}

Result<storelog::ReadLog> read_written(const char* file, bool contents) {
  if (access(file, F_OK) != 0)
    return without_record(nothing_mapped()); // the recorder makes it with the first mapping
  Result<storelog::ReadLog> read = storelog::read_log(file, contents);
  if (read && read->uninstrumented)
    return Error::make(Errc::bad_input, "no code of the program is compiled for the recorder")
        .try_next(
            "record it with --recorder preload, or compile it with: nearfar crash flags compile "
            "(with -flto, link it with these, too)");
  if (read && read->log.pool_bytes == 0 && !read->ending.empty())
    return Error::make(Errc::bad_input, "the pool cannot be recorded: %s", read->ending.c_str())
        .try_next("use a smaller pool");
  return read;
}

/// Lines of stores of another thread: neither their place nor their order and kind is known.
void print_unplaced(const storelog::Log& log) {
  std::vector<std::uint64_t> lines;
  for (const storelog::Event& event : log.events) {
    if (!storelog::stores(event) || event.thread == storelog::no_thread || !event.site.is_unknown())
      continue;
    for (std::uint64_t at = event.address / storelog::line_bytes * storelog::line_bytes;
         at < event.address + event.bytes; at += storelog::line_bytes)
      lines.push_back(at);
  }
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  for (const std::uint64_t line : lines)
    std::printf("unplaced\t%" PRIu64 "\n", line);
}

Result<storelog::ReadLog> read_recorded(const char* file) {
  Result<storelog::ReadLog> read = read_written(file, true);
  if (!read) return read;
  const storelog::Log& log = read->log;
  print_log(*read, log.events.size());
  print_unplaced(log);
  if (log.pool_bytes == 0) return without_record(nothing_mapped());
  if (std::any_of(log.events.begin(), log.events.end(), storelog::stores)) return read;
  return without_record(nothing_stored(*read), read->unseen_bytes);
}

} // namespace nearfar::crash
