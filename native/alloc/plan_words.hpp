// Words of a plan file as values (docs/formats/plan.md).
//
// Errors         false for text that is not of the form.
// Thread safety  any thread; the functions share no data.
// Freestanding   no exceptions, no C++ runtime; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "alloc/plan.hpp"

namespace nearfar::alloc {

/// Removes the first word from `rest`, and returns it; empty if there is none.
std::string_view next_word(std::string_view& rest);
/// Removes the first line from `rest`, and returns it without comment and line end.
std::string_view next_line(std::string_view& rest);
/// Removes the prefix from `text` if it has it.
bool take_prefix(std::string_view& text, std::string_view prefix);

/// A hexadecimal number with 0x.
bool parse_hex(std::string_view text, std::uint64_t& value);
/// BUILD-ID, or name:FILE.
bool parse_object(std::string_view text, ObjectName& object);
/// Frames FRAME[<FRAME…], each OBJECT+0xOFFSET.
bool parse_frames(std::string_view text, SiteFrame (&frames)[longest_chain], std::size_t& count);
/// MIN..MAX in bytes; either may be missing. The values are unchanged where they are missing.
bool parse_size_range(std::string_view text, std::uint64_t& low, std::uint64_t& high);
/// A decimal from 0 to 1 with at most nine digits after the point.
bool parse_ratio(std::string_view text, double& ratio);

} // namespace nearfar::alloc
