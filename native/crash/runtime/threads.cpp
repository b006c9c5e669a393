// Threads and processes that the program creates. Children of fork() are in recording.cpp.
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>

#include "crash/runtime/recording.hpp"
#include "crash/runtime/stacks.hpp"
#include "crash/runtime/turns.hpp"

namespace nearfar::crash::runtime {

namespace {

/// Its destructor runs when the thread ends, in whatever way, after those of the program.
struct ThreadEnd {
  ThreadEnd() = default;
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;
  ~ThreadEnd() {
    end_callbacks_of_thread();
    turn_at_thread_end();
  }
};
thread_local ThreadEnd at_thread_end;

struct Created {
  void* (*start)(void*);
  void* argument;
  NumberedThread number;
};

void* run_created(void* context) {
  auto* const made = static_cast<Created*>(context);
  const Created what = *made;
  delete made;
  turn_at_thread_start(what.number);
  begin_callbacks_of_thread();
  [[maybe_unused]] const ThreadEnd& registered = at_thread_end;
  return what.start(what.argument);
}

} // namespace

} // namespace nearfar::crash::runtime

using namespace nearfar::crash::runtime;

extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*start)(void*),
                                                             void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const real = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  settle_stores();
  refuse_stack_of(attributes);
  if (!has_turns() && (!started() || seen != Seen::callbacks))
    return real(thread, attributes, start, argument);
  auto* const made = new Created{start, argument, number_thread()};
  const int error = real(thread, attributes, run_created, made);
  if (error != 0) delete made;
  return error;
}

#define NEARFAR_SPAWN(name)                                                                        \
  extern "C" [[gnu::visibility("default")]] int name(                                              \
      pid_t* process, const char* program, const posix_spawn_file_actions_t* actions,              \
      const posix_spawnattr_t* attributes, char* const words[],                                    \
      char* const environment[]) noexcept {                                                        \
    static auto* const real = reinterpret_cast<decltype(&::name)>(dlsym(RTLD_NEXT, #name));        \
    settle_stores();                                                                               \
    expect_child();                                                                                \
    return real(process, program, actions, attributes, words, environment);                        \
  }
NEARFAR_SPAWN(posix_spawn)
NEARFAR_SPAWN(posix_spawnp)
#undef NEARFAR_SPAWN
