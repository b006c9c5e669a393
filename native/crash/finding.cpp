#include "crash/finding.hpp"

namespace nearfar::crash {

const char* name(Failure failure) {
  constexpr const char* names[] = {"none",       "refused",   "broken",         "lost",
                                   "not_atomic", "leak",      "not_idempotent", "crashed",
                                   "hung",       "disagreed", "failed",         "damaged"};
  return names[static_cast<std::size_t>(failure)];
}

const char* name(Missing missing) {
  constexpr const char* names[] = {"flush",    "late_flush", "fence", "log",
                                   "late_log", "in_place",   "torn",  "logic"};
  return names[static_cast<std::size_t>(missing)];
}

const char* name(CacheLoss loss) {
  constexpr const char* names[] = {"all", "none", "host_0", "host_1"};
  return names[static_cast<std::size_t>(loss)];
}

} // namespace nearfar::crash
