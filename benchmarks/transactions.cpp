// What a durable transaction costs: the typed layer's two paths against one flush and fence, and
// against libpmemobj called by hand. Build and run: see benchmarks/transactions.sh.
//
// All run in one process on shm:, where DRAM emulates persistent memory, in rounds
// that take turns; a ratio is taken within each round, and the median of the rounds is printed with
// its 95 % interval (order statistics). Objects are one line each, picked at random.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <libpmemobj.h>
#include <mutex>
#include <vector>

#include "base/random.hpp"
#include "nearfar/persist.hpp"
#include "os/flush.hpp"

using namespace nearfar;
using namespace nearfar::persist;

namespace {

template <class Pool>
struct line_of {
  std::array<field<std::uint64_t>, 7> words;
  field<ptr<line_of, Pool>> next;
};
template <class Pool>
struct root_of {
  field<ptr<line_of<Pool>, Pool>> first;
};
struct redo_pool {
  using root = root_of<redo_pool>;
  static constexpr char name[] = "benchmark";
  static constexpr std::uint64_t layouts[] = {10366798071885338063u};
};
struct undo_pool {
  using root = root_of<undo_pool>;
  static constexpr char name[] = "benchmark";
  static constexpr std::uint64_t layouts[] = {10366798071885338063u};
};

constexpr std::size_t objects = 4096; // 256 KiB
constexpr int rounds = 21;
constexpr int operations = 20'000;
constexpr int warm_up = 10'000; // untimed, the first of the same operations

void must(const Status& done) {
  if (done) return;
  std::fprintf(stderr, "%s\n%s\n", done.error().what, done.error().next);
  std::exit(3);
}

template <class Pool>
pool<Pool> make(Path path) {
  Result<pool<Pool>> made = pool<Pool>::create("shm:/dev/shm,populate", {256 << 20, path, 1 << 20});
  if (made) return std::move(*made);
  std::fprintf(stderr, "%s\n%s\n", made.error().what, made.error().next);
  std::exit(3);
}

template <class Pool>
std::vector<line_of<Pool>*> fill(pool<Pool>& in) {
  std::vector<line_of<Pool>*> lines;
  for (std::size_t i = 0; i < objects; ++i)
    must(in.transact([](auto& t) {
      t.publish(t.root().first, t.template make<line_of<Pool>>(
                                    std::array<field<std::uint64_t>, 7>{}, t.root().first.get()));
    }));
  for (auto n = in.root().first.get(); n; n = n->next)
    lines.push_back(std::addressof(*n));
  return lines;
}

struct Side {
  const char* name;
  std::function<void(std::uint64_t)> operation;
  std::vector<double> ns; ///< of one operation, in each round
};

void measure(Side& side) {
  Random warming(1); // the side before may have had the same lines in the cache, or others
  for (int i = 0; i < warm_up; ++i)
    side.operation(warming.next());
  Random random(1);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < operations; ++i)
    side.operation(random.next());
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  side.ns.push_back(spent.count() / operations);
}

/// Median and the 95 % interval of the median: ranks n/2 -+ 0.98 sqrt(n).
std::array<double, 3> middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const std::size_t reach = static_cast<std::size_t>(0.98 * std::sqrt(static_cast<double>(n)) + 1);
  return {values[n / 2], values[n / 2 - reach], values[n / 2 + reach]};
}

void print_ratio(const char* what, const Side& a, const Side& b, const char* target) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.ns.size(); ++i)
    ratios.push_back(a.ns[i] / b.ns[i]);
  const auto [m, low, high] = middle(ratios);
  std::printf("| %s | %.0f | %.0f | %.3f [%.3f, %.3f] | %s |\n", what, middle(a.ns)[0],
              middle(b.ns)[0], m, low, high, target);
}

template <class Pool>
void typed(pool<Pool>& in, const std::vector<line_of<Pool>*>& lines, int words,
           std::uint64_t draw) {
  must(in.transact([&](tx<Pool>& t) {
    for (int w = 0; w < words; ++w)
      lines[(draw + static_cast<std::uint64_t>(w) * 97) % objects]->words[3].set(t, draw);
  }));
}

/// As a C programmer writes it.
void by_hand(pmemobjpool* pool, std::uint64_t* const* cells, int words, std::uint64_t draw) {
  if (pmemobj_tx_begin(pool, nullptr, TX_PARAM_NONE) != 0) std::abort();
  for (int w = 0; w < words; ++w) {
    std::uint64_t* cell = cells[(draw + static_cast<std::uint64_t>(w) * 97) % objects];
    pmemobj_tx_add_range_direct(cell, sizeof *cell);
    *cell = draw;
  }
  pmemobj_tx_commit();
  if (pmemobj_tx_end() != 0) std::abort();
}

/// What the operations of a round leave in each object, `words` of them a transaction.
std::vector<std::uint64_t> left_by(int words) {
  std::vector<std::uint64_t> cells(objects);
  Random random(1);
  for (int i = 0; i < operations; ++i) {
    const std::uint64_t draw = random.next();
    for (int w = 0; w < words; ++w)
      cells[(draw + static_cast<std::uint64_t>(w) * 97) % objects] = draw;
  }
  return cells;
}

} // namespace

int main() {
  pool<redo_pool> redo = make<redo_pool>(Path::redo);
  pool<undo_pool> undo = make<undo_pool>(Path::undo);
  const auto redo_lines = fill(redo);
  const auto undo_lines = fill(undo);
  std::vector<std::uint64_t*> redo_cells, undo_cells;
  for (auto* line : redo_lines)
    redo_cells.push_back(reinterpret_cast<std::uint64_t*>(line) + 3);
  for (auto* line : undo_lines)
    undo_cells.push_back(reinterpret_cast<std::uint64_t*>(line) + 3);
  std::vector<std::uint64_t> plain(objects * 8);

  Side flush{"",
             [&](std::uint64_t draw) {
               std::uint64_t* cell = &plain[draw % objects * 8];
               *static_cast<volatile std::uint64_t*>(cell) = draw;
               os::write_back_clwb(cell);
               os::fence();
             },
             {}};
  std::vector<Side> sides; // four a number of words
  std::mutex mutex;
  for (const int words : {1, 8}) {
    sides.push_back(
        {"redo", [&, words](std::uint64_t d) { typed(redo, redo_lines, words, d); }, {}});
    sides.push_back(
        {"undo", [&, words](std::uint64_t d) { typed(undo, undo_lines, words, d); }, {}});
    sides.push_back({"hand",
                     [&, words](std::uint64_t d) {
                       by_hand(undo.file().handle(), undo_cells.data(), words, d);
                     },
                     {}});
    sides.push_back({"locked", // other threads kept out, as the typed layer does
                     [&, words](std::uint64_t d) {
                       const std::lock_guard alone(mutex);
                       by_hand(undo.file().handle(), undo_cells.data(), words, d);
                     },
                     {}});
  }
  for (int round = 0; round < rounds; ++round) {
    measure(flush);
    for (Side& side : sides)
      measure(side);
  }
  const std::vector<std::uint64_t> expected = left_by(8);
  for (std::size_t i = 0; i < objects; ++i) // proof that the stores were made
    if (*redo_cells[i] != expected[i] || *undo_cells[i] != expected[i]) std::abort();

  std::printf(
      "| typed transaction | ns | reference, ns | ratio | target |\n|---|---|---|---|---|\n");
  print_ratio("redo, 1 word, against clwb + sfence", sides[0], flush, "<= 1.5");
  print_ratio("redo, 8 words on 8 lines, against clwb + sfence", sides[4], flush, "<= 2.5");
  print_ratio("redo, 1 word, against libpmemobj by hand", sides[0], sides[2], "<= 0.25");
  print_ratio("redo, 8 words, against libpmemobj by hand", sides[4], sides[6], "<= 0.1");
  print_ratio("undo path, 1 word, against libpmemobj by hand", sides[1], sides[2], "<= 1.02");
  print_ratio("undo path, 8 words, against libpmemobj by hand", sides[5], sides[6], "<= 1.02");
  print_ratio("undo path, 1 word, against it by hand under a mutex", sides[1], sides[3], "-");
  print_ratio("undo path, 8 words, against it by hand under a mutex", sides[5], sides[7], "-");
}
