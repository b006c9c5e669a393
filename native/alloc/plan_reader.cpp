#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "alloc/allocator.hpp"
#include "alloc/diagnostics.hpp"
#include "alloc/mapping_rule_reader.hpp"
#include "alloc/metadata.hpp"
#include "alloc/plan_words.hpp"
#include "alloc/rule_statistics.hpp"
#include "os/address_space.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::string_view head = "hmalloc-plan 1";
constexpr std::uint32_t max_lines = 10'000;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf"; ///< of UTF-8, as some editors write it

class PlanReader {
public:
  PlanReader(Allocator& allocator, const char* path)
      : allocator_(allocator), plan_(allocator.plan), path_(path) {}

  Status read(std::string_view text) {
    if (text.find('\0') != text.npos)
      return Error::make(Errc::bad_input, "cannot read %s: it is a binary file", path_)
          .try_next("see docs/formats/plan.md");
    take_prefix(text, byte_order_mark);
    if (Status s = allocate_rules(text); !s) return s.error();
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = next_line(rest);
      ++line_;
      if (line.empty()) continue;
      if (Status s = begun_ ? read_line(line) : read_head(line); !s) return s.error();
    }
    if (unplaced_ > 0)
      log_error("%s: %u rules for mappings and globals have no effect: tier %s is not memory of "
                "NUMA nodes; name a node (--tier %s=numa:1)",
                path_, unplaced_, unplaced_tier_, unplaced_tier_);
    return begun_ ? Status(Done{}) : refuse("the first line must be 'hmalloc-plan 1', not", "");
  }

private:
  Error refuse(const char* complaint, std::string_view part) const {
    constexpr int max_shown = 80;
    return Error::make(Errc::bad_input, "%s:%d: %s '%.*s'", path_, line_, complaint,
                       part.size() < max_shown ? static_cast<int>(part.size()) : max_shown,
                       part.data())
        .try_next("see docs/formats/plan.md");
  }

  Status allocate_rules(std::string_view text) {
    std::size_t lines = text.empty() || text.back() == '\n' ? 0 : 1;
    for (const char c : text)
      lines += c == '\n';
    if (lines > max_lines)
      return Error::make(Errc::bad_input, "%s: a plan has at most %u lines, and this one has %zu",
                         path_, max_lines, lines)
          .try_next("see docs/formats/plan.md");
    void* memory = allocate_metadata((lines + 1) * sizeof(Rule));
    void* mapping = allocate_metadata((lines + 1) * sizeof(MappingRule));
    if (memory == nullptr || mapping == nullptr)
      return Error::make(Errc::no_space, "no memory for the plan");
    plan_.rules = static_cast<Rule*>(memory);
    plan_.mapping.rules = static_cast<MappingRule*>(mapping);
    return Done{};
  }

  Status read_head(std::string_view line) {
    if (line != head) return refuse("the first line must be 'hmalloc-plan 1', not", line);
    begun_ = true;
    return Done{};
  }

  Status read_line(std::string_view line) {
    const std::string_view verb = next_word(line);
    if (verb == "rule") return read_rule(line);
    if (verb == "tier") return read_tier(line);
    if (verb == "default") return read_default(line);
    if (verb == "unwind") return read_unwind(line);
    return refuse("expected rule, tier, default or unwind, not", verb);
  }

  Status find(std::string_view name, int& tier) const {
    char text[tier_name_bytes] = "";
    if (!is_tier_name(name)) return refuse("invalid tier name", name);
    std::memcpy(text, name.data(), name.size());
    tier = allocator_.find_tier(text);
    if (tier < 0) return refuse("no such tier", name);
    return Done{};
  }

  /// The same error, with file and line.
  Error located(const Error& error, const char* next) const {
    Error made = Error::make(error.code, "%s:%d: %.180s", path_, line_, error.what);
    return made.try_next("%s", next);
  }

  Status read_default(std::string_view line) {
    const std::string_view name = next_word(line);
    if (!next_word(line).empty()) return refuse("unexpected text after default", name);
    return find(name, plan_.default_tier);
  }

  Status read_unwind(std::string_view line) {
    const std::string_view how = next_word(line);
    if (how != "tables" && how != "frame-pointers")
      return refuse("expected tables or frame-pointers, not", how);
    if (!next_word(line).empty()) return refuse("unexpected text after unwind", how);
    plan_.by_tables = how == "tables";
    return Done{};
  }

  /// A tier of that name that exists (NEARFAR_HMALLOC_FAR, --tier) is not changed.
  Status read_tier(std::string_view line) {
    const std::string_view name = next_word(line);
    const std::string_view specification = next_word(line);
    char name_text[tier_name_bytes] = "";
    char text[512] = "";
    if (!is_tier_name(name)) return refuse("invalid tier name", name);
    if (specification.empty() || specification.size() >= sizeof text || !next_word(line).empty())
      return refuse("expected NAME SPECIFICATION of tier", name);
    std::memcpy(name_text, name.data(), name.size());
    std::memcpy(text, specification.data(), specification.size());
    if (allocator_.find_tier(name_text) >= 0) return Done{};
    Result<int> made = allocator_.create_tier(name_text, text);
    if (made) return Done{};
    return located(made.error(), made.error().next);
  }

  Status read_rule(std::string_view line) {
    int tier = 0;
    if (Status s = find(next_word(line), tier); !s) return s.error();
    ++rules_;
    if (is_mapping_rule(line)) return read_mapping(line, tier);
    Rule* rule = new (plan_.rules + plan_.rule_count) Rule;
    rule->number = rules_;
    rule->tier = tier;
    unsigned seen = 0;
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
      if (Status s = read_condition(word, *rule, seen); !s) return s.error();
    ++plan_.rule_count;
    return Done{};
  }

  Status read_mapping(std::string_view line, int tier) {
    MappingRules& mapping = plan_.mapping;
    MappingRule* rule = new (mapping.rules + mapping.count) MappingRule;
    rule->number = rules_;
    rule->tier = tier;
    if (Status s = read_mapping_rule(line, *rule, mapping); !s)
      return located(s.error(), "see docs/formats/plan.md");
    const TierHeap& heap = allocator_.tiers[tier];
    if (!heap.is_memory()) { // the rest of the plan holds: a machine may have no far node
      ++unplaced_;
      unplaced_tier_ = heap.name();
      return Done{};
    }
    if (rule->kind == MappedKind::named)
      log_error("%s:%d: map=name: has no effect here: memory is named after it was mapped", path_,
                line_);
    ++mapping.count;
    return Done{};
  }

  /// `seen` has a bit for each kind of condition that the rule has.
  Status read_condition(std::string_view word, Rule& rule, unsigned& seen) {
    std::string_view value = word;
    unsigned kind = 1;
    for (const Condition& condition : conditions) {
      if (take_prefix(value, condition.word)) {
        if ((seen & kind) != 0) return refuse("duplicate condition", word);
        seen |= kind;
        if (!(this->*condition.read)(value, rule)) return refuse("invalid condition", word);
        return Done{};
      }
      kind <<= 1;
    }
    if (word.starts_with("at=") || word.starts_with("range="))
      return refuse("at= and range= require map= or globals=, not", word);
    return refuse("expected site=, size=, thread=, budget= or ratio=, not", word);
  }

  bool read_site(std::string_view value, Rule& rule) {
    SiteFrame frames[longest_chain];
    std::size_t count = 0;
    if (!parse_frames(value, frames, count)) return false;
    void* memory = allocate_metadata(count * sizeof(SiteFrame));
    if (memory == nullptr) return false;
    std::memcpy(memory, frames, count * sizeof(SiteFrame));
    rule.chain = static_cast<const SiteFrame*>(memory);
    rule.chain_length = static_cast<std::uint8_t>(count);
    if (count > plan_.longest) plan_.longest = static_cast<std::uint8_t>(count);
    return true;
  }
  bool read_sizes(std::string_view value, Rule& rule) {
    return parse_size_range(value, rule.min_bytes, rule.max_bytes);
  }
  bool read_ratio(std::string_view value, Rule& rule) { return parse_ratio(value, rule.ratio); }

  bool read_thread(std::string_view value, Rule& rule) {
    if (value.empty() || value.size() >= sizeof rule.thread) return false;
    std::memcpy(rule.thread, value.data(), value.size());
    return true;
  }

  bool read_budget(std::string_view value, Rule& rule) {
    std::uint64_t bytes = 0;
    if (!parse_size(value, bytes) || bytes > INT64_MAX || budgets_ == max_budgets) return false;
    rule.budget = static_cast<std::int64_t>(bytes);
    rule.budget_number = static_cast<std::uint8_t>(budgets_++);
    return true;
  }

  struct Condition {
    std::string_view word;
    bool (PlanReader::*read)(std::string_view value, Rule& rule);
  };
  static constexpr Condition conditions[] = {{"site=", &PlanReader::read_site},
                                             {"size=", &PlanReader::read_sizes},
                                             {"thread=", &PlanReader::read_thread},
                                             {"budget=", &PlanReader::read_budget},
                                             {"ratio=", &PlanReader::read_ratio}};

  Allocator& allocator_;
  Plan& plan_;
  const char* path_;
  int line_ = 0;
  std::uint32_t rules_ = 0; ///< of all kinds
  unsigned budgets_ = 0;
  unsigned unplaced_ = 0; ///< rules for mappings on tiers that cannot hold them
  const char* unplaced_tier_ = "";
  bool begun_ = false;
};

} // namespace

Status load_plan(Allocator& allocator, const char* path) {
  std::size_t bytes = 0;
  char* text = os::read_file(path, bytes);
  if (text == nullptr) {
    if (errno == EINVAL)
      return Error::make(Errc::bad_input, "invalid plan %s: not a regular file", path)
          .try_next("name a plan file, which each program reads again");
    const Errc code = errno == ENOENT ? Errc::not_found : Errc::no_permission;
    return Error::make(code, "cannot read the plan %s: %s", path, std::strerror(errno))
        .try_next("name a plan file that exists and is readable");
  }
  allocator.plan.default_tier = allocator.settings.default_tier;
  Status read = PlanReader(allocator, path).read(std::string_view(text, bytes));
  os::unmap(reinterpret_cast<std::byte*>(text), bytes + 1);
  if (read && allocator.settings.count_rules && !enable_rule_statistics(allocator.plan))
    return Error::make(Errc::os_error, "no memory for the statistics of rules");
  return read;
}

} // namespace nearfar::alloc
