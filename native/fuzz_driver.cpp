// Runs a fuzz target on random inputs where libFuzzer is not there: the same ones for the same
// seed. Usage: TARGET INPUTS [SEED]
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/random.hpp"
#include "fuzz_target.hpp"

namespace {

constexpr std::size_t longest_input = 512;

/// Bytes that are often small or all ones, as fields of files are.
void fill(std::vector<std::uint8_t>& input, nearfar::Random& random) {
  input.resize(random.below(longest_input));
  const std::uint64_t style = random.below(3);
  for (std::uint8_t& byte : input) {
    const std::uint64_t word = random.next();
    byte = static_cast<std::uint8_t>(word);
    if (style == 1 && word >> 62 != 0) byte = static_cast<std::uint8_t>(word % 8);
    if (style == 2 && word >> 62 == 0) byte = 0xff;
  }
}

} // namespace

int main(int count, char** arguments) {
  const unsigned long inputs = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1000;
  nearfar::Random random(count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 1);
  std::vector<std::uint8_t> input;
  for (unsigned long i = 0; i < inputs; ++i) {
    fill(input, random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%lu inputs\n", inputs);
  return 0;
}
