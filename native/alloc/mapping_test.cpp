// Rules for mappings: how they are read, which bytes they decide, and the table of what is mapped.
#include "alloc/mapping_table.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "alloc/mapping_rule_reader.hpp"
#include "base/random.hpp"
#include "os/objects.hpp"
#include "test_support.hpp"

using namespace nearfar;
using namespace nearfar::alloc;

namespace {

constexpr std::size_t page = os::page_bytes;
constexpr std::uintptr_t somewhere = 0x7f0000000000;

/// Rules read from their conditions, all of tier 0.
class Rules {
public:
  explicit Rules(const std::vector<const char*>& conditions) : rules_(conditions.size()) {
    all.rules = rules_.data();
    for (const char* each : conditions) {
      MappingRule& rule = rules_[all.count++];
      rule.number = all.count;
      Status read = read_mapping_rule(each, rule, all);
      if (!read) error = read.error().what;
    }
  }
  MappingRules all;
  std::string error;

private:
  std::vector<MappingRule> rules_;
};

std::string error_of(const char* conditions) { return Rules({conditions}).error; }

MappingOrigin mapping(MappedKind kind, std::uintptr_t begin, std::size_t pages) {
  MappingOrigin origin;
  origin.kind = kind;
  origin.begin = begin;
  origin.bytes = pages * page;
  return origin;
}

/// Numbers of the rules that decide each page of an area, 0 for none.
std::vector<unsigned> decided(const MappingRules& rules, const MappingOrigin& own,
                              const MappingOrigin* outer = nullptr, std::size_t page_bytes = page) {
  std::vector<unsigned> found;
  for (std::uintptr_t at = own.begin; at < own.end();) {
    const MappingPart part = next_part(rules, own, outer, at, own.end(), page_bytes);
    REQUIRE(part.end > at);
    for (; at < part.end; at += page)
      found.push_back(part.rule == nullptr ? 0 : part.rule->number);
  }
  return found;
}

using Numbers = std::vector<unsigned>;

/// What an allocator's mappings are as "begin-end:rule" in pages, from a first address.
std::string intervals(const MappingTable& table) {
  std::string text;
  for (const MappedInterval* each = table.first_in(0, UINTPTR_MAX); each != nullptr;
       each = table.next(*each))
    text += std::to_string((each->begin - somewhere) / page) + "-" +
            std::to_string((each->end - somewhere) / page) + ":" +
            std::to_string(each->rule->number) + " ";
  return text;
}

} // namespace

TEST_CASE("a rule for mappings is recognized by its conditions") {
  CHECK(is_mapping_rule("size=4KiB.. map=anonymous"));
  CHECK(is_mapping_rule("globals=name:"));
  CHECK_FALSE(is_mapping_rule("site=name:map=+0x1"));
  CHECK_FALSE(is_mapping_rule(""));
}

TEST_CASE("map= names a call site, a kind of memory or a file") {
  const Rules rules({"map=0123456789ab+0x10<name:lib.so+0x2", "map=anonymous", "map=heap",
                     "map=name:arena", "map=file:table", "globals=name:", "globals=0123456789ab"});
  CHECK(rules.error.empty());
  const MappingRule* rule = rules.all.rules;
  CHECK(rule[0].kind == MappedKind::by_site);
  CHECK(rule[0].chain_length == 2);
  CHECK(rules.all.longest == 2);
  CHECK(rule[1].kind == MappedKind::anonymous);
  CHECK(rule[2].kind == MappedKind::heap);
  CHECK(rule[3].kind == MappedKind::named);
  CHECK(rule[4].kind == MappedKind::file);
  CHECK(std::string(rule[4].object.name) == "table");
  CHECK(rule[5].kind == MappedKind::globals);
  CHECK(rule[6].object.build_id_bytes == 6);
}

TEST_CASE("conditions that make no sense are refused with the words") {
  CHECK(error_of("map=nothing") == "invalid condition 'map=nothing'");
  CHECK(error_of("map=file:") == "invalid condition 'map=file:'");
  CHECK(error_of("map=anonymous map=heap") == "duplicate condition 'map=heap'");
  CHECK(error_of("map=anonymous globals=name:") == "duplicate condition 'globals=name:'");
  CHECK(error_of("map=anonymous range=5..5") == "invalid condition 'range=5..5'");
  CHECK(error_of("map=anonymous at=0x1001") == "invalid condition 'at=0x1001'");
  CHECK(error_of("map=anonymous at=4096") == "invalid condition 'at=4096'");
  CHECK(error_of("map=anonymous budget=1GiB") ==
        "map= and globals= can have size=, at= and range=, but not 'budget=1GiB'");
  CHECK(error_of("site=name:a+0x1 map=anonymous") ==
        "map= and globals= can have size=, at= and range=, but not 'site=name:a+0x1'");
  CHECK(error_of("map=anonymous color=red") ==
        "expected size=, at= or range= with map= or globals=, not 'color=red'");
}

TEST_CASE("the first rule that names a byte decides") {
  const Rules rules({"map=anonymous range=4KiB..8KiB", "map=anonymous size=..16KiB",
                     "map=anonymous range=12KiB..", "map=heap"});
  const MappingOrigin small = mapping(MappedKind::anonymous, somewhere, 4);
  CHECK(decided(rules.all, small) == Numbers{2, 1, 2, 2});
  const MappingOrigin large = mapping(MappedKind::anonymous, somewhere, 6);
  CHECK(decided(rules.all, large) == Numbers{0, 1, 0, 3, 3, 3});
  CHECK(decided(rules.all, mapping(MappedKind::heap, somewhere, 2)) == Numbers{4, 4});
  CHECK(decided(rules.all, mapping(MappedKind::file, somewhere, 1)) == Numbers{0});
}

TEST_CASE("ranges are rounded outwards to pages, also to huge ones") {
  const Rules rules({"map=anonymous range=5000..5001", "map=anonymous range=3MiB..4MiB"});
  const MappingOrigin own = mapping(MappedKind::anonymous, somewhere, 4);
  CHECK(decided(rules.all, own) == Numbers{0, 1, 0, 0});
  const MappingOrigin huge = mapping(MappedKind::anonymous, somewhere, 3 * 512);
  const Numbers found = decided(rules.all, huge, nullptr, 512 * page);
  CHECK(found[0] == 1);
  CHECK(found[511] == 1);
  CHECK(found[512] == 2);
  CHECK(found[1023] == 2);
  CHECK(found[1024] == 0);
}

TEST_CASE("at= and file: hold for one address and one name") {
  const Rules rules({"map=anonymous at=0x7f0000001000", "map=file:table"});
  CHECK(decided(rules.all, mapping(MappedKind::anonymous, somewhere, 1)) == Numbers{0});
  CHECK(decided(rules.all, mapping(MappedKind::anonymous, somewhere + page, 1)) == Numbers{1});
  MappingOrigin file = mapping(MappedKind::file, somewhere + page, 1);
  CHECK(decided(rules.all, file) == Numbers{0});
  std::snprintf(file.name, sizeof file.name, "table");
  CHECK(decided(rules.all, file) == Numbers{2});
}

TEST_CASE("a mapping over a part of another one obeys the rules of both, in their order") {
  const Rules rules({"map=anonymous size=40KiB..40KiB range=8KiB..", "map=anonymous"});
  const MappingOrigin outer = mapping(MappedKind::anonymous, somewhere, 10);
  const MappingOrigin own = mapping(MappedKind::anonymous, somewhere + page, 3);
  CHECK(decided(rules.all, own) == Numbers{2, 2, 2});
  CHECK(decided(rules.all, own, &outer) == Numbers{2, 1, 1});
}

TEST_CASE("frames hold for addresses of loaded objects alone") {
  const Rules rules({"map=name:lib.so+0x10<name:lib.so+0x20"});
  MappingOrigin own = mapping(MappedKind::anonymous, somewhere, 1);
  own.chain[0] = 0x5010;
  own.chain[1] = 0x5020;
  own.chain_length = 2;
  CHECK(decided(rules.all, own) == Numbers{0}); // not loaded
  os::Object library;
  library.base = 0x5000;
  std::snprintf(library.name, sizeof library.name, "lib.so");
  resolve_frames(rules.all, library);
  CHECK(decided(rules.all, own) == Numbers{1});
  own.chain_length = 1;
  CHECK(decided(rules.all, own) == Numbers{0});
  own.chain_length = 2;
  forget_frames(rules.all);
  CHECK(decided(rules.all, own) == Numbers{0});
}

TEST_CASE("a table of intervals is cut where memory is unmapped") {
  const Rules rules({"map=anonymous", "map=heap"});
  MappingTable table;
  SharedOrigin* shared = table.share(mapping(MappedKind::anonymous, somewhere, 100));
  const auto add = [&](unsigned begin, unsigned end, unsigned rule) {
    REQUIRE(table.insert(
        {somewhere + begin * page, somewhere + end * page, rules.all.rules + rule - 1, shared}));
  };
  add(10, 20, 1);
  add(30, 40, 2);
  add(20, 30, 1);
  CHECK(intervals(table) == "10-20:1 20-30:1 30-40:2 ");
  CHECK(table.first_in(somewhere, somewhere + 10 * page) == nullptr);
  CHECK(table.first_in(somewhere + 25 * page, somewhere + 99 * page)->begin ==
        somewhere + 20 * page);
  MappedInterval removed;
  REQUIRE(table.take_first(somewhere + 12 * page, somewhere + 14 * page, removed));
  CHECK(removed.bytes() == 2 * page);
  CHECK(intervals(table) == "10-12:1 14-20:1 20-30:1 30-40:2 ");
  std::size_t pieces = 0;
  while (table.take_first(somewhere + 11 * page, somewhere + 35 * page, removed))
    ++pieces;
  CHECK(pieces == 4);
  CHECK(intervals(table) == "10-11:1 35-40:2 ");
  CHECK(shared->intervals == 2);
  while (table.take_first(0, UINTPTR_MAX, removed)) {
  }
  CHECK(shared->intervals == 0);
  table.free_if_unused(shared);
}

TEST_CASE("a table does what a map of pages does") {
  const Rules rules({"map=anonymous", "map=heap"});
  MappingTable table;
  SharedOrigin* shared = table.share(mapping(MappedKind::anonymous, somewhere, 1));
  ++shared->intervals; // kept until the end
  constexpr std::size_t pages = 400;
  std::vector<unsigned> model(pages); // numbers of rules
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t begin = random.below(pages);
    const std::size_t end = std::min(begin + 1 + random.below(20), pages);
    const auto rule = static_cast<unsigned>(random.below(3));
    const auto neighbors =
        random.below(2) == 0 ? MappingTable::Neighbors::merged : MappingTable::Neighbors::separate;
    MappedInterval removed;
    std::size_t bytes = 0, known = 0;
    for (std::size_t at = begin; at < end; ++at) {
      known += model[at] != 0;
      model[at] = rule;
    }
    while (table.take_first(somewhere + begin * page, somewhere + end * page, removed))
      bytes += removed.bytes();
    REQUIRE(bytes == known * page);
    if (rule != 0)
      REQUIRE(table.insert(
          {somewhere + begin * page, somewhere + end * page, rules.all.rules + rule - 1, shared},
          neighbors));
  }
  std::vector<unsigned> found(pages);
  std::uintptr_t last = 0;
  for (const MappedInterval* each = table.first_in(0, UINTPTR_MAX); each != nullptr;
       each = table.next(*each)) {
    REQUIRE(each->begin >= last);
    last = each->end;
    for (std::size_t at = (each->begin - somewhere) / page; at < (last - somewhere) / page; ++at)
      found[at] = each->rule->number;
  }
  CHECK(found == model);
  MappedInterval removed;
  while (table.take_first(0, UINTPTR_MAX, removed)) {
  }
  CHECK(shared->intervals == 1);
}

TEST_CASE("adjacent intervals of one rule and one call become one, and share an origin") {
  const Rules rules({"map=anonymous", "map=heap"});
  MappingTable table;
  const auto add = [&](unsigned begin, unsigned end, unsigned rule, std::uintptr_t caller) {
    MappingOrigin origin = mapping(MappedKind::anonymous, somewhere + begin * page, end - begin);
    origin.chain[0] = caller;
    origin.chain_length = 1;
    SharedOrigin* shared = table.share(origin);
    REQUIRE(table.insert(
        {somewhere + begin * page, somewhere + end * page, rules.all.rules + rule - 1, shared},
        MappingTable::Neighbors::merged));
  };
  add(10, 20, 1, 0x100);
  add(30, 40, 1, 0x100);
  add(20, 30, 1, 0x100);
  CHECK(intervals(table) == "10-40:1 ");
  const SharedOrigin* shared = table.first_in(somewhere, UINTPTR_MAX)->shared;
  CHECK(shared->intervals == 1);
  CHECK(shared->origin.begin == somewhere + 10 * page);
  CHECK(shared->origin.bytes == 30 * page);
  add(40, 50, 2, 0x100);
  add(5, 10, 1, 0x200);
  CHECK(intervals(table) == "5-10:1 10-40:1 40-50:2 ");
}

/// With an array, whose intervals each insertion moves, this takes half an hour.
TEST_CASE("a table takes intervals at falling addresses, as the kernel maps memory") {
  const Rules rules({"map=anonymous"});
  MappingTable table;
  SharedOrigin* shared = table.share(mapping(MappedKind::anonymous, somewhere, 1));
  constexpr unsigned count = 1'000'000;
  for (unsigned i = count; i > 0; --i) {
    const std::uintptr_t begin = somewhere + i * 2 * page;
    REQUIRE(table.insert({begin, begin + page, rules.all.rules, shared}));
  }
  MappedInterval removed;
  for (unsigned i = 1; i <= count; ++i) {
    REQUIRE(table.take_first(0, UINTPTR_MAX, removed));
    REQUIRE(removed.begin == somewhere + i * 2 * page);
  }
  CHECK_FALSE(table.take_first(0, UINTPTR_MAX, removed));
  table.free_if_unused(shared);
}
