// What a read gives cannot be written.
// expected: (discards qualifiers|drops 'const' qualifier)
#include "common.hpp"
std::uint64_t& f(node& n) {
  std::uint64_t& key = n.key.get();
  return key;
}
