#include "trace/address_index.hpp"

#include <doctest/doctest.h>
#include <map>

#include "base/random.hpp"

using namespace nearfar;
using namespace nearfar::trace;

namespace {

/// The index and what it should know.
struct Both {
  AddressIndex index;
  std::map<std::uint64_t, std::uint32_t> known;

  void set(std::uint64_t address, std::uint32_t number) {
    index.set(address, number);
    known[address] = number;
  }
  void erase(std::uint64_t address) {
    index.erase(address);
    known.erase(address);
  }
  void check(std::uint64_t address) const {
    const auto here = known.find(address);
    CHECK(index.at(address) == (here == known.end() ? 0 : here->second));
    const auto behind = known.upper_bound(address);
    CHECK(index.after(address) == (behind == known.end() ? 0 : behind->second));
    CHECK(index.at_or_before(address) == (behind == known.begin() ? 0 : std::prev(behind)->second));
  }
};

constexpr std::uint64_t highest = (std::uint64_t{1} << 48) - 8;

} // namespace

TEST_CASE("an empty index knows nothing") {
  Both both;
  both.erase(64);
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{4096}, highest})
    both.check(address);
}

TEST_CASE("neighbors are found near and far, at both ends too") {
  Both both;
  std::uint32_t number = 0;
  for (const std::uint64_t address :
       {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{4088}, std::uint64_t{4096},
        std::uint64_t{1} << 30, (std::uint64_t{63} << 42) - 8, std::uint64_t{63} << 42, highest})
    both.set(address, ++number);
  const auto known = both.known;
  for (const auto& [address, unused] : known) {
    both.check(address);
    if (address > 0) both.check(address - 8);
    if (address < highest) both.check(address + 8);
  }
  for (const auto& [address, unused] : known) {
    both.erase(address);
    both.check(address);
    both.check(highest / 3);
  }
}

TEST_CASE("what is set and erased at random is found as in an ordered map") {
  Both both;
  Random random(7);
  for (std::uint32_t step = 1; step < 30'000; ++step) {
    // A dense heap, and mappings far apart.
    const std::uint64_t address =
        (random.below(4) != 0 ? (std::uint64_t{1} << 33) + random.below(1u << 16)
                              : random.below(highest)) /
        8 * 8;
    if (random.below(3) != 0)
      both.set(address, step);
    else if (const auto at = both.known.upper_bound(address); at != both.known.end())
      both.erase(at->first);
    both.check(address);
    both.check(random.below(highest) / 8 * 8);
  }
  const AddressIndex copy = both.index;
  both.set(16, 1);
  CHECK(copy.at(16) == 0);
}
