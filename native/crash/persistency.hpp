// The x86 persistency model: which bytes are durable, which may be, as a program goes on.
//
// Model          ADR: what reached the memory controller survives, caches do not.
//                - Within a line, stores become durable in program order: a line holds, after a
//                  crash, what a prefix of its pending stores left (Intel SDM vol. 3A, 11.12 and
//                  Rudoff, "Persistent memory programming", ;login: 42(2), 2017). A store of more
//                  than 8 bytes counts as its aligned pieces of at most 8, in ascending order.
//                - Lines are independent of each other: any may have been written back at any time.
//                - A flush takes effect at the next fence of its thread: after it, what the line
//                  held at the flush is durable. Without that fence nothing is promised.
//                - Non-temporal stores need the fence alone. A write-combining buffer holds one
//                  line, so they too become durable as a prefix in their line.
//                - What was not flushed and fenced stays pending, over any number of fences.
//                eADR: caches survive. Pieces of at most 8 bytes become durable in program order,
//                one at a time: a power failure leaves a prefix of a larger store.
// Two hosts      share a pool in CXL memory that is coherent in hardware (HDM-DB, back-invalidate
//                snoops; CXL Specification 3.0). A line is dirty in one host's caches at most: an
//                access of the other host writes it back to the device first. A flush reaches the
//                lines of its own host only. A crash loses the caches of one host, of both (power
//                fails, and so does the global persistent flush), or of none (that flush succeeds).
//                Stores of a host whose caches survive behave as on eADR: the survivor sees them.
// Thread safety  none; one thread explores.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <vector>

#include "storelog/recorder.hpp"

namespace nearfar::crash {

using storelog::line_bytes;

/// Whose caches a crash loses, with all stores there that were not written back.
enum class CacheLoss : std::uint8_t {
  all,    ///< of every host: ADR, or a global persistent flush that fails
  none,   ///< eADR, or a global persistent flush that succeeds
  host_0, ///< of this host, which dies while the other goes on
  host_1,
};

using Line = std::array<std::byte, line_bytes>;

/// At most eight aligned bytes that become durable in one go.
struct Piece {
  std::uint32_t event = 0; ///< which event of the log stored it
  std::uint8_t offset = 0; ///< in the line
  std::uint8_t bytes = 0;
  bool recovery = false; ///< stored by recovery, not by the program
  const std::byte* data = nullptr;

  void put(Line& line) const { std::memcpy(line.data() + offset, data, bytes); }
};

/// A line with stores that may or may not be durable.
struct PendingLine {
  std::uint32_t line = 0;
  /// Unique to a line. Changes when pieces become durable, but not when pieces are added.
  std::uint64_t generation = 0;
  std::vector<Piece> pieces; ///< in program order
  std::uint8_t host = 0;     ///< in whose caches it is dirty
  /// (thread, how many pieces its next fence makes durable)
  std::vector<std::pair<std::uint16_t, std::uint32_t>> awaiting;
};

/// A line of the durable image, and what it held before it changed.
struct Changed {
  std::uint32_t line = 0;
  Line before;
};

/// Walks through a log from failure point to failure point. A failure point lies just before a
/// fence that makes something durable, because its images include those of every point since the
/// previous fence; the last one is the end of the log. Another lies before an access that makes the
/// other host write a line back, and before each piece of a store whose host keeps its caches
/// (eADR).
class Persistency {
public:
  /// `durable` is changed in place as fences pass; what `carried` holds is pending from the start
  /// (crash during recovery). The log must outlive this.
  Persistency(const storelog::Log& log, CacheLoss loss, std::span<std::byte> durable,
              std::vector<PendingLine> carried = {}, bool recovery = false);

  /// Moves on to the next failure point; false if there is none.
  bool next();

  /// Events before this one have happened; the last of them in part where torn().
  std::size_t event() const { return event_ + (torn() ? 1 : 0); }
  /// The failure point lies within a store whose host keeps its caches.
  bool torn() const { return settled_ > 0; }
  /// The lines of that store as they were before it.
  const std::vector<Changed>& before_torn() const { return before_torn_; }
  bool at_end() const { return at_end_; }
  const std::vector<PendingLine>& pending() const { return pending_; }
  /// Lines of `durable` that changed since this was last asked, oldest first.
  std::vector<Changed> take_changed();

  /// What `pending` leaves of its line when its first `pieces` are durable.
  Line version(const PendingLine& pending, std::size_t pieces) const;

private:
  void pass(const storelog::Event& event);
  void pass_point();
  void add_store(const storelog::Event& event, bool non_temporal);
  void settle_piece(const storelog::Event& event);
  bool survives(const storelog::Event& event) const;
  bool would_transfer(const storelog::Event& event) const;
  void transfer(const storelog::Event& event);
  template <class Visit>
  void each_pending(const storelog::Event& event, Visit visit);
  bool is_point(const storelog::Event& event) const;
  void forget_empty();
  void flush(const storelog::Event& event);
  bool would_drain(std::uint16_t thread) const;
  void drain(std::uint16_t thread);
  void make_durable(PendingLine& pending, std::size_t pieces);
  PendingLine* find(std::uint32_t line);
  const PendingLine* find(std::uint32_t line) const;
  void index_pending();

  const storelog::Log& log_;
  CacheLoss loss_;
  bool recovery_;
  std::span<std::byte> durable_;
  std::size_t event_ = 0;
  bool at_end_ = false;
  bool before_point_ = false; ///< stands just before an event that was a failure point
  std::uint32_t settled_ = 0; ///< bytes of that event, a store that survives, which are durable
  std::vector<Changed> before_torn_;
  std::vector<PendingLine> pending_;
  std::unordered_map<std::uint32_t, std::size_t> slots_; ///< in pending_, by line
  std::vector<Changed> changed_;
};

} // namespace nearfar::crash
