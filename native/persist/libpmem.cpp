#include "persist/libpmem.hpp"

#include <cstddef>

namespace {

thread_local bool treats_as_pmem = false;
thread_local bool asked = false;

} // namespace

NEARFAR_INTERPOSE int pmem_is_pmem(const void* at, std::size_t bytes) {
  if (treats_as_pmem) {
    asked = true;
    return 1;
  }
  static auto* next =
      nearfar::persist::libpmem_function<int(const void*, std::size_t)>("pmem_is_pmem");
  return next(at, bytes);
}

namespace nearfar::persist {

TreatAsPmem::TreatAsPmem(bool enable) {
  treats_as_pmem = enable;
  asked = false;
}

TreatAsPmem::~TreatAsPmem() { treats_as_pmem = false; }

bool TreatAsPmem::used() const { return asked; }

} // namespace nearfar::persist
