// Blocks of tables, which records refer to by number.
//
// Thread safety  none.
#pragma once

#include "trace/format.hpp"
#include "trace/varint.hpp"

namespace nearfar::trace {

/// Header::fields and the two fields of its own, as bytes.
Bytes encode_header(const Header& header);
/// False if the bytes are not a valid header.
bool decode_header(Cursor fields, Header& header);

void encode(Bytes& out, const Module& module);
void encode(Bytes& out, const Site& site);
/// Objects and deaths are encoded as differences to the entry before, a default one at first.
void encode(Bytes& out, const Object& object, const Object& before);
void encode_site_totals(Bytes& out, std::uint32_t number, const Site& site);

struct Death {
  std::uint32_t object = 0;
  std::uint64_t record = 0;
  std::uint64_t instruction = 0;
};
void encode(Bytes& out, const Death& death, const Death& before);

/// Adds a block to the tables; false if it is not consistent with them.
bool decode_table(BlockKind kind, Cursor payload, std::uint32_t count, std::uint64_t first,
                  Tables& tables);

} // namespace nearfar::trace
