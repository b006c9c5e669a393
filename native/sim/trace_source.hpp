// A trace as a stream of requests. Rules assign its objects to near or far memory.
//
// Time           The gap before a request is the number of instructions of its thread since its
//                previous record, times a constant, divided by the number of threads so far: their
//                work overlaps.
// Prefetches     Reads for which no access waits.
// Dependence     A trace has distances in the records of a thread. They are converted to distances
//                in the stream of requests.
// Thread safety  none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/requests.hpp"
#include "trace/reader.hpp"

namespace nearfar::sim {

/// The first matching rule of an object decides its memory. A rule matches if all given conditions
/// hold.
struct ObjectRule {
  static constexpr std::uint64_t any = ~std::uint64_t{0};
  std::uint64_t object = any; ///< object number
  std::uint64_t site = any;   ///< site number
  /// Return addresses, innermost first, as in plans of hmalloc: prefix of the build-id, or "name:"
  /// and the file name; and the offset in the file.
  std::vector<std::pair<std::string, std::uint64_t>> frames;
  std::uint64_t min_bytes = 0;
  std::uint64_t max_bytes = any;
  bool near = false;
};

/// Values of Request::object of a trace.
enum ObjectClass : std::uint32_t { object_far = 0, object_near = 1, object_anywhere = 2 };

class TraceSource : public RequestSource {
public:
  /// Errors: those of trace::TraceReader::open; bad_input (lines of another size than 64 bytes).
  static Result<TraceSource> open(const char* path, double instruction_ps,
                                  std::vector<ObjectRule> rules);

  Result<std::size_t> fill(std::span<Request> out) override;

  Time tail() const override;
  /// Whether the trace has physical addresses. They wrap at 64 TiB, which limits the wear counters.
  bool physical() const override { return physical_; }

  const trace::TraceReader& reader() const { return reader_; }
  /// Number of accessed objects that each rule matched, by rule.
  const std::vector<std::uint64_t>& matched_objects() const { return matched_objects_; }

private:
  TraceSource(trace::TraceReader reader, double instruction_ps, std::vector<ObjectRule> rules)
      : reader_(std::move(reader)), instruction_ps_(instruction_ps), rules_(std::move(rules)),
        matched_objects_(rules_.size()), physical_(reader_.header().has_physical_addresses()) {}

  struct Thread {
    std::uint64_t instructions = 0;
    std::uint64_t records = 0;
    std::vector<std::uint64_t> numbers; ///< ring: numbers of its last records in the stream
  };

  void translate(const trace::Record& record, Request& request);
  Time gap(Thread& thread, const trace::Record& record);
  std::uint32_t distance(Thread& thread, const trace::Record& record);
  std::uint32_t class_of(std::uint32_t object);
  bool matches(const ObjectRule& rule, std::uint32_t number, const trace::Object& object) const;
  bool frames_match(const ObjectRule& rule, const trace::Site& site) const;

  trace::TraceReader reader_;
  double instruction_ps_;
  std::vector<ObjectRule> rules_;
  std::vector<std::uint64_t> matched_objects_;
  bool physical_;
  std::span<const trace::Record> block_;
  std::size_t next_ = 0; ///< index in block_
  std::uint64_t number_ = 0;
  std::vector<Thread> threads_;
  std::vector<std::uint8_t> classes_; ///< by object: ObjectClass + 1; 0: not known yet
};

} // namespace nearfar::sim
