#include "bind/convert.hpp"
#include "os/cpu.hpp"
#include "os/pages.hpp"

namespace nearfar::bind {

void register_os(nanobind::module_& module) {
  module.def("vector_isa", &os::vector_isa);
  module.def("available_memory_bytes", &os::available_memory_bytes);
}

} // namespace nearfar::bind
