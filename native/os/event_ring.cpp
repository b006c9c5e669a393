#include "os/event_ring.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nearfar::os {

namespace {

constexpr std::size_t page_size = 4096;

Error why(int error) {
  switch (error) {
  case EACCES:
  case EPERM:
    return Error::make(Errc::no_permission, "the kernel refuses samples of this process")
        .try_next("set kernel.perf_event_paranoid to at most 2, or start the program under "
                  "`nearfar advise -- PROGRAM`, which can sample by signals");
  case ENOENT:
  case ENOSYS:
  case EOPNOTSUPP:
    return Error::make(Errc::unsupported, "this kernel has no such samples: %s",
                       std::strerror(error))
        .try_next("use --emulate");
  default: return Error::make(Errc::os_error, "perf_event_open: %s", std::strerror(error));
  }
}

Error refused(int error) {
  Error made = why(error);
  made.os_errno = error;
  return made;
}

Result<File> open_event(perf_event_attr attributes, pid_t thread, int cpu) {
  attributes.size = sizeof attributes;
  const long fd = syscall(SYS_perf_event_open, &attributes, thread, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return refused(errno);
  return File(static_cast<int>(fd));
}

} // namespace

EventRing::EventRing(EventRing&& other) noexcept
    : events_(std::move(other.events_)), ids_(std::move(other.ids_)),
      page_(std::exchange(other.page_, nullptr)), mapped_bytes_(other.mapped_bytes_),
      joined_(std::move(other.joined_)) {}

EventRing::~EventRing() {
  if (page_ != nullptr) munmap(page_, mapped_bytes_);
}

Result<EventRing> EventRing::open(std::span<const perf_event_attr> events, pid_t thread, int cpu) {
  EventRing ring;
  Status opened = ring.add(events, thread, cpu);
  if (!opened) return opened.error();
  return ring;
}

Status EventRing::add(std::span<const perf_event_attr> events, pid_t thread, int cpu) {
  for (const perf_event_attr& attributes : events) {
    Result<File> event = open_event(attributes, thread, cpu);
    if (!event) return event.error();
    if (page_ == nullptr) {
      Status mapped = map(*event);
      if (!mapped) return mapped.error();
    } else if (ioctl(event->fd(), PERF_EVENT_IOC_SET_OUTPUT, events_.front().file.fd()) != 0) {
      return refused(errno);
    }
    std::uint64_t id = 0;
    if (ioctl(event->fd(), PERF_EVENT_IOC_ID, &id) != 0) return refused(errno);
    ids_.push_back(id);
    events_.push_back({std::move(*event), attributes.config});
  }
  return Done{};
}

void EventRing::enable(std::uint64_t config, bool enabled) {
  // Events of a thread that has ended remain open, and the call does nothing.
  for (const Event& event : events_)
    if (event.config == config)
      (void)ioctl(event.file.fd(), enabled ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

Status EventRing::map(const File& event) {
  int error = 0;
  for (std::size_t bytes = max_bytes; bytes >= min_bytes; bytes /= 2) {
    void* mapped =
        mmap(nullptr, page_size + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.fd(), 0);
    if (mapped != MAP_FAILED) {
      page_ = static_cast<perf_event_mmap_page*>(mapped);
      mapped_bytes_ = page_size + bytes;
      return Done{};
    }
    error = errno;
  }
  return Error::make(error == EPERM ? Errc::no_permission : Errc::os_error,
                     "cannot map the ring of samples: %s", std::strerror(error))
      .try_next("raise `ulimit -l`, or use --emulate");
}

void EventRing::drain(const Visit& visit) {
  const std::atomic_ref<__u64> head_of_kernel(page_->data_head);
  const std::uint64_t head = head_of_kernel.load(std::memory_order_acquire);
  const auto* data = reinterpret_cast<const std::uint8_t*>(page_) + page_->data_offset;
  const std::uint64_t size = page_->data_size;
  std::uint64_t tail = page_->data_tail;
  while (tail < head) {
    const std::uint64_t at = tail % size;
    perf_event_header header;
    std::memcpy(&header, data + at, sizeof header); // records are aligned to 8 bytes
    if (header.size < sizeof header || header.size > head - tail) break;
    if (at + header.size <= size) {
      visit({data + at, header.size});
    } else {
      joined_.assign(data + at, data + size);
      joined_.insert(joined_.end(), data, data + (at + header.size - size));
      visit(joined_);
    }
    tail += header.size;
  }
  std::atomic_ref<__u64>(page_->data_tail).store(head, std::memory_order_release);
}

} // namespace nearfar::os
