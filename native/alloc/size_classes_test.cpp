#include "alloc/size_classes.hpp"

#include <doctest/doctest.h>

using namespace nearfar::alloc;

TEST_CASE("class_of returns the smallest class that is large enough") {
  for (std::size_t size = 1; size <= largest_class_bytes; size += size < 4096 ? 1 : 61) {
    const unsigned c = class_of(size);
    REQUIRE(c < class_count);
    CHECK(class_infos[c].bytes >= size);
    if (c > 0) CHECK(class_infos[c - 1].bytes < size);
  }
  CHECK(class_of(0) == 0);
  CHECK(class_of(largest_class_bytes) == class_count - 1);
}

TEST_CASE("at most an eighth of a block is unused") {
  for (std::size_t size = 129; size <= largest_class_bytes; size += 97) {
    const double loss = static_cast<double>(class_infos[class_of(size)].bytes - size);
    CHECK(loss / static_cast<double>(class_infos[class_of(size)].bytes) < 0.125);
  }
}

TEST_CASE("the reciprocal divides every offset in a slab exactly, and detects multiples") {
  __extension__ using Product = unsigned __int128;
  for (const ClassInfo& info : class_infos) {
    std::size_t wrong = 0;
    for (std::uint64_t offset = 0; offset < info.spans * span_bytes; offset += offset % 7 + 1) {
      const Product product = Product{offset} * info.reciprocal;
      const bool multiple = static_cast<std::uint64_t>(product) < info.reciprocal;
      if (static_cast<std::uint64_t>(product >> 64) != offset / info.bytes) ++wrong;
      if (multiple != (offset % info.bytes == 0)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a slab has at least eight blocks") {
  for (const ClassInfo& info : class_infos) {
    CHECK(info.blocks >= 8);
    CHECK(std::size_t{info.blocks} * info.bytes <= info.spans * span_bytes);
    CHECK(info.spans * span_bytes < std::size_t{1} << 23);
  }
}
