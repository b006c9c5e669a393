#include "alloc/diagnostics.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "alloc/allocator.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

constinit char shared_error[sizeof ThreadCache::error] = ""; // of threads without a cache

char* error_buffer() {
  if (process_allocator.tiers[0].ready()) process_allocator.open_stacks(0);
  return this_thread_cache->is_owned() ? this_thread_cache->error : shared_error;
}

void log_arguments(const char* format, va_list arguments) {
  constexpr int standard_error = 2;
  char text[512] = "libhmalloc: ";
  const std::size_t head = std::strlen(text);
  std::vsnprintf(text + head, sizeof text - head - 1, format, arguments);
  std::strcat(text, "\n");
  os::write_all(standard_error, text, std::strlen(text));
}

[[noreturn, gnu::format(printf, 1, 2)]] void log_and_abort(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_arguments(format, arguments);
  va_end(arguments);
  os::abort_process();
}

[[noreturn]] void abort_on_pointer_into_slab(const char* call, const void* ptr, const Span& span,
                                             const char* tier) {
  Slab* slab = slab_of(span);
  const std::size_t bytes = class_infos[slab->size_class].bytes;
  const auto inside = static_cast<std::size_t>(static_cast<const std::byte*>(ptr) - slab->start);
  const std::size_t index = inside / bytes;
  if (index >= slab->blocks)
    log_and_abort("%s(%p): the pointer is behind all blocks of a slab, tier %s", call, ptr, tier);
  if (inside % bytes != 0)
    log_and_abort("%s(%p): the pointer is %zu bytes inside a block of %zu bytes that begins at %p, "
                  "tier %s",
                  call, ptr, inside % bytes, bytes,
                  static_cast<const void*>(slab->start + index * bytes), tier);
  log_and_abort("%s(%p): the block of %zu bytes is free already (double free, or never allocated), "
                "tier %s",
                call, ptr, bytes, tier);
}

} // namespace

void set_error(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(error_buffer(), sizeof ThreadCache::error, format, arguments);
  va_end(arguments);
  errno = code;
}

void set_error(const Error& error) {
  const int code = errno_of(error);
  std::snprintf(error_buffer(), sizeof ThreadCache::error,
                error.next[0] != '\0' ? "%s; %s" : "%s%s", error.what, error.next);
  errno = code;
}

void set_invalid_tier(int tier) {
  set_error(EINVAL, "invalid tier %d: tiers are numbered 0 to %u", tier, tier_count - 1);
}

void set_no_window() {
  set_error(ENOMEM, "this process has no address space for the window of tiers");
}

const char* last_error() { return error_buffer(); }

int errno_of(const Error& error) {
  switch (error.code) {
  case Errc::bad_input: return EINVAL;
  case Errc::not_found: return ENOENT;
  case Errc::exists: return EEXIST;
  case Errc::no_permission: return EACCES;
  case Errc::no_space: return ENOSPC;
  case Errc::unsupported: return ENODEV;
  case Errc::failed_check:
  case Errc::os_error: break;
  }
  return error.os_errno != 0 ? error.os_errno : EIO;
}

void abort_on_invalid_pointer(const Allocator& allocator, const char* call, const void* ptr) {
  const Window& window = allocator.window;
  if (!window.contains(ptr))
    log_and_abort("%s(%p): the pointer is not from this library", call, ptr);
  const Span& span = window.span_of(ptr);
  const char* tier = allocator.tiers[window.tier_of(ptr)].name();
  switch (span.kind()) {
  case SpanKind::slab:
  case SpanKind::arena_slab: abort_on_pointer_into_slab(call, ptr, span, tier);
  case SpanKind::large:
    log_and_abort("%s(%p): the pointer is %zu bytes inside a large block, tier %s", call, ptr,
                  static_cast<std::size_t>(window.offset_of(ptr) & (span_bytes - 1)), tier);
  default:
    log_and_abort("%s(%p): no block begins at the pointer (double free, or never allocated), tier "
                  "%s",
                  call, ptr, tier);
  }
}

void abort_on_overflow(const Allocator& allocator, const char* call, const void* block,
                       std::size_t bytes) {
  log_and_abort("%s(%p): memory behind the size of the block was overwritten (block of %zu bytes, "
                "tier %s)",
                call, block, bytes, allocator.tiers[allocator.window.tier_of(block)].name());
}

void abort_on_wrong_size(const void* block, std::size_t size, std::size_t requested) {
  log_and_abort("free(%p): the block is freed with the size %zu, but was allocated with %zu", block,
                size, requested);
}

void abort_on_late_write(const Allocator& allocator, const void* block, std::size_t bytes) {
  log_and_abort("a block was written after it was freed: %p, %zu bytes, tier %s", block, bytes,
                allocator.tiers[allocator.window.tier_of(block)].name());
}

void log_error(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_arguments(format, arguments);
  va_end(arguments);
}

} // namespace nearfar::alloc
