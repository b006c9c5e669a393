#include "inspect/findings.hpp"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace nearfar::inspect {

namespace {

constexpr std::size_t longest_text = 320;

} // namespace

void Findings::keep(Severity severity, const char* part, Offset offset, const char* format,
                    std::va_list arguments) {
  ++(severity == Severity::damage ? damage_ : notes_);
  if (kept_.size() >= kept_at_most) return;
  char text[longest_text];
  std::vsnprintf(text, sizeof text, format, arguments);
  kept_.push_back({severity, part, offset, text});
}

void Findings::damage(const char* part, Offset offset, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  keep(Severity::damage, part, offset, format, arguments);
  va_end(arguments);
}

void Findings::note(const char* part, Offset offset, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  keep(Severity::note, part, offset, format, arguments);
  va_end(arguments);
}

void Findings::unreadable(const char* part, Offset offset, std::size_t bytes) {
  damage(part, offset, "%zu bytes cannot be read here: the file ends, or was cut while it was read",
         bytes);
}

} // namespace nearfar::inspect
