#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "alloc/metadata.hpp"
#include "alloc/options.hpp"
#include "alloc/plan.hpp"
#include "alloc/rule_accounts.hpp"
#include "alloc/settings.hpp"
#include "os/address_space.hpp"
#include "os/process.hpp"

namespace nearfar::alloc {

namespace {

constexpr std::string_view head = "hmalloc-plan 1";
constexpr std::uint32_t most_rules = 10'000;

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

/// A line without its comment and line end; `rest` goes on behind it.
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

bool parse_chain(std::string_view text, Rule& rule) {
  SiteFrame frames[longest_chain];
  std::size_t count = 0;
  if (text.ends_with('<')) return false;
  for (; !text.empty() && count < longest_chain; ++count) {
    const std::string_view one = text.substr(0, text.find('<'));
    text.remove_prefix(one.size() < text.size() ? one.size() + 1 : one.size());
    if (!parse_frame(one, frames[count])) return false;
  }
  if (!text.empty() || count == 0) return false;
  void* memory = take_metadata(count * sizeof(SiteFrame));
  if (memory == nullptr) return false;
  std::memcpy(memory, frames, count * sizeof(SiteFrame));
  rule.chain = static_cast<const SiteFrame*>(memory);
  rule.chain_length = static_cast<std::uint8_t>(count);
  if (count > plan.longest) plan.longest = static_cast<std::uint8_t>(count);
  return true;
}

/// MIN..MAX in bytes, both included; either may be missing.
bool parse_sizes(std::string_view text, Rule& rule) {
  const std::size_t dots = text.find("..");
  if (dots == text.npos || text.size() == 2) return false;
  const std::string_view low = text.substr(0, dots);
  std::string_view high = text;
  high.remove_prefix(dots + 2);
  if (!low.empty() && !parse_size(low, rule.least_bytes)) return false;
  if (!high.empty() && !parse_size(high, rule.most_bytes)) return false;
  return rule.least_bytes <= rule.most_bytes;
}

/// A decimal from 0 to 1 with at most nine digits behind the point.
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

class Reader {
public:
  explicit Reader(const char* path) : path_(path) {}

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
    constexpr int most = 80;
    return Error::make(Errc::bad_input, "%s:%d: %s '%.*s'", path_, line_, complaint,
                       part.size() < most ? static_cast<int>(part.size()) : most, part.data())
        .try_next("docs/formats/plan.md tells how a plan is written");
  }

  Status allocate_rules(std::string_view text) {
    std::uint32_t lines = 1;
    for (const char c : text)
      lines += c == '\n' ? 1u : 0u;
    if (lines > most_rules) return refuse("a plan has at most 10000 lines", "");
    void* memory = take_metadata(lines * sizeof(Rule));
    if (memory == nullptr) return Error::make(Errc::no_space, "no memory for the plan");
    plan.rules = static_cast<Rule*>(memory);
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
    return refuse("rule, tier, default and unwind are known, not", verb);
  }

  Status find(std::string_view name, int& tier) const {
    char text[name_bytes] = "";
    if (!good_name(name)) return refuse("no name of a tier:", name);
    std::memcpy(text, name.data(), name.size());
    tier = find_tier(text);
    if (tier < 0) return refuse("there is no tier", name);
    return Done{};
  }

  Status read_default(std::string_view line) {
    const std::string_view name = next_word(line);
    if (!next_word(line).empty()) return refuse("nothing may follow default", name);
    return find(name, plan.default_tier);
  }

  Status read_unwind(std::string_view line) {
    const std::string_view how = next_word(line);
    if (how != "tables" && how != "frame-pointers")
      return refuse("unwind is tables or frame-pointers, not", how);
    if (!next_word(line).empty()) return refuse("nothing may follow unwind", how);
    plan.by_tables = how == "tables";
    return Done{};
  }

  /// A tier of that name that is there already (NEARFAR_HMALLOC_FAR, --tier) is taken as it is.
  Status read_tier(std::string_view line) {
    const std::string_view name = next_word(line);
    const std::string_view specification = next_word(line);
    char name_text[name_bytes] = "";
    char text[512] = "";
    if (!good_name(name)) return refuse("no name of a tier:", name);
    if (specification.empty() || specification.size() >= sizeof text || !next_word(line).empty())
      return refuse("tier NAME SPECIFICATION is wanted for", name);
    std::memcpy(name_text, name.data(), name.size());
    std::memcpy(text, specification.data(), specification.size());
    if (find_tier(name_text) >= 0) return Done{};
    Result<int> made = create_tier(name_text, text);
    if (made) return Done{};
    Error error = Error::make(made.error().code, "%s:%d: %.180s", path_, line_, made.error().what);
    return error.try_next("%s", made.error().next);
  }

  Status read_rule(std::string_view line) {
    Rule* rule = new (plan.rules + plan.rule_count) Rule;
    if (Status s = find(next_word(line), rule->tier); !s) return s.error();
    unsigned told = 0;
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line))
      if (Status s = read_condition(word, *rule, told); !s) return s.error();
    ++plan.rule_count;
    return Done{};
  }

  /// `told`: a bit for each kind of condition that the rule has.
  Status read_condition(std::string_view word, Rule& rule, unsigned& told) {
    std::string_view value = word;
    unsigned kind = 1;
    for (const Condition& condition : conditions) {
      if (take_prefix(value, condition.word)) {
        if ((told & kind) != 0) return refuse("a rule has one such condition, not also", word);
        told |= kind;
        if (!(this->*condition.read)(value, rule))
          return refuse("this condition makes no sense:", word);
        return Done{};
      }
      kind <<= 1;
    }
    return refuse("site=, size=, thread=, budget= and ratio= are known, not", word);
  }

  bool read_site(std::string_view value, Rule& rule) { return parse_chain(value, rule); }
  bool read_sizes(std::string_view value, Rule& rule) { return parse_sizes(value, rule); }
  bool read_share(std::string_view value, Rule& rule) { return parse_ratio(value, rule.ratio); }

  bool read_thread(std::string_view value, Rule& rule) {
    if (value.empty() || value.size() >= sizeof rule.thread) return false;
    std::memcpy(rule.thread, value.data(), value.size());
    return true;
  }

  bool read_budget(std::string_view value, Rule& rule) {
    std::uint64_t bytes = 0;
    if (!parse_size(value, bytes) || bytes > INT64_MAX || budgets_ == most_budgets) return false;
    rule.budget = static_cast<std::int64_t>(bytes);
    rule.budget_number = static_cast<std::uint8_t>(budgets_++);
    return true;
  }

  struct Condition {
    std::string_view word;
    bool (Reader::*read)(std::string_view value, Rule& rule);
  };
  static constexpr Condition conditions[] = {{"site=", &Reader::read_site},
                                             {"size=", &Reader::read_sizes},
                                             {"thread=", &Reader::read_thread},
                                             {"budget=", &Reader::read_budget},
                                             {"ratio=", &Reader::read_share}};

  const char* path_;
  int line_ = 0;
  unsigned budgets_ = 0;
  bool begun_ = false;
};

} // namespace

constinit Plan plan;

Status load_plan(const char* path) {
  std::size_t bytes = 0;
  char* text = os::read_file(path, bytes);
  if (text == nullptr) {
    const Errc code = errno == ENOENT ? Errc::not_found : Errc::no_permission;
    return Error::make(code, "cannot read the plan %s: %s", path, std::strerror(errno))
        .try_next("name a plan file that you may read");
  }
  plan.default_tier = settings.default_tier;
  Status read = Reader(path).read(std::string_view(text, bytes));
  os::unmap(reinterpret_cast<std::byte*>(text), bytes + 1);
  if (read && settings.count_rules && !open_rule_accounts())
    return Error::make(Errc::os_error, "there is no memory for the accounts of rules");
  return read;
}

} // namespace nearfar::alloc
