// Test only: a pool of words, in which recovery changes nothing.
#pragma once

#include "crash/subject.hpp"
#include "storelog/storelog.hpp"

namespace nearfar::crash {

class Words : public Subject {
public:
  Status create(std::byte* pool, std::size_t) override {
    words_ = reinterpret_cast<std::uint64_t*>(pool);
    return Done{};
  }
  const char* open(std::byte* pool, std::size_t, const Moment&) override {
    words_ = reinterpret_cast<std::uint64_t*>(pool);
    return nullptr;
  }
  void apply_to_model(const Operation&, Contents&) const override {}
  std::uint64_t leaked_bytes() override { return 0; }
  void close() override {}

protected:
  void set(std::size_t word, std::uint64_t content = 1,
           storelog::Site site = storelog::Site::current()) {
    words_[word] = content;
    storelog::store(&words_[word], 8, site);
  }
  /// The lines of words [from, to].
  void persist(std::size_t from, std::size_t to) {
    storelog::flush(&words_[from], (to - from + 1) * 8);
    storelog::fence();
  }

  std::uint64_t* words_ = nullptr;
};

} // namespace nearfar::crash
