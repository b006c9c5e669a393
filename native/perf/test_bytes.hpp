// Records and files made by hand, field by field.
#pragma once

#include <cstdint>
#include <linux/perf_event.h>
#include <string_view>
#include <vector>

namespace nearfar::perf {

struct Bytes : std::vector<std::uint8_t> {
  template <class T>
  Bytes& put(T value) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(&value);
    insert(end(), first, first + sizeof value);
    return *this;
  }
  Bytes& u64(std::uint64_t value) { return put(value); }
  Bytes& u32(std::uint32_t value) { return put(value); }
  /// The text, a NUL, and zeros up to a multiple of 8 bytes, as the kernel pads names.
  Bytes& name(std::string_view text) {
    insert(end(), text.begin(), text.end());
    do
      push_back(0);
    while (size() % 8 != 0);
    return *this;
  }
  Bytes& append(const std::vector<std::uint8_t>& other) {
    insert(end(), other.begin(), other.end());
    return *this;
  }
};

inline Bytes record(std::uint32_t type, std::uint16_t misc, const Bytes& body) {
  Bytes made;
  made.put(perf_event_header{type, misc, static_cast<std::uint16_t>(8 + body.size())});
  return made.append(body);
}

} // namespace nearfar::perf
