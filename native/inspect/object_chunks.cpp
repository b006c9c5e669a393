#include "inspect/object_chunks.hpp"

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <set>

namespace nearfar::inspect {

namespace {

using poolformat::ChunkHead;
using poolformat::DirectoryPage;

constexpr const char* part = "chunk";

class Walker {
public:
  Walker(const PoolView& view, const Descriptor& descriptor, const ObjectStore& store,
         Findings& findings, ObjectSink& sink)
      : view_(view), descriptor_(descriptor), store_(store), window_(view), findings_(findings),
        sink_(sink) {}

  ObjectChunks walk() {
    read_directory();
    std::sort(places_.begin(), places_.end());
    Offset end = 0;
    for (const Offset at : places_) {
      ChunkHead head;
      if (!view_.read(at, &head, sizeof head)) {
        findings_.unreadable(part, at, sizeof head);
      } else if (at < end) {
        findings_.damage(part, at, "a chunk overlaps the one before it, or has two links");
      } else if (head.object_bytes != 0 && check(at, head)) { // 0: left by a crash (heads.hpp)
        end = at + head.chunk_bytes;
        ++found_.count;
        walk_chunk(at, head);
      }
    }
    return found_;
  }

private:
  void read_directory() {
    std::set<Offset> seen;
    for (Offset at = store_.directory; at != 0;) {
      DirectoryPage page;
      if (!descriptor_.in_heap(at) || !seen.insert(at).second ||
          !view_.read(at, &page, sizeof page))
        return findings_.damage("directory", at, "the directory of chunks leads %s",
                                seen.contains(at) ? "round in a circle" : "out of the heap");
      for (const Offset& slot : page.slots) {
        if (slot == 0) continue;
        const Offset slot_at = at + sizeof page.next + 8 * Offset(&slot - page.slots);
        if (descriptor_.in_heap(slot) && slot % line_bytes == 0 &&
            descriptor_.heap_end() - slot >= sizeof(ChunkHead))
          places_.push_back(slot);
        else
          findings_.damage("directory", slot_at, "a chunk at %#" PRIx64 " is none of the heap",
                           slot);
      }
      at = page.next;
    }
  }

  bool check(Offset at, const ChunkHead& head) {
    const Offset words = (Offset{head.count} + 63) / 64;
    const Offset room = descriptor_.heap_end() - at;
    if (head.type >= store_.types.size())
      findings_.damage(part, at + offsetof(ChunkHead, type), "a chunk of unknown type %u",
                       head.type);
    else if (head.chunk_bytes > room)
      findings_.damage(part, at, "a chunk of %" PRIu64 " bytes leaves the heap", head.chunk_bytes);
    else if (head.count == 0 || head.objects % 8 != 0 || head.objects < sizeof head + 8 * words ||
             head.objects > head.chunk_bytes || head.object_bytes % 8 != 0 ||
             head.object_bytes > (head.chunk_bytes - head.objects) / head.count)
      findings_.damage(part, at,
                       "a chunk of %" PRIu64 " bytes has no room for %u objects of %" PRIu64,
                       head.chunk_bytes, head.count, head.object_bytes);
    else
      return true;
    return false;
  }

  void walk_chunk(Offset at, const ChunkHead& head) {
    for (std::uint32_t first = 0; first < head.count; first += 64) {
      const Offset word_at = at + sizeof head + first / 8;
      const std::byte* bytes = window_.at(word_at, 8);
      if (bytes == nullptr) return findings_.unreadable(part, word_at, 8);
      auto word = load<std::uint64_t>(bytes);
      const std::uint32_t left = head.count - first;
      if (left < 64 && word >> left != 0)
        findings_.damage(part, word_at, "bits behind the last object of a chunk are set");
      for (; word != 0; word &= word - 1) {
        const std::uint32_t i = first + static_cast<std::uint32_t>(std::countr_zero(word));
        if (i >= head.count) break;
        ++found_.objects;
        sink_.object({at + head.objects + i * head.object_bytes, head.object_bytes,
                      head.object_bytes, head.type, false});
      }
    }
  }

  const PoolView& view_;
  const Descriptor& descriptor_;
  const ObjectStore& store_;
  Window window_;
  Findings& findings_;
  ObjectSink& sink_;
  std::vector<Offset> places_;
  ObjectChunks found_;
};

} // namespace

ObjectChunks walk_object_chunks(const PoolView& view, const Descriptor& descriptor,
                                const ObjectStore& store, Findings& findings, ObjectSink& sink) {
  return Walker(view, descriptor, store, findings, sink).walk();
}

} // namespace nearfar::inspect
