#include "trace/live_bytes.hpp"

#include <algorithm>

namespace nearfar::trace {

namespace {

struct Change {
  std::uint64_t record;
  std::uint32_t site;
  std::uint64_t bytes;
  bool born;
};

/// Changes by time; at the same time, the end of an object is before the begin of another.
std::vector<Change> changes(const Tables& tables, std::uint64_t records) {
  std::vector<Change> made;
  made.reserve(tables.objects.size() * 2);
  for (std::size_t i = 1; i < tables.objects.size(); ++i) {
    const Object& object = tables.objects[i];
    made.push_back({object.born_record, object.site, object.bytes, true});
    if (object.died_record < records)
      made.push_back({object.died_record, object.site, object.bytes, false});
  }
  std::sort(made.begin(), made.end(), [](const Change& a, const Change& b) {
    return a.record != b.record ? a.record < b.record : a.born < b.born;
  });
  return made;
}

void add_shares(const Tables& tables, std::uint64_t records, std::vector<LiveBytes>& found) {
  std::vector<double> bytes(found.size());
  for (std::size_t i = 1; i < tables.objects.size(); ++i) {
    const Object& object = tables.objects[i];
    const std::uint64_t end = std::min(object.died_record, records);
    const auto size = static_cast<double>(object.bytes);
    const std::uint64_t lived = end > object.born_record ? end - object.born_record : 0;
    found[object.site].mean_share += size * static_cast<double>(lived);
    bytes[object.site] += size;
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (bytes[i] > 0) found[i].mean_share /= bytes[i] * static_cast<double>(records);
}

} // namespace

std::vector<LiveBytes> live_bytes(const Tables& tables, std::uint64_t records, std::size_t parts) {
  std::vector<LiveBytes> found(tables.sites.size());
  for (LiveBytes& site : found)
    site.max_bytes.resize(parts);
  if (records == 0) return found;
  std::vector<std::uint64_t> live(found.size());
  std::size_t part = 0;
  const auto enter = [&](std::size_t next) {
    for (; part < next; ++part)
      for (std::size_t site = 0; site < found.size(); ++site)
        found[site].max_bytes[part + 1] = live[site];
  };
  for (const Change& change : changes(tables, records)) {
    enter(std::min<std::size_t>(
        static_cast<std::size_t>(static_cast<double>(change.record) / static_cast<double>(records) *
                                 static_cast<double>(parts)),
        parts - 1));
    std::uint64_t& bytes = live[change.site];
    bytes = change.born ? bytes + change.bytes : bytes - std::min(bytes, change.bytes);
    std::uint64_t& most = found[change.site].max_bytes[part];
    most = std::max(most, bytes);
  }
  enter(parts - 1);
  add_shares(tables, records, found);
  return found;
}

} // namespace nearfar::trace
