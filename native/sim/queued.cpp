#include "sim/queued.hpp"

#include <bit>

namespace nearfar::sim {

namespace {

constexpr unsigned max_ways = 64;
constexpr std::uint64_t unbuffered = 64; ///< units that wait for the medium without a buffer

Time service(std::uint64_t bytes, double bytes_per_s) {
  return static_cast<Time>(static_cast<double>(bytes) / bytes_per_s * 1e12);
}

} // namespace

QueuedMemory::QueuedMemory(const Queued& queued)
    : queued_(queued), read_use_(use_of(queued.unit_bytes, queued.read_bytes_per_s)),
      write_use_(use_of(queued.unit_bytes, queued.write_bytes_per_s)),
      line_use_(use_of(line_bytes, queued.read_bytes_per_s)), slack_(0) {
  const std::uint64_t held =
      queued.buffers.empty() ? unbuffered * queued.unit_bytes : queued.buffers[0].bytes;
  slack_ = std::max<std::uint64_t>(held / queued.unit_bytes, 1) * write_use_.own;
}

QueuedMemory::Use QueuedMemory::use_of(std::uint64_t bytes, double bytes_per_s) const {
  const Time own = service(bytes, bytes_per_s);
  const double both = queued_.both_bytes_per_s;
  return {own, both > 0 ? service(bytes, both) : own};
}

Result<QueuedMemory> QueuedMemory::create(const Device& device) {
  QueuedMemory made(device.queued);
  for (const Buffer& buffer : device.queued.buffers) {
    const std::uint64_t entries = buffer.bytes / buffer.entry_bytes;
    const auto ways = static_cast<unsigned>(std::min<std::uint64_t>(entries, max_ways));
    Result<cache::Cache> tags = cache::Cache::create({entries * line_bytes, ways, line_bytes});
    if (!tags) return tags.error();
    const auto shift = static_cast<unsigned>(std::countr_zero(buffer.entry_bytes)) - line_shift;
    made.levels_.push_back({std::move(*tags), shift, buffer.latency});
  }
  return made;
}

Time QueuedMemory::occupy(Time at, Time& direction_free, Use use) {
  const Time shared = std::max(at, shared_);
  shared_ = shared + use.shared;
  const Time begin = std::max(shared, direction_free);
  direction_free = begin + use.own;
  return begin;
}

Time QueuedMemory::serve(Time at, std::uint64_t line, bool is_write) {
  return is_write ? write(at, line) : read(at, line);
}

Time QueuedMemory::read(Time at, std::uint64_t line) {
  ++activity_.reads;
  std::size_t level = 0;
  while (level < levels_.size() && !levels_[level].tags.touch(line >> levels_[level].shift, false))
    ++level;
  for (std::size_t i = 0; i < level; ++i) {
    const cache::Victim victim = levels_[i].tags.fill(line >> levels_[i].shift, false);
    if (i == 0 && victim.present && victim.dirty) occupy(at, writes_, write_use_);
  }
  const bool buffered = level < levels_.size();
  activity_.buffer_hits += buffered;
  const bool innermost = level == 0 && buffered;
  const Time begin = occupy(at, reads_, innermost ? line_use_ : read_use_);
  return begin + (buffered ? levels_[level].latency : queued_.read_latency);
}

Time QueuedMemory::write(Time at, std::uint64_t line) {
  ++activity_.writes;
  if (levels_.empty()) {
    occupy(at, writes_, write_use_);
  } else if (Level& inner = levels_[0]; !inner.tags.touch(line >> inner.shift, true)) {
    const cache::Victim victim = inner.tags.fill(line >> inner.shift, true);
    if (victim.present && victim.dirty) occupy(at, writes_, write_use_);
  }
  const Time busy = std::max(writes_, shared_);
  const Time ahead = busy > slack_ ? busy - slack_ : 0;
  return std::max(at, ahead) + queued_.write_latency;
}

} // namespace nearfar::sim
