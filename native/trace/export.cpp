#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "os/file.hpp"
#include "trace/champsim.hpp"
#include "trace/interchange.hpp"
#include "trace/reader.hpp"

namespace nearfar::trace {

namespace {

constexpr std::size_t buffer_bytes = 1u << 16;

void append(std::string& out, const Record& record, unsigned line_bytes, Form form) {
  const std::uint64_t address = record.line * line_bytes;
  char text[80];
  const auto at = static_cast<unsigned long long>(address);
  if (form == Form::champsim) {
    ChampsimInstruction one{};
    one.code = record.code;
    (writes(record.kind) ? one.stores[0] : one.loads[0]) = address;
    out.append(reinterpret_cast<const char*>(&one), sizeof one);
    return;
  }
  const auto instruction = static_cast<unsigned long long>(record.instructions);
  if (form == Form::ramulator)
    std::snprintf(text, sizeof text, "%s 0x%llx\n", writes(record.kind) ? "ST" : "LD", at);
  else if (form == Form::dramsys)
    std::snprintf(text, sizeof text, "%llu: (%u) %s 0x%llx\n", instruction, line_bytes,
                  writes(record.kind) ? "write" : "read", at);
  else
    std::snprintf(text, sizeof text, "0x%llx %s %llu\n", at, writes(record.kind) ? "WRITE" : "READ",
                  instruction);
  out += text;
}

} // namespace

Result<Exchanged> export_trace(const char* trace, int fd, Form form) {
  Result<TraceReader> reader = TraceReader::open(trace);
  if (!reader) return reader.error();
  Exchanged done;
  std::string out;
  int failed = 0;
  const auto flush = [&] {
    errno = 0;
    if (failed == 0 && !os::write_whole(fd, out.data(), out.size()))
      failed = errno != 0 ? errno : EIO;
    out.clear();
  };
  for (auto part = reader->next(); failed == 0 && !part.empty(); part = reader->next())
    for (const Record& record : part) {
      ++(writes(record.kind) ? done.writes : done.reads);
      append(out, record, reader->header().line_bytes, form);
      if (out.size() > buffer_bytes) flush();
    }
  flush();
  done.ending = reader->ending();
  if (failed == 0) return done;
  return Error::make(failed == ENOSPC || failed == EDQUOT ? Errc::no_space : Errc::os_error,
                     "the other trace could not be written to its end: %s", std::strerror(failed))
      .try_next("make room, or name a file elsewhere");
}

} // namespace nearfar::trace
