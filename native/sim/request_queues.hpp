// The requests that wait in a channel: demands, and posted writes.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/address_mapping.hpp"
#include "sim/completion.hpp"

namespace nearfar::sim {

struct ChannelRequest {
  std::uint64_t id;
  Time arrival;
  Place place;
  bool write;
  bool opened; ///< its row was activated for it: not a row hit
};

/// By age: the oldest request first.
class RequestQueues {
public:
  std::vector<ChannelRequest>& of(bool posted) { return posted ? posted_ : demands_; }
  const std::vector<ChannelRequest>& of(bool posted) const { return posted ? posted_ : demands_; }
  const std::vector<ChannelRequest>& demands() const { return demands_; }
  const std::vector<ChannelRequest>& posted() const { return posted_; }
  /// When the first demand arrives; `never` if there is none.
  Time demanded_from() const {
    Time first = never;
    for (const ChannelRequest& request : demands_)
      first = std::min(first, request.arrival);
    return first;
  }

private:
  std::vector<ChannelRequest> demands_;
  std::vector<ChannelRequest> posted_;
};

} // namespace nearfar::sim
