// Operations that make a store durable on the medium of a pool.
#pragma once

namespace nearfar::persist {

enum class Durability : unsigned char {
  flush, ///< write back its lines, then a fence (ADR; DRAM that emulates it)
  fence, ///< a fence alone: the caches are in the persistence domain (eADR)
  msync, ///< os::sync_range(): a file whose stores reach the page cache first
};

} // namespace nearfar::persist
