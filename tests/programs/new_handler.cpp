// operator new without free memory, with a handler that throws, one that gives up, and none.
#include <cstdio>
#include <initializer_list>
#include <new>

namespace {

constexpr std::size_t too_much = std::size_t{1} << 47;

int calls = 0;
void count_and_throw() {
  ++calls;
  throw std::bad_alloc();
}
void count_and_give_up() {
  if (++calls == 3) std::set_new_handler(nullptr);
}

const char* throwing(void* (*allocate)()) {
  try {
    return allocate() == nullptr ? "null" : "block";
  } catch (const std::bad_alloc&) {
    return "bad_alloc";
  }
}

void* plain() { return operator new(too_much); }
void* array() { return operator new[](too_much); }
void* aligned() { return operator new(too_much, std::align_val_t{64}); }
void* nothrow() { return operator new(too_much, std::nothrow); }
void* nothrow_array() { return operator new[](too_much, std::nothrow); }
void* nothrow_aligned() { return operator new(too_much, std::align_val_t{64}, std::nothrow); }

} // namespace

int main() {
  for (const std::new_handler handler :
       {std::new_handler{nullptr}, std::new_handler{count_and_throw},
        std::new_handler{count_and_give_up}})
    for (const auto allocate : {plain, array, aligned, nothrow, nothrow_array, nothrow_aligned}) {
      std::set_new_handler(handler);
      calls = 0;
      const char* result = throwing(allocate);
      std::printf("%s %d\n", result, calls);
    }
  return 0;
}
