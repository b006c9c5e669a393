#include "inspect/pool_view.hpp"

#include <algorithm>

#include "os/block_io.hpp"

namespace nearfar::inspect {

namespace {

bool within(Offset size, Offset offset, std::size_t bytes) {
  return offset <= size && bytes <= size - offset;
}

} // namespace

bool MemoryView::read(Offset offset, void* to, std::size_t bytes) const {
  if (!within(bytes_.size(), offset, bytes)) return false;
  std::memcpy(to, bytes_.data() + offset, bytes);
  return true;
}

const std::byte* MemoryView::bytes_at(Offset offset, std::size_t bytes) const {
  return within(bytes_.size(), offset, bytes) ? bytes_.data() + offset : nullptr;
}

bool FileView::read(Offset offset, void* to, std::size_t bytes) const {
  return within(size_, offset, bytes) &&
         bool(os::read_at(file_, static_cast<std::byte*>(to), bytes, offset));
}

Result<FileView> open_view(const char* path) {
  Result<os::File> file = os::open_readonly(path);
  if (!file) return file.error();
  Result<std::size_t> size = os::file_size(*file);
  if (!size) return size.error();
  return FileView(std::move(*file), *size);
}

bool PatchedView::store(Offset offset, std::uint64_t word) {
  std::byte bytes[8];
  if (!below_.read(offset, bytes, sizeof bytes)) return false;
  std::memcpy(bytes, &word, sizeof word);
  for (std::size_t i = 0; i < sizeof bytes; ++i) {
    const Offset at = offset + i;
    auto [slot, fresh] = words_.try_emplace(at / 8);
    if (fresh && !below_.read(at / 8 * 8, slot->second.data(), 8)) slot->second = {};
    slot->second[at % 8] = bytes[i];
  }
  return true;
}

bool PatchedView::read(Offset offset, void* to, std::size_t bytes) const {
  if (!below_.read(offset, to, bytes)) return false;
  for (auto slot = words_.lower_bound(offset / 8);
       slot != words_.end() && slot->first * 8 < offset + bytes; ++slot)
    for (std::size_t i = 0; i < 8; ++i) {
      const Offset at = slot->first * 8 + i;
      if (at >= offset && at - offset < bytes)
        static_cast<std::byte*>(to)[at - offset] = slot->second[i];
    }
  return true;
}

/// Access behind the window's beginning reads ahead; access a little before it (`back`) reads what
/// lies before; any other access reads its page.
const std::byte* Window::fill(Offset offset, std::size_t bytes) {
  const Offset size = view_->size();
  if (!within(size, offset, bytes)) return nullptr;
  const bool onward = held_ != 0 && offset >= begin_ && offset - begin_ <= held_ + max_bytes;
  const bool back = offset < begin_ && begin_ - offset <= max_bytes && bytes <= page_bytes;
  Offset begin = onward ? offset : offset / page_bytes * page_bytes;
  if (back) // two pages are for the requested bytes, which may lie in two
    begin -= std::min<Offset>(begin, max_bytes - 2 * page_bytes);
  const Offset least = offset - begin + bytes;
  const std::size_t wanted =
      std::min(std::max<Offset>(least, onward ? max_bytes : page_bytes), size - begin);
  held_ = 0;
  if (const std::byte* lies = view_->bytes_at(begin, wanted)) {
    from_ = lies;
  } else {
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    if (!view_->read(begin, buffer_.data(), wanted)) return nullptr;
    from_ = buffer_.data();
  }
  begin_ = begin;
  held_ = wanted;
  return from_ + (offset - begin);
}

} // namespace nearfar::inspect
