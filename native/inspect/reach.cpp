#include "inspect/reach.hpp"

#include <algorithm>
#include <cinttypes>
#include <map>

#include "inspect/object_index.hpp"

namespace nearfar::inspect {

namespace {

/// Any aligned word of an object that could be an offset.
class AnyWord {
public:
  AnyWord(const PoolView& view, const ObjectIndex& objects) : window_(view), objects_(objects) {}

  template <class See>
  void each(std::size_t i, const See& see) {
    const Offset begin = (objects_[i].offset + 7) / 8 * 8;
    const Offset end = objects_[i].offset + objects_[i].bytes;
    for (Offset at = begin; at + 8 <= end;) {
      const std::size_t step = std::min<Offset>((end - at) / 8 * 8, 4096);
      const std::byte* words = window_.at(at, step);
      if (words == nullptr) return; // the file was cut since it was examined
      for (std::size_t w = 0; w < step; w += 8) {
        const std::size_t target = objects_.holding(load<std::uint64_t>(words + w));
        if (target != ObjectIndex::none) see(target);
      }
      at += step;
    }
  }

private:
  Window window_;
  const ObjectIndex& objects_;
};

/// The links that the types of a typed pool declare. Its objects have type numbers from `first` on.
class NamedMembers {
public:
  NamedMembers(const PoolView& view, const ObjectIndex& objects, const ObjectStore& store,
               std::uint64_t first, Findings& findings)
      : window_(view), objects_(objects), store_(store), first_(first), findings_(findings) {}

  bool knows(std::size_t i) const {
    return objects_[i].type >= first_ && objects_[i].type - first_ < store_.types.size();
  }
  template <class See>
  void each(std::size_t i, const See& see) {
    if (knows(i)) each_of(objects_[i].offset, objects_[i].type - first_, see);
  }
  /// Links of an object of that type, including the root, which is not in the heap.
  template <class See>
  void each_of(Offset at, std::uint64_t type, const See& see) {
    for (const poolformat::LinkEntry& link : store_.types[type].links) {
      const std::byte* bytes = window_.at(at + link.offset, link.array != 0 ? 16 : 8);
      if (bytes == nullptr) return;
      const auto leads_to = load<std::uint64_t>(bytes);
      const std::uint64_t count = link.array != 0 ? load<std::uint64_t>(bytes + 8) : 1;
      if (leads_to == 0) continue;
      const std::size_t target = objects_.holding(leads_to);
      const Offset wanted = store_.types[link.target].bytes;
      if (target != ObjectIndex::none && objects_[target].offset == leads_to &&
          objects_[target].type == first_ + link.target && count <= objects_[target].bytes / wanted)
        see(target);
      else
        findings_.damage(
            "link", at + link.offset, "a link of %s leads to %#" PRIx64 ", where no %s is",
            store_.types[type].name.c_str(), leads_to, store_.types[link.target].name.c_str());
    }
  }

private:
  Window window_;
  const ObjectIndex& objects_;
  const ObjectStore& store_;
  std::uint64_t first_;
  Findings& findings_;
};

template <class Links>
class Graph {
public:
  Graph(const ObjectIndex& objects, Links& links)
      : objects_(objects), links_(links), reached_(objects.size()) {}

  void reach(std::size_t i) {
    if (reached_[i]) return;
    reached_[i] = true;
    waiting_.push_back(i);
  }
  /// Marks all objects that reached ones link.
  void spread() {
    while (!waiting_.empty()) {
      const std::size_t next = waiting_.back();
      waiting_.pop_back();
      links_.each(next, [&](std::size_t target) { reach(target); });
    }
  }
  bool reached(std::size_t i) const { return reached_[i]; }

  /// The lost objects that another lost one links.
  std::vector<bool> below_lost() {
    std::vector<bool> below(objects_.size());
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (reached_[i]) continue;
      links_.each(i, [&](std::size_t target) {
        if (target != i) below[target] = true;
      });
    }
    return below;
  }

private:
  const ObjectIndex& objects_;
  Links& links_;
  std::vector<bool> reached_;
  std::vector<std::size_t> waiting_;
};

/// Adds the results of a graph for the objects that `counts` selects.
template <class Links, class Counts, class Name>
void report(const ObjectIndex& objects, Graph<Links>& graph, const Counts& counts, const Name& name,
            Reach& reach) {
  const std::vector<bool> below = graph.below_lost();
  std::map<std::uint64_t, Lost> types;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (!counts(i)) continue;
    ++reach.objects;
    if (graph.reached(i)) continue;
    ++reach.lost;
    reach.lost_bytes += objects[i].block_bytes;
    Lost& lost = types[objects[i].type];
    name(lost, objects[i].type);
    ++lost.objects;
    lost.block_bytes += objects[i].block_bytes;
    if (!below[i]) ++lost.heads;
    if (lost.examples.size() < Lost::max_examples) lost.examples.push_back(objects[i].offset);
  }
  for (auto& [type, lost] : types)
    reach.types.push_back(std::move(lost));
}

/// Typed objects, by the links that their types name.
void report_typed(const PoolView& seen, const ObjectIndex& objects, std::uint64_t first,
                  PoolReport& pool, Reach& reach) {
  const ObjectStore& store = pool.typed.store;
  NamedMembers links(seen, objects, store, first, pool.findings);
  Graph graph(objects, links);
  links.each_of(store.root, 0, [&](std::size_t target) { graph.reach(target); });
  graph.spread();
  reach.typed = true;
  report(
      objects, graph, [&](std::size_t i) { return !objects.internal(i) && links.knows(i); },
      [&](Lost& lost, std::uint64_t type) {
        lost.type = type - first;
        lost.name = store.types[lost.type].name;
      },
      reach);
}

} // namespace

Reach find_lost(const PoolView& view, PoolReport& pool) {
  PatchedView recovered(view);
  ObjectIndex objects, typed;
  examine(view, recovered, objects, typed, pool);
  const bool replayed = pool.lanes.replayed && pool.typed.records.replayed;
  if (pool.findings.damage_count() != 0 || pool.descriptor.root_offset == 0 || !replayed) return {};
  objects.index();
  typed.index();
  const PoolView* seen = &view;
  if (pool.lanes.pending() != 0 || pool.typed.records.count != 0) seen = &recovered;
  Reach reach;
  AnyWord words(*seen, objects);
  Graph graph(objects, words);
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (objects.internal(i)) graph.reach(i); // the root object, and what the lanes hold
  graph.spread();
  const ObjectStore& store = pool.typed.store;
  const bool undo = store.usable && store.path == poolformat::Path::undo;
  report(
      objects, graph,
      [&](std::size_t i) {
        const bool is_typed = undo && objects[i].type - 1 < store.types.size();
        return !objects.internal(i) && !is_typed;
      },
      [](Lost& lost, std::uint64_t type) { lost.type = type; }, reach);
  if (undo) report_typed(*seen, objects, 1, pool, reach);
  if (store.usable && !undo) report_typed(*seen, typed, 0, pool, reach);
  return reach;
}

} // namespace nearfar::inspect
