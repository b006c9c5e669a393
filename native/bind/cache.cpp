#include <cstring>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "cache/hierarchy.hpp"
#include "cache/layer_condition.hpp"
#include "cache/map_replay.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using cache::Geometry;
using cache::Hierarchy;

cache::Policy parse_policy(const char* name) {
  Result<cache::Policy> policy = cache::parse_policy(name);
  if (!policy) raise(policy.error());
  return *policy;
}

/// (size in bytes, ways), as Python gives a level.
using Shape = std::pair<std::uint64_t, unsigned>;

Hierarchy make_hierarchy(const std::vector<Shape>& levels, const std::optional<Shape>& instructions,
                         unsigned line_bytes, const char* policy, std::uint64_t seed) {
  const cache::Policy replacement = parse_policy(policy);
  const auto geometry = [&](const Shape& s) {
    return Geometry{s.first, s.second, line_bytes, replacement};
  };
  std::vector<Geometry> all;
  for (const Shape& level : levels)
    all.push_back(geometry(level));
  std::optional<Geometry> fetches;
  if (instructions) fetches = geometry(*instructions);
  Result<Hierarchy> made = Hierarchy::create(all, fetches, seed);
  if (!made) raise(made.error());
  return std::move(*made);
}

nb::dict counters_dict(const cache::LevelCounters& c) {
  nb::dict d;
  d["loads"] = c.loads();
  d["load_misses"] = c.load_misses();
  d["stores"] = c.stores();
  d["store_misses"] = c.store_misses();
  d["fetches"] = c.fetches();
  d["fetch_misses"] = c.fetch_misses();
  d["prefetches"] = c.prefetches;
  d["writebacks"] = c.writebacks;
  return d;
}

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void access_all(Hierarchy& self, const Column<std::uint64_t>& addresses,
                const Column<std::uint8_t>& sizes, const Column<std::uint8_t>& kinds) {
  const std::size_t count = addresses.size();
  if (sizes.size() != count || kinds.size() != count)
    raise(Error::make(Errc::bad_input, "columns of accesses differ in length")
              .try_next("give as many sizes and kinds as addresses"));
  const std::uint64_t* address = addresses.data();
  const std::uint8_t* size = sizes.data();
  const std::uint8_t* kind = kinds.data();
  for (std::size_t i = 0; i < count; ++i)
    if (kind[i] > static_cast<std::uint8_t>(cache::Access::fetch) || size[i] == 0 ||
        size[i] > self.line_bytes())
      raise(Error::make(Errc::bad_input, "access %zu has kind %d and size %d", i, kind[i], size[i])
                .try_next("kinds are 0 load, 1 store, 2 modify, 3 fetch; sizes 1 to a line"));
  nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < count; ++i)
    self.access(address[i], size[i], static_cast<cache::Access>(kind[i]));
}

cache::MapOperation parse_operation(const char* name) {
  using cache::MapOperation;
  for (const auto& [known, operation] : {std::pair{"insert", MapOperation::insert},
                                         {"get", MapOperation::get},
                                         {"remove", MapOperation::remove}})
    if (std::strcmp(name, known) == 0) return operation;
  raise(Error::make(Errc::bad_input, "unknown map operation '%s'", name)
            .try_next("write insert, get or remove"));
}

/// (policy, whether a flush evicts)
using Variants = std::vector<std::pair<std::string, bool>>;

nb::dict replay_map(const char* operation, std::uint64_t operations, std::uint64_t value_bytes,
                    std::uint64_t result_bytes, const Shape& shape, const Variants& variants,
                    std::uint64_t seed) {
  const cache::MapOperation what = parse_operation(operation);
  cache::MapReplayPlan plan{operations, value_bytes, result_bytes, {shape.first, shape.second},
                            {},         seed};
  for (const auto& [policy, flush_evicts] : variants)
    plan.variants.push_back({parse_policy(policy.c_str()), flush_evicts});
  const cache::MapReplay r = run_unlocked([&] { return cache::replay_map(plan, what); });
  nb::dict d;
  d["operations"] = r.operations;
  d["buckets"] = r.buckets;
  d["walked"] = r.walked;
  d["heads"] = r.heads;
  d["moved"] = r.moved;
  d["flushed_lines"] = r.flushed_lines;
  d["fences"] = r.fences;
  d["missed"] = r.missed;
  return d;
}

} // namespace

void register_cache(nb::module_& module) {
  nb::class_<Hierarchy>(module, "CacheHierarchy")
      .def(nb::new_(&make_hierarchy), nb::arg("levels"), nb::arg("instructions").none(),
           nb::arg("line_bytes"), nb::arg("policy"), nb::arg("seed"))
      .def("access", &access_all, nb::arg("addresses"), nb::arg("sizes"), nb::arg("kinds"))
      .def("counters", [](const Hierarchy& self) {
        nb::list list;
        for (std::size_t level = 0; level < self.levels(); ++level)
          list.append(counters_dict(self.counters(level)));
        return list;
      });
  module.def(
      "layer_condition_factor",
      [](std::uint64_t columns, unsigned element_bytes, std::uint64_t cache_bytes, unsigned ways,
         const char* policy, bool scattered, std::uint64_t seed) {
        const Geometry geometry{cache_bytes, ways, 64, parse_policy(policy)};
        const auto pages = scattered ? cache::Pages::scattered : cache::Pages::in_order;
        return run_unlocked([&] {
          return cache::layer_condition_factor(columns, element_bytes, geometry, pages, seed);
        });
      },
      nb::arg("columns"), nb::arg("element_bytes"), nb::arg("cache_bytes"), nb::arg("ways"),
      nb::arg("policy"), nb::arg("scattered"), nb::arg("seed"));
  module.def("replay_map", &replay_map, nb::arg("operation"), nb::arg("operations"),
             nb::arg("value_bytes"), nb::arg("result_bytes"), nb::arg("cache"), nb::arg("variants"),
             nb::arg("seed"));
}

} // namespace nearfar::bind
