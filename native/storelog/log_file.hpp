// The on-disk form of a log (docs/formats/storelog.md): appended in chunks, each with a checksum.
//
// Truncation     a killed process leaves whole chunks and perhaps a torn one, and, if the recorder
//                requested it, a second file with the records after them. read_log() returns the
//                valid records and how the log ended.
// Thread safety  one thread at a time writes.
// Freestanding   the writer allocates nothing and throws nothing: it runs inside other programs.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "os/library_descriptor.hpp"
#include "storelog/recorder.hpp"

namespace nearfar::storelog {

inline constexpr std::uint32_t log_version = 1;
inline constexpr char log_magic[8] = {'N', 'F', 'S', 'T', 'O', 'R', 'E', '\n'};

/// Kinds of records of a file, in addition to those of events.
enum class Tag : std::uint8_t {
  site = 16,           ///< site number `site`: `address` is Site::place(), the data its file, and
                       ///< `bytes` 1 + the number of its caller, or 0
  image = 17,          ///< bytes that were durable before the first event
  pool = 18,           ///< `address`: bytes of the pool; data: its path; `site`: process ID
  last = 19,           ///< the log is complete; `address` is the number of events
  failed = 20,         ///< the recorder gave up; the data is the reason
  created = 21,        ///< a library has created the pool: all before this is taken as durable
  unseen = 22,         ///< `address` flushes and fences of the module in the data were not recorded
  unseen_bytes = 23,   ///< so many bytes (`address`) of the pool were stored unrecorded
  uninstrumented = 24, ///< no code of the program was compiled for the instrumented recorder
  other_file = 25,     ///< the program maps the file in the data, too; its stores are not recorded
  stack = 26,          ///< the numbers of the calls that led to `site` first, innermost first
};

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t checksum; ///< CRC32C of magic and version
};
struct ChunkHeader {
  std::uint32_t bytes;    ///< of the records that follow
  std::uint32_t checksum; ///< CRC32C of them
};
/// Followed by its data, padded to a multiple of 8 bytes.
struct FileRecord {
  std::uint8_t tag;
  std::uint8_t host;
  std::uint16_t thread;
  std::uint32_t site;
  std::uint64_t address;
  std::uint32_t bytes;      ///< of the event
  std::uint32_t data_bytes; ///< that follow
};
static_assert(sizeof(FileHeader) == 16 && sizeof(ChunkHeader) == 8 && sizeof(FileRecord) == 24);

/// Records that a writer has not written yet, in memory that outlives its process: FILE.unwritten.
struct Unwritten {
  std::uint64_t offset; ///< where the chunk of these records will begin in the log
  std::uint64_t bytes;  ///< of the records
  alignas(8) char records[1 << 13];
};

/// Appends to an open file. Data of more than half a chunk is written as several records.
class LogWriter {
public:
  /// By its `path`, which outlives the writer, the file is opened again if a program has closed it.
  explicit LogWriter(os::File file, const char* path = nullptr) : path_(path) {
    file_.adopt(std::move(file));
  }

  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// Keeps unwritten records in this file, from which they are read if the process is killed. Has
  /// no effect if the file cannot be created. Call it before begin().
  void keep_unwritten(const char* path);
  void begin();
  void pool(std::uint64_t bytes, const char* path);
  void image(std::uint64_t address, const void* data, std::size_t bytes);
  /// Numbers a site; `caller` is the number of its caller's, if it has one.
  std::uint32_t site(Site site, std::optional<std::uint32_t> caller = {});
  /// The calls that led to a site, by their numbers.
  void stack(std::uint32_t site, std::span<const std::uint32_t> calls);
  void event(EventKind kind, std::uint16_t thread, std::uint32_t site, std::uint64_t address,
             std::uint32_t bytes, const void* data, std::uint8_t host = 0);
  void created();
  void unseen(std::uint64_t count, const char* module);
  void unseen_bytes(std::uint64_t count);
  void uninstrumented();
  void other_file(const char* path);
  /// Writes the buffered records as a chunk.
  void flush();
  void end();
  /// Ends the log as incomplete, for this reason.
  void give_up(const char* why);
  bool failed() const { return failed_; } ///< a write failed; nothing more is written

private:
  static constexpr std::size_t chunk_bytes = sizeof(Unwritten::records);

  void put(FileRecord record, const void* data);
  void text(Tag tag, std::uint64_t number, const char* text, std::uint32_t site = 0);
  int descriptor();

  const char* path_;
  os::LibraryDescriptor file_; ///< a recorded program closes descriptors that it does not know
  bool failed_ = false;
  std::uint32_t sites_ = 0;
  std::uint64_t events_ = 0;
  Unwritten own_{};
  Unwritten* unwritten_ = &own_;
};

/// A log that was read. Sites point into `names` and `callers`.
struct ReadLog {
  Log log;
  std::deque<std::string> names;
  std::deque<Site> callers;
  std::vector<Site> sites; ///< by number
  std::vector<std::vector<Site>>
      stacks; ///< by the number of a site: the calls that led to it first
  std::string pool_path;
  std::vector<std::pair<std::string, std::uint64_t>> unseen; ///< flushes and fences, by module
  std::uint64_t unseen_bytes = 0; ///< of the pool, stored unrecorded: by code without callbacks
  bool uninstrumented = false;    ///< no code had callbacks
  std::vector<std::string> other_files; ///< that the program maps; their stores are not recorded
  bool complete = false;
  std::string ending; ///< if not complete: what is wrong, and at which offset
};

/// Without `contents`, the image and the stored bytes are left out. Errors: not_found; bad_input
/// (no log, another version).
Result<ReadLog> read_log(const char* path, bool contents = true);

/// Writes a log that is in memory to an empty file.
Status write_log(const Log& log, const char* pool_path, os::File file);

} // namespace nearfar::storelog
