// Kind of a file, and the first page of a pool.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "inspect/findings.hpp"
#include "inspect/pool_view.hpp"

namespace nearfar::inspect {

enum class FileKind : unsigned char {
  object,   ///< a pool of libpmemobj, the only kind that is examined
  log,      ///< of libpmemlog
  block,    ///< of libpmemblk
  pool_set, ///< a text file that lists the parts of a pool
  empty,    ///< no bytes at all
  other,    ///< not a pool
};

/// By the signature. If that is damaged, a file is a pool of libpmemobj if its descriptor has the
/// right checksum, or if a heap's signature is where its descriptor says.
FileKind identify(const PoolView& view);

using Uuid = std::array<std::uint8_t, uuid_bytes>;

/// `f9a44dd7-67f7-4ee0-9ed5-ed851e83f588`: the first three groups are stored little-endian.
std::string to_text(const Uuid& uuid);

struct Header {
  std::uint32_t major = 0;
  std::uint32_t compat = 0;
  std::uint32_t incompat = 0;
  std::uint32_t ro_compat = 0;
  Uuid set_uuid{};
  Uuid uuid{};
  std::uint64_t created_s = 0; ///< since 1970
  bool open_when_last_used = false;
  std::uint64_t pool_id = 0; ///< the first word of every PMEMoid into this pool
};

/// Reads and checks the header. Damage in `findings` means that libpmemobj would refuse it.
Header read_header(const PoolView& view, Findings& findings);

} // namespace nearfar::inspect
