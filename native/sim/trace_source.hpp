// A trace as a stream of requests, its objects sorted into near and far by rules.
//
// Time           a thread's instructions since its record before, at a constant time each; where
//                several threads were traced their work overlaps: divided by their number.
// Prefetches     are reads that wait for nothing.
// Dependence     is a distance in the records of one thread, and becomes one in the whole stream.
// Thread safety  none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/requests.hpp"
#include "trace/reader.hpp"

namespace nearfar::sim {

/// The first rule that holds for an object says where it goes: all conditions that are given.
struct ObjectRule {
  static constexpr std::uint64_t any = ~std::uint64_t{0};
  std::uint64_t object = any; ///< its number
  std::uint64_t site = any;   ///< number of its site
  /// Return addresses, innermost first: what the build-id, or "name:" and the file's last part,
  /// begins with, and the offset in it. As hmalloc's plans have them.
  std::vector<std::pair<std::string, std::uint64_t>> frames;
  std::uint64_t min_bytes = 0;
  std::uint64_t max_bytes = any;
  bool near = false;
};

/// What Request::object says of a trace's requests.
enum ObjectClass : std::uint32_t { object_far = 0, object_near = 1, object_anywhere = 2 };

class TraceSource : public RequestSource {
public:
  /// Errors: those of trace::TraceReader::open; bad_input (lines that are not of 64 bytes).
  static Result<TraceSource> open(const char* path, double instruction_ps,
                                  std::vector<ObjectRule> rules);

  Result<std::size_t> fill(std::span<Request> out) override;

  Time tail() const override;
  /// As the trace says. Addresses wrap at 64 TiB, which limits the wear counters.
  bool physical() const override { return physical_; }

  const trace::TraceReader& reader() const { return reader_; }
  /// How often a rule was the first to hold, by its place; objects that requests named count.
  const std::vector<std::uint64_t>& held() const { return held_; }

private:
  TraceSource(trace::TraceReader reader, double instruction_ps, std::vector<ObjectRule> rules)
      : reader_(std::move(reader)), instruction_ps_(instruction_ps), rules_(std::move(rules)),
        held_(rules_.size()), physical_(reader_.header().has_physical_addresses()) {}

  struct Thread {
    std::uint64_t instructions = 0;
    std::uint64_t records = 0;
    std::vector<std::uint64_t> numbers; ///< in the whole stream, of its last records
  };

  void translate(const trace::Record& record, Request& request);
  Time gap(Thread& thread, const trace::Record& record);
  std::uint32_t distance(Thread& thread, const trace::Record& record);
  std::uint32_t class_of(std::uint32_t object);
  bool holds(const ObjectRule& rule, std::uint32_t number, const trace::Object& object) const;
  bool frames_match(const ObjectRule& rule, const trace::Site& site) const;

  trace::TraceReader reader_;
  double instruction_ps_;
  std::vector<ObjectRule> rules_;
  std::vector<std::uint64_t> held_;
  bool physical_;
  std::span<const trace::Record> block_;
  std::size_t next_ = 0; ///< of block_
  std::uint64_t number_ = 0;
  std::vector<Thread> threads_;
  std::vector<std::uint8_t> classes_; ///< by object, one more than the class; 0: not known yet
};

} // namespace nearfar::sim
