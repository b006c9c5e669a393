// The structures that `nearfar crash check` knows, each ready to be crashed.
//
// The files that define them are compiled with -fsanitize=thread (see callbacks.cpp).
#pragma once

#include <memory>
#include <string_view>

#include "crash/subject.hpp"
#include "storelog/event.hpp"

namespace nearfar::crash {

/// Where the stand-in for the pool's allocator reports from: no line of nearfar's.
inline constexpr storelog::Site pool_site{"(the pool)", 0};

struct Chosen {
  std::unique_ptr<Subject> subject; ///< null if the name is unknown
  std::size_t pool_bytes = 0;
  bool ordered = false; ///< contents are a sequence
  bool moves = false;   ///< it has two containers, and a move between them
};

/// Two lists and a move between them, in transactions of the typed layer (subjects_move.cpp).
std::unique_ptr<Subject> move_subject();

/// `operations` are to be done on it: the pool has room for them.
Chosen choose_subject(std::string_view name, std::size_t operations);

} // namespace nearfar::crash
