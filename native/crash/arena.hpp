// The memory that recovery runs on: an image of the pool in which lines that may or may not be
// durable are decided only when recovery reads them.
//
// How            code under test is compiled with -fsanitize=thread, but linked with our callbacks
//                (crash/tool/callbacks.cpp): they hand each read and write to on_read() and
//                on_write(). A read of undecided bytes asks the Chooser which version of its line
//                is durable. Code without instrumentation calls decide_all() first: correct, more
//                states.
// Thread safety  one arena and one thread at a time (the hooks are global).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crash/persistency.hpp"

namespace nearfar::crash {

/// A line that may hold any of several contents after the crash; version 0 is the durable one.
struct Undecided {
  std::uint32_t line = 0;
  std::uint64_t generation = 0; ///< of the pending line
  std::vector<Line> versions;
  std::vector<std::uint64_t> hashes; ///< of the versions
  std::vector<std::uint32_t> pieces; ///< how many pending pieces each version has
  std::vector<std::uint32_t> after;  ///< the version that so many pieces leave
  std::uint64_t differing = 0;       ///< a bit for each byte in which versions differ

  /// What all pieces leave: an earlier version may be the same.
  std::size_t newest() const { return after.back(); }
  /// What one piece more leaves.
  void add(const Line& version);
};

/// Lists what each pending line may hold, in the order of model.pending(). `undecided` holds an earlier
/// list, or none: what has not changed since is taken from it.
void list_versions(const Persistency& model, std::vector<Undecided>& undecided);
/// How many images they make.
double count_images(const std::vector<Undecided>& undecided);

/// Decides which version of undecided line `slot` is there.
class Chooser {
public:
  virtual ~Chooser() = default;
  virtual std::size_t choose(std::size_t slot) = 0;
};

class Arena {
public:
  /// Memory at a place of its own that stays: pointers into the pool keep their value.
  explicit Arena(std::size_t bytes);
  /// Memory of a new file that other programs read. `file`: the descriptor if these programs may
  /// change the file, which is then compared and restored after each of them; otherwise -1.
  Arena(std::byte* shared, std::size_t bytes, int file);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  std::byte* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

  /// Begins a run on the durable image, with these lines undecided.
  void begin(const std::vector<Undecided>& undecided, Chooser& chooser);
  /// Puts back what ran had changed; the hooks see nothing more. Returns whether others had
  /// changed shared memory.
  bool end(std::span<const std::byte> durable);
  void decide_all();
  /// Copies a line of the durable image that has changed, or all of it.
  void update(std::span<const std::byte> durable, std::uint32_t line);
  void copy_all(std::span<const std::byte> durable);
  /// Puts back what others have changed of shared memory since copy_all(). Returns whether they
  /// had.
  bool restore(std::span<const std::byte> durable);

  /// Whatever becomes durable is written there, too: memory of as many bytes, or null.
  void mirror(std::byte* other) { mirror_ = other; }
  std::byte* mirror() const { return mirror_; }

  static constexpr std::uint8_t touched = 1, undecided = 2; ///< states of a line, as bits

  /// Not for users: the slow halves of the hooks.
  void read(std::size_t offset, std::size_t bytes);
  void wrote(std::size_t offset, std::size_t bytes);

private:
  void decide(std::uint32_t line);
  std::size_t slot_of(std::uint32_t line) const;

  bool restore_page(std::span<const std::byte> durable, std::size_t page);
  void copy_pages(std::span<const std::byte> durable);
  void put_back(std::span<const std::byte> durable, std::uint32_t line);

  std::byte* memory_;
  std::size_t bytes_;
  std::byte* mirror_ = nullptr;
  bool shared_ = false;
  int file_ = -1;
  bool changed_ = false;               ///< by others
  std::vector<bool> pages_;            ///< of the file that the arena has stored to
  std::vector<std::uint8_t> state_;    ///< of each line
  std::vector<std::uint32_t> touched_; ///< lines to put back
  std::vector<Line> given_;            ///< what others found in them
  const std::vector<Undecided>* undecided_ = nullptr;
  std::vector<std::uint64_t> written_; ///< for each slot: bytes that recovery wrote itself
  Chooser* chooser_ = nullptr;
};

/// Not for users: what the hooks work on. No arena is active where `bytes` is 0.
struct ActiveArena {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  const std::uint8_t* state = nullptr; ///< of each line
  Arena* arena = nullptr;

  /// Whether nothing is to be done for an access: it lies in one line, whose bits in `mask` are
  /// exactly `wanted`. Nearly all do.
  bool idle(std::size_t offset, std::size_t length, std::uint8_t mask, std::uint8_t wanted) const {
    const std::size_t line = offset / line_bytes;
    return (offset + length - 1) / line_bytes == line && (state[line] & mask) == wanted;
  }
};
inline ActiveArena active_arena;

/// Before memory is read.
inline void on_read(const void* at, std::size_t bytes) {
  const std::size_t offset =
      reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(active_arena.memory);
  if (offset >= active_arena.bytes || bytes == 0) return;
  if (active_arena.idle(offset, bytes, Arena::undecided, 0)) return;
  active_arena.arena->read(offset, bytes);
}

/// Before memory is written.
inline void on_write(const void* at, std::size_t bytes) {
  const std::size_t offset =
      reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(active_arena.memory);
  if (offset >= active_arena.bytes || bytes == 0) return;
  if (active_arena.idle(offset, bytes, Arena::undecided | Arena::touched, Arena::touched)) return;
  active_arena.arena->wrote(offset, bytes);
}

} // namespace nearfar::crash
