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
// Counting       `states` are runs; `states_left`: images that no run represents, because the
//                budget was used up or the exploration was stopped (os/stop.hpp).
// Identity       images and failure points are compared by 64-bit hashes; a collision would skip
//                one.
// Thread safety  one explorer a process at a time.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/random.hpp"
#include "crash/arena.hpp"
#include "crash/finding.hpp"
#include "crash/suspects.hpp"
#include "crash/trace.hpp"
#include "os/guard.hpp"
#include "os/stop.hpp"

namespace nearfar::crash {

struct Options {
  CacheLoss loss = CacheLoss::all;
  std::uint64_t budget = 0;      ///< states at most; 0: no limit
  std::uint64_t limit_ms = 1000; ///< CPU time for one recovery with its check
  bool crash_recovery = true;
  /// The exploration ends after this many consecutive violations without a new finding. Each costs
  /// a search for the store to blame.
  std::uint64_t violations = 200;
  std::uint64_t progress_interval = 4096; ///< states between two calls of the progress
  /// The reads of the checker are unknown (another program): every pending line matters.
  bool read_all = false;
  /// Every so many images have a second opinion (Checked::confirm); 0: none.
  std::uint64_t confirm_every = 0;
  std::size_t findings = 64; ///< that are kept, each with its first image
  std::size_t from = 0;      ///< crashes before this event of the log are left out
};

struct Progress {
  std::uint64_t states = 0;
  double left = 0; ///< images at most, those of crashes during recovery apart
  std::uint64_t violations = 0;
  double done = 0; ///< share of the work, 0 to 1: of the log, or of the budget
};

class Explorer : private Chooser {
public:
  /// All must outlive the explorer. The arena is that in which the trace was recorded, so that
  /// pointers keep their values.
  Explorer(Checked& checked, Arena& arena, const Trace& trace, const Options& options);

  Exploration explore(const std::function<void(const Progress&)>& progress = {});

  /// Runs recovery and the check once on an image, as after `acknowledged` operations.
  Finding replay(std::span<const std::byte> image, std::uint64_t acknowledged, bool in_flight,
                 bool finished = false);

private:
  struct Decision {
    std::size_t slot = 0;
    std::size_t version = 0;
  };
  /// Where the program was, and what recovery may find.
  struct Point {
    std::size_t event = 0;
    std::size_t since = 0; ///< event of the failure point before
    std::uint64_t acknowledged = 0;
    unsigned running = 0; ///< operations that have begun and not ended
    bool in_flight = false;
    bool finished = false;
    int level = 0;                               ///< 1: crash during recovery
    const Contents* expected_contents = nullptr; ///< recovery had ended with these

    /// What a good image must satisfy, as a number.
    std::uint64_t demands() const {
      return acknowledged * 8 + in_flight * 4u + finished * 2u + (level > 0 ? 1u : 0u);
    }
  };
  /// After two images of a series have failed by a well-known finding, the rest of the series waits
  /// for the last passes, so that one cause does not use up the budget.
  struct Patience {
    int left = 2;
    bool is_over() const { return left <= 0; }
  };
  struct Verdict {
    Failure failure = Failure::none;
    std::string what;
    bool second = false; ///< a second opinion: no more can be found out about it
  };

  std::size_t choose(std::size_t slot) override;
  void explore_points(Persistency& model, Point point, const Contents* recovered);
  bool is_walk_over(const Point& point) const;
  static std::vector<std::byte> in_lines(std::span<const std::byte> image);
  void prepare();
  void count_stores();
  void note_tried_stores(const Point& point);
  /// Few images that are likely to fail, before all others (first.cpp).
  void explore_first();
  void explore_batch(std::vector<Suspect> batch);
  void explore_new_places(bool briefly);
  void explore_suspects_at(const Persistency& model, const Point& point);
  void explore_new_places_at(const Persistency& model, const Point& point);
  void explore_around(const Persistency& model, const Point& point, std::size_t store);
  std::vector<std::size_t> new_places(const Point& point);
  void explore_known_reads(const Persistency& model, const Point& point);
  /// Where what is read is not known (every.cpp).
  bool another_pass();
  bool is_share_pass() const;
  void explore_unknown_reads(const Persistency& model, const Point& point);
  bool is_own(const Piece& piece) const;
  void explore_overdue(const Persistency& model, const Point& point);
  std::vector<std::size_t> versions_until(const Persistency& model, const Point& point,
                                          std::size_t end) const;
  bool explore_prefixes(const Persistency& model, const Point& point, bool own);
  bool explore_single_lines(const Persistency& model, const Point& point, bool own);
  bool explore_line(const Persistency& model, const Point& point, const Decision& first,
                    const std::vector<std::size_t>& others, Patience& patience);
  void explore_share(const Persistency& model, const Point& point);
  bool explore_image(const Persistency& model, const Point& point,
                     const std::vector<std::size_t>& versions);
  void path_of(const std::vector<std::size_t>& versions);
  double explore_recovery(const Persistency& model, const Point& point,
                          const std::vector<std::size_t>& versions);
  void explore_nested(const std::vector<PendingLine>& pending, const Point& point,
                      const storelog::Log& log);
  bool advance();
  Verdict run(const Point& point);
  Verdict run(const Point& point, const std::vector<std::size_t>& versions);
  Verdict confirm();
  Verdict judge(const Point& point);
  void follow(std::vector<Changed> changed);
  void rewrite(std::uint32_t line, const Line& content);
  std::uint64_t key(const Point& point) const;
  double covered() const;
  double count_all() const;
  bool exhausted() const {
    return os::stop_wanted() || (options_.budget != 0 && result_.states >= options_.budget) ||
           in_a_row_ >= options_.violations;
  }
  bool found(const Persistency& model, const Point& point, const Verdict& verdict,
             std::vector<std::size_t> versions);
  void keep_image(const std::vector<std::size_t>& versions, Finding& finding) const;
  /// Blame (blame.cpp).
  bool fails(const Point& point, const std::vector<std::size_t>& versions);
  void keep_failing(const Point& point, std::vector<std::size_t>& versions,
                    const std::vector<std::size_t>& wanted, std::size_t first, std::size_t last);
  void blame(const Persistency& model, const Point& point, std::vector<std::size_t> versions,
             Finding& finding);
  struct Suspects {
    const Piece* missing = nullptr; ///< the first store that did not become durable
    std::uint64_t missing_at = 0;
    bool missing_may = false;     ///< it was logged
    const Piece* early = nullptr; ///< the last store that did
    std::uint64_t early_at = 0;
  };
  Suspects suspects(const Persistency& model, const std::vector<std::size_t>& versions,
                    const Finding& finding) const;
  void name_culprit(const Persistency& model, const Point& point,
                    const std::vector<std::size_t>& versions, Finding& finding);
  bool is_torn(const Suspects& found, const Point& point, const Finding& finding) const;
  bool only_torn_fails(const Persistency& model, const Point& point,
                       const std::vector<std::size_t>& versions);
  void blame_early(const Suspects& found, Finding& finding) const;
  void blame_durable(const Point& point, Finding& finding);
  std::span<const std::uint64_t> operations_at(std::uint64_t acknowledged) const;
  const storelog::Log& log_at(const Point& point) const;
  const storelog::Log& log_of(const Piece& piece) const {
    return piece.recovery ? nested_log_ : trace_.log;
  }
  double left_of_all();
  void count_what_is_left();
  void report_progress();

  Checked& checked_;
  Arena& arena_;
  const Trace& trace_;
  Options options_;
  std::vector<std::byte> durable_;
  std::uint64_t durable_hash_ = 0;
  std::vector<Undecided> undecided_;
  std::vector<Decision> path_; ///< decisions of this run, in the order of reads
  std::size_t depth_ = 0;
  const std::vector<std::size_t>* forced_ = nullptr; ///< a version for each slot, instead of path_
  std::unordered_set<std::uint64_t> seen_;
  /// Good images that recovery changes, and how many images crashes of it leave (every.cpp).
  std::unordered_map<std::uint64_t, double> uncrashed_;
  double nested_left_ = 0;
  std::unordered_map<std::uint32_t, unsigned> overdue_; ///< points at which a line was not flushed
  enum class Stage : std::uint8_t { suspects, brief_places, new_places, all };
  Stage stage_of_ = Stage::all;
  std::vector<Suspect> suspects_; ///< of this walk through the log
  std::size_t next_suspect_ = 0;
  std::vector<bool> tried_;                  ///< for each event
  std::vector<bool> reached_;                ///< failure points with an image, by their event
  std::unordered_set<std::uint64_t> places_; ///< of stores that this stage has tried, as hashes
  std::uint64_t states_before_ = 0;          ///< this pass
  std::uint64_t in_a_row_ = 0;               ///< violations since the last new finding, with it
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
  Moment moment_;
  Random random_{1}; ///< for what a second opinion finds in lines that do not matter
  int pass_ = 0;
  bool changed_ = false; ///< the last run changed a shared image
  double all_ = 0;       ///< images; 0: not counted yet
  double covered_ = 0;   ///< of these
  int stage_ = 0;        ///< 0 recovery, 1 check
};

} // namespace nearfar::crash
