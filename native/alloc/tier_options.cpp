#include "alloc/tier_options.hpp"

#include <cstring>

#include "alloc/size_classes.hpp"

namespace nearfar::alloc {

namespace {

Error invalid(const char* what, std::string_view value, const char* requirement) {
  return Error::make(Errc::bad_input, "invalid %s '%.*s': %s", what, static_cast<int>(value.size()),
                     value.data(), requirement)
      .try_next("options are bind, prefer, weighted, weights=N:M, capacity=SIZE, "
                "overflow=fail|spill:TIER, "
                "reserve=sparse|chunk|full, fork=private|copy|deny, pages=thp|4k, populate");
}

/// If `option` starts with `key`, sets `value` to the rest.
bool match_key(std::string_view option, std::string_view key, std::string_view& value) {
  if (!option.starts_with(key)) return false;
  value = option;
  value.remove_prefix(key.size());
  return true;
}

Status read_overflow(std::string_view value, TierOptions& options) {
  std::string_view target;
  if (value == "fail") {
    options.spill_to[0] = '\0';
    return Done{};
  }
  if (!match_key(value, "spill:", target))
    return invalid("overflow", value, "must be fail or spill:TIER");
  if (!is_tier_name(target)) return invalid("tier name", target, tier_name_rule);
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
    return invalid("reserve", value, "must be sparse, chunk or full");
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
    return invalid("fork", value, "must be private, copy or deny");
  return Done{};
}

enum class Match : std::uint8_t { no, yes };

/// Reads N:M: a weight for each node of `list`, which is A+B, in the order of both.
Status read_weights(std::string_view text, std::string_view list, TierOptions& options) {
  constexpr char requirement[] = "must be a weight from 1 to 255 for each node, such as 5:3";
  const auto take_number = [](std::string_view& rest, char separator, unsigned& value) {
    value = 0;
    std::size_t at = 0;
    for (; at < rest.size() && rest[at] >= '0' && rest[at] <= '9' && at < 4; ++at)
      value = value * 10 + static_cast<unsigned>(rest[at] - '0');
    const bool ends = at == rest.size() || (rest[at] == separator && at + 1 < rest.size());
    const bool valid = at > 0 && ends;
    rest.remove_prefix(at < rest.size() ? at + 1 : at);
    return valid;
  };
  for (std::string_view rest = text; !rest.empty() || !list.empty();) {
    unsigned node = 0, weight = 0;
    if (!take_number(list, '+', node) || !take_number(rest, ':', weight) || weight == 0 ||
        weight > UINT8_MAX || node >= os::max_nodes)
      return invalid("weights", text, requirement);
    options.weights[node] = static_cast<std::uint8_t>(weight);
  }
  options.has_weights = true;
  options.policy = os::Policy::weighted;
  return Done{};
}

/// Reads an option that libhmalloc adds to the grammar of tiers.
Result<Match> read_heap_option(std::string_view option, TierOptions& options) {
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
      return invalid("capacity", value, "must be a size such as 64MiB");
    if (options.capacity < span_bytes) return invalid("capacity", value, "must be at least 64KiB");
  } else {
    return Match::no;
  }
  return Match::yes;
}

constexpr char node_rule[] = "must be NUMA nodes such as 0 or 0+1";

/// Reads nodes of numa:A+B+C; the grammar of tiers has one node.
Result<Match> read_nodes(std::string_view head, TierOptions& options) {
  std::string_view list;
  if (!match_key(head, "numa:", list)) return Match::no;
  unsigned long node = 0;
  std::size_t digits = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : '+';
    if (c == '+') {
      if (digits == 0) return invalid("nodes", list, node_rule);
      if (node >= os::max_nodes)
        return Error::make(Errc::unsupported, "this machine has no NUMA node %lu", node)
            .try_next("`nearfar topo` lists the nodes that exist");
      if ((options.nodes >> node & 1) != 0)
        return invalid("nodes", list, "must name each node once");
      options.nodes |= 1ul << node;
      node = digits = 0;
    } else if (c >= '0' && c <= '9' && digits < 4) {
      node = node * 10 + static_cast<unsigned long>(c - '0');
      ++digits;
    } else {
      return invalid("nodes", list, node_rule);
    }
  }
  return Match::yes;
}

Status check_combination(const TierOptions& options, bool several_nodes) {
  if (options.spec.node < 0 && options.policy != os::Policy::local)
    return invalid("tier", options.spec.kind->name, "bind, prefer and weighted require numa:");
  if (several_nodes && options.policy == os::Policy::bind)
    return invalid("policy", "bind", "several nodes require prefer or weighted");
  if (options.spec.paced()) return invalid("kind", "paced", "paced tiers cannot hold a heap");
  if (options.spec.kind->maps == tier::Maps::device && options.fork == ForkPolicy::copy)
    return invalid("fork", "copy", "a device cannot be copied: must be private or deny");
  if (options.spec.pages == os::PageSize::huge_2m || options.spec.pages == os::PageSize::huge_1g)
    return invalid("pages", os::page_size_name(options.spec.pages), "must be thp or 4k");
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
  std::string_view nodes, weights;
  char spec_text[sizeof options.spec.path + 64] = "";
  std::size_t length = 0;
  for (std::string_view rest = text; !rest.empty() || length == 0;) {
    const bool head = length == 0;
    std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(part.size() < rest.size() ? part.size() + 1 : part.size());
    if (head) match_key(part, "numa:", nodes);
    if (!head && match_key(part, "weights=", weights)) continue;
    Result<Match> match = head ? read_nodes(part, options) : read_heap_option(part, options);
    if (!match) return match.error();
    if (*match == Match::yes && !head) continue;
    if (*match == Match::yes) part = part.substr(0, part.find('+'));
    if (length + part.size() + 2 > sizeof spec_text)
      return invalid("specification", text, "too long");
    if (!head) spec_text[length++] = ',';
    std::memcpy(spec_text + length, part.data(), part.size());
    length += part.size();
    if (head && part.empty()) break;
  }
  spec_text[length] = '\0';
  Result<tier::Spec> spec = tier::parse(spec_text);
  if (!spec) return spec.error();
  options.spec = *spec;
  if (weights.data() != nullptr)
    if (Status s = read_weights(weights, nodes, options); !s) return s.error();
  const bool several = (options.nodes & (options.nodes - 1)) != 0;
  if (options.spec.node >= 0 && options.policy == os::Policy::local)
    options.policy = several ? os::Policy::prefer : os::Policy::bind;
  if (Status s = check_combination(options, several); !s) return s.error();
  return options;
}

} // namespace nearfar::alloc
