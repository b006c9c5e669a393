#include "tier/mapping.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace nearfar::tier {

namespace {

bool lives_in_memory(Kind kind) { return kind == Kind::dram || kind == Kind::numa; }

Result<std::size_t> node_capacity(int node) {
  char path[80];
  std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr)
    return Error::make(Errc::unsupported, "this machine has no NUMA node %d", node)
        .try_next("`nearfar topo` lists the nodes that exist");
  char line[256];
  std::size_t kib = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "Node %*d MemFree: %zu kB", &kib) == 1) break;
  std::fclose(file);
  return kib << 10;
}

/// A number that the kernel tells of a DAX device: its `size`, its `align`.
Result<std::size_t> device_attribute(const char* path, const char* attribute) {
  const char* slash = path;
  for (const char* p = path; *p != '\0'; ++p)
    if (*p == '/') slash = p + 1;
  char told[512];
  std::snprintf(told, sizeof told, "/sys/bus/dax/devices/%s/%s", slash, attribute);
  std::FILE* file = std::fopen(told, "re");
  if (file == nullptr)
    return Error::make(Errc::unsupported, "this machine has no DAX device %s", path)
        .try_next("`nearfar topo` lists DAX devices; `ndctl list` and `cxl list` show what could "
                  "become one");
  std::size_t bytes = 0;
  const bool read = std::fscanf(file, "%zu", &bytes) == 1;
  std::fclose(file);
  return read ? bytes : 0;
}

/// Part of a device: whole units of it, which no other mapping has.
struct Claim {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
Result<Claim> claim_part(const Spec& spec, const os::File& file, std::size_t bytes) {
  Result<std::size_t> unit = device_attribute(spec.path, "align");
  if (!unit) return unit.error();
  Result<std::size_t> total = device_attribute(spec.path, "size");
  if (!total) return total.error();
  if (*unit == 0) *unit = 1;
  const std::size_t whole = (bytes + *unit - 1) / *unit * *unit;
  Result<std::size_t> offset = os::claim_range(file, whole, *unit, *total);
  if (!offset) return offset.error();
  return Claim{*offset, whole};
}

/// A device is overwritten where it is mapped, so one that holds a pool of PMDK is left alone: all
/// kinds of pools begin with a signature.
Result<os::File> open_device(const char* path) {
  Result<std::size_t> unit = device_attribute(path, "align");
  if (!unit) return unit.error();
  Result<os::File> file = os::open_existing(path, false);
  if (!file) return file;
  Result<os::Range> head = os::map_range(*unit, os::PageSize::system, file->fd(), false);
  if (!head) return head.error();
  constexpr std::string_view signature = "PMEM";
  if (std::memcmp(head->data(), signature.data(), signature.size()) != 0) return file;
  return Error::make(Errc::exists, "device %s holds a pool, which would be overwritten", path)
      .try_next("`pmempool info %s` shows it, `pmempool rm -f %s` takes it away", path, path);
}

/// A tmpfs may promise more than the memory that is left, and the process would be killed for it.
Result<std::size_t> shm_capacity(const char* path) {
  Result<std::size_t> room = os::free_space(path);
  if (!room) return room.error();
  return std::min(*room, os::available_memory_bytes());
}

} // namespace

Result<std::size_t> capacity(const Spec& spec) {
  switch (spec.kind) {
  case Kind::dram: return os::available_memory_bytes();
  case Kind::numa: return node_capacity(spec.node);
  case Kind::devdax: return device_attribute(spec.path, "size");
  case Kind::shm:
    if (Status place = os::check_memory_directory(spec.path); !place) return place.error();
    return shm_capacity(spec.path);
  case Kind::fsdax:
  case Kind::file:
    if (Status place = os::check_place(spec.path); !place) return place.error();
    return os::free_space(spec.path);
  }
  return std::size_t{0};
}

Result<os::File> open_backing(const Spec& spec) {
  switch (spec.kind) {
  case Kind::dram:
  case Kind::numa: return os::File();
  case Kind::devdax: return open_device(spec.path);
  case Kind::fsdax:
  case Kind::shm:
  case Kind::file: return os::create_unnamed(spec.path);
  }
  return os::File();
}

Status claim_device(const Spec& spec, const os::File& file) {
  Result<std::size_t> total = device_attribute(spec.path, "size");
  if (!total) return total.error();
  if (os::claim_range(file, *total, 1, *total)) return Done{};
  return Error::make(Errc::unsupported, "device %s is in use", spec.path)
      .try_next("end the program that uses it, or name another device");
}

Result<Mapping> map(const Spec& spec, std::size_t bytes) {
  if (spec.paced())
    return Error::make(Errc::unsupported,
                       "this measurement cannot keep the pace of %s, an emulated tier: its loop "
                       "would run at the speed of the memory behind it",
                       spec.profile)
        .try_next("use bench stream, compete, stencil or pipeline (far side), which know their "
                  "bytes, or the tier without paced:");
  return map_to_pace(spec, bytes);
}

Result<Mapping> map_to_pace(const Spec& spec, std::size_t bytes) {
  Result<std::size_t> room = capacity(spec);
  if (!room) return room.error();
  if (bytes > *room)
    return Error::make(Errc::no_space, "%zu bytes do not fit in tier %s, which has %zu bytes free",
                       bytes, kind_name(spec.kind), *room)
        .try_next("ask for a smaller --size or --region");

  Result<os::File> file = open_backing(spec);
  if (!file) return file.error();
  Mapping mapping;
  mapping.file = std::move(*file);
  if (!lives_in_memory(spec.kind) && spec.kind != Kind::devdax)
    if (Status s = os::reserve_space(mapping.file, bytes); !s) return s.error();
  mapping.sync = spec.kind == Kind::fsdax;
  Claim claim{0, bytes};
  if (spec.kind == Kind::devdax) {
    Result<Claim> claimed = claim_part(spec, mapping.file, bytes);
    if (!claimed) return claimed.error();
    claim = *claimed;
  }
  Result<os::Range> range =
      os::map_range(claim.bytes, spec.pages, mapping.file.fd(), mapping.sync, claim.offset);
  if (!range) return range.error();
  mapping.range = std::move(*range);
  if (spec.kind == Kind::numa)
    if (Status s = os::bind_to_node(mapping.range, spec.node); !s) return s.error();
  if (spec.populate || spec.kind == Kind::shm) os::prefault(mapping.range);
  return mapping;
}

Status verify_pages(const Spec& spec, const Mapping& mapping) {
  if (spec.pages == os::PageSize::system) return Done{};
  Result<os::Residency> found = os::residency(mapping.range);
  if (!found) return found.error();
  if (found->resident_bytes == 0)
    return Error::make(Errc::failed_check, "no page of the mapping is resident: its size is untold")
        .try_next("report this: the mapping was not found in /proc/self/smaps");
  const double huge_share =
      static_cast<double>(found->huge_bytes) / static_cast<double>(found->resident_bytes);
  const bool wants_huge = spec.pages != os::PageSize::small_4k;
  if (wants_huge ? huge_share >= 0.95 : found->huge_bytes == 0) return Done{};
  return Error::make(Errc::failed_check,
                     "asked for pages=%s, but %.0f %% of the range lies on huge pages",
                     os::page_size_name(spec.pages), 100 * huge_share)
      .try_next(
          "see /sys/kernel/mm/transparent_hugepage/ (enabled, shmem_enabled), or drop pages=");
}

} // namespace nearfar::tier
