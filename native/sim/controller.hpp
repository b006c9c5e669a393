// How a memory controller treats rows and writes, in both engines.
//
// Thread safety  none: values.
#pragma once

#include "sim/device.hpp"

namespace nearfar::sim {

/// When an open row is closed: when another row is required, with its last access, or after some
/// idle time.
enum class PagePolicy : unsigned char { open, closed, timeout };

struct Controller {
  PagePolicy page = PagePolicy::open;
  Time timeout = 100'000;   ///< of PagePolicy::timeout: idle time of a row until it is closed
  unsigned drain_from = 32; ///< posted writes waiting in a channel when they start to be written
  unsigned drain_to = 16;   ///< and how many are left when reads come first again
};

} // namespace nearfar::sim
