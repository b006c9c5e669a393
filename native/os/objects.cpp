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

int look_at(dl_phdr_info* info, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (!holds(*info, search->address)) return 0;
  Object& object = *search->object;
  object.base = info->dlpi_addr;
  const char* slash = std::strrchr(info->dlpi_name, '/');
  std::strncpy(object.name, slash != nullptr ? slash + 1 : info->dlpi_name, sizeof object.name - 1);
  for (int i = 0; i < info->dlpi_phnum && object.build_id_bytes == 0; ++i)
    if (info->dlpi_phdr[i].p_type == PT_NOTE) read_build_id(*info, info->dlpi_phdr[i], object);
  return 1;
}

} // namespace

bool find_object(const void* address, Object& object) {
  Search search{reinterpret_cast<std::uintptr_t>(address), &object};
  return dl_iterate_phdr(look_at, &search) != 0;
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
