// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The files that QEMU has mapped for the program before its first instruction.
//
// Thread safety  none: there is one thread.
#pragma once

#include <cstdio>
#include <cstring>
#include <link.h>

#include "trace/recorder/allocation.hpp"
#include "trace/recorder/thread_recorder.hpp"

namespace nearfar::trace {

/// Code of QEMU and its libraries, which is not part of the program.
struct EmulatorCode {
  struct AddressRange {
    std::uint64_t low, high;
  } ranges[256];
  unsigned count = 0;
};
inline int add_emulator(dl_phdr_info* info, std::size_t, void* to) {
  auto& emulator = *static_cast<EmulatorCode*>(to);
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || emulator.count == 256) continue;
    const std::uint64_t low = info->dlpi_addr + segment.p_vaddr;
    emulator.ranges[emulator.count++] = {low & ~std::uint64_t{4095}, low + segment.p_memsz};
  }
  return 0;
}
inline bool is_emulator(const EmulatorCode& emulator, std::uint64_t address) {
  for (unsigned i = 0; i < emulator.count; ++i)
    if (address >= emulator.ranges[i].low && address < emulator.ranges[i].high) return true;
  return false;
}

/// Records them.
inline void record_first_modules(ThreadRecorder& recorder, CodeRanges& code) {
  EmulatorCode emulator;
  dl_iterate_phdr(add_emulator, &emulator);
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return;
  char line[4096 + 128];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from = 0, to = 0, offset = 0;
    char rights[5] = "";
    int path = 0;
    if (std::sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &from, &to, rights, &offset, &path) < 4 ||
        path == 0 || line[path] != '/' || is_emulator(emulator, from))
      continue;
    code.add(from, to - from); // QEMU does not map guest code as executable
    line[std::strcspn(line, "\n")] = '\0';
    recorder.events().emit_module(from, to - from, offset, line + path);
  }
  std::fclose(maps);
}

} // namespace nearfar::trace
