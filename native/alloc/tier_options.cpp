#include "alloc/tier_options.hpp"

#include <cstring>

#include "alloc/size_classes.hpp"

namespace nearfar::alloc {

namespace {

Error refuse(const char* complaint, std::string_view part) {
  return Error::make(Errc::bad_input, "%s '%.*s'", complaint, static_cast<int>(part.size()),
                     part.data())
      .try_next("options are bind, prefer, weighted, capacity=SIZE, overflow=fail|spill:TIER, "
                "reserve=sparse|chunk|full, fork=private|copy|deny, pages=thp|4k, populate");
}

/// Sets `value` to the rest of `option` if it starts with `key`.
bool match_key(std::string_view option, std::string_view key, std::string_view& value) {
  if (!option.starts_with(key)) return false;
  value = option;
  value.remove_prefix(key.size());
  return true;
}

Status read_overflow(std::string_view value, TierOptions& options) {
  std::string_view target;
  if (value == "fail") return Done{};
  if (!match_key(value, "spill:", target))
    return refuse("overflow is fail or spill:TIER, not", value);
  if (!is_tier_name(target)) return refuse("no name of a tier:", target);
  std::memcpy(options.spill_to, target.data(), target.size());
  options.spill_to[target.size()] = '\0';
  return Done{};
}

Status read_reserve(std::string_view value, TierOptions& options) {
  if (value == "sparse")
    options.reserve = Reserve::sparse;
  else if (value == "chunk")
    options.reserve = Reserve::chunk;
  else if (value == "full")
    options.reserve = Reserve::full;
  else
    return refuse("reserve is sparse, chunk or full, not", value);
  return Done{};
}

Status read_fork(std::string_view value, TierOptions& options) {
  if (value == "private")
    options.fork = ForkPolicy::make_private;
  else if (value == "copy")
    options.fork = ForkPolicy::copy;
  else if (value == "deny")
    options.fork = ForkPolicy::deny;
  else
    return refuse("fork is private, copy or deny, not", value);
  return Done{};
}

enum class Match : std::uint8_t { no, yes };

/// Reads an option that libhmalloc adds to the grammar of tiers.
Result<Match> read_own(std::string_view option, TierOptions& options) {
  std::string_view value;
  Status status = Done{};
  if (option == "bind")
    options.policy = os::Policy::bind;
  else if (option == "prefer")
    options.policy = os::Policy::prefer;
  else if (option == "weighted")
    options.policy = os::Policy::weighted;
  else if (match_key(option, "overflow=", value)) {
    if (Status s = read_overflow(value, options); !s) return s.error();
  } else if (match_key(option, "reserve=", value)) {
    if (Status s = read_reserve(value, options); !s) return s.error();
  } else if (match_key(option, "fork=", value)) {
    if (Status s = read_fork(value, options); !s) return s.error();
  } else if (match_key(option, "capacity=", value)) {
    if (!parse_size(value, options.capacity) || options.capacity == 0)
      return refuse("no size for capacity:", value);
    if (options.capacity < span_bytes) return refuse("capacity is at least 64KiB, not", value);
  } else {
    return Match::no;
  }
  return Match::yes;
}

/// Reads nodes of numa:A+B+C; the grammar of tiers has one node.
Result<Match> read_nodes(std::string_view head, TierOptions& options) {
  std::string_view list;
  if (!match_key(head, "numa:", list)) return Match::no;
  unsigned long node = 0;
  std::size_t digits = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : '+';
    if (c == '+') {
      if (digits == 0 || node >= os::max_nodes) return refuse("not NUMA nodes", list);
      options.nodes |= 1ul << node;
      node = digits = 0;
    } else if (c >= '0' && c <= '9' && digits < 4) {
      node = node * 10 + static_cast<unsigned long>(c - '0');
      ++digits;
    } else {
      return refuse("not NUMA nodes", list);
    }
  }
  return Match::yes;
}

Status check_together(const TierOptions& options, bool several_nodes) {
  if (options.spec.node < 0 && options.policy != os::Policy::local)
    return refuse("bind, prefer and weighted are for numa:, not for", options.spec.kind->name);
  if (several_nodes && options.policy == os::Policy::bind)
    return refuse("several nodes want prefer or weighted, not", "bind");
  if (options.spec.paced())
    return refuse("a paced tier is for measurements, not for a heap:", options.spec.profile);
  if (options.spec.kind->maps == tier::Maps::device && options.fork == ForkPolicy::copy)
    return refuse("a device cannot be copied for a child: fork is private or deny, not", "copy");
  if (options.spec.pages == os::PageSize::huge_2m || options.spec.pages == os::PageSize::huge_1g)
    return refuse("a heap has pages=thp or pages=4k, not", os::page_size_name(options.spec.pages));
  return Done{};
}

} // namespace

bool is_tier_name(std::string_view name) {
  if (name.empty() || name.size() >= tier_name_bytes) return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
          c == '_'))
      return false;
  return true;
}

bool parse_size(std::string_view text, std::uint64_t& bytes) {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0; // in thousandths
  std::uint64_t place = 1000;
  std::size_t at = 0;
  bool digits = false;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, digits = true) {
    if (whole > (UINT64_MAX - 9) / 10) return false;
    whole = whole * 10 + static_cast<std::uint64_t>(text[at] - '0');
  }
  if (digits && at < text.size() && text[at] == '.')
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      if (place > 1) fraction += static_cast<std::uint64_t>(text[at] - '0') * (place /= 10);
  if (!digits) return false;
  std::string_view unit = text;
  unit.remove_prefix(at);
  std::uint64_t scale = 1;
  if (!unit.empty() && unit != "B") {
    constexpr std::string_view letters = "KMGT";
    const char upper = unit[0] == 'k' ? 'K' : unit[0];
    const std::size_t power = letters.find(upper);
    if (power == letters.npos) return false;
    unit.remove_prefix(1);
    const bool decimal = unit == "B";
    if (!decimal && !unit.empty() && unit != "iB") return false;
    for (std::size_t i = 0; i <= power; ++i)
      scale *= decimal ? 1000 : 1024;
  }
  if (whole > UINT64_MAX / scale - 1) return false;
  bytes = whole * scale + fraction * scale / 1000;
  return true;
}

Result<TierOptions> parse_tier_options(std::string_view text) {
  TierOptions options;
  char own_grammar[sizeof options.spec.path + 64] = "";
  std::size_t length = 0;
  for (std::string_view rest = text; !rest.empty() || length == 0;) {
    const bool head = length == 0;
    std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : part.size());
    Result<Match> match = head ? read_nodes(part, options) : read_own(part, options);
    if (!match) return match.error();
    if (*match == Match::yes && !head) continue;
    if (head) part = part.substr(0, part.find('+'));
    if (length + part.size() + 2 > sizeof own_grammar) return refuse("too long:", text);
    if (!head) own_grammar[length++] = ',';
    std::memcpy(own_grammar + length, part.data(), part.size());
    length += part.size();
    if (head && part.empty()) break;
  }
  own_grammar[length] = '\0';
  Result<tier::Spec> spec = tier::parse(own_grammar);
  if (!spec) return spec.error();
  options.spec = *spec;
  const bool several = (options.nodes & (options.nodes - 1)) != 0;
  if (options.spec.node >= 0 && options.policy == os::Policy::local)
    options.policy = several ? os::Policy::prefer : os::Policy::bind;
  if (Status s = check_together(options, several); !s) return s.error();
  return options;
}

} // namespace nearfar::alloc
