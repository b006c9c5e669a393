// Helpers of fuzz targets: input as a sequence of choices, and checks of a parser's result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace nearfar::fuzz {

/// Takes numbers from the front of an input; zeroes when it is used up.
class Choices {
public:
  Choices(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}

  template <class Number>
  Number take() {
    Number number{};
    const std::size_t bytes = sizeof number < left_ ? sizeof number : left_;
    if (bytes != 0) std::memcpy(&number, at_, bytes);
    at_ += bytes;
    left_ -= bytes;
    return number;
  }
  bool more() const { return left_ != 0; }
  const std::uint8_t* rest() const { return at_; }
  std::size_t rest_bytes() const { return left_; }

private:
  const std::uint8_t* at_;
  std::size_t left_;
};

} // namespace nearfar::fuzz
