// A raw pointer means nothing after a restart.
// expected: storable: a raw pointer or reference means nothing after a restart
#include "common.hpp"
struct holder {
  std::uint64_t count;
  char* text;
};
field<holder> f;
