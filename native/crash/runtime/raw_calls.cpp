// System calls that the program makes by syscall(). Which bytes of the pool they store to is not known: what
// has changed is recorded.
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <span>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"
#include "crash/runtime/storing_calls.hpp"

using namespace nearfar::crash::runtime;

namespace {

/// Calls of mappings, which the recorder replaces. Empty for others.
std::optional<long> call_of_mapping(long number, const Words& given) {
  void* const at = const_cast<void*>(pointer(given[0]));
  const auto bytes = static_cast<std::size_t>(given[1]);
  const auto third = static_cast<int>(given[2]);
  const auto fourth = static_cast<int>(given[3]);
  switch (number) {
  case SYS_mmap:
    return as_word(mmap(at, bytes, third, fourth, static_cast<int>(given[4]), given[5]));
  case SYS_munmap: return munmap(at, bytes);
  case SYS_mprotect: return mprotect(at, bytes, third);
  case SYS_pkey_mprotect: return pkey_mprotect(at, bytes, third, fourth);
  case SYS_mremap:
    return as_word(
        mremap(at, bytes, static_cast<std::size_t>(given[2]), fourth, pointer(given[4])));
  case SYS_ftruncate: return ftruncate(static_cast<int>(given[0]), given[1]);
  case SYS_truncate: return truncate(static_cast<const char*>(at), given[1]);
  default: return {};
  }
}

/// Records the flushes of a system call.
void report_flushes(long number, const Words& given, const void* code) {
  const auto fd = static_cast<int>(given[0]);
  if (number == SYS_fsync || number == SYS_fdatasync) report_synced(fd, code);
  if (number == SYS_syncfs) report_synced_file_system(fd, code);
  if (number == SYS_sync) report_all_synced(code);
  if (number != SYS_msync || (given[2] & MS_SYNC) == 0) return;
  report(EventKind::flush, pointer(given[0]), static_cast<std::size_t>(given[1]), code);
  report(EventKind::fence, nullptr, 0, code);
}

/// Whether the call acts on addresses and not on their contents: it must not get an address of the
/// writable mapping instead.
bool is_about_addresses(long number) {
  switch (number) {
  case SYS_brk:
  case SYS_clone:
  case SYS_clone3:
  case SYS_futex:
  case SYS_madvise:
  case SYS_mbind:
  case SYS_mincore:
  case SYS_mlock:
  case SYS_mlock2:
  case SYS_msync:
  case SYS_munlock:
  case SYS_rseq:
  case SYS_set_robust_list:
  case SYS_set_tid_address: return true;
  default: return false;
  }
}

/// What a system call can store to that the program makes itself: as many bytes as any argument says, or a
/// page.
std::array<Output, 6> any_output(const Words& given) {
  constexpr long largest_pool = 1L << 36; // what is larger is an address
  long bytes = nearfar::os::page_bytes;
  for (const long one : given)
    if (one < largest_pool) bytes = std::max(bytes, one);
  std::array<Output, 6> outputs{};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = changed(i, static_cast<std::size_t>(bytes));
  return outputs;
}

} // namespace

NEARFAR_EXPORT long syscall(long number, ...) noexcept {
  Words given{};
  va_list more;
  va_start(more, number);
  for (long& one : given)
    one = va_arg(more, long);
  va_end(more);
  if (const std::optional<long> done = call_of_mapping(number, given)) return *done;
  if (regions.count > 0) report_flushes(number, given, NEARFAR_CALLER);
  char name[32] = "";
  if (regions.count > 0) std::snprintf(name, sizeof name, "syscall(%ld)", number);
  const auto outputs = any_output(given);
  const bool is_replaced = seen == Seen::faults && !is_about_addresses(number);
  const StoringCall call(given, std::span(outputs).first(is_replaced ? outputs.size() : 0),
                         NEARFAR_CALLER);
  return call.finish(system_call_of(number, call.words()), name);
}
