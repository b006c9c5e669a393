#include "os/counters.hpp"

#include <cerrno>
#include <cstring>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef NEARFAR_HAVE_LIBPFM
#include <perfmon/pfmlib_perf_event.h>
#endif

namespace nearfar::os {

namespace {

perf_event_attr attributes(const CounterEvent& event, bool leads) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = event.type;
  attr.config = event.config;
  attr.config1 = event.config1;
  attr.config2 = event.config2;
  attr.disabled = leads;
  attr.exclude_hv = 1;
  attr.exclude_kernel = event.type != PERF_TYPE_SOFTWARE;
  attr.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return attr;
}

/// A descriptor, or -1 with errno. Software events exclude the kernel if counting it is not
/// permitted.
int open_event(const CounterEvent& event, int leader) {
  perf_event_attr attr = attributes(event, leader < 0);
  const auto call = [&] {
    return static_cast<int>(
        syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC));
  };
  const int fd = call();
  if (fd >= 0 || attr.exclude_kernel || (errno != EACCES && errno != EPERM)) return fd;
  attr.exclude_kernel = 1;
  return call();
}

Error refused(int code) {
  if (code == EACCES || code == EPERM)
    return Error::make(Errc::no_permission, "the kernel does not permit counters to this user")
        .try_next("sysctl kernel.perf_event_paranoid=2 as root, or a container that permits "
                  "perf_event_open");
  if (code == ENOENT || code == EOPNOTSUPP || code == ENODEV || code == EINVAL || code == ENOSYS)
    return Error::make(Errc::unsupported, "this machine does not count that: %s",
                       std::strerror(code))
        .try_next("choose --counters simulated; a virtual machine rarely has counters");
  Error error = Error::make(Errc::os_error, "perf_event_open failed: %s", std::strerror(code));
  error.os_errno = code;
  return error;
}

} // namespace

#ifdef NEARFAR_HAVE_LIBPFM

Result<CounterEvent> find_counter(const char* name) {
  static const int ready = pfm_initialize();
  if (ready != PFM_SUCCESS)
    return Error::make(Errc::unsupported, "libpfm4 cannot be used: %s", pfm_strerror(ready));
  perf_event_attr attr{};
  attr.size = sizeof attr;
  pfm_perf_encode_arg_t wanted{};
  wanted.attr = &attr;
  wanted.size = sizeof wanted;
  const int found = pfm_get_os_event_encoding(name, PFM_PLM3, PFM_OS_PERF_EVENT, &wanted);
  if (found != PFM_SUCCESS)
    return Error::make(Errc::not_found, "this processor has no event %s: %s", name,
                       pfm_strerror(found))
        .try_next("see `showevtinfo` of libpfm4 for the names of its events");
  return CounterEvent{attr.type, attr.config, attr.config1, attr.config2};
}

#else

Result<CounterEvent> find_counter(const char*) {
  return Error::make(Errc::unsupported, "this nearfar was built without libpfm4")
      .try_next("install libpfm4-dev and build again: make build");
}

#endif

Result<CounterGroup> CounterGroup::open(std::span<const CounterEvent> events) {
  CounterGroup group;
  for (const CounterEvent& event : events) {
    File opened(open_event(event, group.events_.empty() ? -1 : group.events_.front().fd()));
    if (opened.fd() < 0) return refused(errno);
    group.events_.push_back(std::move(opened));
  }
  if (group.events_.empty()) return Error::make(Errc::bad_input, "a group of no counters");
  return group;
}

void CounterGroup::start() {
  ioctl(events_.front().fd(), PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

void CounterGroup::stop() {
  ioctl(events_.front().fd(), PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

Result<CounterReading> CounterGroup::read() const {
  constexpr std::size_t head = 3; // how many, wanted, counted
  std::vector<std::uint64_t> words(head + events_.size());
  const auto bytes = static_cast<ssize_t>(words.size() * sizeof words[0]);
  if (::read(events_.front().fd(), words.data(), static_cast<std::size_t>(bytes)) != bytes)
    return Error::make(Errc::os_error, "counters cannot be read: %s", std::strerror(errno));
  return CounterReading{{words.begin() + head, words.end()}, words[1], words[2]};
}

} // namespace nearfar::os
