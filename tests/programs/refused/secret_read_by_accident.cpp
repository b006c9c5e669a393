// A secret is read by name, never by conversion: into a log line, say.
// expected: cannot convert|no viable conversion
#include "common.hpp"
std::uint64_t f(const vault& v) {
  std::uint64_t copy = v.secret;
  return copy;
}
