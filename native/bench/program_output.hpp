// Parsing of numbers, and printing of figures and failures, for benchmark programs (*_main.cpp).
#pragma once

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "base/result.hpp"
#include "os/usage.hpp"

namespace nearfar::bench {

/// Prints an error in three lines; returns the exit code of a failure.
inline int fail(const Error& error) {
  constexpr const char* names[] = {"bad_input", "not_found",   "exists",       "no_permission",
                                   "no_space",  "unsupported", "failed_check", "os_error"};
  std::printf("error %s\n%s\n%s\n", names[static_cast<unsigned>(error.code)], error.what,
              error.next);
  return 1;
}

/// Parses a whole number; other characters behind it are an error.
template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

inline void print_usage(const os::Usage& usage) {
  std::printf("thread_wall_ns %" PRIu64 "\nthread_cpu_ns %" PRIu64 "\nminor_faults %" PRIu64
              "\nmajor_faults %" PRIu64 "\ninvoluntary_switches %" PRIu64 "\n",
              usage.wall_ns, usage.cpu_ns, usage.minor_faults, usage.major_faults,
              usage.involuntary_switches);
}

} // namespace nearfar::bench
