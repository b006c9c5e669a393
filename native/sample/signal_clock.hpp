// Clock samples that programs take of themselves (alloclog/preload/clock.hpp), in the form of the
// kernel's.
//
// Mappings       are read from /proc/PID/maps when a program has joined the log, and again while it
//                runs, because changes are not reported.
// First touches  are not observed. Pages in memory are looked up after 0.1 s, and each time that
//                the length of the run has doubled; a new chunk becomes a fault sample.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>

#include "sample/collector.hpp"

namespace nearfar::sample {

class SignalClock {
public:
  /// Passes the samples since the last call to a collector, as of its log's last poll(). Returns
  /// the time of the last one so far.
  std::uint64_t take(Collector& seen);

private:
  struct Image {
    std::uint64_t first_ns = 0;   ///< of its samples
    std::uint64_t read_ns = 0;    ///< when mappings were read
    std::uint64_t touched_ns = 0; ///< when pages were looked up
    std::unordered_set<std::uint64_t> chunks;
  };
  void add_images(Collector& seen);
  static void read_mappings(Collector& seen, Image& image, pid_t process, std::uint64_t now_ns);
  static void take_touched(Collector& seen, Image& image, pid_t process, std::uint64_t now_ns);

  std::map<alloclog::ImageNumber, Image> images_;
  std::uint64_t last_ns_ = 0;
};

} // namespace nearfar::sample
