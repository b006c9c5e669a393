// Calls of libpmemobj by which a program says what a transaction may overwrite: where one begins and
// ends, ranges that it snapshots, and objects that it allocates. They are recorded and passed on; a
// store to anything else within a transaction is one that was not logged.
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "crash/runtime/libpmemobj.hpp"
#include "crash/runtime/recording.hpp"

using namespace nearfar::crash::runtime;

namespace {

// enum pobj_tx_stage (libpmemobj/tx_base.h).
constexpr int stage_none = 0, stage_work = 1, stage_on_abort = 3;

int (*stage_now)() = nullptr;   ///< pmemobj_tx_stage(), once a transaction has begun
int (*error_now)() = nullptr;   ///< pmemobj_tx_errno()
thread_local int depth = 0;     ///< transactions that this thread is in, nested ones counted
thread_local bool open = false; ///< the log says that one has begun, and not that it has ended

void record_range(const void* at, std::size_t bytes, const void* code) {
  if (started() && at != nullptr) report(EventKind::log, at, bytes, code);
}
void record_range(Object object, std::uint64_t into, std::size_t bytes, const void* code) {
  if (!started()) return;
  if (char* const start = address_of(object, code); start != nullptr)
    record_range(start + into, bytes, code);
}

void record_new(Object object, std::size_t bytes, const void* code) {
  record_range(object, 0, bytes, code);
  if (started()) report_object(address_of(object, code), bytes, true);
}

void end_transaction(const void* code) {
  if (!open) return;
  open = false;
  int error = error_now();
  if (error == 0 && stage_now() == stage_on_abort)
    error = ECANCELED; // it rolls back at this moment
  report(EventKind::tx_end, nullptr, static_cast<std::size_t>(error), code);
}

} // namespace

namespace nearfar::crash::runtime {

void settle_transaction(const void* code) {
  if (!open || depth > 1) return;
  // No stage: it is about to begin, or pmemobj_tx_end() is about to be called.
  if (const int now = stage_now(); now != stage_none && now != stage_work) end_transaction(code);
}

} // namespace nearfar::crash::runtime

/// Records the beginning of a transaction, and returns the library's function.
extern "C" [[gnu::used]] void* nearfar_transaction_begins(const void* code) {
  static void* const real = require_in_libpmemobj("pmemobj_tx_begin", code);
  if (stage_now == nullptr) { // not where they are called: a look-up stores, too
    error_now = next<int()>("pmemobj_tx_errno", code);
    stage_now = next<int()>("pmemobj_tx_stage", code);
  }
  if (depth++ == 0 && started()) {
    report(EventKind::tx_begin, nullptr, 0, code);
    open = true;
  }
  return real;
}

// Any number of arguments: they stay where they are, and the library's function is jumped to.
asm(R"(
  .text
  .globl pmemobj_tx_begin
  .type pmemobj_tx_begin, @function
pmemobj_tx_begin:
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  mov 56(%rsp), %rdi
  call nearfar_transaction_begins
  mov %rax, %r11
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  jmp *%r11
  .size pmemobj_tx_begin, . - pmemobj_tx_begin
)");

// The last stores before these are a part of the transaction.
NEARFAR_EXPORT void pmemobj_tx_process() {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_process);
  settle_stores();
  real();
}
NEARFAR_EXPORT void pmemobj_tx_commit() {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_commit);
  settle_stores();
  real();
}
NEARFAR_EXPORT void pmemobj_tx_abort(int error) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_abort);
  settle_stores();
  real(error);
}

/// May not return: the end of a nested transaction that was aborted aborts the one around it, which
/// goes on where that began (longjmp).
NEARFAR_EXPORT int pmemobj_tx_end() {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_end);
  settle_stores();
  if (depth == 1) end_transaction(NEARFAR_CALLER);
  if (depth > 0) --depth;
  return real();
}

NEARFAR_EXPORT int pmemobj_tx_add_range(Object object, std::uint64_t into, std::size_t bytes) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_add_range);
  record_range(object, into, bytes, NEARFAR_CALLER);
  return real(object, into, bytes);
}
NEARFAR_EXPORT int pmemobj_tx_xadd_range(Object object, std::uint64_t into, std::size_t bytes,
                                         std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_xadd_range);
  record_range(object, into, bytes, NEARFAR_CALLER);
  return real(object, into, bytes, flags);
}
NEARFAR_EXPORT int pmemobj_tx_add_range_direct(const void* at, std::size_t bytes) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_add_range_direct);
  record_range(at, bytes, NEARFAR_CALLER);
  return real(at, bytes);
}
NEARFAR_EXPORT int pmemobj_tx_xadd_range_direct(const void* at, std::size_t bytes,
                                                std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_xadd_range_direct);
  record_range(at, bytes, NEARFAR_CALLER);
  return real(at, bytes, flags);
}

#define NEARFAR_ALLOCATION(name)                                                                   \
  NEARFAR_EXPORT Object name(std::size_t bytes, std::uint64_t type) {                              \
    static auto* const real = NEARFAR_NEXT(name);                                                  \
    const Object made = real(bytes, type);                                                         \
    record_new(made, bytes, NEARFAR_CALLER);                                                       \
    return made;                                                                                   \
  }
NEARFAR_ALLOCATION(pmemobj_tx_alloc)
NEARFAR_ALLOCATION(pmemobj_tx_zalloc)
#undef NEARFAR_ALLOCATION

NEARFAR_EXPORT Object pmemobj_tx_xalloc(std::size_t bytes, std::uint64_t type,
                                        std::uint64_t flags) {
  static auto* const real = NEARFAR_NEXT(pmemobj_tx_xalloc);
  const Object made = real(bytes, type, flags);
  record_new(made, bytes, NEARFAR_CALLER);
  return made;
}

// The library frees the old object by a call of its own.
#define NEARFAR_REALLOCATION(name)                                                                 \
  NEARFAR_EXPORT Object name(Object object, std::size_t bytes, std::uint64_t type) {               \
    static auto* const real = NEARFAR_NEXT(name);                                                  \
    const Freed freed(object, NEARFAR_CALLER);                                                     \
    const Object made = real(object, bytes, type);                                                 \
    if (made.offset != 0 && made.offset != object.offset) freed.report();                          \
    record_new(made, bytes, NEARFAR_CALLER);                                                       \
    return made;                                                                                   \
  }
NEARFAR_REALLOCATION(pmemobj_tx_realloc)
NEARFAR_REALLOCATION(pmemobj_tx_zrealloc)
#undef NEARFAR_REALLOCATION
