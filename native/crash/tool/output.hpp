// What nearfar-crash prints: one line a thing, fields between tabs.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "crash/explorer.hpp"
#include "crash/tool/hosts.hpp"

namespace nearfar::crash {

/// FILE:LINE, or MODULE+0xOFFSET where only machine code is known; of a library "PLACE called from
/// PLACE", outwards.
std::string place(const storelog::Site& site);
const char* name(storelog::EventKind kind);

/// Prints "error"; returns the exit code.
int print_error(const Error& error);
void print_progress(const Progress& progress);
/// `image` is the file its image was kept in, or null.
void print_finding(const Finding& finding, const char* image);
/// Keeps images in `folder` if its name is not empty; failures to keep one are reported. Returns
/// the exit code.
int print_exploration(const Exploration& result, const char* folder);

void print_count(const CrashCount& count);

Result<std::vector<std::byte>> read_image(const char* path);

} // namespace nearfar::crash
