// Libraries through which a program stores: their own lines say little, the program's call does.
#pragma once

#include <string_view>

#include "storelog/event.hpp"

namespace nearfar::crash {

/// A library of PMDK, by the path of a module: libpmemobj.so.1, or libpmemobj-1a2b3c4d.so.1 in a
/// wheel. Other names begin in the same way, such as that of libpmemkv.
inline bool is_pmem(std::string_view path) {
  constexpr std::size_t wheel_hash = 9; // with the hyphen
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t end = name.find(".so");
  if (end == name.npos) return false;
  std::string_view stem = name.substr(0, end);
  if (stem.size() > wheel_hash && stem[stem.size() - wheel_hash] == '-')
    stem.remove_suffix(wheel_hash);
  for (const std::string_view known :
       {"libpmem", "libpmem2", "libpmemobj", "libpmemlog", "libpmemblk", "libpmempool"})
    if (stem == known) return true;
  return false;
}

/// The library of C or of C++, or the heap of `crash lint --heap` in its stead.
inline bool is_c_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("libpthread") ||
         name.starts_with("libstdc++") || name.starts_with("libnearfar-crash-heap");
}

/// Code of the kernel's that programs call as that of a library, under its two names.
inline bool is_vdso(std::string_view path) { return path == "linux-vdso.so.1" || path == "[vdso]"; }

/// Code that lies in no file: the program, or a compiler in it, wrote it.
inline constexpr char generated_code[] = "[generated code]";

/// Whether a store is one that libpmemobj or libpmem makes on its own (of logs, lanes and the heap), or
/// that the C library makes on its behalf. They follow from what the program asked for, so that its own
/// stores are explored and blamed first.
inline bool of_library(const storelog::Site& site) {
  if (!site.is_code()) return false;
  return is_pmem(site.file()) ||
         (is_c_library(site.file()) && site.caller() != nullptr && of_library(*site.caller()));
}

/// Where the program acts, or calls the library that does; the site itself if that is unknown.
inline const storelog::Site& in_program(const storelog::Site& site) {
  const storelog::Site* at = &site;
  while (at->is_code() && (is_pmem(at->file()) || is_c_library(at->file()) || is_vdso(at->file()) ||
                           std::string_view(at->file()) == generated_code)) {
    if (at->caller() == nullptr) return site;
    at = at->caller();
  }
  return *at;
}

} // namespace nearfar::crash
