// Samples of a perf.data file, which was recorded earlier or on another machine.
//
// Events         clock samples with the registers of the program; page faults with addresses;
//                memory accesses sampled by hardware (Intel PEBS, AMD IBS), with which clock
//                samples are CPU time only. Samples of any other event are refused.
// Code           is read from the files of this machine, if they are there and have the recorded
//                build id.
// Left out       samples of the kernel.
// Memory         bounded: records wait for those before them only as long as perf's rounds require
//                (record_window.hpp), and long runs are thinned out (samples.hpp).
// Input          untrusted.
// Thread safety  none.
#pragma once

#include "base/result.hpp"
#include "sample/collector.hpp"

namespace nearfar::sample {

/// Adds all records of a file to a collector. Errors: not_found, no_permission, bad_input.
Status collect_perf_data(const char* path, Collector& collector);

} // namespace nearfar::sample
