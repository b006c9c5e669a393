#include "sim/address_mapping.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

namespace nearfar::sim {

namespace {

/// Names by AddressField.
constexpr std::array<std::string_view, 6> names{"ro", "ra", "ba", "co", "bg", "ch"};

unsigned bits(std::uint64_t count) { return static_cast<unsigned>(std::countr_zero(count)); }

} // namespace

Result<AddressMapping> parse_mapping(const char* text) {
  const std::string_view given(text);
  AddressMapping mapping{};
  std::array<bool, names.size()> used{};
  bool valid = given.size() == 2 * names.size() && given.starts_with("ro");
  for (std::size_t i = 0; valid && i < names.size(); ++i) {
    const auto* found = std::find(names.begin(), names.end(), given.substr(2 * i, 2));
    const auto number = static_cast<std::size_t>(found - names.begin());
    valid = number < names.size() && !std::exchange(used[number], true);
    if (valid) mapping[i] = static_cast<AddressField>(number);
  }
  if (valid) return mapping;
  return Error::make(Errc::bad_input, "invalid address mapping '%s'", text)
      .try_next("name ro first, then ra, ba, bg, co and ch once each, such as rorabacobgch");
}

AddressDecoder::AddressDecoder(const Organization& organization, const AddressMapping& mapping)
    : groups_(bits(organization.groups)), banks_(bits(organization.banks)), row_shift_(0) {
  std::array<Bits, names.size()> fields;
  const std::uint64_t columns = std::max<std::uint64_t>(organization.row_bytes / line_bytes, 1);
  const std::array<std::uint64_t, names.size()> counts{
      1,       organization.ranks,  organization.banks,
      columns, organization.groups, organization.channels};
  for (auto field = mapping.rbegin(); field != mapping.rend(); ++field) {
    const auto number = static_cast<std::size_t>(*field);
    fields[number] = {row_shift_, static_cast<std::uint32_t>(counts[number] - 1)};
    row_shift_ += bits(counts[number]);
  }
  const auto of = [&](AddressField field) { return fields[static_cast<std::size_t>(field)]; };
  channel_ = of(AddressField::channel);
  rank_ = of(AddressField::rank);
  group_ = of(AddressField::group);
  bank_ = of(AddressField::bank);
}

} // namespace nearfar::sim
