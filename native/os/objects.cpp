#include "os/objects.hpp"

#include <cstring>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>

namespace nearfar::os {

namespace {

struct Search {
  std::uintptr_t address;
  Object* object;
};

bool holds(const dl_phdr_info& info, std::uintptr_t address) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_LOAD && address - info.dlpi_addr - header.p_vaddr < header.p_memsz)
      return true;
  }
  return false;
}

void read_build_id(const dl_phdr_info& info, const ElfW(Phdr) & header, Object& object) {
  constexpr std::size_t word = 4;
  const auto* note = reinterpret_cast<const char*>(info.dlpi_addr + header.p_vaddr);
  const char* end = note + header.p_memsz;
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) head;
    std::memcpy(&head, note, sizeof head);
    const char* name = note + sizeof head;
    const char* value = name + (head.n_namesz + word - 1) / word * word;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == word &&
        std::memcmp(name, "GNU", word) == 0 && head.n_descsz <= sizeof object.build_id) {
      std::memcpy(object.build_id, value, head.n_descsz);
      object.build_id_bytes = head.n_descsz;
      return;
    }
    note = value + (head.n_descsz + word - 1) / word * word;
  }
}

Area whole_pages(std::uintptr_t begin, std::uintptr_t end) {
  return {begin & ~(page_bytes - 1), (end + page_bytes - 1) & ~(page_bytes - 1)};
}

/// The part that is read-only after relocation; empty if there is none.
Area relocated(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i)
    if (const ElfW(Phdr)& header = info.dlpi_phdr[i]; header.p_type == PT_GNU_RELRO) {
      const std::uintptr_t begin = info.dlpi_addr + header.p_vaddr;
      return {begin, (begin + header.p_memsz) & ~(page_bytes - 1)};
    }
  return {};
}

void read_segments(const dl_phdr_info& info, Object& object) {
  const Area fixed = relocated(info);
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info.dlpi_addr + header.p_vaddr;
    if (object.extent.end == 0) object.extent.begin = begin;
    object.extent.end = begin + header.p_memsz;
    if ((header.p_flags & PF_W) == 0 || object.data_segments == Object::max_segments) continue;
    DataSegment& segment = object.data[object.data_segments++];
    segment.pages = whole_pages(begin, begin + header.p_memsz);
    segment.from_file = whole_pages(begin, begin + header.p_filesz);
    if (fixed.end > segment.from_file.begin && fixed.begin < segment.from_file.end)
      segment.from_file.begin = fixed.end;
    if (segment.from_file.begin > segment.from_file.end) segment.from_file = {};
  }
}

Object describe(const dl_phdr_info& info) {
  Object object;
  object.base = info.dlpi_addr;
  const char* slash = std::strrchr(info.dlpi_name, '/');
  std::strncpy(object.name, slash != nullptr ? slash + 1 : info.dlpi_name, sizeof object.name - 1);
  for (int i = 0; i < info.dlpi_phnum && object.build_id_bytes == 0; ++i)
    if (info.dlpi_phdr[i].p_type == PT_NOTE) read_build_id(info, info.dlpi_phdr[i], object);
  return object;
}

int look_at(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (!holds(*info, search->address)) return 0;
  *search->object = describe(*info);
  return 1;
}

struct Visit {
  void (*visit)(const Object& object, void* context);
  void* context;
};

int visit_object(dl_phdr_info* info, std::size_t, void* data) {
  const auto* wanted = static_cast<const Visit*>(data);
  Object object = describe(*info);
  read_segments(*info, object);
  wanted->visit(object, wanted->context);
  return 0;
}

} // namespace

bool find_object(const void* address, Object& object) {
  Search search{reinterpret_cast<std::uintptr_t>(address), &object};
  return dl_iterate_phdr(look_at, &search) != 0;
}

void for_each_object(void (*visit)(const Object& object, void* context), void* context) {
  Visit wanted{visit, context};
  dl_iterate_phdr(visit_object, &wanted);
}

Area thread_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  std::size_t bytes = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<std::uintptr_t>(lowest);
  return known ? Area{begin, begin + bytes} : Area{};
}

std::size_t call_chain_by_tables(const void** addresses, std::size_t most) {
  constexpr int longest = 64;
  void* found[longest];
  const int count = backtrace(found, longest);
  std::size_t kept = 0;
  for (int i = 1; i < count && kept < most; ++i)
    addresses[kept++] = found[i];
  return kept;
}

} // namespace nearfar::os
