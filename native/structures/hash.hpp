// Hashes of keys.
//
// Sources        mix: the finalizer of MurmurHash3 (Appleby 2011, public domain), a bijection of
//                64-bit words, so that equal hashes are equal keys. hash_bytes: multiply and fold,
//                after wyhash (Wang Yi 2019, public domain).
// Not for        keys chosen by an adversary: neither is keyed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace nearfar::structures {

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
  return x ^ x >> 33;
}

/// unmix(mix(x)) == x. The factors are the inverses of those above modulo 2^64.
constexpr std::uint64_t unmix(std::uint64_t x) {
  x = (x ^ x >> 33) * 0x9cb4b2f8129337dbu;
  x = (x ^ x >> 33) * 0x4f74430c22a54005u;
  return x ^ x >> 33;
}

inline std::uint64_t hash_bytes(std::string_view bytes) {
  __extension__ using Wide = unsigned __int128;
  const auto fold = [](std::uint64_t a, std::uint64_t b) {
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::uint64_t hash = 0x9e3779b97f4a7c15u ^ bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t taken = bytes.size() < sizeof word ? bytes.size() : sizeof word;
    std::memcpy(&word, bytes.data(), taken);
    bytes.remove_prefix(taken);
    hash = fold(hash ^ word, 0xa0761d6478bd642fu) + 0xe7037ed1a0b428dbu;
  }
  return mix(hash);
}

} // namespace nearfar::structures
