#include "os/flush.hpp"

#include <cpuid.h>

namespace nearfar::os {

bool can_persist(Persist how) {
  // Intel SDM vol. 2A, CPUID leaf 7, subleaf 0; clflush and non-temporal stores came with SSE2.
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) b = c = 0;
  switch (how) {
  case Persist::ntstore:
  case Persist::clflush: return true;
  case Persist::clwb: return (b >> 24 & 1u) != 0;
  case Persist::clflushopt: return (b >> 23 & 1u) != 0;
  case Persist::movdir64b: return (c >> 28 & 1u) != 0;
  }
  return false;
}

} // namespace nearfar::os
