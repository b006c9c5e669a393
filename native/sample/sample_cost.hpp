// What a sample of the clock costs its program on this machine.
//
// Method         the calling thread reads the time in a loop while it is sampled. The interval in
//                which a sample appears in the ring contains the interrupt: about 15 us in a virtual
//                machine whose timers belong to the hypervisor. The first quartile is not
//                disturbed by other programs that get the CPU meanwhile.
// Not measured   what the interrupt removes from the caches.
#pragma once

#include <cstdint>
#include <linux/perf_event.h>

namespace nearfar::sample {

/// In ns. `clock`: the event, as it will be opened for programs. Takes 16 samples, at most 0.1 s; 0
/// if there was none.
std::uint64_t sample_cost_ns(perf_event_attr clock);

} // namespace nearfar::sample
