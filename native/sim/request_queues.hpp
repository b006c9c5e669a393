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
  Place place;
  bool write;
  bool opened; ///< the row was activated for this request, which is then not a row hit
};

/// Each queue is in the order of insertion. Times of arrival need not ascend.
class RequestQueues {
public:
  std::vector<ChannelRequest>& of(bool posted) { return posted ? posted_ : demands_; }
  const std::vector<ChannelRequest>& of(bool posted) const { return posted ? posted_ : demands_; }
  const std::vector<ChannelRequest>& demands() const { return demands_; }
  const std::vector<ChannelRequest>& posted() const { return posted_; }
  /// Earliest arrival of a demand; `never` if none is queued.
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
