// Reads requests from a source, places each in a memory, and passes it on.
//
// Thread safety  one thread.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <vector>

#include "sim/placement.hpp"

namespace nearfar::sim {

/// Receiver of placed requests.
///
/// now           time of the core, for rules that depend on time
/// stall         kernel time on the core
/// move          read or write of a line that a rule migrates
/// expect_write  hint: issue() will be called with this write
/// issue         request of the program
template <class T>
concept PlacedSink =
    requires(T sink, const Request& request, const PlacedAccess& placed, Time time) {
      { sink.now() } -> std::same_as<Time>;
      { sink.stall(time) } -> std::same_as<void>;
      { sink.move(placed) } -> std::same_as<void>;
      { sink.expect_write(placed) } -> std::same_as<void>;
      { sink.issue(request, placed) } -> std::same_as<void>;
    };

inline constexpr std::size_t feed_batch = 256;

/// Feeds a batch under a static plan, in three passes. Each prefetches the data of the next one.
template <PlacedSink Sink>
void feed_static(std::span<const Request> requests, Placer& placer, Sink& sink) {
  std::array<PlacedAccess, feed_batch> placed;
  if (placer.has_page_table())
    for (const Request& request : requests)
      placer.prefetch(request);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    placer.place_static(requests[i], placed[i]);
    if (placed[i].write) sink.expect_write(placed[i]);
  }
  for (std::size_t i = 0; i < requests.size(); ++i)
    sink.issue(requests[i], placed[i]);
}

template <PlacedSink Sink>
void feed_moving(std::span<const Request> requests, Placer& placer, Sink& sink) {
  std::vector<PlacedAccess> moved;
  for (const Request& request : requests) {
    moved.clear();
    Time stall = 0;
    const PlacedAccess placed = placer.place(request, sink.now(), moved, stall);
    sink.stall(stall);
    for (const PlacedAccess& other : moved)
      sink.move(other);
    sink.issue(request, placed);
  }
}

/// Passes up to `max_requests` requests on and returns their number. Fewer: the source has ended.
/// Errors: those of the source.
template <PlacedSink Sink>
Result<std::uint64_t> feed(RequestSource& source, Placer& placer, std::uint64_t max_requests,
                           Sink& sink) {
  std::array<Request, feed_batch> requests;
  std::uint64_t fed = 0;
  while (fed < max_requests) {
    const std::size_t wanted = std::min<std::uint64_t>(feed_batch, max_requests - fed);
    Result<std::size_t> got = source.fill(std::span(requests).first(wanted));
    if (!got) return got.error();
    if (*got == 0) break;
    fed += *got;
    const std::span<const Request> batch(requests.data(), *got);
    if (placer.is_static())
      feed_static(batch, placer, sink);
    else
      feed_moving(batch, placer, sink);
  }
  return fed;
}

} // namespace nearfar::sim
