// A rule of a plan for mappings or global variables, read from its words.
//
// Errors         bad_input with what is wrong, without file and line.
// Thread safety  one thread.
#pragma once

#include <string_view>

#include "alloc/mapping_rules.hpp"
#include "base/result.hpp"

namespace nearfar::alloc {

/// Whether a rule with these conditions is for mappings or global variables.
bool is_mapping_rule(std::string_view conditions);

/// Reads the conditions of a rule, which are behind its tier, and adds what they need to `rules`.
Status read_mapping_rule(std::string_view conditions, MappingRule& rule, MappingRules& rules);

} // namespace nearfar::alloc
