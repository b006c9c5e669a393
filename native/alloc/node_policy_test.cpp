#include "alloc/node_policy.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "os/address_space.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

constexpr std::uintptr_t somewhere = 0x7f0000000000;

TierOptions options_of(const char* text) {
  Result<TierOptions> read = parse_tier_options(text);
  REQUIRE(read);
  return *read;
}

std::string error_of(const char* text) {
  Result<TierOptions> read = parse_tier_options(text);
  return read ? "" : read.error().what;
}

struct Divided {
  std::vector<std::size_t> pages; ///< by node
  std::size_t stripes = 0;
};

Divided divided(const TierOptions& options, std::size_t pages) {
  Divided found{std::vector<std::size_t>(4), 0};
  const std::uintptr_t end = somewhere + pages * os::page_bytes;
  for (std::uintptr_t at = somewhere; at < end; ++found.stripes) {
    const Stripe stripe = stripe_at(options, somewhere, end, at);
    REQUIRE(stripe.end > at);
    REQUIRE(stripe.end <= end);
    found.pages[static_cast<std::size_t>(stripe.node)] += (stripe.end - at) / os::page_bytes;
    at = stripe.end;
  }
  return found;
}

} // namespace

TEST_CASE("weights belong to the nodes in their order") {
  const TierOptions options = options_of("numa:1+0,weights=3:5,capacity=1GiB");
  CHECK(options.policy == os::Policy::weighted);
  CHECK(options.nodes == 3);
  CHECK(options.weights[0] == 5);
  CHECK(options.weights[1] == 3);
  CHECK(!options_of("numa:0+1,weighted").has_weights);
  for (const char* invalid :
       {"numa:0+1,weights=5", "numa:0+1,weights=5:3:1", "numa:0+1,weights=0:3",
        "numa:0+1,weights=256:1", "numa:0+1,weights=a:b",
        "numa:0+1,weights=5:3:", "numa:0+1,weights=", "dram,weights=5:3"}) {
    CAPTURE(invalid);
    CHECK(error_of(invalid).find("invalid weights") == 0);
  }
}

TEST_CASE("a node is named once, and one that no machine has is not an invalid specification") {
  CHECK(error_of("numa:0+0").find("invalid nodes '0+0'") == 0);
  CHECK(error_of("numa:0+1+0,weights=1:1:1").find("invalid nodes '0+1+0'") == 0);
  const Result<TierOptions> absent = parse_tier_options("numa:99");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == Errc::unsupported);
  CHECK(error_of("numa:99") == "this machine has no NUMA node 99");
  CHECK(std::string(options_of("file:/a+b").spec.path) == "/a+b"); // no list of nodes
}

TEST_CASE("stripes divide a range in the proportions of the weights") {
  const TierOptions eighths = options_of("numa:0+1,weights=5:3");
  for (const std::size_t pages : {8u, 16u, 1000u, 4096u, 262144u, 10000000u}) {
    CAPTURE(pages);
    const Divided found = divided(eighths, pages);
    const double share = static_cast<double>(found.pages[0]) / static_cast<double>(pages);
    CHECK(share == doctest::Approx(0.625).epsilon(0.01));
    CHECK(found.pages[0] + found.pages[1] == pages);
    CHECK(found.stripes <= 8192);
  }
  CHECK(divided(eighths, 262144).stripes == 512); // 1 GiB: turns of 4 MiB
  const Divided three = divided(options_of("numa:0+1+2,weights=1:1:2"), 4096);
  CHECK(three.pages == std::vector<std::size_t>{1024, 1024, 2048, 0});
}

TEST_CASE("every page of a small range has a stripe") {
  const TierOptions uneven = options_of("numa:0+1,weights=255:1");
  CHECK(divided(uneven, 1).pages[0] == 1);
  CHECK(divided(uneven, 100).pages[0] == 100);
  CHECK(divided(uneven, 256).pages[1] == 1);
  const Divided odd = divided(options_of("numa:0+1,weights=1:1"), 5);
  CHECK(odd.pages[0] + odd.pages[1] == 5);
}
