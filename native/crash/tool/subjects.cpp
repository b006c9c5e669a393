#include "crash/tool/subjects.hpp"

#include <algorithm>

#include "crash/tool/medium.hpp"
#include "structures/list.hpp"
#include "structures/map.hpp"
#include "structures/queue.hpp"
#include "structures/skip_list.hpp"

namespace nearfar::crash {

namespace {

auto find(Contents& model, std::uint64_t key) {
  return std::find_if(model.begin(), model.end(),
                      [&](const auto& entry) { return entry.first == key; });
}

/// Small segments, so that a few hundred operations split many of them.
using SmallMap = structures::Map<Pmem, std::uint64_t, std::uint64_t, 2>;

class MapSubject final : public StructureSubject<SmallMap, structures::MapRoot> {
public:
  Status apply(const Operation& operation) override {
    if (operation.what == Operation::What::remove) return done(structure().remove(operation.key));
    if (replaces(operation)) return done(structure().put(operation.key, operation.value));
    return done(structure().insert(operation.key, operation.value));
  }
  void apply_to_model(const Operation& operation, Contents& model) const override {
    const auto known = find(model, operation.key);
    if (operation.what == Operation::What::remove) {
      if (known != model.end()) model.erase(known);
    } else if (known == model.end()) {
      model.emplace_back(operation.key, operation.value);
    } else if (replaces(operation)) {
      known->second = operation.value;
    }
  }
  const char* contents(Contents& found) override {
    structure().for_each(
        [&](std::uint64_t key, std::uint64_t value) { found.emplace_back(key, value); });
    return found.size() == structure().size() ? nullptr : "its size is not the number of entries";
  }

private:
  static bool replaces(const Operation& operation) { return operation.value % 3 == 0; }
};

/// A sorted set of keys.
template <class S>
class SetSubject final : public StructureSubject<S, structures::ChainRoot> {
public:
  Status apply(const Operation& operation) override {
    if (operation.what == Operation::What::remove)
      return done(this->structure().remove(operation.key));
    return done(this->structure().insert(operation.key));
  }
  void apply_to_model(const Operation& operation, Contents& model) const override {
    const auto known = find(model, operation.key);
    if (operation.what == Operation::What::remove) {
      if (known != model.end()) model.erase(known);
    } else if (known == model.end()) {
      model.emplace_back(operation.key, 0);
    }
  }
  const char* contents(Contents& found) override {
    this->structure().for_each([&](std::uint64_t key) { found.emplace_back(key, 0); });
    for (std::size_t i = 1; i < found.size(); ++i)
      if (found[i - 1].first >= found[i].first) return "its keys do not ascend";
    return found.size() == this->structure().size() ? nullptr
                                                    : "its size is not the number of keys";
  }
};

using SmallQueue = structures::Queue<Pmem, std::uint64_t>;

class QueueSubject final : public StructureSubject<SmallQueue, structures::ChainRoot> {
public:
  Status apply(const Operation& operation) override {
    if (operation.what == Operation::What::remove) return done(structure().pop());
    return structure().push(operation.value);
  }
  void apply_to_model(const Operation& operation, Contents& model) const override {
    if (operation.what != Operation::What::remove)
      model.emplace_back(operation.value, 0);
    else if (!model.empty())
      model.erase(model.begin());
  }
  const char* contents(Contents& found) override {
    structure().for_each([&](std::uint64_t value) { found.emplace_back(value, 0); });
    return found.size() == structure().size() ? nullptr : "its size is not the number of entries";
  }
};

} // namespace

Chosen choose_subject(std::string_view name, std::size_t operations) {
  Chosen chosen;
  chosen.pool_bytes = (std::size_t{1} << 20) + operations * 256 / 4096 * 4096;
  if (name == "map") chosen.subject = std::make_unique<MapSubject>();
  if (name == "list")
    chosen.subject = std::make_unique<SetSubject<structures::List<Pmem, std::uint64_t>>>();
  if (name == "skip_list")
    chosen.subject = std::make_unique<SetSubject<structures::SkipList<Pmem, std::uint64_t>>>();
  if (name == "queue") {
    chosen.subject = std::make_unique<QueueSubject>();
    chosen.ordered = true;
  }
  if (name == "move") {
    chosen.subject = move_subject();
    chosen.moves = true;
  }
  return chosen;
}

} // namespace nearfar::crash
