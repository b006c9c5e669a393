#include "trace/elf.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <elf.h>

#include "os/stream.hpp"

namespace nearfar::trace {

namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t max_note_bytes = 1u << 16;

bool read_at(std::FILE* file, std::uint64_t offset, void* to, std::size_t bytes) {
  return offset < std::uint64_t{1} << 62 &&
         std::fseek(file, static_cast<long>(offset), SEEK_SET) == 0 &&
         std::fread(to, 1, bytes, file) == bytes;
}

/// The build-id among notes of a segment.
std::string find_build_id(const std::vector<char>& notes) {
  constexpr std::size_t aligned = 4;
  for (std::size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    at += sizeof note;
    const std::size_t name = (std::size_t{note.n_namesz} + aligned - 1) / aligned * aligned;
    const std::size_t bytes = (std::size_t{note.n_descsz} + aligned - 1) / aligned * aligned;
    if (name + bytes > notes.size() - at) break;
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes.data() + at, "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      std::string hex;
      for (std::size_t i = 0; i < note.n_descsz; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x",
                      static_cast<unsigned char>(notes[at + name + i]));
        hex += digits;
      }
      return hex;
    }
    at += name + bytes;
  }
  return {};
}

} // namespace

std::optional<std::uint64_t> Elf::bias(std::uint64_t address, std::uint64_t offset) const {
  for (const Segment& segment : segments)
    if (segment.offset / page == offset / page) return address - segment.address / page * page;
  return std::nullopt;
}

std::optional<Elf::Addresses> Elf::writable() const {
  std::optional<Addresses> all;
  for (const Segment& segment : segments) {
    if (!segment.is_writable) continue;
    const std::uint64_t begin = segment.address / page * page;
    const std::uint64_t end = (segment.address + segment.bytes + page - 1) / page * page;
    all = all ? Addresses{std::min(all->begin, begin), std::max(all->end, end)}
              : Addresses{begin, end};
  }
  return all;
}

std::uint64_t Elf::low() const {
  std::uint64_t low = ~std::uint64_t{0};
  for (const Segment& segment : segments)
    low = std::min(low, segment.address);
  return low;
}

std::uint64_t Elf::high() const {
  std::uint64_t high = 0;
  for (const Segment& segment : segments)
    high = std::max(high, segment.address + segment.bytes);
  return high;
}

std::optional<Elf> read_elf(const char* path) {
  Result<os::Stream> opened = os::open_stream(path);
  if (!opened) return std::nullopt;
  std::FILE* const file = opened->get();
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  Elf elf;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, header.e_phoff + i * sizeof segment, &segment, sizeof segment))
      return std::nullopt;
    if (segment.p_type == PT_LOAD)
      elf.segments.push_back(
          {segment.p_offset, segment.p_vaddr, segment.p_memsz, (segment.p_flags & PF_W) != 0});
    if (segment.p_type == PT_NOTE && segment.p_filesz <= max_note_bytes && elf.build_id.empty()) {
      std::vector<char> notes(segment.p_filesz);
      if (read_at(file, segment.p_offset, notes.data(), notes.size()))
        elf.build_id = find_build_id(notes);
    }
  }
  return elf.segments.empty() ? std::nullopt : std::optional<Elf>(std::move(elf));
}

} // namespace nearfar::trace
