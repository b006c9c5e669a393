#include "crash/runtime/callers.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <dlfcn.h>
#include <string_view>
#include <unwind.h>

#include "crash/library.hpp"

namespace nearfar::crash::runtime {

namespace {

enum class Owner : std::uint8_t { unknown, program, c_library, library, recorder };

struct Known {
  const void* code;
  Owner owner;
};
constexpr std::size_t known_count = 1 << 12;
Known known[known_count];
std::atomic<bool> owners_are_old{false};

Owner find_owner(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return Owner::c_library;
  const std::string_view path = info.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (is_pmem(path)) return Owner::library;
  if (is_c_library(path) || is_vdso(path)) return Owner::c_library;
  return name.starts_with("libnearfar-crash-recorder") ? Owner::recorder : Owner::program;
}

Owner owner_of(const void* code) {
  if (owners_are_old.load(std::memory_order_relaxed) && owners_are_old.exchange(false))
    std::fill(known, known + known_count, Known{});
  Known& slot = known[(reinterpret_cast<std::uintptr_t>(code) * 0x9e3779b97f4a7c15u) >> 52];
  if (slot.code != code) slot = {code, find_owner(code)};
  return slot.owner;
}

struct Walk {
  bool from_library = false; ///< the code is of the C library or of a library
  bool from_c_library = false;
  Callers found;
  bool in_program = false; ///< the innermost frame of the program was passed
  std::size_t outward = 0;
  int frames = 0;
};
constexpr int max_frames = 64;

Return return_of(_Unwind_Context* context, const void* code) {
  // The call pushed the return address just below the frame that it returns to.
  return {reinterpret_cast<const void* const*>(_Unwind_GetCFA(context)) - 1, code};
}

/// Takes a frame of the program. False if no more are wanted.
bool add_program(Walk& walk, const Return& call) {
  if (!walk.in_program) {
    walk.in_program = true;
    if (walk.from_library) walk.found.program = call;
    return true;
  }
  if (walk.outward > 0 && walk.found.outward[walk.outward - 1].code == call.code) return true;
  walk.found.outward[walk.outward++] = call;
  return walk.outward < Callers::most;
}

/// Frames of the recorder and of the C library, a signal's among them, are passed over.
_Unwind_Reason_Code visit(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  const auto* code = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  const Owner owner = code == nullptr ? Owner::unknown : owner_of(code);
  if (owner == Owner::library && walk.from_c_library && !walk.in_program &&
      walk.found.library.code == nullptr)
    walk.found.library = return_of(context, code);
  if (owner == Owner::program && !add_program(walk, return_of(context, code)))
    return _URC_END_OF_STACK;
  return ++walk.frames == max_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
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

void forget_owners() { owners_are_old = true; }

bool is_in_library(const void* code) { return owner_of(code) == Owner::library; }

bool Callers::are_there() const {
  return library.is_there() && program.is_there() &&
         std::all_of(outward.begin(), outward.end(),
                     [](const Return& one) { return one.is_there(); });
}

Callers find_callers(const void* code) {
  Walk walk;
  const Owner owner = owner_of(code);
  walk.from_c_library = owner == Owner::c_library;
  walk.from_library = walk.from_c_library || owner == Owner::library;
  _Unwind_Backtrace(visit, &walk);
  return walk.found;
}

} // namespace nearfar::crash::runtime
