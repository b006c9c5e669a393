// devdax:DEVICE: a DAX device, flushed from user space.
#include <cstdio>
#include <cstring>

#include "os/process.hpp"
#include "tier/kinds.hpp"

namespace nearfar::tier {

namespace {

/// An attribute of a DAX device in sysfs: its `size` or its `align`, in bytes.
Result<std::size_t> device_attribute(const Spec& spec, const char* attribute) {
  const char* slash = spec.path;
  for (const char* p = spec.path; *p != '\0'; ++p)
    if (*p == '/') slash = p + 1;
  char path[512];
  std::snprintf(path, sizeof path, "/sys/bus/dax/devices/%s/%s", slash, attribute);
  char text[64];
  if (!os::read_text(path, text, sizeof text))
    return Error::make(Errc::unsupported, "this machine has no DAX device %s", spec.path)
        .try_next("`nearfar topo` lists DAX devices; `ndctl list` and `cxl list` show what could "
                  "become one");
  std::size_t bytes = 0;
  return std::sscanf(text, "%zu", &bytes) == 1 ? bytes : 0;
}

Result<std::size_t> size_of(const Spec& spec) { return device_attribute(spec, "size"); }
Result<std::size_t> align_of(const Spec& spec) { return device_attribute(spec, "align"); }

/// Mapping a device overwrites it, so one that holds a pool of PMDK is refused: all kinds of pools
/// begin with a signature.
Result<os::File> open_device(const Spec& spec) {
  Result<std::size_t> unit = align_of(spec);
  if (!unit) return unit.error();
  Result<os::File> file = os::open_existing(spec.path, false);
  if (!file) return file;
  Result<os::MappedRange> head = os::map_range(*unit, os::PageSize::system, file->fd(), false);
  if (!head) return head.error();
  constexpr std::string_view signature = "PMEM";
  if (std::memcmp(head->data(), signature.data(), signature.size()) != 0) return file;
  return Error::make(Errc::exists, "device %s holds a pool, which would be overwritten", spec.path)
      .try_next("`pmempool info %s` shows it, `pmempool rm -f %s` takes it away", spec.path,
                spec.path);
}

} // namespace

const TierKind devdax_kind = {.name = "devdax",
                              .form = "devdax:/dev/daxX.Y",
                              .maps = Maps::device,
                              .persists = Persists::by_flush,
                              .read = read_path,
                              .capacity = size_of,
                              .open = open_device,
                              .unit = align_of};

} // namespace nearfar::tier
