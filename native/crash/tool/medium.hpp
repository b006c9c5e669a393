// Structures under the explorer: their medium is an image of memory, whose allocator
// emulates libpmemobj's (atomic and durable when it returns; persist/pool.hpp).
//
// Everything that includes this is compiled with -fsanitize=thread, so that reads are seen.
#pragma once

#include <cstring>
#include <memory>

#include "crash/tool/subjects.hpp"
#include "structures/persistence_policy.hpp"

namespace nearfar::crash {

using structures::Pmem;

/// An allocation exists as soon as its link is durable.
class ImageSource final : public persist::StorageAllocator {
public:
  ImageSource(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}

  Status allocate(std::uint64_t* link, std::size_t bytes, std::uint64_t, bool zeroed) override {
    const std::uint64_t from = next();
    if (from + bytes > bytes_) return Error::make(Errc::no_space, "the image is full");
    if (zeroed) {
      std::memset(base_ + from, 0, bytes);
      make_durable(base_ + from, bytes);
    }
    *link = from;
    *reinterpret_cast<std::uint64_t*>(base_) = from + bytes;
    make_durable(base_, sizeof(std::uint64_t));
    make_durable(link, sizeof *link);
    return Done{};
  }
  Status release(std::uint64_t* link) override {
    *link = 0;
    make_durable(link, sizeof *link);
    return Done{};
  }

  static constexpr std::uint64_t first = 8192; ///< the roots of structures lie before it

  static void make_durable(const void* at, std::size_t bytes) {
    storelog::store(at, bytes, pool_site);
    storelog::flush(at, bytes, pool_site);
    storelog::fence(pool_site);
  }

private:
  /// Memory is allocated in ascending order: the pool's first word is the end of what was allocated.
  std::uint64_t next() const {
    const std::uint64_t taken = *reinterpret_cast<const std::uint64_t*>(base_);
    return (std::max(taken, first) + 63) / 64 * 64;
  }

  std::byte* base_;
  std::size_t bytes_;
};

/// A structure S over ROOT, opened by S::open(medium, root).
template <class S, class Root>
class StructureSubject : public Subject {
public:
  Status create(std::byte* pool, std::size_t bytes) override {
    // A pool's memory is reused: callers that rely on zeros must request them.
    std::memset(pool + ImageSource::first, 0xA5, bytes - ImageSource::first);
    const char* refused = open(pool, bytes, {});
    if (refused != nullptr) return Error::make(Errc::failed_check, "%s", refused);
    return Done{};
  }
  const char* open(std::byte* pool, std::size_t bytes, const Moment&) override {
    static_assert(sizeof(Root) + root_at <= ImageSource::first);
    medium_ = std::make_unique<Pmem>(pool, persist::Durability::fence,
                                     std::make_unique<ImageSource>(pool, bytes));
    auto opened = S::open(*medium_, *reinterpret_cast<Root*>(pool + root_at));
    if (!opened) {
      std::memcpy(why_, opened.error().what, sizeof why_);
      return why_;
    }
    structure_ = std::move(*opened);
    return nullptr;
  }
  /// Free memory is what no node claims (structures/node_heap.hpp): there is nothing to leak.
  std::uint64_t leaked_bytes() override { return 0; }
  void close() override {
    structure_.reset();
    medium_.reset();
  }

protected:
  S& structure() { return *structure_; }

private:
  static constexpr std::size_t root_at = 64;

  std::unique_ptr<Pmem> medium_;
  std::unique_ptr<S> structure_;
  char why_[sizeof(Error::what)] = "";
};

/// The outcome of an operation that returns Result<...>.
template <class T>
Status done(const Result<T>& result) {
  if (!result) return result.error();
  return Done{};
}

} // namespace nearfar::crash
