// Errors returned by value.
//
// Purpose        Result<T> carries either a value or an Error; nothing in the core throws.
// Thread safety  values, no shared state.
// Freestanding   no exceptions, no std::string: libhmalloc uses this header too.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <new>
#include <utility>

namespace nearfar {

/// Kind of a failure; the command line turns it into an exit code.
enum class Errc : unsigned char {
  bad_input,     ///< an invalid request of the caller (exit 2)
  not_found,     ///< a path or device that was named is not there (exit 2)
  exists,        ///< a file that nearfar did not make is in the way (exit 2)
  no_permission, ///< the system refused (exit 3)
  no_space,      ///< not enough room in the file system or in memory (exit 3)
  unsupported,   ///< this machine cannot do it (exit 3)
  failed_check,  ///< a measurement failed its own check: checksum, pages, ceiling (exit 3)
  os_error,      ///< any other failed system call (exit 3)
};

/// One failure: what went wrong, and what to try next. Both are plain sentences without a full
/// stop.
struct Error {
  Errc code = Errc::os_error;
  int os_errno = 0; ///< errno of the failed call, 0 if no call failed
  char what[256] = "";
  char next[192] = "";

  [[gnu::format(printf, 2, 3)]] static Error make(Errc code, const char* format, ...) {
    Error error;
    error.code = code;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error.what, sizeof error.what, format, arguments);
    va_end(arguments);
    return error;
  }

  [[gnu::format(printf, 2, 3)]] Error& try_next(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(next, sizeof next, format, arguments);
    va_end(arguments);
    return *this;
  }
};

/// Either a T or an Error. Callers write `if (!result) return result.error();`.
template <class T>
class [[nodiscard]] Result {
public:
  Result(T value) : ok_(true) { new (&value_) T(std::move(value)); }
  Result(const Error& error) : ok_(false) { new (&error_) Error(error); }
  Result(Result&& other) noexcept : ok_(other.ok_) {
    if (ok_)
      new (&value_) T(std::move(other.value_));
    else
      new (&error_) Error(other.error_);
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&& other) noexcept {
    if (this == &other) return *this;
    this->~Result();
    return *new (this) Result(std::move(other));
  }
  ~Result() {
    if (ok_) value_.~T();
  }

  explicit operator bool() const { return ok_; }
  T& operator*() { return value_; }
  T* operator->() { return &value_; }
  const Error& error() const { return error_; }

private:
  bool ok_;
  union {
    T value_;
    Error error_;
  };
};

/// Value of functions that return nothing but may fail.
struct Done {};
using Status = Result<Done>;

} // namespace nearfar
