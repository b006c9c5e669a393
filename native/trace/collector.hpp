// Consumes the ring that recorders fill, filters the accesses through caches, and writes a trace
// while the program runs.
//
// Thread safety  one thread collects; end() may be called from another.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/file.hpp"
#include "trace/cache_filter.hpp"
#include "trace/live_objects.hpp"
#include "trace/page_touches.hpp"
#include "trace/programs.hpp"
#include "trace/recorder/ring.hpp"
#include "trace/windows.hpp"
#include "trace/writer.hpp"

namespace nearfar::trace {

inline constexpr std::size_t max_touches = 1u << 24; ///< of 16 bytes each

struct FirstLevel {
  std::uint32_t sets = 64; ///< a power of two
  std::uint32_t ways = 8;
};

/// A mapped ring in an unnamed file in memory: it is freed when the last process that has it mapped
/// or open ends.
class RingFile {
public:
  /// Errors: as os::create_in_memory, no_space, bad_input, os_error.
  static Result<RingFile> create(const FirstLevel& first);
  RingFile(RingFile&& other) noexcept
      : file_(std::move(other.file_)), shared_(std::exchange(other.shared_, nullptr)) {}
  RingFile& operator=(RingFile&&) = delete;
  ~RingFile();
  ring::Shared& shared() { return *shared_; }
  /// The path that other processes of this user open (ring::attach) while this one has it.
  std::string path() const;

private:
  RingFile(os::File file, ring::Shared* shared) : file_(std::move(file)), shared_(shared) {}

  os::File file_;
  ring::Shared* shared_;
};

/// The result of collecting.
struct Collected {
  Totals totals;
  std::vector<std::uint64_t> other_llc_misses; ///< of last levels of other sizes
  std::uint64_t records = 0;                   ///< in the file
  std::uint64_t bytes = 0;                     ///< of the file
  std::uint32_t threads = 0;
  std::uint32_t processes = 0;
  std::uint32_t lost_threads = 0; ///< that shared the last slot
  std::uint64_t lost_events = 0;  ///< reserved by threads that were killed
  std::uint64_t float_instructions = 0;
  std::uint32_t executed = 0;        ///< programs started by exec(), which are not in the trace
  std::uint64_t recorded_cpu_ns = 0; ///< of the recorded processes, without those programs
  std::vector<Program> programs{};   ///< most instructions first
  /// First touches of pages by lines that passed the filter, also outside of windows.
  FirstTouches touched{};
  TouchLog touches{}; ///< of a trace in windows: the first `max_touches`
};

class Collector {
public:
  /// With max_records != 0, a run longer than that is sampled in windows. A window is written when
  /// complete, so a truncated trace may lack more than its last second.
  Collector(ring::Shared& shared, CacheFilter filter, int fd, const Header& header,
            std::uint64_t max_records = 0)
      : shared_(&shared), filter_(std::move(filter)), writer_(fd, header), objects_(writer_),
        windows_(max_records), in_windows_(max_records != 0) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// Collects until end() was called and the ring is empty, then completes the trace. Errors: those
  /// of TraceWriter::finish(); the program then continues without being recorded.
  Result<Collected> run();

  /// The program has ended; processes that outlive it are no longer recorded. `exit_code`, as a
  /// shell reports it, is written into the trace.
  void end(std::optional<std::uint32_t> exit_code = std::nullopt) {
    exit_code_ = exit_code;
    ended_.store(true);
  }

private:
  struct Thread {
    std::uint32_t process = 0;
    std::uint64_t records = 0; ///< of this thread
    std::uint64_t records_before_window = 0;
    unsigned misses = 0; ///< loads that missed the first level
    /// The last misses: 1 + the record number (of this thread) that loaded the data; 0: none.
    std::array<std::uint64_t, 8> producers{};
  };

  std::uint64_t take_batch(bool ended);
  std::size_t take(std::uint64_t position, std::uint64_t tail);
  void prefetch(std::uint64_t position, std::uint64_t tail) const;
  const ring::Event* upcoming(std::uint64_t position, std::uint64_t tail) const;
  void handle_access(const ring::Event& event);
  void handle(const ring::Event& event, const std::vector<std::uint64_t>& words);
  /// An access, unpacked.
  struct Access {
    ring::EventKind kind;
    std::uint8_t parent; ///< 0: none; n: address came from the nth last load miss
    std::uint16_t thread;
    std::uint64_t address, code, instructions;
  };
  static Access access_of(const ring::Event& event);
  static std::uint64_t line_of(const Thread& of, std::uint64_t address);
  std::uint64_t emit(Thread& of, const Access& access, std::uint64_t waits_for);
  void write(Thread& of, const Access& access, const Transfer& transfer, std::uint64_t waits_for);
  void leave_out(const Access& access, const Transfer& transfer);
  std::uint32_t object_of(const Access& access, const Transfer& transfer);
  void open_window();
  Thread& thread(std::uint16_t number);
  bool is_ready(std::uint64_t position) const;
  bool is_claimed(std::uint64_t position) const;
  bool was_abandoned(std::uint64_t position);
  std::uint32_t slots() const;
  void unmap_pages(std::uint32_t process, std::uint64_t address, std::uint64_t bytes);
  void refresh_totals();
  void flush_regularly(std::uint64_t& last_flush_ns);

  ring::Shared* shared_;
  CacheFilter filter_;
  TraceWriter writer_;
  LiveObjects objects_;
  Windows windows_;
  bool in_windows_;
  FirstTouches touched_;
  TouchLog touches_;
  std::vector<Thread> threads_;
  std::vector<std::uint64_t> words_;
  Programs programs_;
  std::optional<std::uint32_t> exit_code_; ///< before `ended_` is set
  std::atomic<bool> ended_{false};
  std::uint64_t lost_events_ = 0;
  std::uint64_t waiting_for_ = 0; ///< the last position that was reserved but not published
  std::uint64_t waiting_since_ns_ = 0;
};

} // namespace nearfar::trace
