#include "tier/mapping.hpp"

namespace nearfar::tier {

namespace {

/// Part of a device: whole units of it, which no other mapping has.
struct Claim {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
Result<Claim> claim_part(const Spec& spec, const os::File& file, std::size_t bytes) {
  Result<std::size_t> unit = spec.kind->unit(spec);
  if (!unit) return unit.error();
  Result<std::size_t> total = capacity(spec);
  if (!total) return total.error();
  if (*unit == 0) *unit = 1;
  const std::size_t whole = (bytes + *unit - 1) / *unit * *unit;
  Result<std::size_t> offset = os::claim_range(file, whole, *unit, *total);
  if (!offset) return offset.error();
  return Claim{*offset, whole};
}

} // namespace

Result<std::size_t> capacity(const Spec& spec) { return spec.kind->capacity(spec); }

Result<os::File> open_backing(const Spec& spec) {
  if (spec.kind->open == nullptr) return os::File();
  return spec.kind->open(spec);
}

Status claim_device(const Spec& spec, const os::File& file) {
  Result<std::size_t> total = capacity(spec);
  if (!total) return total.error();
  const Result<std::size_t> claimed = os::claim_range(file, *total, 1, *total);
  if (claimed) return Done{};
  if (claimed.error().code != Errc::no_space) return claimed.error();
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
                       bytes, spec.kind->name, *room)
        .try_next("ask for a smaller --size or --region");

  Result<os::File> file = open_backing(spec);
  if (!file) return file.error();
  Mapping mapping;
  mapping.file = std::move(*file);
  if (spec.kind->maps == Maps::file)
    if (Status s = os::reserve_space(mapping.file, bytes); !s) return s.error();
  mapping.sync = spec.kind->map_sync();
  Claim claim{0, bytes};
  if (spec.kind->maps == Maps::device) {
    Result<Claim> claimed = claim_part(spec, mapping.file, bytes);
    if (!claimed) return claimed.error();
    claim = *claimed;
  }
  Result<os::MappedRange> range =
      os::map_range(claim.bytes, spec.pages, mapping.file.fd(), mapping.sync, claim.offset);
  if (!range) return range.error();
  mapping.range = std::move(*range);
  if (spec.kind->bind != nullptr)
    if (Status s = spec.kind->bind(spec, mapping.range); !s) return s.error();
  if (spec.populate || spec.kind->prefaults) os::prefault(mapping.range);
  return mapping;
}

Status verify_pages(const Spec& spec, const Mapping& mapping) {
  if (spec.pages == os::PageSize::system) return Done{};
  Result<os::Residency> found = os::residency(mapping.range);
  if (!found) return found.error();
  if (found->resident_bytes == 0)
    return Error::make(Errc::failed_check,
                       "no page of the mapping is resident: its size is unknown")
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
