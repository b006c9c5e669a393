// Functions of libpmem that nearfar replaces. libpmemobj calls libpmem through dynamic symbols,
// which the dynamic linker resolves to nearfar's definitions; these call the originals.
#pragma once

#include <dlfcn.h>

#define NEARFAR_INTERPOSE extern "C" [[gnu::visibility("default")]]

namespace nearfar::persist {

/// The function of that name in libpmem itself. RTLD_NEXT finds it, because the dynamic linker
/// searches libpmem after nearfar's definitions. A search in the library's file would require its
/// name, and wheels rename the file.
template <class Function>
Function* libpmem_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// While an object exists, libpmem reports every mapping of which this thread asks as persistent
/// memory. libpmemobj asks once for each pool, when it maps it, and then flushes with instructions
/// rather than msync(): required for pools in DRAM.
class TreatAsPmem {
public:
  explicit TreatAsPmem(bool enable);
  ~TreatAsPmem();
  TreatAsPmem(const TreatAsPmem&) = delete;
  TreatAsPmem& operator=(const TreatAsPmem&) = delete;
  /// Whether libpmemobj has asked since.
  bool used() const;
};

} // namespace nearfar::persist
