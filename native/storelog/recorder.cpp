#include "storelog/recorder.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace nearfar::storelog {

Recorder::Recorder(const void* pool, std::size_t bytes, Image image)
    : pool_(static_cast<const std::byte*>(pool)), image_(image) {
  log_.pool_bytes = bytes;
  restart();
}

void Recorder::restart() {
  log_.events.clear();
  log_.data.clear();
  if (image_ == Image::keep) log_.image.assign(pool_, pool_ + log_.pool_bytes);
}

std::uint16_t Recorder::thread_number() {
  // The address of its state identifies a running thread.
  const auto self = reinterpret_cast<std::uint64_t>(&thread_state);
  const auto number = std::find(threads_.begin(), threads_.end(), self) - threads_.begin();
  if (number == std::ssize(threads_)) threads_.push_back(self);
  return static_cast<std::uint16_t>(number);
}

bool Recorder::record(EventKind kind, const void* at, std::size_t bytes, Site site) {
  const std::lock_guard locked(mutex_);
  if (suppressed_ && suppressed_->kind == kind && suppressed_->site.place() == site.place() &&
      std::string_view(site.file()).ends_with(suppressed_->site.file()))
    return false;
  Event event{kind, thread_number(), 0, 0, 0, site};
  if (kind == EventKind::begin || kind == EventKind::end) {
    event.address = bytes;
  } else if (has_range(kind)) {
    const auto from = reinterpret_cast<std::uintptr_t>(at);
    const auto pool = reinterpret_cast<std::uintptr_t>(pool_);
    const std::uintptr_t first = std::max(from, pool);
    const std::uintptr_t last = std::min(from + bytes, pool + log_.pool_bytes);
    if (first >= last) return true;
    event.address = first - pool;
    event.bytes = static_cast<std::uint32_t>(last - first);
    if (kind == EventKind::store || kind == EventKind::nt_store) {
      event.data = log_.data.size();
      const std::byte* stored = pool_ + event.address;
      log_.data.insert(log_.data.end(), stored, stored + event.bytes);
    }
  }
  log_.events.push_back(event);
  return true;
}

} // namespace nearfar::storelog
