// Stacks of the program that lie in the pool: the kernel puts the frame of a fault on the stack, which it
// cannot where pages are read-only, so that the first store would end the program. Stacks that assembly
// switches to are not seen here (on_fault() in faults.cpp is not reached then).
#include <csignal>
#include <dlfcn.h>
#include <pthread.h>
#include <ucontext.h>

#include "crash/runtime/recording.hpp"
#include "crash/runtime/replaced.hpp"
#include "crash/runtime/stacks.hpp"
#include "crash/runtime/storing_calls.hpp"

namespace nearfar::crash::runtime {

namespace {

void refuse_stack(const void* in_stack) {
  if (seen != Seen::faults || regions.count == 0 || region_of(in_stack) == nullptr) return;
  end_recording("a stack of the program lies in the pool: use other memory for it");
}

} // namespace

void refuse_stack_of(const pthread_attr_t* attributes) {
  void* low = nullptr;
  std::size_t bytes = 0;
  if (attributes != nullptr && pthread_attr_getstack(attributes, &low, &bytes) == 0)
    refuse_stack(low);
}

} // namespace nearfar::crash::runtime

using namespace nearfar::crash::runtime;

namespace {

void refuse_stack_of(const ucontext_t* context) {
  if (context != nullptr)
    refuse_stack(reinterpret_cast<const void*>(context->uc_mcontext.gregs[REG_RSP]));
}

} // namespace

NEARFAR_EXPORT int swapcontext(ucontext_t* from, const ucontext_t* to) noexcept {
  static auto* const real = next<int(ucontext_t*, const ucontext_t*)>("swapcontext");
  refuse_stack_of(to);
  return real(from, to);
}
NEARFAR_EXPORT int setcontext(const ucontext_t* to) noexcept {
  static auto* const real = next<int(const ucontext_t*)>("setcontext");
  refuse_stack_of(to);
  return real(to);
}
NEARFAR_EXPORT int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  static auto* const real = next<int(const stack_t*, stack_t*)>("sigaltstack");
  if (stack != nullptr && (stack->ss_flags & SS_DISABLE) == 0) refuse_stack(stack->ss_sp);
  static constexpr Output earlier[] = {item(1, sizeof *before)};
  const StoringCall call({as_word(stack), as_word(before)}, earlier, NEARFAR_CALLER);
  const int done = real(stack, reinterpret_cast<stack_t*>(call.words()[1]));
  return static_cast<int>(call.finish(done, "sigaltstack()"));
}
