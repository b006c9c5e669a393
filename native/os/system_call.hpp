// System calls that do not pass through syscall(), which a library can replace, as the crash recorder does.
//
// Thread safety  any thread; async-signal-safe.
#pragma once

#include <array>
#include <cerrno>
#include <type_traits>

namespace nearfar::os {

/// The arguments of a call, in registers: numbers and addresses.
using Words = std::array<long, 6>;

template <class Argument>
long as_word(Argument argument) {
  if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<long>(argument);
  else if constexpr (std::is_null_pointer_v<Argument>)
    return 0;
  else
    return static_cast<long>(argument);
}

/// Returns -1 and sets errno, as syscall(2) does.
inline long system_call_of(long number, const Words& words) {
  long done = number;
  register long fourth asm("r10") = words[3];
  register long fifth asm("r8") = words[4];
  register long sixth asm("r9") = words[5];
  asm volatile("syscall"
               : "+a"(done)
               : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  if (done >= 0 || done < -4095) return done;
  errno = static_cast<int>(-done);
  return -1;
}

template <class... Arguments>
long system_call(long number, Arguments... arguments) {
  return system_call_of(number, {as_word(arguments)...});
}

} // namespace nearfar::os
