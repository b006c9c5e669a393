// Padding would carry whatever was there before into the pool.
// expected: storable: the type has padding
#include "common.hpp"
struct gap {
  char small;
  std::uint64_t large;
};
field<gap> f;
