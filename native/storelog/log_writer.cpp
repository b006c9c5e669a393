#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/crc32c.hpp"
#include "os/file.hpp"
#include "os/system_call.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::storelog {

namespace {

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

} // namespace

void LogWriter::begin() {
  FileHeader header{};
  std::memcpy(header.magic, log_magic, sizeof header.magic);
  header.version = log_version;
  header.checksum = crc32c(&header, 12);
  failed_ = !os::write_whole(file_.get(), &header, sizeof header);
  unwritten_->offset = sizeof header;
}

void LogWriter::keep_unwritten(const char* path) {
  const os::File file(open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  // Room is reserved: a page that a full disk cannot hold would end the program.
  if (file.fd() < 0 || posix_fallocate(file.fd(), 0, sizeof(Unwritten)) != 0) return;
  void* const shared = reinterpret_cast<void*>(os::system_call(
      SYS_mmap, nullptr, sizeof(Unwritten), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0));
  if (shared == MAP_FAILED) return;
  std::memcpy(shared, unwritten_, sizeof(Unwritten));
  unwritten_ = static_cast<Unwritten*>(shared);
}

void LogWriter::put(FileRecord record, const void* data) {
  const std::size_t bytes = sizeof record + padded(record.data_bytes);
  if (unwritten_->bytes + bytes > chunk_bytes) flush();
  char* const to = unwritten_->records + unwritten_->bytes;
  std::memcpy(to, &record, sizeof record);
  if (record.data_bytes > 0) {
    std::memset(to + bytes - 8, 0, 8);
    std::memcpy(to + sizeof record, data, record.data_bytes);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst); // a killed program leaves whole records
  unwritten_->bytes += bytes;
}

void LogWriter::pool(std::uint64_t bytes, const char* path) {
  text(Tag::pool, bytes, path, static_cast<std::uint32_t>(getpid()));
}

void LogWriter::image(std::uint64_t address, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const auto part = static_cast<std::uint32_t>(std::min(bytes - done, chunk_bytes / 2));
    put({static_cast<std::uint8_t>(Tag::image), 0, 0, 0, address + done, part, part}, from + done);
    done += part;
  }
}

std::uint32_t LogWriter::site(Site site, std::optional<std::uint32_t> caller) {
  const std::uint32_t number = sites_++;
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::size_t>(std::strlen(site.file()), 4096));
  put({static_cast<std::uint8_t>(Tag::site), 0, 0, number, site.place(), caller ? *caller + 1 : 0,
       bytes},
      site.file());
  return number;
}

void LogWriter::stack(std::uint32_t site, std::span<const std::uint32_t> calls) {
  put({static_cast<std::uint8_t>(Tag::stack), 0, 0, site, 0, 0,
       static_cast<std::uint32_t>(calls.size_bytes())},
      calls.data());
}

void LogWriter::event(EventKind kind, std::uint16_t thread, std::uint32_t site,
                      std::uint64_t address, std::uint32_t bytes, const void* data,
                      std::uint8_t host) {
  const bool stores = kind == EventKind::store || kind == EventKind::nt_store;
  const auto* from = static_cast<const char*>(data);
  std::uint32_t done = 0;
  do {
    const std::uint32_t part =
        stores ? std::min<std::uint32_t>(bytes - done, chunk_bytes / 2) : bytes;
    put({static_cast<std::uint8_t>(kind), host, thread, site, address + done, part,
         stores ? part : 0},
        from + done);
    ++events_;
    done += part;
  } while (done < bytes);
}

void LogWriter::created() { text(Tag::created, events_, ""); }

void LogWriter::text(Tag tag, std::uint64_t number, const char* text, std::uint32_t site) {
  const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(std::strlen(text), 4096));
  put({static_cast<std::uint8_t>(tag), 0, 0, site, number, 0, bytes}, text);
}

void LogWriter::unseen(std::uint64_t count, const char* module) {
  text(Tag::unseen, count, module);
}
void LogWriter::unseen_bytes(std::uint64_t count) { text(Tag::unseen_bytes, count, ""); }
void LogWriter::uninstrumented() { text(Tag::uninstrumented, 0, ""); }
void LogWriter::other_file(const char* path) { text(Tag::other_file, 0, path); }

int LogWriter::descriptor() {
  if (const int known = file_.get(); known >= 0 || path_ == nullptr) return known;
  file_.reopen(path_, O_WRONLY | O_APPEND);
  return file_.get();
}

void LogWriter::flush() {
  const std::uint64_t bytes = unwritten_->bytes;
  if (bytes == 0 || failed_) return;
  const char* const records = unwritten_->records;
  const ChunkHeader header{static_cast<std::uint32_t>(bytes), crc32c(records, bytes)};
  const int file = descriptor();
  failed_ =
      !os::write_whole(file, &header, sizeof header) || !os::write_whole(file, records, bytes);
  unwritten_->bytes = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst); // no record is read twice
  unwritten_->offset += sizeof header + bytes;
}

void LogWriter::end() {
  text(Tag::last, events_, "");
  flush();
}

void LogWriter::give_up(const char* why) {
  text(Tag::failed, events_, why);
  flush();
}

Status write_log(const Log& log, const char* pool_path, os::File file) {
  LogWriter writer(std::move(file));
  writer.begin();
  writer.pool(log.pool_bytes, pool_path);
  constexpr std::size_t page = 4096;
  for (std::size_t at = 0; at < log.image.size(); at += page) {
    const std::size_t bytes = std::min(page, log.image.size() - at);
    const auto* from = log.image.data() + at;
    if (std::any_of(from, from + bytes, [](std::byte b) { return b != std::byte{0}; }))
      writer.image(at, from, bytes);
  }
  std::vector<std::pair<Site, std::uint32_t>> sites;
  const auto number_of = [&](const auto& self, const Site& site) -> std::uint32_t {
    auto known = std::find_if(sites.begin(), sites.end(),
                              [&](const auto& entry) { return entry.first == site; });
    if (known != sites.end()) return known->second;
    std::optional<std::uint32_t> caller;
    if (site.caller() != nullptr) caller = self(self, *site.caller());
    return sites.emplace_back(site, writer.site(site, caller)).second;
  };
  for (const Event& event : log.events)
    writer.event(event.kind, event.thread, number_of(number_of, event.site), event.address,
                 event.bytes, log.data.data() + event.data, event.host);
  writer.end();
  if (writer.failed())
    return Error::make(Errc::os_error, "the log could not be written")
        .try_next("look for room on the disk");
  return Done{};
}

} // namespace nearfar::storelog
