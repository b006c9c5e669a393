// The explorer's ears: every read and write of the structures under test, which are compiled with
// -fsanitize=thread, asks the arena. This file itself is compiled without instrumentation.
#include <cstddef>

#include "crash/arena.hpp"

namespace {

inline void on_init() {}
inline void on_read(const void* at, std::size_t bytes, const void*) {
  nearfar::crash::on_read(at, bytes);
}
inline void on_write(const void* at, std::size_t bytes, const void*) {
  nearfar::crash::on_write(at, bytes);
}
template <class Operation>
void on_atomic(const void* at, std::size_t bytes, const void* code, const Operation& operation) {
  on_write(at, bytes, code);
  operation();
}

} // namespace

#include "trace/instrumented/callbacks.hpp"
#include "trace/instrumented/wrapped_calls.hpp"
