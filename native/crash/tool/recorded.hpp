// The log of a recorded program, as the tool's commands read it.
#pragma once

#include "storelog/log_file.hpp"

namespace nearfar::crash {

/// The program mapped no pool.
Error nothing_mapped();
/// It mapped one, and did not change it.
Error nothing_stored(const storelog::ReadLog& read);

/// Prints `nothing`, with the bytes that were stored unseen: nothing was recorded. Returns the error.
Error without_record(Error error, std::uint64_t unseen_bytes = 0);

/// "at least 1 word of 4 bytes": unseen stores are counted so.
std::string at_least_words(std::uint64_t bytes);

/// Prints a `log` line, and warnings on flushes that were not seen.
void print_log(const storelog::ReadLog& read, std::uint64_t events);

/// Reads a log. Errors: those of storelog::read_log; bad_input if nothing was mapped, or the program
/// was not compiled for the recorder.
Result<storelog::ReadLog> read_written(const char* file, bool contents);

/// Reads a log and prints it so. Errors: those of storelog::read_log; bad_input if
/// nothing was mapped or changed, or the program was not compiled for the recorder.
Result<storelog::ReadLog> read_recorded(const char* file);

} // namespace nearfar::crash
