// Calls of libpmemobj by which objects are reserved, or are to be freed, and are so when a list of such
// actions is published. They are recorded as the program's own, and passed on.
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
  std::uint64_t more[13];
};

namespace {

using Actions = std::span<const Action>;

/// An object of an action.
struct ActionObject {
  std::uint64_t offset = 0;
  const char* at = nullptr;
  std::size_t bytes = 0;
  Freed freed; ///< what a deferred free frees
  bool frees = false;
  bool is_linked = false; ///< a word with its offset is stored with it
};

/// Objects of actions that are neither published nor canceled: nothing in an action says what it does.
/// What has no room is not judged as new or freed. All threads.
class ActionObjects {
public:
  void add(const ActionObject& object) {
    const Lock locked;
    if (count_ < objects_.size()) objects_[count_++] = object;
  }
  void link(std::uint64_t offset) {
    const Lock locked;
    for (std::size_t i = 0; i < count_; ++i)
      if (objects_[i].offset == offset) objects_[i].is_linked = true;
  }
  std::optional<ActionObject> remove(const Action& action) {
    const Lock locked;
    for (std::size_t i = 0; i < count_; ++i)
      if (action.type == Action::heap && objects_[i].offset == action.offset) {
        const ActionObject object = objects_[i];
        objects_[i] = objects_[--count_];
        return object;
      }
    return {};
  }

private:
  std::array<ActionObject, 1024> objects_;
  std::size_t count_ = 0;
};
ActionObjects pending;

/// Calls visit(object) for each that was reserved; those that were to be freed are freed now.
template <class Visit>
void publish(Actions actions, const Visit& visit) {
  if (!started()) return;
  for (const Action& action : actions) {
    const std::optional<ActionObject> object = pending.remove(action);
    if (object && object->frees)
      object->freed.report();
    else if (object)
      visit(*object);
  }
}

/// The transaction frees, and links what was reserved.
void publish_in_transaction(Actions actions, const void* code) {
  publish(actions, [&](const ActionObject& object) {
    report_use(Use::of_transaction, object.at, object.bytes, code);
  });
}

Object reserved(Object object, std::size_t bytes, const void* code) {
  if (char* const at = report_allocated(object, bytes, code); at != nullptr)
    pending.add({object.offset, at, bytes, {}, false, false});
  return object;
}

} // namespace

NEARFAR_EXPORT Object pmemobj_reserve(void* pool, Action* action, std::size_t bytes,
                                      std::uint64_t type) {
  static auto* const real = NEARFAR_NEXT(pmemobj_reserve);
  return reserved(real(pool, action, bytes, type), bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT Object pmemobj_xreserve(void* pool, Action* action, std::size_t bytes,
                                       std::uint64_t type, std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_xreserve);
  return reserved(real(pool, action, bytes, type, flags), bytes, NEARFAR_CALLER);
}
NEARFAR_EXPORT void pmemobj_defer_free(void* pool, Object object, Action* action) {
  static auto* const real = NEARFAR_NEXT(pmemobj_defer_free);
  real(pool, object, action);
  if (started()) pending.add({object.offset, nullptr, 0, {object, NEARFAR_CALLER}, true, false});
}

NEARFAR_EXPORT void pmemobj_set_value(void* pool, Action* action, std::uint64_t* at,
                                      std::uint64_t value) {
  static auto* const real = NEARFAR_NEXT(pmemobj_set_value);
  real(pool, action, at, value);
  if (started()) pending.link(value);
}

/// The pool itself, which stands for the word that refers to an object, is never new.
NEARFAR_EXPORT int pmemobj_publish(void* pool, Action* actions, std::size_t count) {
  static auto* const real = NEARFAR_NEXT(pmemobj_publish);
  const int failed = real(pool, actions, count);
  if (failed != 0) return failed;
  publish({actions, count}, [&](const ActionObject& object) {
    if (object.is_linked) report_published(pool, object.at, object.bytes, NEARFAR_CALLER);
  });
  return failed;
}
NEARFAR_EXPORT int pmemobj_tx_publish(Action* actions, std::size_t count) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_publish);
  const int failed = real(actions, count);
  if (failed == 0) publish_in_transaction({actions, count}, NEARFAR_CALLER);
  return failed;
}
NEARFAR_EXPORT int pmemobj_tx_xpublish(Action* actions, std::size_t count, std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_xpublish);
  const int failed = real(actions, count, flags);
  if (failed == 0) publish_in_transaction({actions, count}, NEARFAR_CALLER);
  return failed;
}
/// What was reserved is free again; what was to be freed stays.
NEARFAR_EXPORT void pmemobj_cancel(void* pool, Action* actions, std::size_t count) {
  static auto* const real = NEARFAR_NEXT(pmemobj_cancel);
  real(pool, actions, count);
  if (!started()) return;
  for (const Action& action : Actions(actions, count))
    if (const std::optional<ActionObject> object = pending.remove(action); object && !object->frees)
      report_use(Use::freed, object->at, object->bytes, NEARFAR_CALLER);
}
