#include "inspect/reach.hpp"

#include <algorithm>
#include <map>

namespace nearfar::inspect {

namespace {

/// All objects of a heap, found again by any offset within them.
class Objects final : public ObjectSink {
public:
  static constexpr std::size_t none = ~std::size_t{0};

  struct Item {
    Offset offset;
    Offset bytes;
    Offset block_bytes;
    std::uint64_t type;
  };

  void object(const Object& object) override {
    items_.push_back({object.offset, object.bytes, object.block_bytes, object.type});
    internal_.push_back(object.internal);
  }

  /// To be called once, when all objects are there.
  void index() {
    if (items_.empty()) return;
    first_ = items_.front().offset;
    end_ = items_.back().offset + items_.back().bytes;
    for (std::size_t i = 0; i < items_.size(); ++i)
      while (starts_.size() <= (items_[i].offset - first_) / step)
        starts_.push_back(i);
  }

  /// The object that holds `offset`, or none.
  std::size_t holding(Offset offset) const {
    if (offset < first_ || offset >= end_) return none;
    const std::size_t slot = std::min<std::size_t>((offset - first_) / step, starts_.size() - 1);
    const std::size_t last =
        slot + 1 < starts_.size() ? std::min(starts_[slot + 1] + 1, items_.size()) : items_.size();
    const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(starts_[slot]);
    const auto after =
        std::upper_bound(begin, items_.begin() + static_cast<std::ptrdiff_t>(last), offset,
                         [](Offset wanted, const Item& item) { return wanted < item.offset; });
    std::size_t found = static_cast<std::size_t>(after - items_.begin());
    if (found == 0) return none;
    const Item& item = items_[--found];
    return offset - item.offset < item.bytes ? found : none;
  }

  std::size_t size() const { return items_.size(); }
  const Item& operator[](std::size_t i) const { return items_[i]; }
  bool internal(std::size_t i) const { return internal_[i]; }

private:
  static constexpr Offset step = 4096; ///< one entry of the index stands for so many bytes

  std::vector<Item> items_; ///< upward by offset
  std::vector<bool> internal_;
  std::vector<std::size_t> starts_; ///< the first item at or behind each step
  Offset first_ = 0;
  Offset end_ = 0;
};

class Graph {
public:
  Graph(const Source& source, const Objects& objects)
      : window_(source), objects_(objects), reached_(objects.size()) {}

  void mark_from(std::size_t start) {
    if (start == Objects::none) return;
    reach(start);
    while (!waiting_.empty()) {
      const std::size_t next = waiting_.back();
      waiting_.pop_back();
      each_link(next, [&](std::size_t target) { reach(target); });
    }
  }

  bool reached(std::size_t i) const { return reached_[i]; }

  /// Which lost objects another lost one leads to.
  std::vector<bool> below_lost() {
    std::vector<bool> below(objects_.size());
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      if (reached_[i]) continue;
      each_link(i, [&](std::size_t target) {
        if (target != i) below[target] = true;
      });
    }
    return below;
  }

private:
  void reach(std::size_t i) {
    if (reached_[i]) return;
    reached_[i] = true;
    waiting_.push_back(i);
  }

  /// Links that the words of an object make.
  template <class See>
  void each_link(std::size_t i, const See& see) {
    const Offset begin = (objects_[i].offset + 7) / 8 * 8;
    const Offset end = objects_[i].offset + objects_[i].bytes;
    for (Offset at = begin; at + 8 <= end;) {
      const std::size_t step = std::min<Offset>((end - at) / 8 * 8, 4096);
      const std::byte* words = window_.at(at, step);
      if (words == nullptr) return; // the file was cut since it was examined
      for (std::size_t w = 0; w < step; w += 8) {
        const std::size_t target = objects_.holding(load<std::uint64_t>(words + w));
        if (target != Objects::none) see(target);
      }
      at += step;
    }
  }

  Window window_;
  const Objects& objects_;
  std::vector<bool> reached_;
  std::vector<std::size_t> waiting_;
};

Reach summary(const Objects& objects, Graph& graph) {
  const std::vector<bool> below = graph.below_lost();
  Reach reach;
  std::map<std::uint64_t, Lost> types;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects.internal(i)) continue;
    ++reach.objects;
    if (graph.reached(i)) continue;
    ++reach.lost;
    reach.lost_bytes += objects[i].block_bytes;
    Lost& lost = types[objects[i].type];
    lost.type = objects[i].type;
    ++lost.objects;
    lost.block_bytes += objects[i].block_bytes;
    if (!below[i]) ++lost.heads;
    if (lost.examples.size() < Lost::most_examples) lost.examples.push_back(objects[i].offset);
  }
  for (auto& [type, lost] : types)
    reach.types.push_back(std::move(lost));
  return reach;
}

} // namespace

Reach find_lost(const Source& source, Pool& pool) {
  PatchedSource recovered(source);
  Objects objects;
  examine(source, recovered, objects, pool);
  if (pool.findings.damage_count() != 0 || pool.descriptor.root_offset == 0 || !pool.lanes.replayed)
    return {};
  objects.index();
  const Source* seen = &source;
  if (pool.lanes.pending() != 0) seen = &recovered;
  Graph graph(*seen, objects);
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (objects.internal(i)) graph.mark_from(i); // the root object, and what the lanes hold
  return summary(objects, graph);
}

} // namespace nearfar::inspect
