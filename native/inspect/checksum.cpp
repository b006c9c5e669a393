#include "inspect/checksum.hpp"

#include <algorithm>
#include <cstring>

namespace nearfar::inspect {

void Fletcher64::add(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes.size();
       at += sizeof(std::uint32_t)) {
    std::uint32_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    low_ += word;
    high_ += low_;
  }
}

std::uint64_t checksum(std::span<const std::byte> bytes, std::size_t own, std::size_t end) {
  constexpr std::size_t width = sizeof(std::uint64_t);
  end = std::min(end, bytes.size());
  Fletcher64 sum;
  if (own >= end) { // the checksum's own place is among the bytes left out
    sum.add(bytes.first(end));
    sum.add_zeroes(bytes.size() - end);
    return sum.sum();
  }
  sum.add(bytes.first(own));
  sum.add_zeroes(width);
  sum.add(bytes.subspan(own + width, end - own - width));
  sum.add_zeroes(bytes.size() - end);
  return sum.sum();
}

} // namespace nearfar::inspect
