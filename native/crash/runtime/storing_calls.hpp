// What calls of the C library have the kernel store to memory that the caller names. Where that is in the
// pool, the kernel cannot store to a page that is read-only: it does through the recorder's writable
// mapping, and the call is recorded as a store.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "crash/runtime/kernel.hpp"

namespace nearfar::crash::runtime {

/// Memory that a call stores to.
struct Output {
  enum class Stored : std::uint8_t {
    all,      ///< every item
    returned, ///< as many items as the call returns, after `head` bytes
    sized,    ///< as many bytes as the argument `count` points to
    text,     ///< a string
    changed,  ///< not known: what the call has changed
  };
  static constexpr std::size_t none = SIZE_MAX;
  std::size_t argument; ///< that names it; the first is 0
  std::size_t item_bytes;
  Stored stored = Stored::all;
  std::size_t count =
      none; ///< the argument that limits the items, or points to the limit; none: one item
  std::size_t head = 0;
};

constexpr Output item(std::size_t argument, std::size_t bytes) { return {argument, bytes}; }
constexpr Output items(std::size_t argument, std::size_t count, std::size_t bytes) {
  return {argument, bytes, Output::Stored::all, count};
}
constexpr Output returned(std::size_t argument, std::size_t count, std::size_t bytes = 1,
                          std::size_t head = 0) {
  return {argument, bytes, Output::Stored::returned, count, head};
}
constexpr Output sized(std::size_t argument, std::size_t count) {
  return {argument, 1, Output::Stored::sized, count};
}
constexpr Output text(std::size_t argument, std::size_t count) {
  return {argument, 1, Output::Stored::text, count};
}
/// What has changed within so many bytes.
constexpr Output changed(std::size_t argument, std::size_t bytes) {
  return {argument, bytes, Output::Stored::changed};
}

/// One call. Between begin and end of its life, it is made with words() in place of the program's.
class StoringCall {
public:
  StoringCall(const Words& given, std::span<const Output> outputs, const void* code);
  StoringCall(const StoringCall&) = delete;
  StoringCall& operator=(const StoringCall&) = delete;

  const Words& words() const { return own_; }
  /// Records what the call has stored. Returns what the program gets for what the call returned. `name`
  /// is for the user, if the call fails.
  long finish(long done, const char* name) const;

private:
  void keep(std::size_t argument);
  void record(const Output& output, long done) const;
  void note_if_refused(const char* name) const;

  Words given_;
  Words own_;
  std::array<std::size_t, 6> most_{};           ///< bytes that it can store, by argument
  std::array<std::span<const char>, 6> before_; ///< what was there, by argument
  char memory_[1024];                           ///< for these
  std::size_t used_ = 0;
  std::span<const Output> outputs_;
  const void* code_;
};

} // namespace nearfar::crash::runtime
