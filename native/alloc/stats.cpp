#include "alloc/stats.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "alloc/cache.hpp"
#include "alloc/metadata.hpp"
#include "alloc/plan.hpp"
#include "alloc/rule_accounts.hpp"
#include "alloc/settings.hpp"
#include "alloc/trouble.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

constexpr int standard_error = 2;
constinit char stats_file[512] = "";
constinit os::Event stats_signal;

/// Text gathered and written in pieces, without stdio, which would allocate.
class Text {
public:
  explicit Text(int fd) : fd_(fd) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  /// Writes what is left. The first errno of all writes, 0 for success.
  int finish() {
    flush();
    return code_;
  }

  [[gnu::format(printf, 2, 3)]] void line(const char* format, ...) {
    constexpr std::size_t longest = 256;
    if (length_ + longest > sizeof text_) flush();
    va_list arguments;
    va_start(arguments, format);
    const int wrote = std::vsnprintf(text_ + length_, longest, format, arguments);
    va_end(arguments);
    length_ +=
        static_cast<std::size_t>(wrote) < longest ? static_cast<std::size_t>(wrote) : longest - 1;
  }

private:
  void flush() {
    if (code_ == 0) code_ = os::write_all(fd_, text_, length_);
    length_ = 0;
  }

  int fd_;
  int code_ = 0;
  char text_[4096];
  std::size_t length_ = 0;
};

struct ThreadSums {
  std::uint64_t allocations = 0, frees = 0, allocated_bytes = 0, freed_bytes = 0, cached_bytes = 0;
};

ThreadSums sum_of(const TierCache& stacks) {
  ThreadSums sums;
  for (unsigned c = 0; c < cached_classes; ++c) {
    const Stack& stack = stacks.stacks[c];
    const std::uint64_t bytes = class_infos[c].bytes;
    sums.allocations += stack.allocations.get();
    sums.frees += stack.frees.get();
    sums.allocated_bytes += stack.allocations.get() * bytes;
    sums.freed_bytes += stack.frees.get() * bytes;
    sums.cached_bytes += stack.held() * bytes;
  }
  return sums;
}

void add(hm_tier_stats& stats, const ThreadSums& sums) {
  stats.allocations += sums.allocations;
  stats.frees += sums.frees;
  stats.allocated_bytes += sums.allocated_bytes;
  stats.live_bytes += sums.allocated_bytes - sums.freed_bytes;
  stats.cached_bytes += sums.cached_bytes;
}

void write_thread(Text& text, const Cache& cache) {
  char name[sizeof cache.name];
  for (std::size_t i = 0; i < sizeof name; ++i) // a name with blanks would be two values
    name[i] = cache.name[i] == ' ' || cache.name[i] == '\n' ? '_' : cache.name[i];
  text.line("thread.%d.name %s\n", cache.thread, name[0] != '\0' ? name : "-");
  for (unsigned t = 0; t < tier_count; ++t) {
    if (cache.tiers[t] == &empty_stacks) continue;
    const ThreadSums sums = sum_of(*cache.tiers[t]);
    const char* tier = tiers[t].name;
    text.line("thread.%d.%s.allocations %" PRIu64 "\n", cache.thread, tier, sums.allocations);
    text.line("thread.%d.%s.frees %" PRIu64 "\n", cache.thread, tier, sums.frees);
    text.line("thread.%d.%s.allocated_bytes %" PRIu64 "\n", cache.thread, tier,
              sums.allocated_bytes);
    text.line("thread.%d.%s.cached_bytes %" PRIu64 "\n", cache.thread, tier, sums.cached_bytes);
  }
}

void write_tier(Text& text, unsigned tier) {
  hm_tier_stats stats;
  fold_stats(tier, stats);
  const struct {
    const char* key;
    std::uint64_t value;
  } lines[] = {
      {"allocations", stats.allocations},
      {"frees", stats.frees},
      {"allocated_bytes", stats.allocated_bytes},
      {"live_bytes", stats.live_bytes},
      {"spilled", stats.spilled},
      {"failed", stats.failed},
      {"span_bytes", stats.span_bytes},
      {"cached_bytes", stats.cached_bytes},
      {"returned_bytes", stats.returned_bytes},
      {"metadata_bytes", stats.metadata_bytes},
      {"capacity_bytes", stats.capacity_bytes},
  };
  for (const auto& l : lines)
    text.line("tier.%s.%s %" PRIu64 "\n", tiers[tier].name, l.key, l.value);
  text.line("tier.%s.nodes %lu\n", tiers[tier].name, tiers[tier].runs.medium().options.nodes);
}

void write_rule(Text& text, const Rule& rule, unsigned number) {
  const RuleAccounts& accounts = *rule.accounts;
  const std::int64_t live = rule.used.load(std::memory_order_relaxed);
  const std::int64_t peak = accounts.peak_bytes.load(std::memory_order_relaxed);
  text.line("rule.%u.tier %s\n", number, tiers[rule.tier].name);
  const struct {
    const char* key;
    std::uint64_t value;
  } lines[] = {
      {"allocations", accounts.allocations.get()},
      {"allocated_bytes", accounts.allocated_bytes.get()},
      {"elsewhere", accounts.elsewhere.get()},
      {"elsewhere_bytes", accounts.elsewhere_bytes.get()},
      {"live_bytes", live > 0 ? static_cast<std::uint64_t>(live) : 0},
      {"peak_bytes", static_cast<std::uint64_t>(peak)},
      {"pages", accounts.pages.get()},
      {"absent", accounts.absent.get()},
  };
  for (const auto& l : lines)
    text.line("rule.%u.%s %" PRIu64 "\n", number, l.key, l.value);
  for (unsigned node = 0; node < HM_MAX_NODES; ++node)
    if (const std::uint64_t pages = accounts.on_node[node].get(); pages > 0)
      text.line("rule.%u.node%u %" PRIu64 "\n", number, node, pages);
}

void write_rules(Text& text) {
  look_at_living();
  for (std::uint32_t i = 0; i < plan.rule_count; ++i)
    if (plan.rules[i].accounts != nullptr) write_rule(text, plan.rules[i], i + 1);
}

/// stats_file with %p replaced by the process. -1 if it cannot be opened.
int open_stats_file() {
  if (stats_file[0] == '\0') return standard_error;
  char path[sizeof stats_file + 16];
  const char* place = std::strstr(stats_file, "%p");
  if (place == nullptr)
    std::snprintf(path, sizeof path, "%s", stats_file);
  else
    std::snprintf(path, sizeof path, "%.*s%d%s", static_cast<int>(place - stats_file), stats_file,
                  os::process_number(), place + 2);
  const int fd = os::create_text(path);
  if (fd < 0) say("NEARFAR_HMALLOC_STATS_FILE: cannot write %s: %s", path, std::strerror(errno));
  return fd;
}

void write_to_file() {
  const int fd = open_stats_file();
  if (fd < 0) return;
  if (const int code = write_stats(fd); code != 0 && fd != standard_error)
    say("NEARFAR_HMALLOC_STATS_FILE: cannot write statistics: %s", std::strerror(code));
  if (fd != standard_error) os::close_descriptor(fd);
}

void request_statistics(int) { stats_signal.set(); }

void* wait_for_signals(void*) {
  os::name_this_thread("hmalloc-stats");
  for (;;) {
    stats_signal.wait();
    write_to_file();
  }
}

Status watch_signal(std::string_view number_text) {
  int number = 0;
  for (const char c : number_text)
    number = c >= '0' && c <= '9' && number < 100 ? number * 10 + c - '0' : 1000;
  if (!os::on_signal(number, request_statistics))
    return Error::make(Errc::bad_input, "signal %.*s cannot be caught",
                       static_cast<int>(number_text.size()), number_text.data())
        .try_next("SIGUSR2 is 12");
  if (os::start_thread(wait_for_signals) != 0)
    return Error::make(Errc::os_error, "cannot start the thread that writes statistics");
  return Done{};
}

} // namespace

void fold_stats(unsigned tier, hm_tier_stats& stats) {
  stats = {};
  TierHeap& heap = tiers[tier];
  for (unsigned c = 0; c < class_count; ++c) {
    const std::uint64_t bytes = class_infos[c].bytes;
    const std::uint64_t past_allocations =
        c < cached_classes ? past_counts[tier][c].allocations.get() : 0;
    const std::uint64_t past_frees = c < cached_classes ? past_counts[tier][c].frees.get() : 0;
    const std::uint64_t allocations = heap.classes[c].allocations.get() + past_allocations;
    const std::uint64_t frees = heap.classes[c].frees.get() + past_frees;
    stats.allocations += allocations;
    stats.frees += frees;
    stats.allocated_bytes += allocations * bytes;
    stats.live_bytes += (allocations - frees) * bytes;
    stats.cached_bytes += heap.classes[c].free_bytes(c);
  }
  for_caches([&](const Cache& cache) {
    if (cache.tiers[tier] != &empty_stacks) add(stats, sum_of(*cache.tiers[tier]));
  });
  stats.allocations += heap.large_allocations.get();
  stats.frees += heap.large_frees.get();
  stats.allocated_bytes += heap.large_allocated_bytes.get();
  stats.live_bytes += heap.large_live_bytes.get();
  stats.spilled = heap.spilled.get();
  stats.failed = heap.failed.get();
  stats.returned_bytes = heap.returned_bytes.get();
  stats.span_bytes = heap.runs.span_bytes_used();
  stats.capacity_bytes = heap.runs.medium().options.capacity;
  stats.metadata_bytes = tier == 0 ? metadata_bytes() : 0;
}

int write_stats(int fd) {
  Text text(fd);
  text.line("hmalloc-stats 1\nprocess %d\n", os::process_number());
  for (unsigned t = 0; t < tier_count; ++t)
    if (tiers[t].ready()) write_tier(text, t);
  for_caches([&](const Cache& cache) { write_thread(text, cache); });
  if (settings.count_rules && settings.planned) write_rules(text);
  return text.finish();
}

Status set_statistics(const char* when, const char* file) {
  if (std::strlen(file) >= sizeof stats_file)
    return Error::make(Errc::bad_input, "the name of the file is too long");
  std::strcpy(stats_file, file);
  for (std::string_view rest(when); !rest.empty();) {
    std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : part.size());
    constexpr std::string_view signal = "signal:";
    if (part == "exit") {
      os::at_exit(write_to_file);
    } else if (part == "rules") {
      settings.count_rules = true;
    } else if (part.starts_with(signal)) {
      part.remove_prefix(signal.size());
      if (Status s = watch_signal(part); !s) return s.error();
    } else {
      return Error::make(Errc::bad_input, "exit, signal:NUMBER and rules are known, not '%.*s'",
                         static_cast<int>(part.size()), part.data());
    }
  }
  return Done{};
}

} // namespace nearfar::alloc
