// Calls of libpmemobj by which objects are reserved, or are to be freed, and are so when a list of such
// actions is published. They are recorded as the program's own, and passed on.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "crash/runtime/libpmemobj.hpp"
#include "crash/runtime/lock.hpp"
#include "crash/runtime/recording.hpp"

using namespace nearfar::crash::runtime;

/// pobj_action (libpmemobj/action_base.h).
struct Action {
  enum Type : int { heap, memory }; ///< an object that is to be there or freed; a store of a word

  Type type;
  std::uint32_t reserved[3];
  std::uint64_t offset; ///< of the object in the pool
  std::uint64_t bytes;  ///< of the object
  std::uint64_t more[12];
};

namespace {

using Actions = std::span<const Action>;

/// Objects that actions free: nothing in an action says so. Access under the lock of the log. What has no
/// room is taken for an object that was reserved.
class DeferredFrees {
public:
  void add(const Action* action, const Freed& object) {
    if (count_ < frees_.size()) frees_[count_++] = {action->offset, object};
  }
  /// The object that an action frees, if it does.
  std::optional<Freed> remove(const Action& action) {
    for (std::size_t i = 0; i < count_; ++i)
      if (frees_[i].offset == action.offset) {
        const Freed object = frees_[i].object;
        frees_[i] = frees_[--count_];
        return object;
      }
    return {};
  }

private:
  struct Free {
    std::uint64_t offset = 0;
    Freed object;
  };
  std::array<Free, 1024> frees_;
  std::size_t count_ = 0;
};
DeferredFrees deferred;

std::optional<Freed> take_deferred(const Action& action) {
  const Lock locked;
  return action.type == Action::heap ? deferred.remove(action) : std::nullopt;
}

void report_freed(Actions actions) {
  if (!started()) return;
  for (const Action& action : actions)
    if (const std::optional<Freed> object = take_deferred(action)) object->report();
}

/// Words that are stored together with new objects are taken for what refers to them. The pool itself,
/// which stands for these words, is never new.
void report_new(const char* pool, Actions actions, const void* code) {
  const auto stores = [](const Action& action) { return action.type == Action::memory; };
  if (!started() || std::none_of(actions.begin(), actions.end(), stores)) return;
  for (const Action& action : actions)
    if (action.type == Action::heap)
      report_published(pool, pool + action.offset, action.bytes, code);
}

} // namespace

NEARFAR_EXPORT Object pmemobj_reserve(void* pool, Action* action, std::size_t bytes,
                                      std::uint64_t type) {
  static auto* const real = NEARFAR_NEXT(pmemobj_reserve);
  const Object object = real(pool, action, bytes, type);
  report_allocated(object, bytes, NEARFAR_CALLER);
  return object;
}
NEARFAR_EXPORT Object pmemobj_xreserve(void* pool, Action* action, std::size_t bytes,
                                       std::uint64_t type, std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_xreserve);
  const Object object = real(pool, action, bytes, type, flags);
  report_allocated(object, bytes, NEARFAR_CALLER);
  return object;
}
NEARFAR_EXPORT void pmemobj_defer_free(void* pool, Object object, Action* action) {
  static auto* const real = NEARFAR_NEXT(pmemobj_defer_free);
  real(pool, object, action);
  if (!started()) return;
  const Freed freed(object, NEARFAR_CALLER);
  const Lock locked;
  deferred.add(action, freed);
}

NEARFAR_EXPORT int pmemobj_publish(void* pool, Action* actions, std::size_t count) {
  static auto* const real = NEARFAR_NEXT(pmemobj_publish);
  const int failed = real(pool, actions, count);
  if (failed != 0) return failed;
  report_freed({actions, count});
  report_new(static_cast<const char*>(pool), {actions, count}, NEARFAR_CALLER);
  return failed;
}
/// The transaction frees and links.
NEARFAR_EXPORT int pmemobj_tx_publish(Action* actions, std::size_t count) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_publish);
  const int failed = real(actions, count);
  if (failed == 0) report_freed({actions, count});
  return failed;
}
NEARFAR_EXPORT int pmemobj_tx_xpublish(Action* actions, std::size_t count, std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_xpublish);
  const int failed = real(actions, count, flags);
  if (failed == 0) report_freed({actions, count});
  return failed;
}
/// What was reserved is free again; what was to be freed stays.
NEARFAR_EXPORT void pmemobj_cancel(void* pool, Action* actions, std::size_t count) {
  static auto* const real = NEARFAR_NEXT(pmemobj_cancel);
  real(pool, actions, count);
  if (!started()) return;
  for (const Action& action : Actions(actions, count))
    if (action.type == Action::heap && !take_deferred(action))
      report_use(Use::freed, static_cast<const char*>(pool) + action.offset, action.bytes,
                 NEARFAR_CALLER);
}
