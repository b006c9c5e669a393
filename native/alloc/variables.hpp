// Global variables in a tier (nearfar/hmalloc_var.h), and what a child gets of them.
//
// Thread safety  place_variables() while nothing uses the variables.
#pragma once

#include <cstddef>

#include "base/result.hpp"
#include "os/lock.hpp"

namespace nearfar::alloc {

/// Brings the pages [begin, begin + bytes) to a tier, contents kept; once for a range. Errors:
/// bad_input (no whole pages), no_space.
Status place_variables(unsigned tier, std::byte* begin, std::size_t bytes);

os::Lock& variables_lock();

/// Around a fork, with variables_lock() held: variables in a shared file become the child's own.
void copy_variables_for_child();
void drop_variable_copies();
void adopt_variable_copies();

} // namespace nearfar::alloc
