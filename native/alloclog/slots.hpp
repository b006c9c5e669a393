// The control region of the allocation log in its reader: makes slots ready, which processes claim,
// and frees them.
//
// Untrusted      values that processes write (state and pid) are copied and checked. All others are
//                kept here, not in the region.
// Thread safety  one thread at a time; processes write concurrently.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "alloclog/format.hpp"
#include "alloclog/slot_file.hpp"
#include "base/result.hpp"
#include "os/file.hpp"

namespace nearfar::alloclog {

class Slots {
public:
  /// A slot that a process has joined, with its file. `index`: to be freed with.
  struct Joined {
    std::uint32_t index;
    pid_t pid;
    SlotFile file;
  };

  /// `clock_period_ns`: see Control.
  static Result<std::unique_ptr<Slots>> create(std::uint32_t clock_period_ns);
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots();

  /// The path of the region.
  std::string path() const;
  /// Slots that were joined since the last call. Slots of processes that failed are freed.
  std::vector<Joined> take_joined();
  /// Makes slots ready until there are `count`, or descriptors or slots run out.
  Status make_ready(std::uint32_t count);
  /// Frees a slot that was joined, after its file was closed.
  void free(std::uint32_t index);
  std::uint64_t lost_processes() const;

private:
  Slots(os::File file, Control* control);
  std::uint64_t state(std::uint32_t index) const;
  void set_state(std::uint32_t index, SlotState state);
  Status make_one_ready(std::uint32_t index);

  os::File file_;
  Control* control_;
  std::uint32_t serial_ = 0;
  std::vector<std::optional<SlotFile>> waiting_; ///< by index: files of slots not joined yet
  std::vector<bool> used_;                       ///< by index: joined, and not freed
};

} // namespace nearfar::alloclog
