// A structure's keys and values are stored as they lie in memory, padding too.
// expected: storable: the type has padding
#include "common.hpp"
#include <structures/map.hpp>
struct gap {
  char small;
  std::uint64_t large;
};
using Stored = nearfar::structures::Stored<gap>;
static_assert(Stored::fits_word);
