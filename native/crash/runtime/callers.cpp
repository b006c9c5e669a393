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

/// A return address and where it lies on the stack.
struct Return {
  const void* const* slot = nullptr;
  const void* code = nullptr;

  bool is_there() const { return slot == nullptr || *slot == code; }
};

struct Walk {
  const void* library = nullptr; ///< the innermost frame of one
  Callers found;
  Return in_library, in_program;
  bool from_c_library = false;
  int frames = 0;
};
constexpr int max_frames = 64;

Return return_of(_Unwind_Context* context, const void* code) {
  // The call pushed the return address just below the frame that it returns to.
  return {reinterpret_cast<const void* const*>(_Unwind_GetCFA(context)) - 1, code};
}

/// Frames of the recorder and of the C library, a signal's among them, are passed over.
_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  const auto* code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  const Owner owner = owner_of(code);
  const bool in_program =
      owner == Owner::program && (walk.library != nullptr || walk.from_c_library);
  if (owner == Owner::library && walk.library == nullptr) {
    walk.library = code;
    walk.in_library = return_of(context, code);
  }
  if (in_program) {
    walk.found.program = code;
    walk.in_program = return_of(context, code);
    if (walk.from_c_library) walk.found.library = walk.library;
    return _URC_END_OF_STACK;
  }
  return ++walk.frames == max_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/// Walks that ended, by the store and the depth of the stack. While the same return addresses lie in
/// the same places, the callers are the same.
struct Walked {
  const void* code = nullptr;
  const void* frame = nullptr;
  Return in_library, in_program;
  Callers found;
};
constexpr std::size_t walked_count = 1 << 14;
Walked walked[walked_count];

Walked& walked_at(const void* code, const void* frame) {
  const auto key =
      reinterpret_cast<std::uintptr_t>(code) * 31 + reinterpret_cast<std::uintptr_t>(frame);
  return walked[(key * 0x9e3779b97f4a7c15u) >> 50];
}

struct StackWalk {
  std::span<const void*> into;
  std::size_t found = 0;
  bool in_program = false; ///< the innermost frame of the program was passed
};

_Unwind_Reason_Code collect(_Unwind_Context* context, void* argument) {
  StackWalk& walk = *static_cast<StackWalk*>(argument);
  const auto* code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  if (code == nullptr || owner_of(code) != Owner::program) return _URC_NO_REASON;
  if (walk.in_program) walk.into[walk.found++] = code;
  walk.in_program = true;
  return walk.found == walk.into.size() ? _URC_END_OF_STACK : _URC_NO_REASON;
}

} // namespace

std::span<const void*> program_stack(std::span<const void*> into) {
  StackWalk walk{into};
  _Unwind_Backtrace(collect, &walk);
  return into.first(walk.found);
}

bool is_in_library(const void* code) { return owner_of(code) == Owner::library; }

Callers callers_of(const void* code) {
  if (code == nullptr) return {};
  const Owner owner = owner_of(code);
  if (owner != Owner::library && owner != Owner::c_library) return {};
  const void* frame = __builtin_frame_address(0);
  Walked& last = walked_at(code, frame);
  if (last.code == code && last.frame == frame && last.in_library.is_there() &&
      last.in_program.is_there())
    return last.found;
  Walk walk;
  walk.from_c_library = owner == Owner::c_library;
  _Unwind_Backtrace(visit, &walk);
  if (walk.found.program != nullptr && walk.in_library.is_there() && walk.in_program.is_there())
    last = {code, frame, walk.in_library, walk.in_program, walk.found};
  return walk.found;
}

} // namespace nearfar::crash::runtime
