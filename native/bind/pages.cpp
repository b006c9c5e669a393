#include <memory>
#include <nanobind/stl/unique_ptr.h>

#include "bind/convert.hpp"
#include "os/process_pages.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using os::PageRun;
using os::ProcessPages;

nb::list as_list(const std::vector<PageRun>& runs) {
  nb::list list;
  for (const PageRun& run : runs)
    list.append(nb::make_tuple(run.address, run.pages, run.node));
  return list;
}

nb::tuple as_tuple(const os::LocatedPages& found) {
  return nb::make_tuple(as_list(found.runs), found.end);
}

std::unique_ptr<ProcessPages> open(int process) {
  Result<ProcessPages> made = ProcessPages::open(process);
  if (!made) raise(made.error());
  return std::make_unique<ProcessPages>(std::move(*made));
}

nb::tuple locate(const ProcessPages& pages, std::uint64_t from, std::uint64_t to,
                 std::uint64_t max_pages) {
  return as_tuple(run_unlocked([&] { return pages.locate(from, to, max_pages); }));
}

nb::tuple held(const ProcessPages& pages, std::uint64_t from, std::uint64_t to,
               std::uint64_t max_pages) {
  return as_tuple(
      run_unlocked([&]() -> Result<os::LocatedPages> { return pages.held(from, to, max_pages); }));
}

nb::list move(const ProcessPages& pages, const nb::sequence& wanted, int node, bool shared) {
  std::vector<PageRun> runs;
  for (const nb::handle each : wanted)
    runs.push_back({nb::cast<std::uint64_t>(each[0]), nb::cast<std::uint64_t>(each[1]), 0});
  return as_list(run_unlocked([&] { return pages.move(runs, node, shared); }));
}

} // namespace

void register_pages(nb::module_& module) {
  nb::class_<ProcessPages>(module, "ProcessPages")
      .def_static("open", &open, nb::arg("process"))
      .def("is_current", &ProcessPages::is_current)
      .def("locate", &locate, nb::arg("start"), nb::arg("end"), nb::arg("max_pages"))
      .def("held", &held, nb::arg("start"), nb::arg("end"), nb::arg("max_pages"))
      .def("move", &move, nb::arg("runs"), nb::arg("node"), nb::arg("shared"));
}

} // namespace nearfar::bind
