#include "alloc/trouble.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "alloc/heap.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

constinit char shared_report[sizeof Cache::error] = ""; // of threads without a cache

char* report_buffer() {
  if (tiers[0].ready()) open_cache(0);
  return own_cache() ? this_cache->error : shared_report;
}

void say_arguments(const char* format, va_list arguments) {
  constexpr int standard_error = 2;
  char text[512] = "libhmalloc: ";
  const std::size_t head = std::strlen(text);
  std::vsnprintf(text + head, sizeof text - head - 1, format, arguments);
  std::strcat(text, "\n");
  os::write_all(standard_error, text, std::strlen(text));
}

const char* name_of(const void* ptr) { return tiers[tier_of(ptr)].name; }

[[noreturn, gnu::format(printf, 1, 2)]] void end(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_arguments(format, arguments);
  va_end(arguments);
  os::abort_process();
}

[[noreturn]] void misuse_of_slab(const char* call, const void* ptr, const Span& span) {
  Slab* slab = reinterpret_cast<Slab*>(span.word.load(std::memory_order_relaxed)) - 1;
  const std::size_t bytes = class_infos[slab->size_class].bytes;
  const auto inside = static_cast<std::size_t>(static_cast<const std::byte*>(ptr) - slab->start);
  const std::size_t index = inside / bytes;
  if (index >= slab->blocks)
    end("%s(%p): the pointer is of tier %s, where no block was ever allocated", call, ptr,
        name_of(ptr));
  if (inside % bytes != 0)
    end("%s(%p): the pointer is %zu bytes inside a block of %zu bytes that begins at %p, tier %s",
        call, ptr, inside % bytes, bytes, static_cast<const void*>(slab->start + index * bytes),
        name_of(ptr));
  end("%s(%p): the block of %zu bytes is free already (double free, or never allocated), tier %s",
      call, ptr, bytes, name_of(ptr));
}

} // namespace

void report(int code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(report_buffer(), sizeof Cache::error, format, arguments);
  va_end(arguments);
  errno = code;
}

void report(const Error& error) {
  const int code = errno_of(error);
  std::snprintf(report_buffer(), sizeof Cache::error, error.next[0] != '\0' ? "%s; %s" : "%s%s",
                error.what, error.next);
  errno = code;
}

const char* last_report() { return report_buffer(); }

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

void misuse(const char* call, const void* ptr) {
  const std::uintptr_t offset = offset_of(ptr);
  if (geometry.base == 0 || !inside_window(offset))
    end("%s(%p): the pointer is not from this library", call, ptr);
  const Span& span = geometry.spans[offset >> span_shift];
  switch (static_cast<SpanKind>(span.kind.load(std::memory_order_relaxed))) {
  case SpanKind::slab: misuse_of_slab(call, ptr, span);
  case SpanKind::large:
    end("%s(%p): the pointer is %zu bytes inside a large block, tier %s", call, ptr,
        static_cast<std::size_t>(offset & (span_bytes - 1)), name_of(ptr));
  default:
    end("%s(%p): the pointer is of tier %s, where no block begins (double free, or never "
        "allocated)",
        call, ptr, name_of(ptr));
  }
}

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say_arguments(format, arguments);
  va_end(arguments);
}

} // namespace nearfar::alloc
