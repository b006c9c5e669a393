// Samples of a perf.data file, which was recorded earlier or on another machine.
//
// Events         clock samples with the registers of the program; page faults with addresses;
//                memory accesses sampled by hardware (Intel PEBS, AMD IBS), with which clock samples
//                are CPU time only. Samples of any other event are refused.
// Code           is read from the files of this machine, if they are there and have the recorded
//                build id.
// Left out       samples of the kernel.
// Memory         all records are held to be sorted by time: about twice the size of the file.
// Input          untrusted.
// Thread safety  none.
#pragma once

#include "base/result.hpp"
#include "sample/collector.hpp"

namespace nearfar::sample {

/// Adds all that a file has to a collector. Errors: not_found, no_permission, bad_input.
Status collect_perf_data(const char* path, Collector& collector);

} // namespace nearfar::sample
