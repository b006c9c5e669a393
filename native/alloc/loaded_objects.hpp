// The program and its libraries, as a list that can be used without the loader's lock.
//
// Errors         the list is empty if memory is exhausted.
// Thread safety  a list is used by one thread. To be made without holding a lock of libhmalloc.
#pragma once

#include <cstddef>
#include <new>

#include "os/address_space.hpp"
#include "os/objects.hpp"

namespace nearfar::alloc {

class LoadedObjects {
public:
  LoadedObjects() {
    os::for_each_object([](const os::Object&, void* count) { ++*static_cast<std::size_t*>(count); },
                        &capacity_);
    // A mapping of its own, for signal handlers: the thread may hold the lock of metadata.
    memory_ = reinterpret_cast<os::Object*>(os::map_anonymous(capacity_ * sizeof(os::Object)));
    if (memory_ != nullptr) os::for_each_object(copy, this);
  }
  LoadedObjects(const LoadedObjects&) = delete;
  LoadedObjects& operator=(const LoadedObjects&) = delete;
  ~LoadedObjects() {
    if (memory_ != nullptr)
      os::unmap(reinterpret_cast<std::byte*>(memory_), capacity_ * sizeof(os::Object));
  }
  const os::Object* begin() const { return memory_; }
  const os::Object* end() const { return memory_ + count_; }

private:
  static void copy(const os::Object& object, void* context) {
    auto& self = *static_cast<LoadedObjects*>(context);
    if (self.count_ < self.capacity_) new (self.memory_ + self.count_++) os::Object(object);
  }

  std::size_t capacity_ = 0;
  std::size_t count_ = 0;
  os::Object* memory_ = nullptr;
};

} // namespace nearfar::alloc
