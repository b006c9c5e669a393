#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/convert.hpp"
#include "structures/list.hpp"
#include "structures/map.hpp"
#include "structures/map_atomic.hpp"
#include "structures/map_rp.hpp"
#include "structures/map_tx.hpp"
#include "structures/queue.hpp"
#include "structures/skip_list.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace structures;
using Word = std::uint64_t;
using persist::Pool;

/// A pool with one structure in it, closed in the order it was opened.
template <class Structure, class Root, class PersistencePolicy = Pmem>
struct Owner {
  std::unique_ptr<Pool> pool;
  std::unique_ptr<PersistencePolicy> medium;
  std::unique_ptr<Structure> structure;

  Structure& get() {
    if (!structure)
      raise(Error::make(Errc::bad_input, "the pool is closed").try_next("open it again"));
    return *structure;
  }
  void close() {
    structure.reset();
    medium.reset();
    pool.reset();
  }

  static Owner of(Result<Pool> opened) {
    if (!opened) raise(opened.error());
    Owner owner;
    owner.pool = std::make_unique<Pool>(std::move(*opened));
    owner.medium = std::make_unique<PersistencePolicy>(*owner.pool);
    owner.structure = run_unlocked([&] {
      return Structure::open(*owner.medium, *reinterpret_cast<Root*>(owner.pool->root()));
    });
    return owner;
  }
};

/// Members of all structures: creating and closing, and those for all entries.
template <class Structure, class Root, class PersistencePolicy = Pmem>
nb::class_<Owner<Structure, Root, PersistencePolicy>> bind_structure(nb::module_& module,
                                                                     const char* name) {
  using Own = Owner<Structure, Root, PersistencePolicy>;
  nb::class_<Own> bound(module, name);
  const persist::Layout layout{name, 1};
  bound
      .def_static(
          "create",
          [layout](const char* place, std::size_t bytes) {
            return Own::of(Pool::create(parse_tier(place), layout, {bytes, sizeof(Root)}));
          },
          nb::arg("place"), nb::arg("pool_bytes"))
      .def_static(
          "open",
          [layout](const char* place) { return Own::of(Pool::open(parse_tier(place), layout)); },
          nb::arg("place"))
      .def("close", &Own::close)
      .def("size", [](Own& self) { return self.get().size(); })
      .def("verify", [](Own& self) { run_unlocked([&] { return self.get().verify(); }); });
  if constexpr (requires(Structure& structure) { structure.clear(); })
    bound.def("clear", [](Own& self) { run_unlocked([&] { return self.get().clear(); }); });
  return bound;
}

nb::object to_python(Word word) { return nb::cast(word); }
nb::object to_python(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }
Word from_python(Word word) { return word; }
std::string from_python(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

/// T is what a key or a value is in C++, P what it is in Python.
template <class T, class P>
void bind_map(nb::module_& module, const char* name) {
  using Tested = Map<Pmem, T, T>;
  using Out = typename Stored<T>::Out;
  using Own = Owner<Tested, MapRoot>;
  bind_structure<Tested, MapRoot>(module, name)
      .def("insert",
           [](Own& self, const P& key, const P& value) {
             const auto k = from_python(key);
             const auto v = from_python(value);
             return run_unlocked([&] { return self.get().insert(k, v); });
           })
      .def("put",
           [](Own& self, const P& key, const P& value) {
             const auto k = from_python(key);
             const auto v = from_python(value);
             return run_unlocked([&] { return self.get().put(k, v); });
           })
      .def("remove",
           [](Own& self, const P& key) {
             const auto k = from_python(key);
             return run_unlocked([&] { return self.get().remove(k); });
           })
      .def("get",
           [](Own& self, const P& key) {
             Out value{};
             return self.get().get(from_python(key), value) ? to_python(value) : nb::none();
           })
      .def("get_many",
           [](Own& self, const std::vector<P>& keys) {
             std::vector<decltype(from_python(keys[0]))> owned; // KeyIn may be a view
             for (const P& key : keys)
               owned.push_back(from_python(key));
             const std::vector<typename Tested::KeyIn> in(owned.begin(), owned.end());
             std::vector<Out> values(keys.size());
             const auto found = std::make_unique<bool[]>(keys.size());
             self.get().get_many(in, values, std::span(found.get(), keys.size()));
             nb::list list;
             for (std::size_t i = 0; i < keys.size(); ++i)
               list.append(found[i] ? nb::object(to_python(values[i])) : nb::none());
             return list;
           })
      .def("bulk_load",
           [](Own& self, const std::vector<std::pair<P, P>>& pairs) {
             std::vector<std::pair<Out, Out>> all;
             for (const auto& [key, value] : pairs)
               all.emplace_back(from_python(key), from_python(value));
             run_unlocked([&] { return self.get().bulk_load(all); });
           })
      .def("items", [](Own& self) {
        nb::list list;
        self.get().for_each([&](const Out& key, const Out& value) {
          list.append(nb::make_tuple(to_python(key), to_python(value)));
        });
        return list;
      });
}

template <class Structure>
nb::list values_of(Owner<Structure, ChainRoot>& self) {
  nb::list list;
  self.get().for_each([&](Word value) { list.append(value); });
  return list;
}

template <class Tested>
void bind_sorted(nb::module_& module, const char* name) {
  using Own = Owner<Tested, ChainRoot>;
  bind_structure<Tested, ChainRoot>(module, name)
      .def("insert",
           [](Own& self, Word key) { return run_unlocked([&] { return self.get().insert(key); }); })
      .def("remove",
           [](Own& self, Word key) { return run_unlocked([&] { return self.get().remove(key); }); })
      .def("contains", [](Own& self, Word key) { return self.get().contains(key); })
      .def("bulk_load",
           [](Own& self, const std::vector<Word>& keys) {
             run_unlocked([&] { return self.get().bulk_load(keys); });
           })
      .def("values", &values_of<Tested>);
}

void bind_queue(nb::module_& module, const char* name) {
  using Tested = Queue<Pmem, Word>;
  using Own = Owner<Tested, ChainRoot>;
  bind_structure<Tested, ChainRoot>(module, name)
      .def("push",
           [](Own& self, Word value) { run_unlocked([&] { return self.get().push(value); }); })
      .def("pop", [](Own& self) { return run_unlocked([&] { return self.get().pop(); }); })
      .def("front", [](Own& self) { return self.get().front(); })
      .def("bulk_load",
           [](Own& self, const std::vector<Word>& values) {
             run_unlocked([&] { return self.get().bulk_load(values); });
           })
      .def("values", &values_of<Tested>);
}

/// A word as the handle of an object, which these maps do not dereference.
PMEMoid handle_of(Word word) { return {word, ~word}; }
std::optional<Word> word_of(std::optional<PMEMoid> handle) {
  return handle ? std::optional(handle->pool_uuid_lo) : std::nullopt;
}

template <template <class> class Kind>
void bind_pmdk_map(nb::module_& module, const char* name) {
  using Tested = Kind<PoolObjects>;
  using Own = Owner<Tested, PMEMoid, PoolObjects>;
  bind_structure<Tested, PMEMoid, PoolObjects>(module, name)
      .def("insert",
           [](Own& self, Word key, Word value) {
             return run_unlocked([&] { return self.get().insert(key, handle_of(value)); });
           })
      .def("remove",
           [](Own& self, Word key) {
             return word_of(run_unlocked([&] { return self.get().remove(key); }));
           })
      .def("get", [](Own& self, Word key) { return word_of(self.get().get(key)); })
      .def("items", [](Own& self) {
        nb::list list;
        self.get().for_each(
            [&](Word key, PMEMoid value) { list.append(nb::make_tuple(key, value.pool_uuid_lo)); });
        return list;
      });
}

} // namespace

void register_structures(nb::module_& module) {
  bind_map<Word, Word>(module, "WordMap");
  bind_map<Bytes, nb::bytes>(module, "BytesMap");
  bind_sorted<List<Pmem, Word>>(module, "WordList");
  bind_sorted<SkipList<Pmem, Word>>(module, "WordSkipList");
  bind_queue(module, "WordQueue");
  bind_pmdk_map<MapAtomic>(module, "WordMapAtomic");
  bind_pmdk_map<MapTx>(module, "WordMapTx");
  bind_pmdk_map<MapRp>(module, "WordMapRp");
}

} // namespace nearfar::bind
