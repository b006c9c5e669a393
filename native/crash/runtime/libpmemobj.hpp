// libpmemobj's own functions, behind those that the recorder puts before them.
//
// libpmemobj's header need not be installed: what is needed of it is declared here.
// Thread safety  all functions
#pragma once

#include <cstddef>
#include <cstdint>

#include "crash/runtime/replaced.hpp"

namespace nearfar::crash::runtime {

/// PMEMoid.
struct Object {
  std::uint64_t pool;
  std::uint64_t offset;
};

/// The library's own function of that name, for a caller at `code`; null where there is none.
void* find_in_libpmemobj(const char* name, const void* code);
/// The same; ends the program where there is none, as a call of a function that is not there would.
void* require_in_libpmemobj(const char* name, const void* code);

template <class Function>
Function* next(const char* name, const void* code) {
  return reinterpret_cast<Function*>(require_in_libpmemobj(name, code));
}

/// Where an object lies; null for no object.
char* address_of(Object object, const void* code);

/// A new object, which nothing refers to. Returns where it lies; null if nothing is recorded.
char* report_allocated(Object object, std::size_t bytes, const void* code);

/// An object that is about to be freed by a caller at `code`.
class Freed {
public:
  Freed() = default;
  Freed(Object object, const void* code);
  /// It is freed now.
  void report() const;
  bool is_at(const char* at) const { return at == at_; }

private:
  const void* code_ = nullptr;
  const char* at_ = nullptr;
  std::size_t bytes_ = 0;
};

} // namespace nearfar::crash::runtime

/// In our function of that name: the library's, for the caller.
#define NEARFAR_NEXT(name) nearfar::crash::runtime::next<decltype(name)>(#name, NEARFAR_CALLER)
