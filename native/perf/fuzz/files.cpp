// The reader of perf.data files, on files whose header is right and whose attributes and records
// are the input; on records of a pipe; and on the input as it is.
#include <cstdlib>

#include "fuzz_target.hpp"
#include "perf/file.hpp"
#include "perf/test_bytes.hpp"

using namespace nearfar::perf;

namespace {

using nearfar::fuzz::Choices;

perf_event_attr any_attr(Choices& choices) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.sample_type = choices.take<std::uint32_t>();
  attr.read_format = choices.take<std::uint8_t>();
  attr.branch_sample_type = choices.take<std::uint32_t>();
  attr.sample_regs_user = choices.take<std::uint64_t>();
  attr.sample_regs_intr = choices.take<std::uint32_t>();
  attr.sample_id_all = choices.take<std::uint8_t>() & 1u;
  return attr;
}

/// Records of the types that are decoded, so that most inputs get past the header of a record.
Bytes any_records(Choices& choices) {
  constexpr std::uint32_t types[] = {1, 2, 3, 4, 5, 7, 9, 9, 10, 13, 64, 66, 67, 71, 80, 81, 83};
  Bytes records;
  while (choices.more()) {
    const std::uint32_t type = types[choices.take<std::uint8_t>() % std::size(types)];
    const auto misc = choices.take<std::uint16_t>();
    const std::size_t length = choices.take<std::uint8_t>() % 128;
    Bytes body;
    for (std::size_t i = 0; i < length; ++i)
      body.put(choices.take<std::uint8_t>());
    records.append(record(type, misc, body));
  }
  return records;
}

void read(Bytes bytes) {
  if (bytes.empty()) return;
  nearfar::Result<DataFile> file =
      DataFile::read(nearfar::os::Stream(fmemopen(bytes.data(), bytes.size(), "rb")), "input");
  if (!file) return;
  for (;;) {
    nearfar::Result<const EventRecord*> next = file->next();
    if (!next || *next == nullptr) return;
    if ((*next)->event >= file->events().size()) std::abort();
    // Names and raw data are inside the bytes: the sanitizer sees a read outside.
    static volatile std::size_t seen = 0;
    if (const auto* sample = std::get_if<Sample>(&(*next)->record))
      for (const std::uint8_t byte : sample->raw)
        seen = seen + byte;
    if (const auto* mapping = std::get_if<Mapping>(&(*next)->record))
      seen = seen + std::string(mapping->file).size();
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes raw;
  raw.append({data, data + size});
  read(raw);
  read(pipe_of(raw));
  Choices choices(data, size);
  FileParts parts;
  parts.events.push_back({any_attr(choices), {1}});
  parts.records = any_records(choices);
  read(file_of(parts));
  return 0;
}
