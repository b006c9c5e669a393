#include "bind/convert.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

PyObject* native_error = nullptr; // lives as long as the module does

const char* code_name(Errc code) {
  switch (code) {
  case Errc::bad_input: return "bad_input";
  case Errc::not_found: return "not_found";
  case Errc::exists: return "exists";
  case Errc::no_permission: return "no_permission";
  case Errc::no_space: return "no_space";
  case Errc::unsupported: return "unsupported";
  case Errc::failed_check: return "failed_check";
  case Errc::os_error: return "os_error";
  }
  return "os_error";
}

} // namespace

void register_errors(nb::module_& module) {
  native_error = PyErr_NewExceptionWithDoc(
      "nearfar._native.NativeError", "args: (code, what, next_step, errno)", nullptr, nullptr);
  module.attr("NativeError") = nb::borrow(native_error);
}

void raise(const Error& error) {
  if (PyErr_Occurred() == nullptr) { // else Python's own comes first, as that of Ctrl-C
    nb::tuple arguments =
        nb::make_tuple(code_name(error.code), error.what, error.next, error.os_errno);
    PyErr_SetObject(native_error, arguments.ptr());
  }
  throw nb::python_error();
}

nb::dict usage_dict(const os::Usage& usage) {
  nb::dict d;
  d["wall_ns"] = usage.wall_ns;
  d["cpu_ns"] = usage.cpu_ns;
  d["minor_faults"] = usage.minor_faults;
  d["major_faults"] = usage.major_faults;
  d["involuntary_switches"] = usage.involuntary_switches;
  return d;
}

nb::list members_list(const std::vector<kernels::Member>& members) {
  nb::list list;
  for (const kernels::Member& m : members) {
    nb::dict d = usage_dict(m.usage);
    d["start_ns"] = m.start_ns;
    d["end_ns"] = m.end_ns;
    list.append(d);
  }
  return list;
}

nb::dict array_dict(const probe::ArrayRepeat& repeat) {
  nb::dict d;
  d["seconds"] = repeat.seconds;
  d["counted_bytes"] = repeat.counted_bytes;
  d["members"] = members_list(repeat.members);
  return d;
}

} // namespace nearfar::bind
