#include "bench/mapped.hpp"

#include "bind/convert.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

constexpr std::string_view methods[] = {"mapped", "buffered", "direct", "uring"};
constexpr std::string_view warmths[] = {"cold", "warm", "resident"};

nb::dict facts_dict(const bench::MappingFacts& f) {
  nb::dict d;
  d["descriptor"] = f.descriptor;
  d["first_address"] = f.first_address;
  d["last_address"] = f.last_address;
  d["page_bytes"] = f.page_bytes;
  d["huge_bytes"] = f.huge_bytes;
  d["dax"] = f.dax;
  d["map_sync"] = f.map_sync;
  return d;
}

} // namespace

void register_bench(nb::module_& module) {
  using bench::MappedBench;
  nb::class_<MappedBench>(module, "MappedBench")
      .def(nb::new_([](const char* path, std::size_t size_bytes, int cpu) {
             return run_unlocked([&] { return MappedBench::create(path, size_bytes, cpu); });
           }),
           nb::arg("path"), nb::arg("size_bytes"), nb::arg("cpu"))
      .def("facts",
           [](MappedBench& self) { return facts_dict(run_unlocked([&] { return self.facts(); })); })
      .def(
          "run",
          [](MappedBench& self, const char* method, bool write, bool random, const char* warmth,
             std::size_t block_bytes, std::uint64_t seed, std::uint64_t budget_ns) {
            const bench::Access access{by_name<bench::Method>(method, methods), write,       random,
                                       by_name<bench::Warmth>(warmth, warmths), block_bytes, seed};
            const bench::IoSample s = run_unlocked([&] { return self.run(access, budget_ns); });
            nb::dict d = usage_dict(s.usage);
            d["seconds"] = s.seconds;
            d["bytes"] = s.bytes;
            return d;
          },
          nb::arg("method"), nb::arg("write"), nb::arg("random"), nb::arg("warmth"),
          nb::arg("block_bytes"), nb::arg("seed"), nb::arg("budget_ns"));
}

} // namespace nearfar::bind
