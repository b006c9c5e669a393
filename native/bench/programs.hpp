// The four programs of the Seoul thesis: quicksort, mergesort, a D3Q19 lattice Boltzmann, matrix
// multiplication; each proves its result.
//
// Arrays         come from an allocator (malloc, hmalloc's tiers), and are reached through a View,
//                which may record each access: the same code is timed and traced.
// Recorded       every load and store of the arrays, through caches, as a trace whose objects are
//                the arrays. Their addresses are synthetic (4 GiB apart), hence reproducible.
//                Instructions are an estimate: instructions_an_access for each.
// Thread safety  one program at a time in a process: it is single-threaded, as in the thesis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bench/allocator.hpp"
#include "cache/hierarchy.hpp"
#include "os/usage.hpp"
#include "trace/format.hpp"

namespace nearfar::bench {

enum class Program : unsigned char { quick, merge, lbm, matmul };

/// As the command line writes them, in the order of the values.
inline constexpr std::string_view program_names[] = {"quick", "merge", "lbm", "matmul"};

constexpr unsigned instructions_an_access = 3;

struct ProgramWork {
  Program program = Program::quick;
  std::size_t n = 1 << 18; ///< elements; edge of the lattice; rows of the matrices
  std::size_t steps = 1;   ///< lbm
  std::uint64_t seed = 1;
};

/// Bytes of all arrays together.
std::size_t program_bytes(const ProgramWork& work);

struct ProgramRun {
  os::Usage usage;            ///< of the computation alone: arrays are filled and checked outside
  std::uint64_t checksum = 0; ///< of the result's bits, the same wherever the arrays lie
};

/// Runs it once with fresh arrays. Errors: bad_input (n too small or too large), no_space (an
/// allocation failed), failed_check (a wrong result).
Result<ProgramRun> run_program(const ProgramWork& work, const Allocator& allocator);

/// Runs it once and writes the traffic after the caches to a trace; `levels`: from the core, the
/// trace is taken after the last. Returns the same checksum. Errors: those of run_program, of
/// cache::Hierarchy::create and of trace::TraceWriter::finish.
Result<std::uint64_t> record_program(const ProgramWork& work,
                                     const std::vector<cache::Geometry>& levels, const char* path);

} // namespace nearfar::bench
