// Reading and writing traces of other simulators.
//
// ramulator      Ramulator 2's load-store trace, "LD 0xADDRESS" or "ST 0xADDRESS" a line; read as
//                well: Ramulator 1's memory trace, "0xADDRESS R" or "W", and its processor trace,
//                "BUBBLES READ [WRITE]" in decimal.
// dramsim3       "0xADDRESS READ|WRITE CYCLE" a line; the cycle is the instruction.
// dramsys        DRAMSys' trace with absolute times (.stl), "CYCLE: [(BYTES)] read|write 0xADDRESS
//                [0xDATA]" a line; the cycle is the instruction, more than 64 bytes are several
//                lines.
// champsim       64 bytes an instruction: u64 code, u8 branch, u8 taken, 2 and 4 registers, then
//                the addresses it stores to (2 u64) and loads from (4 u64), 0 for none. Not
//                compressed.
// Addresses      of the first three are the memory's: the simulator keeps them (`physical`).
// Kept           address, direction, order; and what the form has room for: instructions, code.
// Thread safety  none.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace nearfar::trace {

enum class Form : unsigned char { ramulator, dramsim3, dramsys, champsim };

struct Exchanged {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::string ending; ///< of an exported trace that is not whole: what is wrong with it
};

/// Writes the lines of a trace in another form. A trace that ends early is written up to there,
/// according to `ending`.
/// Errors: as TraceReader::open; no_space, os_error.
Result<Exchanged> export_trace(const char* trace, int fd, Form form);

/// Makes a trace from a file of another form: its accesses as they are, not filtered. Loads are
/// RecordKind::load; stores RecordKind::write_back, or RecordKind::store where the form has
/// instructions (champsim). Errors: not_found, no_permission; bad_input with the line, or for a
/// file without accesses; as TraceWriter::finish().
Result<Exchanged> import_trace(const char* file, int fd, Form form);

} // namespace nearfar::trace
