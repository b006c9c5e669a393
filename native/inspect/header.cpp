#include "inspect/header.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "inspect/checksum.hpp"

namespace nearfar::inspect {

namespace {

constexpr const char* part = "header";
constexpr std::string_view set_signature = "PMEMPOOLSET";
constexpr std::string_view heap_signature{"MEMORY_HEAP_HDR\0", 16};

using Page = std::array<std::byte, header_bytes>;

bool starts_with(const std::byte* at, std::string_view text) {
  return std::memcmp(at, text.data(), text.size()) == 0;
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

/// Whether a file without a signature was a pool of libpmemobj, according to descriptor or heap.
bool was_object_pool(const PoolView& view) {
  std::array<std::byte, descriptor_bytes> descriptor;
  if (!view.read(descriptor_at::begin, descriptor.data(), descriptor.size())) return false;
  if (is_zero(descriptor)) return false;
  const std::size_t own = descriptor_at::checksum - descriptor_at::begin;
  if (checksum(descriptor, own) == load<std::uint64_t>(descriptor.data() + own)) return true;
  const auto heap =
      load<std::uint64_t>(descriptor.data() + descriptor_at::heap_offset - descriptor_at::begin);
  std::array<std::byte, heap_signature.size()> signature;
  return view.read(heap, signature.data(), signature.size()) &&
         starts_with(signature.data(), heap_signature);
}

Uuid uuid_at(const Page& page, Offset offset) {
  Uuid uuid;
  std::memcpy(uuid.data(), page.data() + offset, uuid.size());
  return uuid;
}

std::uint64_t pool_id_of(const Uuid& uuid) {
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < uuid_bytes / 2; ++i)
    id = id << 8 | static_cast<std::uint64_t>(uuid[i] ^ uuid[i + uuid_bytes / 2]);
  return id;
}

Header parse(const Page& page) {
  Header h;
  h.major = load<std::uint32_t>(&page[header_at::major]);
  h.compat = load<std::uint32_t>(&page[header_at::compat]);
  h.incompat = load<std::uint32_t>(&page[header_at::incompat]);
  h.ro_compat = load<std::uint32_t>(&page[header_at::ro_compat]);
  h.set_uuid = uuid_at(page, header_at::set_uuid);
  h.uuid = uuid_at(page, header_at::uuid);
  h.created_s = load<std::uint64_t>(&page[header_at::created]);
  h.pool_id = pool_id_of(h.set_uuid);
  return h;
}

void check_checksum(const Page& page, const Header& h, Findings& findings) {
  const bool half = (h.incompat & feature_checksum_2k) != 0;
  const std::uint64_t stored = load<std::uint64_t>(&page[header_at::checksum]);
  const std::uint64_t found =
      checksum(page, header_at::checksum, half ? header_at::half : header_at::checksum);
  if (stored != found)
    findings.damage(part, header_at::checksum,
                    "the header's checksum is %#" PRIx64 ", its bytes sum up to %#" PRIx64, stored,
                    found);
}

void check_features(const Header& h, Findings& findings) {
  if ((h.incompat & ~features_known) != 0)
    findings.damage(part, header_at::incompat, "unknown mandatory features %#x",
                    h.incompat & ~features_known);
  if ((h.incompat & feature_single_header) != 0)
    findings.damage(part, header_at::incompat,
                    "this is a part of a pool set with a single header: it cannot be opened alone");
  if (h.ro_compat != 0)
    findings.damage(part, header_at::ro_compat,
                    "features %#x force read-only use, which libpmemobj has not", h.ro_compat);
}

void check_machine(const Page& page, Findings& findings) {
  const auto alignment = load<std::uint64_t>(&page[header_at::alignment]);
  if (alignment != alignment_x86_64)
    findings.damage(part, header_at::alignment,
                    "alignments of basic types are %#" PRIx64 ", not those of x86-64", alignment);
  const auto machine = load<std::uint16_t>(&page[header_at::machine]);
  const auto width = std::to_integer<int>(page[header_at::machine_class]);
  const auto order = std::to_integer<int>(page[header_at::byte_order]);
  if (machine != machine_x86_64 || width != 2 || order != 1)
    findings.damage(part, header_at::machine_class,
                    "made for machine %u (class %d, byte order %d), not for x86-64 (62, 2, 1)",
                    unsigned{machine}, width, order);
  if (!is_zero(std::span(page).subspan(header_at::reserved, 4)))
    findings.damage(part, header_at::reserved, "reserved bytes of the machine are not zero");
}

void check_neighbors(const Page& page, const Header& h, Findings& findings) {
  static constexpr const char* names[] = {"previous part", "next part", "previous replica",
                                          "next replica"};
  Offset at = header_at::neighbors;
  for (const char* name : names) {
    if (uuid_at(page, at) != h.uuid)
      findings.damage(part, at,
                      "its %s is another file: it is one of a pool set and cannot be opened alone",
                      name);
    at += uuid_bytes;
  }
}

/// If the checksum of the shutdown state is wrong, the opener rebuilds it: it is never damage.
void read_shutdown(const Page& page, Header& h, Findings& findings) {
  const auto state = std::span(page).subspan(header_at::shutdown, shutdown_bytes);
  const std::size_t own = shutdown_bytes - sizeof(std::uint64_t);
  if (is_zero(state) || (h.incompat & feature_shutdown_state) == 0) return;
  if (checksum(state, own) != load<std::uint64_t>(&state[own])) {
    findings.note(part, header_at::shutdown, "the shutdown state is torn: it will be made anew");
    return;
  }
  h.open_when_last_used = page[header_at::shutdown_dirty] != std::byte{0};
  if (h.open_when_last_used)
    findings.note(part, header_at::shutdown_dirty, "the pool was not closed when last used");
}

} // namespace

FileKind identify(const PoolView& view) {
  std::array<std::byte, set_signature.size()> start{};
  if (view.size() == 0) return FileKind::empty;
  if (!view.read(0, start.data(), std::min<Offset>(start.size(), view.size())))
    return FileKind::other;
  if (starts_with(start.data(), set_signature)) return FileKind::pool_set;
  if (starts_with(start.data(), {"PMEMOBJ\0", 8})) return FileKind::object;
  if (starts_with(start.data(), {"PMEMLOG\0", 8})) return FileKind::log;
  if (starts_with(start.data(), {"PMEMBLK\0", 8})) return FileKind::block;
  return was_object_pool(view) ? FileKind::object : FileKind::other;
}

std::string to_text(const Uuid& uuid) {
  static constexpr std::uint8_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::string text;
  for (std::size_t i = 0; i < uuid_bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", unsigned{uuid[order[i]]});
    text += digits;
  }
  return text;
}

Header read_header(const PoolView& view, Findings& findings) {
  Page page;
  if (view.size() < smallest_part_bytes)
    findings.damage(part, 0, "the file has %" PRIu64 " bytes, a pool at least %" PRIu64,
                    view.size(), smallest_part_bytes);
  if (!view.read(0, page.data(), page.size())) {
    findings.unreadable(part, 0, page.size());
    return {};
  }
  Header h = parse(page);
  if (!starts_with(page.data(), {"PMEMOBJ\0", 8}))
    findings.damage(part, header_at::signature, "the signature is not that of a libpmemobj pool");
  if (h.major != obj_major)
    findings.damage(part, header_at::major, "format version %u, only %u is known", h.major,
                    obj_major);
  check_features(h, findings);
  check_checksum(page, h, findings);
  check_machine(page, findings);
  check_neighbors(page, h, findings);
  read_shutdown(page, h, findings);
  return h;
}

} // namespace nearfar::inspect
