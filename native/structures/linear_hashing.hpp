// Linear hashing: buckets are added one at a time; for map_atomic and map_tx.
//
// Shape          10 buckets at first. Buckets are split in the order of their numbers: in the round
//                that begins with 10 * 2^k buckets, splitting bucket i adds bucket 10 * 2^k + i; a
//                round ends with twice as many as it began with. Heads of buckets are in segments,
//                each as long as all before it, that are allocated with their first bucket and
//                kept.
// Growth         an insertion splits one bucket while there are more than 3 entries for 2 buckets;
//                a removal joins one while there are fewer entries than buckets. An operation
//                therefore touches at most two chains, and does not clear a segment: a head is
//                initialized with its bucket.
// Source         Litwin 1980. The hash is that of PMDK's example maps, so that chains are equally
//                long at the same number of buckets. PMDK's maps double their buckets all at once,
//                at chains over 10 (or over 5 with more than 2 entries a bucket).
#pragma once

#include <bit>
#include <cstdint>

#include "structures/objects.hpp"

namespace nearfar::structures {

/// A universal hash: (a key + b) mod p, modulo 2^64 inside.
struct ChainHash {
  std::uint32_t a = 1804289383; ///< what glibc's rand() yields first and second, never seeded
  std::uint32_t b = 846930886;
  std::uint64_t p = 32212254719;

  std::uint64_t operator()(std::uint64_t key) const { return (a * key + b) % p; }
};

inline constexpr std::uint64_t initial_buckets = 10;
inline constexpr unsigned bucket_segments = 32; ///< 2 * 10^10 buckets; hashes are below p
inline constexpr std::uint64_t max_buckets = initial_buckets << (bucket_segments - 1);

/// Number of buckets at the beginning of the round in which there are `buckets`.
constexpr std::uint64_t round_of(std::uint64_t buckets) {
  return initial_buckets << (std::bit_width(buckets / initial_buckets) - 1);
}
constexpr std::uint64_t bucket_of(std::uint64_t hash, std::uint64_t buckets) {
  const std::uint64_t round = round_of(buckets);
  const std::uint64_t place = hash % (2 * round);
  return place < buckets ? place : place - round;
}
/// The bucket that this one was split from, and is joined with. Not for the initial buckets.
constexpr std::uint64_t parent_of(std::uint64_t bucket) { return bucket - round_of(bucket); }

constexpr bool wants_split(std::uint64_t entries, std::uint64_t buckets) {
  return 2 * entries > 3 * buckets && buckets < max_buckets;
}
constexpr bool wants_join(std::uint64_t entries, std::uint64_t buckets) {
  return entries < buckets && buckets > initial_buckets;
}

/// In the pool, part of a map's header. Zeroed memory has no bucket.
template <class Head>
struct Buckets {
  std::uint64_t count;
  PMEMoid segment[bucket_segments];

  static unsigned segment_of(std::uint64_t bucket) {
    return static_cast<unsigned>(std::bit_width(bucket / initial_buckets));
  }
  static std::uint64_t first_of(unsigned segment) {
    return segment == 0 ? 0 : initial_buckets << (segment - 1);
  }
  static std::size_t bytes_of(unsigned segment) {
    return (segment == 0 ? initial_buckets : first_of(segment)) * sizeof(Head);
  }
  template <class Objects>
  Head& head(std::uint64_t bucket) const {
    const unsigned number = segment_of(bucket);
    return Objects::template at<Head>(segment[number])[bucket - first_of(number)];
  }
};

} // namespace nearfar::structures
