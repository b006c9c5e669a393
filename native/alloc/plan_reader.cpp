#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "alloc/allocator.hpp"
#include "alloc/metadata.hpp"
#include "alloc/rule_statistics.hpp"
#include "os/address_space.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::string_view head = "hmalloc-plan 1";
constexpr std::uint32_t max_rules = 10'000;

std::string_view next_word(std::string_view& rest) {
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t'))
    rest.remove_prefix(1);
  std::size_t length = 0;
  while (length < rest.size() && rest[length] != ' ' && rest[length] != '\t')
    ++length;
  const std::string_view word = rest.substr(0, length);
  rest.remove_prefix(length);
  return word;
}

/// Removes the first line from `rest`, and returns it without comment and line end.
std::string_view next_line(std::string_view& rest) {
  std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : line.size());
  line = line.substr(0, line.find('#'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  return line;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool parse_hex(std::string_view text, std::uint64_t& value) {
  value = 0;
  if (!take_prefix(text, "0x") || text.empty() || text.size() > 16) return false;
  for (const char c : text) {
    if (hex_digit(c) < 0) return false;
    value = value << 4 | static_cast<std::uint64_t>(hex_digit(c));
  }
  return true;
}

bool parse_build_id(std::string_view text, SiteFrame& frame) {
  if (text.size() < 8 || text.size() % 2 != 0 || text.size() / 2 > sizeof frame.build_id)
    return false;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return false;
    frame.build_id[i / 2] = static_cast<unsigned char>(high << 4 | low);
  }
  frame.build_id_bytes = static_cast<std::uint8_t>(text.size() / 2);
  return true;
}

/// BUILD-ID+0xOFFSET, or name:FILE+0xOFFSET.
bool parse_frame(std::string_view text, SiteFrame& frame) {
  const std::size_t plus = text.rfind('+');
  if (plus == text.npos) return false;
  std::string_view object = text.substr(0, plus);
  std::string_view offset = text;
  offset.remove_prefix(plus + 1);
  if (!parse_hex(offset, frame.offset)) return false;
  if (!take_prefix(object, "name:")) return parse_build_id(object, frame);
  if (object.size() >= sizeof frame.name) return false;
  std::memcpy(frame.name, object.data(), object.size());
  return true;
}

bool parse_chain(std::string_view text, Rule& rule, Plan& plan) {
  SiteFrame frames[longest_chain];
  std::size_t count = 0;
  if (text.ends_with('<')) return false;
  for (; !text.empty() && count < longest_chain; ++count) {
    const std::string_view one = text.substr(0, text.find('<'));
    text.remove_prefix(one.size() < text.size() ? one.size() + 1 : one.size());
    if (!parse_frame(one, frames[count])) return false;
  }
  if (!text.empty() || count == 0) return false;
  void* memory = allocate_metadata(count * sizeof(SiteFrame));
  if (memory == nullptr) return false;
  std::memcpy(memory, frames, count * sizeof(SiteFrame));
  rule.chain = static_cast<const SiteFrame*>(memory);
  rule.chain_length = static_cast<std::uint8_t>(count);
  if (count > plan.longest) plan.longest = static_cast<std::uint8_t>(count);
  return true;
}

/// MIN..MAX in bytes, both inclusive; either may be missing.
bool parse_sizes(std::string_view text, Rule& rule) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos || text.size() == 2) return false;
  const std::string_view low = text.substr(0, dots);
  std::string_view high = text;
  high.remove_prefix(dots + 2);
  if (!low.empty() && !parse_size(low, rule.min_bytes)) return false;
  if (!high.empty() && !parse_size(high, rule.max_bytes)) return false;
  return rule.min_bytes <= rule.max_bytes;
}

/// A decimal from 0 to 1 with at most nine digits after the point.
bool parse_ratio(std::string_view text, double& ratio) {
  double scale = 1;
  bool point = false;
  bool digits = false;
  ratio = 0;
  if (text.empty() || text.size() > 11) return false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      ratio = ratio * 10 + (c - '0');
      digits = true;
      if (point) scale *= 10;
    } else {
      return false;
    }
  }
  ratio /= scale;
  return digits && ratio <= 1;
}

class PlanReader {
public:
  PlanReader(Allocator& allocator, const char* path)
      : allocator_(allocator), plan_(allocator.plan), path_(path) {}

  Status read(std::string_view text) {
    if (Status s = allocate_rules(text); !s) return s.error();
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = next_line(rest);
      ++line_;
      if (line.empty()) continue;
      if (Status s = begun_ ? read_line(line) : read_head(line); !s) return s.error();
    }
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
    std::uint32_t lines = 1;
    for (const char c : text)
      lines += c == '\n' ? 1u : 0u;
    if (lines > max_rules) return refuse("a plan has at most 10000 lines", "");
    void* memory = allocate_metadata(lines * sizeof(Rule));
    if (memory == nullptr) return Error::make(Errc::no_space, "no memory for the plan");
    plan_.rules = static_cast<Rule*>(memory);
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
    Error error = Error::make(made.error().code, "%s:%d: %.180s", path_, line_, made.error().what);
    return error.try_next("%s", made.error().next);
  }

  Status read_rule(std::string_view line) {
    Rule* rule = new (plan_.rules + plan_.rule_count) Rule;
    if (Status s = find(next_word(line), rule->tier); !s) return s.error();
    unsigned seen = 0;
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
      if (Status s = read_condition(word, *rule, seen); !s) return s.error();
    ++plan_.rule_count;
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
    return refuse("expected site=, size=, thread=, budget= or ratio=, not", word);
  }

  bool read_site(std::string_view value, Rule& rule) { return parse_chain(value, rule, plan_); }
  bool read_sizes(std::string_view value, Rule& rule) { return parse_sizes(value, rule); }
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
  unsigned budgets_ = 0;
  bool begun_ = false;
};

} // namespace

Status load_plan(Allocator& allocator, const char* path) {
  std::size_t bytes = 0;
  char* text = os::read_file(path, bytes);
  if (text == nullptr) {
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
