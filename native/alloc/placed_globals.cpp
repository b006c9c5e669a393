#include <algorithm>

#include "alloc/loaded_objects.hpp"
#include "alloc/placed_mappings.hpp"
#include "os/signals.hpp"

namespace nearfar::alloc {

/// Each segment is an interval of the object's data. Pages of .data become private before they are
/// moved, because pages that other processes share would not move.
void PlacedMappings::place_globals() {
  const LoadedObjects objects;
  const os::SignalsBlocked blocked;
  const os::LockGuard guard(lock);
  for (const os::Object& object : objects) {
    if (object.data_segments == 0) continue;
    MappingOrigin own;
    own.kind = MappedKind::globals;
    own.begin = object.data[0].pages.begin;
    own.bytes = object.data[object.data_segments - 1].pages.end - own.begin;
    own.object = &object;
    if (std::none_of(rules_->begin(), rules_->end(),
                     [&](const MappingRule& rule) { return matches(rule, own); }))
      continue;
    for (const os::DataSegment* segment = object.data;
         segment != object.data + object.data_segments; ++segment) {
      const os::Area& file = segment->from_file;
      if (file.begin < file.end)
        os::populate(reinterpret_cast<std::byte*>(file.begin), file.end - file.begin);
      place(own, nullptr, segment->pages, os::page_bytes, Pages::present);
    }
  }
}

} // namespace nearfar::alloc
