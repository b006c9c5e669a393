#include "bind/convert.hpp"
#include "os/cpu.hpp"
#include "os/pages.hpp"

namespace nearfar::bind {

void register_os(nanobind::module_& module) {
  module.def("vector_isa", &os::vector_isa);
  module.def("available_memory_bytes", &os::available_memory_bytes);
  module.def("hypervisor", [] {
    const os::Hypervisor found = os::hypervisor();
    // None on bare metal; what a hypervisor signs with may be any bytes
    return found.present ? nanobind::object(nanobind::bytes(found.signature)) : nanobind::none();
  });
}

} // namespace nearfar::bind
