// Opening a perf.data file: header, attributes, features.
#include <cstring>

#include "perf/file.hpp"

namespace nearfar::perf {

namespace {

constexpr std::uint64_t largest_attr = 4096; // the kernel accepts at most a page

bool is_set(const FileHeader& header, std::uint64_t feature) {
  return (header.features[feature / 64] >> feature % 64 & 1) != 0;
}

Error no_perf_data(const char* name) {
  return Error::make(Errc::bad_input, "'%s' is not a perf.data file", name)
      .try_next("name a file that `perf record` wrote");
}

} // namespace

Result<DataFile> DataFile::open(const char* path) {
  Result<os::Stream> stream = os::open_stream(path);
  if (!stream) return stream.error();
  return read(std::move(*stream), path);
}

Result<DataFile> DataFile::read(os::Stream stream, const char* name) {
  if (fseeko(stream.get(), 0, SEEK_END) != 0) return no_perf_data(name);
  DataFile file(std::move(stream), name);
  file.file_bytes_ = static_cast<std::uint64_t>(ftello(file.stream_.get()));
  if (Status done = file.read_header(); !done) return done.error();
  return file;
}

Status DataFile::read_header() {
  FileHeader header{};
  if (!read_at(0, &header.start, sizeof header.start)) return no_perf_data(name_.c_str());
  if (std::memcmp(header.start.magic, swapped_magic, 8) == 0)
    return damaged("is of a machine with another byte order");
  if (std::memcmp(header.start.magic, file_magic, 8) != 0) return no_perf_data(name_.c_str());
  if (header.start.size == sizeof(PipeHeader))
    return start_data({sizeof(PipeHeader), file_bytes_ - sizeof(PipeHeader)});
  if (header.start.size != sizeof header || !read_at(0, &header, sizeof header))
    return damaged("has a header of unknown size");
  complete_ = header.data.size != 0;
  if (Status done = read_attrs(header); !done) return done;
  if (!complete_ && header.data.offset <= file_bytes_)
    return start_data({header.data.offset, file_bytes_ - header.data.offset});
  if (!fits(header.data)) return damaged("is truncated: its records end after its end");
  if (Status done = read_features(header); !done) return done;
  return start_data(header.data);
}

Status DataFile::read_attrs(const FileHeader& header) {
  constexpr std::uint64_t least = PERF_ATTR_SIZE_VER0 + sizeof(FileSection);
  if (header.attr_size < least || header.attr_size > largest_attr)
    return damaged("has attributes of unknown size");
  Result<std::vector<std::uint8_t>> bytes = read_section(header.attrs, "attributes");
  if (!bytes) return bytes.error();
  std::uint64_t id_bytes = 0;
  Fields in(*bytes);
  while (in.rest().size() >= header.attr_size) {
    const perf_event_attr attr = read_attr(in.take(header.attr_size - sizeof(FileSection)));
    const auto section = in.read<FileSection>();
    // Sections may overlap: without this, few bytes would become many ids.
    if (section.size > file_bytes_ - id_bytes) return damaged("has more ids than bytes");
    id_bytes += section.size;
    Result<std::vector<std::uint8_t>> ids = read_section(section, "ids of events");
    if (!ids) return ids.error();
    if (Status done = add_event(attr, *ids); !done) return done;
  }
  if (events_.empty()) return damaged("has no events");
  return Done{};
}

Status DataFile::add_event(const perf_event_attr& attr, ByteSpan ids) {
  if (!events_.empty() && !same_id_place(events_.front().attr, attr))
    return damaged("has events that record their id in different places");
  FileEvent event;
  event.attr = attr;
  Fields in(ids);
  while (in.rest().size() >= sizeof(std::uint64_t)) {
    event.ids.push_back(in.u64());
    event_by_id_[event.ids.back()] = events_.size();
  }
  events_.push_back(std::move(event));
  return Done{};
}

/// The sections of the features that are set follow the records, in the order of their bits.
Status DataFile::read_features(const FileHeader& header) {
  std::uint64_t at = header.data.offset + header.data.size;
  for (std::uint64_t bit = 0; bit < 8 * sizeof header.features; ++bit) {
    if (!is_set(header, bit)) continue;
    FileSection section;
    if (!read_at(at, &section, sizeof section)) return damaged("is truncated in its features");
    at += sizeof section;
    const auto feature = static_cast<Feature>(bit);
    if (feature == Feature::directory)
      return damaged("is part of a folder of perf record --threads");
    if (!is_read(feature)) continue;
    Result<std::vector<std::uint8_t>> bytes = read_section(section, "features");
    if (!bytes) return bytes.error();
    if (Status done = read_feature(feature, *bytes, events_, facts_); !done)
      return damaged(done.error().what);
  }
  return Done{};
}

Status DataFile::start_data(const FileSection& data) {
  offset_ = data.offset;
  end_ = data.offset + data.size;
  if (fseeko(stream_.get(), static_cast<off_t>(offset_), SEEK_SET) != 0)
    return damaged("cannot be read");
  return Done{};
}

bool DataFile::fits(const FileSection& section) const {
  return section.offset <= file_bytes_ && section.size <= file_bytes_ - section.offset;
}

bool DataFile::read_at(std::uint64_t offset, void* to, std::size_t bytes) {
  return fits({offset, bytes}) &&
         fseeko(stream_.get(), static_cast<off_t>(offset), SEEK_SET) == 0 &&
         std::fread(to, 1, bytes, stream_.get()) == bytes;
}

Result<std::vector<std::uint8_t>> DataFile::read_section(const FileSection& section,
                                                         const char* what) {
  std::vector<std::uint8_t> bytes;
  if (fits(section)) {
    bytes.resize(section.size);
    if (read_at(section.offset, bytes.data(), bytes.size())) return bytes;
  }
  return Error::make(Errc::bad_input, "'%s' is truncated: its %s end after its end", name_.c_str(),
                     what)
      .try_next("copy or record it again");
}

Error DataFile::damaged(const char* problem) const {
  return Error::make(Errc::bad_input, "'%s' %s", name_.c_str(), problem)
      .try_next("copy or record it again");
}

} // namespace nearfar::perf
