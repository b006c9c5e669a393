#include "crash/arena.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "crash/hash.hpp"
#include "os/address_space.hpp"
#include "os/file.hpp"
#include "os/file_holes.hpp"

namespace nearfar::crash {

namespace {

using os::page_bytes;

bool is_empty(const std::byte* at, std::size_t bytes) {
  return bytes == 0 || (at[0] == std::byte{0} && std::memcmp(at, at + 1, bytes - 1) == 0);
}

/// Bits of the bytes of one line that [offset, offset + bytes) covers.
std::uint64_t byte_mask(std::uint32_t line, std::size_t offset, std::size_t bytes) {
  const std::size_t start = std::size_t{line} * line_bytes;
  const std::size_t first = std::max(offset, start) - start;
  const std::size_t last = std::min(offset + bytes, start + line_bytes) - start;
  const std::uint64_t below =
      last == line_bytes ? ~std::uint64_t{0} : (std::uint64_t{1} << last) - 1;
  return below & ~((std::uint64_t{1} << first) - 1);
}

} // namespace

void Undecided::add(const Line& version) {
  const std::uint64_t hash = hash_line(line, version.data());
  std::size_t known = 0;
  while (known < versions.size() && (hashes[known] != hash || versions[known] != version))
    ++known;
  after.push_back(static_cast<std::uint32_t>(known));
  if (known < versions.size()) return;
  if (!versions.empty())
    for (std::size_t i = 0; i < line_bytes; ++i)
      if (version[i] != versions[0][i]) differing |= std::uint64_t{1} << i;
  versions.push_back(version);
  hashes.push_back(hash);
  pieces.push_back(static_cast<std::uint32_t>(after.size() - 1));
}

void list_versions(const Persistency& model, std::vector<Undecided>& undecided) {
  std::vector<Undecided> old = std::exchange(undecided, {});
  undecided.reserve(model.pending().size());
  std::size_t next = 0; // lines keep their order
  for (const PendingLine& pending : model.pending()) {
    std::size_t same = next;
    while (same < old.size() && old[same].generation != pending.generation)
      ++same;
    if (same < old.size()) {
      undecided.push_back(std::move(old[same]));
      next = same + 1;
    } else {
      undecided.emplace_back();
      undecided.back().line = pending.line;
      undecided.back().generation = pending.generation;
      undecided.back().add(model.version(pending, 0));
    }
    Undecided& choices = undecided.back();
    Line version = choices.versions[choices.newest()];
    for (std::size_t i = choices.after.size() - 1; i < pending.pieces.size(); ++i) {
      pending.pieces[i].put(version);
      choices.add(version);
    }
  }
}

double count_images(const std::vector<Undecided>& undecided) {
  double images = 1;
  for (const Undecided& choices : undecided)
    images *= static_cast<double>(choices.versions.size());
  return images;
}

Arena::Arena(std::size_t bytes)
    : memory_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{page_bytes}))),
      bytes_(bytes), state_((bytes + line_bytes - 1) / line_bytes) {
  std::memset(memory_, 0, bytes);
}

Arena::Arena(std::byte* shared, std::size_t bytes, int file)
    : memory_(shared), bytes_(bytes), shared_(true), file_(file), changed_(file >= 0),
      pages_((bytes + page_bytes - 1) / page_bytes), state_((bytes + line_bytes - 1) / line_bytes) {
}

Arena::~Arena() {
  if (active_arena.arena == this) active_arena = {};
  if (shared_) return;
  ::operator delete(memory_, std::align_val_t{page_bytes});
}

void Arena::begin(const std::vector<Undecided>& lines, Chooser& chooser) {
  undecided_ = &lines;
  chooser_ = &chooser;
  written_.assign(lines.size(), 0);
  for (const Undecided& line : lines)
    state_[line.line] = undecided;
  active_arena = {memory_, bytes_, state_.data(), this};
}

bool Arena::end(std::span<const std::byte> durable) {
  active_arena = {};
  for (const Undecided& line : *undecided_)
    state_[line.line] = 0;
  bool changed = false;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const std::uint32_t line = touched_[i];
    const std::byte* now = memory_ + std::size_t{line} * line_bytes;
    changed = changed || (changed_ && std::memcmp(now, given_[i].data(), line_bytes) != 0);
    put_back(durable, line);
    state_[line] = 0;
  }
  touched_.clear();
  given_.clear();
  return (changed_ && restore(durable)) || changed;
}

bool Arena::restore_page(std::span<const std::byte> durable, std::size_t page) {
  const std::size_t at = page * page_bytes;
  const std::size_t part = std::min(page_bytes, bytes_ - at);
  if (std::memcmp(memory_ + at, durable.data() + at, part) == 0) return false;
  std::memcpy(memory_ + at, durable.data() + at, part);
  return true;
}

/// Only pages that were touched can differ: a pool is large, and most of it is empty.
bool Arena::restore(std::span<const std::byte> durable) {
  bool changed = false;
  os::set_file_size(file_, bytes_);
  std::vector<bool> pages = pages_;
  os::each_filled_range(file_, bytes_, [&](std::size_t begin, std::size_t end) {
    for (std::size_t page = begin / page_bytes; page * page_bytes < end; ++page)
      pages[page] = true;
  });
  for (std::size_t page = 0; page < pages.size(); ++page)
    if (pages[page] && restore_page(durable, page)) changed = true;
  return changed;
}

void Arena::put_back(std::span<const std::byte> durable, std::uint32_t line) {
  const std::size_t at = std::size_t{line} * line_bytes;
  std::memcpy(memory_ + at, durable.data() + at, line_bytes);
  if (shared_) pages_[at / page_bytes] = true;
}

void Arena::update(std::span<const std::byte> durable, std::uint32_t line) {
  put_back(durable, line);
  const std::size_t at = std::size_t{line} * line_bytes;
  if (mirror_ != nullptr) std::memcpy(mirror_ + at, durable.data() + at, line_bytes);
}

/// Leaves pages alone that were never stored to and are empty.
void Arena::copy_pages(std::span<const std::byte> durable) {
  for (std::size_t page = 0; page < pages_.size(); ++page) {
    const std::size_t at = page * page_bytes;
    const std::size_t part = std::min(page_bytes, bytes_ - at);
    if (!pages_[page] && is_empty(durable.data() + at, part)) continue;
    std::memcpy(memory_ + at, durable.data() + at, part);
    pages_[page] = true;
  }
}

void Arena::copy_all(std::span<const std::byte> durable) {
  if (shared_)
    copy_pages(durable);
  else
    std::memcpy(memory_, durable.data(), bytes_);
  if (mirror_ != nullptr) std::memcpy(mirror_, durable.data(), bytes_);
}

std::size_t Arena::slot_of(std::uint32_t line) const {
  std::size_t slot = 0;
  while ((*undecided_)[slot].line != line)
    ++slot;
  return slot;
}

void Arena::read(std::size_t offset, std::size_t bytes) {
  const std::size_t end = std::min(offset + bytes, bytes_);
  for (std::size_t at = offset / line_bytes; at * line_bytes < end; ++at) {
    if ((state_[at] & undecided) == 0) continue;
    const auto line = static_cast<std::uint32_t>(at);
    const std::size_t slot = slot_of(line);
    const std::uint64_t mask = byte_mask(line, offset, end - offset) & ~written_[slot];
    if (((*undecided_)[slot].differing & mask) != 0) decide(line);
  }
}

void Arena::decide(std::uint32_t line) {
  const std::size_t slot = slot_of(line);
  const Undecided& choices = (*undecided_)[slot];
  const Line& version = choices.versions[chooser_->choose(slot)];
  std::byte* memory = memory_ + std::size_t{line} * line_bytes;
  for (std::size_t i = 0; i < line_bytes; ++i)
    if ((written_[slot] >> i & 1u) == 0) memory[i] = version[i];
  if ((state_[line] & touched) == 0) touched_.push_back(line);
  if (changed_) given_.push_back(version);
  state_[line] = touched;
}

void Arena::decide_all() {
  for (const Undecided& line : *undecided_)
    if ((state_[line.line] & undecided) != 0) decide(line.line);
}

void Arena::wrote(std::size_t offset, std::size_t bytes) {
  const std::size_t end = std::min(offset + bytes, bytes_);
  for (std::size_t at = offset / line_bytes; at * line_bytes < end; ++at) {
    const auto line = static_cast<std::uint32_t>(at);
    if ((state_[at] & undecided) != 0)
      written_[slot_of(line)] |= byte_mask(line, offset, end - offset);
    if ((state_[at] & touched) == 0) {
      touched_.push_back(line);
      state_[at] |= touched;
    }
  }
}

} // namespace nearfar::crash
