// What an exploration says: how much was seen, and what went wrong where.
//
// Thread safety  none: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crash/persistency.hpp"
#include "crash/subject.hpp"

namespace nearfar::crash {

/// What the program left out. A new one also needs: name() in finding.cpp, MISSING in
/// python/nearfar/verify/findings.py, "Verdict" in docs/tutorials/crash.md.
enum class Missing : std::uint8_t {
  flush,      ///< the store was not written back
  late_flush, ///< it was, but only after the next fence of its thread
  fence,      ///< it was flushed, but no fence followed: order, or durability, is not promised
  log,        ///< it was overwritten in place without being logged
  late_log,   ///< it was logged, but only after it was overwritten
  in_place,   ///< it was overwritten in place, in a program that logs nothing
  torn,       ///< it has more than eight bytes, and only a part of it became durable
  logic,      ///< everything was durable in program order: program, recovery or checker is wrong
};

/// One pending line that the failure needs, as it was in the failing image.
struct BlamedLine {
  std::uint64_t address = 0; ///< of the line, in the pool
  bool durable = false;      ///< it fails because this became durable (else: because it did not)
  storelog::Site store;      ///< the store that makes the difference
};

struct Finding {
  Failure failure = Failure::none;
  std::string what; ///< one sentence
  Missing missing = Missing::logic;
  storelog::Site store;  ///< the store to blame
  storelog::Site before; ///< what it had to be durable, or logged, before; line 0 if nothing
  std::vector<BlamedLine> lines;
  std::uint64_t event = 0;               ///< the crash is before this event of the log
  storelog::EventKind kind{};            ///< of this event; none where `at` is none
  storelog::Site at;                     ///< its place; none at the end of the log, and in recovery
  std::uint64_t acknowledged = 0;        ///< operations
  bool in_flight = false;                ///< and one more had begun
  std::vector<std::uint64_t> operations; ///< Moment::operations
  bool finished = false;                 ///< the program had come to its end
  bool during_recovery = false;
  CacheLoss loss = CacheLoss::all;
  std::uint64_t violations = 1; ///< images that failed by the same store and kind
  std::uint64_t found_at = 0;   ///< number of the first of them among all images, from 1
  std::vector<std::byte> image; ///< empty where the program itself failed
};

struct Exploration {
  std::uint64_t states = 0; ///< images on which recovery ran and was checked
  double states_left = 0;   ///< images that were not covered; 0 says that all were
  std::uint64_t points = 0; ///< failure points
  std::uint64_t violations = 0;
  std::uint64_t recovery_states = 0; ///< of `states`: crashes during recovery
  std::uint64_t confirmed = 0;       ///< of `states`: those with a second opinion
  std::uint64_t stores = 0;          ///< of the program itself
  std::uint64_t stores_tried = 0;    ///< of these: those both missing and early in images
  std::uint64_t places = 0;          ///< lines of source, or instructions, that made these stores
  std::uint64_t places_tried = 0;    ///< of these: with one store at least that was tried
  bool cut_off = false;              ///< ended by the number of violations
  double seconds = 0;                ///< of wall time, on one thread
  std::vector<Finding> findings;
};

const char* name(Failure failure);
const char* name(Missing missing);
const char* name(CacheLoss loss);

} // namespace nearfar::crash
