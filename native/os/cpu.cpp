#include "os/cpu.hpp"

#include <cerrno>
#include <cpuid.h>
#include <cstring>
#include <sched.h>

namespace nearfar::os {

Status pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return Done{};
  Error error = Error::make(Errc::bad_input, "cannot run on processor %d", cpu);
  error.os_errno = errno;
  return error.try_next("choose among the processors that `nearfar topo` lists as usable");
}

const char* vector_isa() {
  if (__builtin_cpu_supports("avx512f")) return "avx512";
  if (__builtin_cpu_supports("avx2")) return "avx2";
  return "sse2";
}

Hypervisor hypervisor() {
  Hypervisor found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned features = 1, hypervisor_bit = 1U << 31, hypervisor_leaf = 0x40000000;
  if (__get_cpuid(features, &a, &b, &c, &d) == 0 || (c & hypervisor_bit) == 0) return found;
  found.present = true;
  __cpuid(hypervisor_leaf, a, b, c, d);
  const unsigned words[] = {b, c, d};
  std::memcpy(found.signature, words, sizeof words);
  return found;
}

} // namespace nearfar::os
