#include "base/crc32c.hpp"

#include <doctest/doctest.h>

using nearfar::crc32c;

TEST_CASE("CRC32C gives the values published in RFC 3720, appendix B.4") {
  unsigned char zeros[32] = {};
  unsigned char ones[32];
  unsigned char rising[32];
  for (unsigned i = 0; i < 32; ++i) {
    ones[i] = 0xff;
    rising[i] = static_cast<unsigned char>(i);
  }
  CHECK(crc32c(zeros, 32) == 0x8a9136aau);
  CHECK(crc32c(ones, 32) == 0x62a8ab43u);
  CHECK(crc32c(rising, 32) == 0x46dd794eu);
  CHECK(crc32c("123456789", 9) == 0xe3069283u);
}

TEST_CASE("a checksum can be taken piece by piece") {
  const char text[] = "the quick brown fox";
  for (std::size_t cut = 0; cut < sizeof text; ++cut)
    CHECK(crc32c(text + cut, sizeof text - cut, crc32c(text, cut)) == crc32c(text, sizeof text));
}
