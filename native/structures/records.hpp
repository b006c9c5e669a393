// Entries that do not fit into a word: keys and values in nodes of their own.
//
// Layout         a word of sizes (key bytes | value bytes << 32), the key, the value, each padded
//                with zeros to words. A record is never changed once it is linked.
// Thread safety  a record may be freed while it is read: all words are loaded and stored
//                atomically. After loading the sizes, the reader calls `still()` before it uses
//                them; the data is valid only if `still()` is true at the end.
#pragma once

#include <string>
#include <string_view>

#include "structures/node_heap.hpp"
#include "structures/persistence_policy.hpp"

namespace nearfar::structures {

/// Sizes of a record, from its first word.
struct RecordSizes {
  std::size_t key = 0;
  std::size_t value = 0;

  static constexpr std::size_t words(std::size_t bytes) { return (bytes + 7) / 8; }
  std::size_t bytes() const { return 8 * (1 + words(key) + words(value)); }
  std::uint64_t word() const { return key | std::uint64_t{value} << 32; }
  static RecordSizes of(std::uint64_t word) { return {word & UINT32_MAX, word >> 32}; }
};

/// Stores bytes word by word, padded with zeros; returns the word after them.
inline std::uint64_t* store_words(std::uint64_t* to, std::string_view bytes) {
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), taken);
    bytes.remove_prefix(taken);
    __atomic_store_n(to++, word, __ATOMIC_RELEASE);
  }
  return to;
}

/// Whether the words at `from` are these bytes.
inline bool equal_words(const std::uint64_t* from, std::string_view bytes) {
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), taken);
    bytes.remove_prefix(taken);
    if (load(*from++) != word) return false;
  }
  return true;
}

inline void load_words(const std::uint64_t* from, char* to, std::size_t bytes) {
  for (; bytes != 0; ++from) {
    const std::uint64_t word = load(*from);
    const std::size_t taken = std::min(bytes, sizeof word);
    std::memcpy(to, &word, taken);
    to += taken;
    bytes -= taken;
  }
}

template <class PersistencePolicy>
class Records {
public:
  Records(PersistencePolicy& medium, ChunkTable& table) : policy_(medium), heap_(medium, table) {}

  /// Writes a record and begins its write-back: the caller fences before it links it.
  Result<std::uint64_t> write(std::string_view key, std::string_view value) {
    if (key.size() > largest_node_bytes || value.size() > largest_node_bytes)
      return Error::make(Errc::bad_input, "a key or value is over the limit of 1 MiB")
          .try_next("split it over several keys");
    const RecordSizes sizes{key.size(), value.size()};
    Result<std::uint64_t> link = heap_.take(sizes.bytes());
    if (!link) return link;
    auto* record = policy_.template at<std::uint64_t>(*link);
    __atomic_store_n(record, sizes.word(), __ATOMIC_RELEASE);
    store_words(store_words(record + 1, key), value);
    policy_.stored(record, sizes.bytes());
    policy_.flush(record, sizes.bytes());
    return link;
  }

  template <class Still>
  bool has_key(std::uint64_t link, std::string_view key, Still still) const {
    const auto* record = policy_.template at<const std::uint64_t>(link);
    const RecordSizes sizes = RecordSizes::of(load(record[0]));
    return sizes.key == key.size() && still() && equal_words(record + 1, key);
  }

  /// Copies key and value. False if the record was freed during the reading.
  template <class Still>
  bool read(std::uint64_t link, std::string* key, std::string* value, Still still) const {
    const auto* record = policy_.template at<const std::uint64_t>(link);
    const RecordSizes sizes = RecordSizes::of(load(record[0]));
    if (!still()) return false;
    if (key != nullptr) {
      key->resize(sizes.key);
      load_words(record + 1, key->data(), sizes.key);
    }
    if (value != nullptr) {
      value->resize(sizes.value);
      load_words(record + 1 + RecordSizes::words(sizes.key), value->data(), sizes.value);
    }
    return still();
  }

  /// Frees the record, which no durable word links any more.
  void free(std::uint64_t link) {
    const auto* record = policy_.template at<const std::uint64_t>(link);
    heap_.give_back(link, RecordSizes::of(load(record[0])).bytes());
  }
  /// At open: claims the memory of a linked record. False if no record can be there.
  bool claim(std::uint64_t link) {
    if (!heap_.contains(link)) return false;
    const auto* record = policy_.template at<const std::uint64_t>(link);
    return heap_.claim(link, RecordSizes::of(load(record[0])).bytes());
  }
  void reset() { heap_.reset(); }

private:
  PersistencePolicy& policy_;
  NodeHeap<PersistencePolicy> heap_;
};

} // namespace nearfar::structures
