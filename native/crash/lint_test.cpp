#include "crash/lint.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <utility>

#include "crash/library.hpp"
#include "os/pages.hpp"
#include "storelog/recorder.hpp"

using namespace nearfar::crash;
using namespace nearfar::storelog;

namespace {

/// A log that is written by hand; each event is at the line of its number, from 1.
struct Program {
  Log log;
  std::map<std::size_t, Use> uses; ///< lines of the allocator
  std::set<std::size_t> same;      ///< lines of stores that changed nothing

  Program& add(EventKind kind, std::uint64_t address = 0, std::uint32_t bytes = 0,
               std::uint16_t thread = 0) {
    log.events.push_back(
        {kind, thread, bytes, address, 0, Site("program.c", log.events.size() + 1)});
    return *this;
  }
  Program& store(std::uint64_t address, std::uint32_t bytes = 8) {
    return add(EventKind::store, address, bytes);
  }
  Program& store_same(std::uint64_t address, std::uint32_t bytes = 8) {
    same.insert(log.events.size() + 1);
    return store(address, bytes);
  }
  Program& flush(std::uint64_t address, std::uint32_t bytes = 8) {
    return add(EventKind::flush, address, bytes);
  }
  Program& fence() { return add(EventKind::fence); }
  Program& snapshot(std::uint64_t address, std::uint32_t bytes = 8) {
    return add(EventKind::log, address, bytes);
  }
  Program& persist(std::uint64_t address, std::uint32_t bytes = 8) {
    return flush(address, bytes).fence();
  }
  Program& use(Use what, std::uint64_t address, std::uint32_t bytes = 8) {
    uses[log.events.size() + 1] = what;
    return add(EventKind::log, address, bytes);
  }
  Program& free(std::uint64_t address, std::uint32_t bytes = 8) {
    return use(Use::freed, address, bytes);
  }
  Program& allocate(std::uint64_t address, std::uint32_t bytes = 8) {
    return use(Use::allocated, address, bytes);
  }
  Program& library_store(std::uint64_t address, std::uint32_t bytes = 8) {
    log.events.push_back(
        {EventKind::store, 0, bytes, address, 0, Site::code("/usr/lib/libpmemobj.so.1", 0x10)});
    return *this;
  }
  Program& begin() { return add(EventKind::tx_begin); }
  Program& end() { return add(EventKind::tx_end); }
  Program& abort() { return add(EventKind::tx_end, 125); }
};

using Found = std::vector<std::pair<Rule, std::uint64_t>>; // rule and line

/// Has the events judged. Equal sites have one number.
std::vector<LintFinding> judged(const Program& program, bool ended = true) {
  constexpr std::uint64_t pool_bytes = 1 << 16;
  auto memory = nearfar::os::map_range(Judge::memory_bytes(pool_bytes),
                                       nearfar::os::PageSize::small_4k, -1, false);
  REQUIRE(memory);
  Judge judge(memory->data(), pool_bytes);
  std::vector<Site> sites;
  for (std::size_t i = 0; i < program.log.events.size(); ++i) {
    const Event& event = program.log.events[i];
    const auto number = std::find(sites.begin(), sites.end(), event.site) - sites.begin();
    if (static_cast<std::size_t>(number) == sites.size()) sites.push_back(event.site);
    const JudgedEvent next{event.kind,
                           of_library(event.site),
                           event.thread,
                           static_cast<std::uint32_t>(number),
                           event.bytes,
                           event.address,
                           !program.same.contains(i + 1)};
    if (const auto use = program.uses.find(i + 1); use != program.uses.end())
      judge.take(use->second, next);
    else
      judge.take(next);
  }
  judge.finish(ended);
  return with_sites(judge.findings(), sites);
}

Found found(const Program& program, bool ended = true) {
  Found all;
  for (const LintFinding& finding : judged(program, ended))
    all.emplace_back(finding.rule, finding.site.line());
  return all;
}

} // namespace

TEST_CASE("a store of what is durable there is a note, and the flush of it is not needless") {
  CHECK(found(Program().store_same(0)) == Found{{Rule::unchanged, 1}});
  CHECK(found(Program().store_same(0).persist(0)) == Found{});
  CHECK(found(Program().store_same(0).flush(0)) == Found{});
  CHECK(found(Program().store(0).store_same(0)) == Found{{Rule::unflushed, 2}});
  CHECK(found(Program().store_same(0).store(0)) == Found{{Rule::unflushed, 2}});
  CHECK(found(Program().store(0).persist(0).store_same(0)) == Found{{Rule::unchanged, 4}});
}

TEST_CASE("a store that is flushed and fenced is not reported") {
  CHECK(found(Program().store(0).persist(0)).empty());
  CHECK(found(Program().store(60, 16).persist(60, 16)).empty()); // two lines
  CHECK(found(Program().add(EventKind::nt_store, 0, 64).fence()).empty());
}

TEST_CASE("a store without flush or fence is reported once, at its line") {
  CHECK(found(Program().store(0).fence()) == Found{{Rule::unflushed, 1}});
  CHECK(found(Program().store(0).flush(0)) == Found{{Rule::unfenced, 1}});
  CHECK(found(Program().add(EventKind::nt_store, 0, 64)) == Found{{Rule::unfenced, 1}});
  CHECK(found(Program().store(60, 16).persist(60, 4)) == Found{{Rule::unflushed, 1}});
}

TEST_CASE("a store that is overwritten before it is flushed need not be durable") {
  CHECK(found(Program().store(0).store(0).persist(0)).empty());
  CHECK(found(Program().store(0).store(4, 4).flush(0)) ==
        Found{{Rule::unfenced, 1}, {Rule::unfenced, 2}});
}

TEST_CASE("a store after the flush needs another one") {
  CHECK(found(Program().store(0).flush(0).store(8).fence()) == Found{{Rule::unflushed, 3}});
}

TEST_CASE("only the fence of a thread that flushed counts") {
  CHECK(found(Program().store(0).flush(0).add(EventKind::fence, 0, 0, 1)) ==
        Found{{Rule::unfenced, 1}});
  Program other;
  other.store(0).add(EventKind::flush, 0, 8, 1).add(EventKind::fence, 0, 0, 1);
  CHECK(found(other).empty());
}

TEST_CASE("the fence of one thread does not complete the flush of another on the same line") {
  Program program;
  program.store(0).add(EventKind::flush, 0, 8, 2);
  program.add(EventKind::nt_store, 8, 8, 1).add(EventKind::fence, 0, 0, 1);
  CHECK(found(program) == Found{{Rule::unfenced, 1}});
  CHECK(found(program.add(EventKind::fence, 0, 0, 2)).empty());
}

TEST_CASE("flushing twice is reported as repeated, flushing durable lines as needless") {
  CHECK(found(Program().store(0).flush(0).flush(0).fence()) == Found{{Rule::repeated_flush, 3}});
  CHECK(found(Program().store(0).persist(0).persist(0)) == Found{{Rule::needless_flush, 4}});
  CHECK(found(Program().store(0).persist(0).store(64).persist(0, 128)).empty()); // one is needed
}

TEST_CASE("occurrences at one line are counted") {
  Program program;
  for (unsigned i = 0; i < 3; ++i) {
    program.log.events.push_back({EventKind::store, 0, 8, i * line_bytes, 0, Site("a.c", 7)});
  }
  const std::vector<LintFinding> all = judged(program);
  REQUIRE(all.size() == 1);
  CHECK(all[0].count == 3);
  CHECK(all[0].address == 0);
}

TEST_CASE("a transaction logs what it stores, before it does") {
  CHECK(found(Program().begin().snapshot(0).store(0).end().persist(0)).empty());
  CHECK(found(Program().begin().store(0).end().persist(0)) == Found{{Rule::unlogged, 2}});
  CHECK(found(Program().begin().store(0).snapshot(0).end().persist(0)) ==
        Found{{Rule::late_log, 2}});
  CHECK(found(Program().begin().snapshot(0, 4).store(0).end().persist(0)) ==
        Found{{Rule::short_log, 3}});
  CHECK(found(Program().begin().snapshot(0).snapshot(0).store(0).end().persist(0)) ==
        Found{{Rule::repeated_log, 3}});
  CHECK(found(Program().begin().snapshot(0, 4).snapshot(4, 4).store(0).end().persist(0)).empty());
}

TEST_CASE("a store that is not logged is not reported as unflushed too") {
  CHECK(found(Program().begin().store(0).end()) == Found{{Rule::unlogged, 2}});
}

TEST_CASE("what a transaction flushes itself need not be logged, but an abort cannot undo it") {
  CHECK(found(Program().begin().store(0).persist(0).end()) == Found{{Rule::unlogged_flush, 2}});
  CHECK(found(Program().begin().add(EventKind::nt_store, 0, 8).fence().end()) ==
        Found{{Rule::unlogged_flush, 2}});
}

TEST_CASE("a transaction stores to new objects without a log") {
  CHECK(found(Program().allocate(0).begin().store(0).persist(0).end()).empty());
  CHECK(found(Program().begin().allocate(0).store(0).persist(0).store(4, 4).persist(0).end())
            .empty());
  Program later; // new for one transaction
  later.allocate(0).begin().store(0).persist(0).end().begin().store(0).persist(0).end();
  CHECK(found(later) == Found{{Rule::unlogged_flush, 8}});
  Program unused;
  unused.allocate(0).begin().end().begin().store(0).persist(0).end();
  CHECK(found(unused) == Found{{Rule::unlogged_flush, 5}});
}

TEST_CASE("what each process initializes anew needs no flush") {
  CHECK(found(Program().use(Use::never_durable, 0).store(0)).empty());
  CHECK(found(Program().use(Use::never_durable, 0).allocate(0).store(0)) ==
        Found{{Rule::unflushed, 3}});
}

TEST_CASE("a store to a freed object is one error, in a transaction, too") {
  CHECK(found(Program().begin().use(Use::freed, 0).store(0).end()) ==
        Found{{Rule::freed_store, 3}});
}

TEST_CASE("a transaction logs what it stores to an object, once the object is published") {
  CHECK(found(Program().allocate(0).begin().store(0).end().persist(0)).empty());
  CHECK(found(Program().allocate(0).use(Use::published, 0).begin().store(0).end().persist(0)) ==
        Found{{Rule::unlogged, 4}});
  CHECK(found(Program()
                  .allocate(0)
                  .use(Use::published, 0)
                  .begin()
                  .snapshot(0)
                  .store(0)
                  .end()
                  .persist(0))
            .empty());
}

TEST_CASE("what an aborted transaction stored to its ranges need not be durable") {
  CHECK(found(Program().begin().snapshot(0).store(0).abort().fence()).empty());
  CHECK(found(Program().allocate(0).store(0).begin().use(Use::of_transaction, 0).abort().fence())
            .empty());
  CHECK(found(Program().begin().snapshot(0).store(0).end().fence()) == Found{{Rule::unflushed, 3}});
  CHECK(found(Program().store(8).begin().snapshot(0).store(0).abort().fence()) ==
        Found{{Rule::unflushed, 1}});
  CHECK(found(Program().begin().snapshot(0).store(0).abort().store(0).fence()) ==
        Found{{Rule::unflushed, 5}});
}

TEST_CASE("a thread does not know that another has flushed its store") {
  Program both; // words of one line
  both.store(0).add(EventKind::store, 8, 8, 1).flush(0).fence();
  CHECK(found(Program(both).add(EventKind::flush, 8, 8, 1)).empty());
  CHECK(found(Program(both).add(EventKind::flush, 8, 8, 1).add(EventKind::flush, 8, 8, 1)) ==
        Found{{Rule::needless_flush, 6}});
  CHECK(found(Program(both).flush(0)) == Found{{Rule::needless_flush, 5}});
  Program early;
  early.store(0).add(EventKind::store, 8, 8, 1).flush(0).add(EventKind::flush, 8, 8, 1);
  CHECK(found(early.fence().add(EventKind::fence, 0, 0, 1)).empty());
}

TEST_CASE("the log of one transaction does not count in the next") {
  CHECK(found(Program().begin().snapshot(0).end().begin().store(0).end().persist(0)) ==
        Found{{Rule::unlogged, 5}});
}

TEST_CASE("stores and flushes of libpmemobj are followed, not judged") {
  CHECK(found(Program().library_store(0)).empty());
}

TEST_CASE("transactions of two threads log bytes of one line, each its own") {
  Program program;
  for (std::uint16_t thread = 0; thread < 2; ++thread) {
    program.add(EventKind::tx_begin, 0, 0, thread);
    program.add(EventKind::log, 8u * thread, 8, thread);
  }
  program.add(EventKind::store, 0, 8, 0).add(EventKind::store, 8, 8, 1); // events 5 and 6
  program.add(EventKind::store, 16, 4, 1);                               // logged by neither
  for (std::uint16_t thread = 0; thread < 2; ++thread) {
    program.add(EventKind::flush, 0, 64, thread).add(EventKind::fence, 0, 0, thread);
    program.add(EventKind::tx_end, 0, 0, thread);
  }
  const auto findings = found(program);
  CHECK(std::count(findings.begin(), findings.end(),
                   std::pair{Rule::unlogged_flush, std::uint64_t{7}}) == 1);
  CHECK(std::none_of(findings.begin(), findings.end(),
                     [](const auto& one) { return one.second == 5 || one.second == 6; }));
}

TEST_CASE("a log of an earlier transaction of another thread does not count") {
  Program program;
  program.add(EventKind::tx_begin, 0, 0, 1).add(EventKind::log, 0, 8, 1);
  program.add(EventKind::tx_end, 0, 0, 1);
  program.begin().store(0).persist(0).end();
  CHECK(found(program) == Found{{Rule::unlogged_flush, 5}});
}

TEST_CASE("a program that is killed could have flushed what no fence has passed") {
  CHECK(found(Program().store(0), false).empty());
  CHECK(found(Program().store(0).flush(0), false).empty());
  CHECK(found(Program().store(0).store(64).persist(64), false) == Found{{Rule::unflushed, 1}});
  CHECK(found(Program().store(64).persist(64).store(0), false).empty());
  Program other; // the fence is of another thread
  other.store(0).add(EventKind::fence, 0, 0, 1);
  CHECK(found(other, false).empty());
}

TEST_CASE("bytes of a word are logged each for itself") {
  CHECK(found(Program().begin().snapshot(0, 2).store(2, 2).end().persist(0)) ==
        Found{{Rule::unlogged, 3}});
  CHECK(found(Program().begin().snapshot(0, 2).store(1, 2).end().persist(0)) ==
        Found{{Rule::short_log, 3}});
}

TEST_CASE("a store to a freed object is reported, with the call that freed it") {
  Program program;
  program.store(128).persist(128).free(128).store(128).persist(128);
  CHECK(found(program) == Found{{Rule::freed_store, 5}});
  CHECK(judged(program)[0].other.line() == 4);
}

TEST_CASE("memory that the allocator gives out again is not freed") {
  Program again; // its header lies before it
  again.store(128, 16).persist(128).free(128, 16).library_store(112, 16).store(136).persist(136);
  CHECK(found(again).empty());
  Program logged; // allocated in a transaction
  logged.store(128).persist(128).free(128).begin().snapshot(128).store(128).end().persist(128);
  CHECK(found(logged).empty());
}

TEST_CASE("a transaction that is aborted frees nothing") {
  Program program;
  program.store(128).persist(128).begin().free(128).abort().store(128).persist(128);
  CHECK(found(program).empty());
}

TEST_CASE("a transaction that never ends is reported, unless the program was killed") {
  Program program;
  program.begin().snapshot(0).store(0);
  CHECK(found(program) == Found{{Rule::unended, 1}});
  CHECK(judged(program, false).empty());
  CHECK(found(program.end()) == Found{{Rule::unflushed, 3}});
}
