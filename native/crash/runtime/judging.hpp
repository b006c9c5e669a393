// The judge of a program that is linted. Events go to it instead of into the log.
//
// Thread safety  request_judgement() before the program runs; the others under the lock of the log.
#pragma once

#include <cstdint>

#include "crash/judge.hpp"

namespace nearfar::crash::runtime {

/// The program is to be judged, in the memory of this file. A null path asks for nothing.
void request_judgement(const char* path);
/// The size of the pool is known. False if the memory cannot be had; true if nothing was requested.
bool begin_judgement(std::uint64_t pool_bytes);
/// Null before the pool is known, and where nothing was requested.
Judge* judge();

} // namespace nearfar::crash::runtime
