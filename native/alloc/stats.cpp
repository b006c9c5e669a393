#include "alloc/stats.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "alloc/allocator.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/metadata.hpp"
#include "alloc/rule_statistics.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

constexpr int standard_error = 2;
constinit os::Event stats_signal;

/// Text buffered and written in pieces, without stdio, which would allocate.
class TextWriter {
public:
  explicit TextWriter(int fd) : fd_(fd) {}
  TextWriter(const TextWriter&) = delete;
  TextWriter& operator=(const TextWriter&) = delete;

  /// Writes the rest. Returns the first errno of all writes, 0 for success.
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
  std::uint64_t allocations = 0, frees = 0, allocated_bytes = 0, cached_bytes = 0;
};

ThreadSums sum_of(const TierStacks& stacks) {
  ThreadSums sums;
  for (unsigned c = 0; c < cached_classes; ++c) {
    const BlockStack& stack = stacks.stacks[c];
    const std::uint64_t bytes = class_infos[c].bytes;
    const std::uint64_t allocations = stack.allocations();
    sums.allocations += allocations;
    sums.frees += stack.frees();
    sums.allocated_bytes += allocations * bytes;
    sums.cached_bytes += stack.shared_count() * bytes;
  }
  return sums;
}

/// The members that hold one counter (allocations or frees): of a class, of ended threads, of a
/// stack.
struct CounterPlace {
  Counter SlabClass::*of_class;
  Counter ThreadCaches::Counts::*of_exited_threads;
  std::uint64_t (BlockStack::*of_stack)() const;
};
constexpr CounterPlace allocation_counters{
    &SlabClass::allocations, &ThreadCaches::Counts::allocations, &BlockStack::allocations};
constexpr CounterPlace free_counters{&SlabClass::frees, &ThreadCaches::Counts::frees,
                                     &BlockStack::frees};

struct BlockSum {
  std::uint64_t blocks = 0, bytes = 0;
};

/// Sums a counter of all classes. The lock of the caches keeps threads from ending, which would
/// move counters to past_counts().
BlockSum sum_of(Allocator& allocator, unsigned tier, const CounterPlace& place)
    NEARFAR_REQUIRES(allocator.caches.lock()) {
  BlockSum sum;
  const auto add = [&](unsigned size_class, std::uint64_t blocks) {
    sum.blocks += blocks;
    sum.bytes += blocks * class_infos[size_class].bytes;
  };
  for (unsigned c = 0; c < class_count; ++c)
    add(c, (allocator.tiers[tier].classes[c].*place.of_class).get());
  for (unsigned c = 0; c < cached_classes; ++c)
    add(c, (allocator.caches.past_counts(tier, c).*place.of_exited_threads).get());
  allocator.caches.for_each_locked([&](const ThreadCache& cache) {
    for (unsigned c = 0; c < cached_classes; ++c)
      add(c, (cache.tiers[tier]->stacks[c].*place.of_stack)());
  });
  return sum;
}

/// Counts blocks of classes. Frees are read first: a block that is allocated and freed meanwhile
/// would otherwise count as freed only, and live_bytes could be negative.
void add_blocks_of_classes(Allocator& allocator, unsigned tier, hm_tier_stats& stats) {
  const os::LockGuard guard(allocator.caches.lock());
  const BlockSum freed = sum_of(allocator, tier, free_counters);
  std::atomic_signal_fence(std::memory_order_acquire); // the loads of x86 are in order
  const BlockSum allocated = sum_of(allocator, tier, allocation_counters);
  stats.allocations += allocated.blocks;
  stats.frees += freed.blocks;
  stats.allocated_bytes += allocated.bytes;
  stats.live_bytes += allocated.bytes - freed.bytes;
  for (unsigned c = 0; c < class_count; ++c)
    stats.cached_bytes += allocator.tiers[tier].classes[c].free_bytes(c);
  allocator.caches.for_each_locked([&](const ThreadCache& cache) {
    stats.cached_bytes += sum_of(*cache.tiers[tier]).cached_bytes;
  });
}

void write_thread(TextWriter& text, const Allocator& allocator, const ThreadCache& cache) {
  char name[sizeof cache.name];
  for (std::size_t i = 0; i < sizeof name; ++i) // a name with a space would be two values
    name[i] = cache.name[i] == ' ' || cache.name[i] == '\n' ? '_' : cache.name[i];
  text.line("thread.%d.name %s\n", cache.thread, name[0] != '\0' ? name : "-");
  for (unsigned t = 0; t < tier_count; ++t) {
    if (cache.tiers[t] == &empty_stacks) continue;
    const ThreadSums sums = sum_of(*cache.tiers[t]);
    const char* tier = allocator.tiers[t].name();
    text.line("thread.%d.%s.allocations %" PRIu64 "\n", cache.thread, tier, sums.allocations);
    text.line("thread.%d.%s.frees %" PRIu64 "\n", cache.thread, tier, sums.frees);
    text.line("thread.%d.%s.allocated_bytes %" PRIu64 "\n", cache.thread, tier,
              sums.allocated_bytes);
    text.line("thread.%d.%s.cached_bytes %" PRIu64 "\n", cache.thread, tier, sums.cached_bytes);
  }
}

void write_tier(TextWriter& text, Allocator& allocator, unsigned tier) {
  for (const NamedStatistic& s : named_statistics(allocator, tier))
    text.line("tier.%s.%s %" PRIu64 "\n", allocator.tiers[tier].name(), s.key, s.value);
  const TierOptions options = allocator.tiers[tier].runs.options();
  for (int node = 0; options.has_weights && node < os::max_nodes; ++node)
    if (options.weights[node] > 0)
      text.line("tier.%s.weight%d %u\n", allocator.tiers[tier].name(), node,
                static_cast<unsigned>(options.weights[node]));
}

/// Counts of a rule of any kind.
struct RuleCounts {
  unsigned number;
  int tier;
  const char* memory;
  std::int64_t live_bytes;
  const RuleStatistics* statistics;
};

void write_rule(TextWriter& text, const Allocator& allocator, const RuleCounts& rule) {
  if (rule.statistics == nullptr) return;
  const RuleStatistics& statistics = *rule.statistics;
  const std::int64_t peak = statistics.peak_bytes.load(std::memory_order_relaxed);
  text.line("rule.%u.tier %s\n", rule.number, allocator.tiers[rule.tier].name());
  text.line("rule.%u.memory %s\n", rule.number, rule.memory);
  const struct {
    const char* key;
    std::uint64_t value;
  } lines[] = {
      {"allocations", statistics.allocations.get()},
      {"allocated_bytes", statistics.allocated_bytes.get()},
      {"elsewhere", statistics.elsewhere.get()},
      {"elsewhere_bytes", statistics.elsewhere_bytes.get()},
      {"live_bytes", rule.live_bytes > 0 ? static_cast<std::uint64_t>(rule.live_bytes) : 0},
      {"peak_bytes", static_cast<std::uint64_t>(peak)},
      {"pages", statistics.pages.get()},
      {"absent", statistics.absent.get()},
  };
  for (const auto& l : lines)
    text.line("rule.%u.%s %" PRIu64 "\n", rule.number, l.key, l.value);
  for (unsigned node = 0; node < HM_MAX_NODES; ++node)
    if (const std::uint64_t pages = statistics.on_node[node].get(); pages > 0)
      text.line("rule.%u.node%u %" PRIu64 "\n", rule.number, node, pages);
}

void write_rules(TextWriter& text, Allocator& allocator) {
  sample_live_blocks(allocator);
  allocator.mappings.sample();
  const Plan& plan = allocator.plan;
  for (std::uint32_t i = 0; i < plan.rule_count; ++i) {
    const Rule& rule = plan.rules[i];
    write_rule(text, allocator,
               {rule.number, rule.tier, "heap", rule.used.load(std::memory_order_relaxed),
                rule.statistics});
  }
  for (const MappingRule& rule : plan.mapping) {
    const char* memory = rule.kind == MappedKind::globals ? "globals" : "mapping";
    write_rule(text, allocator,
               {rule.number, rule.tier, memory, rule.live_bytes.load(std::memory_order_relaxed),
                rule.statistics});
  }
}

/// Opens the file with %p replaced by the process number. Returns -1 if that fails.
int open_stats_file() {
  const auto& stats_file = process_allocator.settings.stats_file;
  if (stats_file[0] == '\0') return standard_error;
  char path[sizeof stats_file + 16];
  const char* place = std::strstr(stats_file, "%p");
  if (place == nullptr)
    std::snprintf(path, sizeof path, "%s", stats_file);
  else
    std::snprintf(path, sizeof path, "%.*s%d%s", static_cast<int>(place - stats_file), stats_file,
                  os::process_number(), place + 2);
  const int fd = os::create_text(path);
  if (fd < 0)
    log_error("NEARFAR_HMALLOC_STATS_FILE: cannot write %s: %s", path, std::strerror(errno));
  return fd;
}

void write_to_file() {
  const int fd = open_stats_file();
  if (fd < 0) return;
  if (const int code = write_stats(process_allocator, fd); code != 0 && fd != standard_error)
    log_error("NEARFAR_HMALLOC_STATS_FILE: cannot write statistics: %s", std::strerror(code));
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

std::uint64_t read_stats(Allocator& allocator, unsigned tier, hm_tier_stats& stats) {
  stats = {};
  TierHeap& heap = allocator.tiers[tier];
  add_blocks_of_classes(allocator, tier, stats);
  allocator.arenas.add_slab_statistics(heap, stats);
  stats.allocations += heap.large_allocations.get();
  stats.frees += heap.large_frees.get();
  stats.allocated_bytes += heap.large_allocated_bytes.get();
  const std::uint64_t large_bytes = heap.large_live_bytes.get();
  stats.live_bytes += large_bytes;
  stats.spilled = heap.spilled.get();
  stats.failed = heap.failed.get();
  stats.returned_bytes = heap.returned_bytes.get();
  stats.span_bytes = heap.runs.span_bytes_used();
  stats.capacity_bytes = heap.runs.options().capacity;
  stats.metadata_bytes = tier == 0 ? metadata_bytes() : 0;
  return large_bytes;
}

void copy_stats(const hm_tier_stats& from, hm_tier_stats* to, std::size_t bytes) {
  const std::size_t known = std::min(bytes, sizeof from);
  std::memcpy(to, &from, known);
  std::memset(reinterpret_cast<std::byte*>(to) + known, 0, bytes - known);
}

std::array<NamedStatistic, 12> named_statistics(Allocator& allocator, unsigned tier) {
  hm_tier_stats stats;
  read_stats(allocator, tier, stats);
  return {{{"allocations", stats.allocations},
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
           {"nodes", allocator.tiers[tier].runs.options().nodes}}};
}

Result<std::uint64_t> find_statistic(Allocator& allocator, const char* name) {
  constexpr std::string_view prefix = "tier.";
  std::string_view rest(name);
  const Error unknown = Error::make(Errc::not_found, "no statistic has the name '%.80s'", name)
                            .try_next("use tier.NAME.KEY with a key of hm_stats_write()");
  if (!rest.starts_with(prefix)) return unknown;
  rest.remove_prefix(prefix.size());
  const std::size_t dot = rest.find('.');
  if (dot == rest.npos) return unknown;
  const std::string_view tier_name(rest.data(), dot);
  rest.remove_prefix(dot + 1);
  for (unsigned t = 0; t < tier_count; ++t) {
    if (!allocator.tiers[t].ready() || tier_name != allocator.tiers[t].name()) continue;
    for (const NamedStatistic& s : named_statistics(allocator, t))
      if (rest == s.key) return s.value;
    return unknown;
  }
  return Error::make(Errc::unsupported, "no such tier: %.*s", static_cast<int>(tier_name.size()),
                     tier_name.data());
}

int write_stats(Allocator& allocator, int fd) {
  TextWriter text(fd);
  text.line("hmalloc-stats 1\nprocess %d\n", os::process_number());
  for (unsigned t = 0; t < tier_count; ++t)
    if (allocator.tiers[t].ready()) write_tier(text, allocator, t);
  allocator.caches.for_each([&](const ThreadCache& cache) {
    if (!cache.idle) write_thread(text, allocator, cache);
  });
  if (allocator.settings.count_rules && allocator.settings.has_plan) write_rules(text, allocator);
  return text.finish();
}

Status schedule_statistics(const char* when, const char* file) {
  auto& stats_file = process_allocator.settings.stats_file;
  if (std::strlen(file) >= sizeof stats_file)
    return Error::make(Errc::bad_input, "the file name is too long");
  std::strcpy(stats_file, file);
  for (std::string_view rest(when); !rest.empty();) {
    std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : part.size());
    constexpr std::string_view signal = "signal:";
    if (part == "exit") {
      os::at_exit(write_to_file);
    } else if (part == "rules") {
      process_allocator.settings.count_rules = true;
    } else if (part.starts_with(signal)) {
      part.remove_prefix(signal.size());
      if (Status s = watch_signal(part); !s) return s.error();
    } else {
      return Error::make(Errc::bad_input, "invalid value '%.*s': use exit, signal:NUMBER or rules",
                         static_cast<int>(part.size()), part.data());
    }
  }
  return Done{};
}

} // namespace nearfar::alloc
