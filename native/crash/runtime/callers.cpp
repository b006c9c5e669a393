#include "crash/runtime/callers.hpp"

#include <cstdint>
#include <dlfcn.h>
#include <string_view>
#include <unwind.h>

namespace nearfar::crash::runtime {

namespace {

enum class Owner : std::uint8_t { unknown, program, c_library, library, recorder };

struct Known {
  const void* code;
  Owner owner;
};
constexpr std::size_t known_count = 1 << 12;
Known known[known_count];

Owner find_owner(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return Owner::program;
  const std::string_view path = info.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("libpmem")) return Owner::library;
  if (name.starts_with("libc.so") || name.starts_with("libpthread")) return Owner::c_library;
  return name.starts_with("libnearfar-crash-recorder") ? Owner::recorder : Owner::program;
}

Owner owner_of(const void* code) {
  Known& slot = known[(reinterpret_cast<std::uintptr_t>(code) * 0x9e3779b97f4a7c15u) >> 52];
  if (slot.code != code) slot = {code, find_owner(code)};
  return slot.owner;
}

struct Walk {
  const void* library = nullptr; ///< the innermost frame of one
  Callers found;
  bool from_c_library = false;
  int frames = 0;
};
constexpr int most_frames = 64;

/// Frames of the recorder and of the C library, a signal's among them, are passed over.
_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  const auto* code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  const Owner owner = owner_of(code);
  if (owner == Owner::library && walk.library == nullptr) walk.library = code;
  if (owner == Owner::program && (walk.library != nullptr || walk.from_c_library)) {
    walk.found.program = code;
    if (walk.from_c_library) walk.found.library = walk.library;
    return _URC_END_OF_STACK;
  }
  return ++walk.frames == most_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

} // namespace

Callers callers_of(const void* code) {
  if (code == nullptr) return {};
  const Owner owner = owner_of(code);
  if (owner != Owner::library && owner != Owner::c_library) return {};
  Walk walk;
  walk.from_c_library = owner == Owner::c_library;
  _Unwind_Backtrace(visit, &walk);
  return walk.found;
}

} // namespace nearfar::crash::runtime
