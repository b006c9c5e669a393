#include "inspect/findings.hpp"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace nearfar::inspect {

namespace {

constexpr std::size_t longest_text = 320;

} // namespace

void Findings::keep(Severity severity, const char* part, Offset offset, const char* text) {
  ++(severity == Severity::damage ? damage_ : notes_);
  if (kept_.size() < kept_at_most) kept_.push_back({severity, part, offset, text});
}

void Findings::damage(const char* part, Offset offset, const char* format, ...) {
  char text[longest_text];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  keep(Severity::damage, part, offset, text);
}

void Findings::note(const char* part, Offset offset, const char* format, ...) {
  char text[longest_text];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  keep(Severity::note, part, offset, text);
}

void Findings::unreadable(const char* part, Offset offset, std::size_t bytes) {
  damage(part, offset, "%zu bytes cannot be read here: the file ends, or was cut while it was read",
         bytes);
}

} // namespace nearfar::inspect
