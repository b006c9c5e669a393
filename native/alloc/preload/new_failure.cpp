#include "alloc/preload/new_failure.hpp"

#include <dlfcn.h>
#include <new>

#include "alloc/diagnostics.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

bool call_new_handler() {
  using Get = std::new_handler (*)();
  const auto get = reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv"));
  const std::new_handler handler = get == nullptr ? nullptr : get();
  if (handler == nullptr) return false;
  handler();
  return true;
}

void throw_bad_alloc(std::size_t size) {
  using Throw = void (*)();
  const auto library = reinterpret_cast<Throw>(dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv"));
  if (library != nullptr) library();
  log_error("operator new: no memory for %zu bytes, and no C++ library to throw std::bad_alloc",
            size);
  os::abort_process();
}

} // namespace nearfar::alloc
