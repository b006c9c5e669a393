// The two queues of a channel: demand requests and posted writes.
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
  DramAddress address;
  bool write;
  bool caused_activate; ///< a row was activated for this request: it is not a row hit
};

/// Both queues keep the order of insertion, which may differ from the order of arrival.
class RequestQueues {
public:
  std::vector<ChannelRequest>& of(bool posted) { return posted ? posted_ : demands_; }
  const std::vector<ChannelRequest>& of(bool posted) const { return posted ? posted_ : demands_; }
  const std::vector<ChannelRequest>& demands() const { return demands_; }
  const std::vector<ChannelRequest>& posted() const { return posted_; }
  /// Earliest arrival of a demand; `never` if none is queued.
  Time earliest_demand() const {
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
