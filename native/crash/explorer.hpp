// Runs recovery on every image that a crash can leave, and checks what it finds.
//
// How            failure points in program order (persistency.hpp); at each, recovery runs on the
//                durable image, and each pending line that it reads branches over what that line
//                may hold (arena.hpp). Lines that it does not read cannot matter: one run stands
//                for all their contents. Where recovery stores something itself, all images that a
//                crash during recovery can leave are explored as well (once nested).
// Checks         open() succeeds; contents() finds invariants kept, and holds what the DRAM model
//                holds after the acknowledged operations, with or without the one in flight;
//                nothing leaked; recovery after a complete recovery finds the same.
// Counting       `states` are runs; `states_left` sums the images no run stands for (budget).
// Thread safety  one explorer a process at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <unordered_set>

#include "crash/arena.hpp"
#include "crash/finding.hpp"
#include "crash/subject.hpp"
#include "os/guard.hpp"

namespace nearfar::crash {

/// What was done to a subject, and what it must hold after each operation.
struct Trace {
  storelog::Log log;
  std::vector<Contents> models; ///< models[k] after k operations, sorted as contents are compared
};

struct Options {
  Platform platform = Platform::adr;
  std::uint64_t budget = 0;      ///< states at most; 0: no limit
  std::uint64_t limit_ms = 1000; ///< CPU time for one recovery with its check
  bool crash_recovery = true;
  bool ordered = false;        ///< contents are a sequence, not a set
  std::uint64_t blamed = 1000; ///< violations that are traced to a line; more are only counted
  std::size_t findings = 64;   ///< that are kept, each with its first image
};

struct Progress {
  std::uint64_t states = 0;
  std::uint64_t events_done = 0;
  std::uint64_t events = 0;
  std::uint64_t violations = 0;
};

class Explorer : private Chooser {
public:
  /// Fills the subject by the operations in an arena of `bytes`, records it, and says whether the
  /// log accounts for every byte: a store that was not reported is an error (failed_check).
  Explorer(Subject& subject, std::size_t bytes, const Options& options);

  Result<Done> record(const std::vector<Operation>& operations,
                      std::optional<storelog::Suppressed> suppressed = {});
  const Trace& trace() const { return trace_; }

  Exploration explore(const std::function<void(const Progress&)>& progress = {});

  /// Runs recovery and the check once on an image, as after `acknowledged` operations.
  Finding replay(std::span<const std::byte> image, std::uint64_t acknowledged, bool in_flight);

private:
  struct Decision {
    std::size_t slot = 0;
    std::size_t version = 0;
  };
  /// Where the program was, and what recovery may find.
  struct Point {
    std::size_t event = 0;
    std::uint64_t acknowledged = 0;
    bool in_flight = false;
    int level = 0;                     ///< 1: crash during recovery
    const Contents* exactly = nullptr; ///< recovery had ended with these
  };
  struct Verdict {
    Failure failure = Failure::none;
    std::string what;
  };

  std::size_t choose(std::size_t slot) override;
  void explore_points(Persistency& model, Point point, const Contents* recovered);
  void explore_point(const Persistency& model, const Point& point);
  void explore_nested(const std::vector<PendingLine>& pending, const Point& point);
  bool advance();
  Verdict run(const Point& point);
  Verdict judge(const Point& point);
  void list_versions(const Persistency& model);
  void follow(std::vector<Changed> changed);
  void rewrite(std::uint32_t line, const Line& content);
  std::uint64_t key(const Point& point) const;
  double images() const;
  double covered() const;
  bool exhausted() const { return options_.budget != 0 && result_.states >= options_.budget; }
  void found(const Persistency& model, const Point& point, const Verdict& verdict);
  /// Blame (blame.cpp).
  bool fails(const Point& point, const std::vector<std::size_t>& versions);
  void blame(const Persistency& model, const Point& point, Finding& finding);
  void name_culprit(const Persistency& model, const Point& point,
                    const std::vector<std::size_t>& versions, Finding& finding);
  void blame_durable(const Point& point, Finding& finding);
  const storelog::Log& log_at(const Point& point) const;
  void tell();

  Subject& subject_;
  Options options_;
  Arena arena_;
  Trace trace_;
  std::vector<std::byte> durable_;
  std::uint64_t durable_hash_ = 0;
  std::vector<Undecided> undecided_;
  std::vector<Decision> path_; ///< decisions of this run, in the order of reads
  std::size_t depth_ = 0;
  const std::vector<std::size_t>* forced_ = nullptr; ///< a version for each slot, instead of path_
  std::unordered_set<std::uint64_t> seen_;
  Exploration result_;
  std::function<void(const Progress&)> progress_;
  storelog::Recorder recovery_;
  storelog::Log nested_log_;    ///< of the recovery that is being crashed
  std::size_t outer_event_ = 0; ///< of the program, while recovery is being crashed
  std::vector<Changed>* undo_ = nullptr;
  Contents contents_;
  std::unique_ptr<os::Guard> guard_;
  const char* reason_ = nullptr;
  std::uint64_t leaked_ = 0;
  int stage_ = 0; ///< 0 recovery, 1 check
};

} // namespace nearfar::crash
