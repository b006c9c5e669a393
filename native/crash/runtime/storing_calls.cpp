#include "crash/runtime/storing_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

#include "crash/runtime/page_rights.hpp"
#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

namespace {

/// The bytes that a call can store there, within memory of the pool with the same right.
std::size_t most_bytes(const Output& output, const Words& given, const RecordedRegion& region) {
  const auto* const at = static_cast<const char*>(pointer(given[output.argument]));
  const long count = output.count == Output::none ? 1 : given[output.count];
  std::size_t bytes = output.head + static_cast<std::size_t>(count) * output.item_bytes;
  if (output.stored == Output::Stored::sized)
    bytes = count == 0 ? 0 : *static_cast<const socklen_t*>(pointer(count));
  return same_right(region, at, bytes);
}

/// The bytes that a call has stored which returned `done`, if that is known.
std::size_t stored_bytes(const Output& output, const Words& given, long done, std::size_t most) {
  const int result = static_cast<int>(done); // that of a function may be an int
  if (result == -1) return 0;
  const void* const at = pointer(given[output.argument]);
  switch (output.stored) {
  case Output::Stored::all: return most;
  case Output::Stored::returned:
    return std::min(most, output.head + static_cast<std::size_t>(result) * output.item_bytes);
  case Output::Stored::sized:
    return std::min<std::size_t>(most,
                                 *static_cast<const socklen_t*>(pointer(given[output.count])));
  case Output::Stored::text: return std::min(most, strnlen(static_cast<const char*>(at), most) + 1);
  case Output::Stored::changed: return 0;
  }
  return 0;
}

/// What a call has changed, by a copy of what was there before.
void report_difference(const char* at, std::span<const char> before, const void* code) {
  std::size_t first = 0, last = before.size();
  while (first < last && at[first] == before[first])
    ++first;
  while (last > first && at[last - 1] == before[last - 1])
    --last;
  if (last > first) report_store(EventKind::store, at + first, last - first, code);
}

} // namespace

StoringCall::StoringCall(const Words& given, std::span<const Output> outputs, const void* code)
    : given_(given), own_(given), outputs_(outputs), code_(code) {
  if (regions.count == 0) return;
  settle_stores();
  for (const Output& output : outputs) {
    const std::size_t i = output.argument;
    const long at = given[i];
    const RecordedRegion* const region = region_of(pointer(at));
    if (region == nullptr) continue;
    most_[i] = most_bytes(output, given, *region);
    if (char* const alias = writable(const_cast<void*>(pointer(at)), most_[i]); alias != nullptr)
      own_[i] = as_word(alias);
    if (output.stored == Output::Stored::changed && seen == Seen::callbacks) keep(i);
  }
}

/// Code with callbacks has no pages that are compared.
void StoringCall::keep(std::size_t i) {
  const std::size_t bytes = std::min(most_[i], sizeof memory_ - used_);
  std::memcpy(memory_ + used_, pointer(given_[i]), bytes);
  before_[i] = {memory_ + used_, bytes};
  used_ += bytes;
}

long StoringCall::finish(long done, const char* name) const {
  if (regions.count == 0) return done;
  if (static_cast<int>(done) == -1) note_if_refused(name);
  for (const Output& output : outputs_)
    record(output, done);
  for (std::size_t i = 0; i < own_.size(); ++i)
    if (own_[i] != given_[i] && done == own_[i]) return given_[i]; // as of getcwd()
  return done;
}

void StoringCall::record(const Output& output, long done) const {
  const std::size_t i = output.argument;
  if (own_[i] == given_[i]) return;
  const void* const at = pointer(given_[i]);
  if (output.stored != Output::Stored::changed)
    report_store(EventKind::store, at, stored_bytes(output, given_, done, most_[i]), code_);
  else if (seen == Seen::callbacks)
    report_difference(static_cast<const char*>(at), before_[i], code_);
  else
    report_changed(at, most_[i], code_);
}

/// Of a call that has failed: that can be because it stores to pages that the recorder has made read-only.
void StoringCall::note_if_refused(const char* name) const {
  if (errno != EFAULT || seen != Seen::faults) return;
  for (const long one : given_)
    if (region_of(pointer(one)) != nullptr) note_refused_call(name);
  errno = EFAULT;
}

} // namespace nearfar::crash::runtime
