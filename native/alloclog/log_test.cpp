// The reader, with this process in the place of a program that writes anything.
#include "alloclog/log.hpp"

#include <cmath>
#include <cstddef>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloclog/poisson.hpp"
#include "base/random.hpp"

namespace {

using namespace nearfar::alloclog;

/// A slot that was claimed as a program does it.
class Claimed {
public:
  explicit Claimed(const AllocationLog& log, SlotState state = SlotState::active)
      : control_(map(log.variable_value(), sizeof(Control))) {
    auto* control = reinterpret_cast<Control*>(control_);
    for (ControlSlot& slot : control->slots) {
      if (slot.state != state_word(SlotState::ready, 0)) continue;
      slot.state = state_word(state, static_cast<std::uint32_t>(getpid()));
      file_ = open(("/proc/self/fd/" + std::to_string(slot.descriptor)).c_str(), O_RDWR);
      return;
    }
  }
  Claimed(const Claimed&) = delete;
  Claimed& operator=(const Claimed&) = delete;
  ~Claimed() {
    munmap(control_, sizeof(Control));
    close(file_);
  }

  void write(std::uint64_t offset, const void* from, std::size_t bytes) {
    REQUIRE(pwrite(file_, from, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes));
  }
  template <class Value>
  void write(std::uint64_t offset, Value value) {
    write(offset, &value, sizeof value);
  }
  void enter(std::uint64_t level_offset, unsigned bits, std::uint64_t address, Entry entry) {
    write(level_offset + (address >> bits) * sizeof entry, entry);
  }
  /// Fills the header's rest, the sites, and the entries around an address.
  void write_garbage(nearfar::Random& random, std::uint64_t address) {
    std::uint64_t words[512];
    for (auto& word : words)
      word = random.next();
    write(offsetof(SlotHeader, site_count), words, sizeof words);
    write(sites_offset, words, sizeof words);
    write(level0_offset + (address >> granule_bits) * sizeof(Entry) - 2048, words, sizeof words);
    write(level1_offset + (address >> page_bits) * sizeof(Entry), words, sizeof words);
  }
  int file() const { return file_; }

private:
  static void* map(const std::string& path, std::size_t bytes) {
    const int fd = open(path.c_str(), O_RDWR);
    REQUIRE(fd >= 0);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    REQUIRE(memory != MAP_FAILED);
    return memory;
  }

  void* control_;
  int file_ = -1;
};

AllocationLog new_log(std::uint32_t slots = 2) {
  auto log = AllocationLog::create(slots);
  REQUIRE(log);
  return std::move(*log);
}

constexpr std::uint64_t heap = 0x7000'1234'5000;

} // namespace

TEST_CASE("an address is that of the block that begins last before it, in its half of a granule") {
  AllocationLog log = new_log();
  Claimed claimed(log);
  log.poll();
  claimed.enter(level0_offset, granule_bits, heap, 1);
  claimed.enter(level0_offset, granule_bits, heap + 64, 2 | half_bit);
  CHECK(log.find(getpid(), heap)->number == 1);
  CHECK(log.find(getpid(), heap + 79)->number == 1);
  CHECK(log.find(getpid(), heap + 80)->number == 2);
  CHECK(log.find(getpid(), heap + 20'000)->number == 2);
  CHECK(!log.find(getpid(), heap - 1).has_value());
  CHECK(!log.find(getpid(), heap + (40 << 10)).has_value());
  CHECK(!log.find(getpid() + 1, heap).has_value());
}

TEST_CASE("a small block does not reach over a large one") {
  AllocationLog log = new_log();
  Claimed claimed(log);
  log.poll();
  claimed.enter(level0_offset, granule_bits, heap, 1);
  claimed.enter(level1_offset, page_bits, heap + 4096, 2);
  CHECK(log.find(getpid(), heap + 4095)->number == 1);
  CHECK(log.find(getpid(), heap + 4096)->number == 2);
  CHECK(!log.find(getpid(), heap + 8192).has_value());
}

TEST_CASE("what began in the pages of a large block before it did is not found") {
  AllocationLog log = new_log();
  Claimed claimed(log);
  log.poll();
  for (std::uint64_t page = 1; page <= 3; ++page) { // of site 1, and freed since
    claimed.enter(level0_offset, granule_bits, heap + page * 4096 + 64, 1);
    claimed.enter(level1_offset, page_bits, heap + page * 4096, 2);
  }
  CHECK(log.find(getpid(), heap + 4096 + 100)->number == 2);
  CHECK(log.find(getpid(), heap + 3 * 4096 - 1)->number == 2);
  // A block behind the large one can begin in its last page.
  CHECK(log.find(getpid(), heap + 3 * 4096 + 63)->number == 2);
  CHECK(log.find(getpid(), heap + 3 * 4096 + 64)->number == 1);
}

TEST_CASE("a freed block is found as such, unless another has its memory") {
  AllocationLog log = new_log();
  Claimed claimed(log);
  log.poll();
  claimed.enter(level0_offset, granule_bits, heap, 1 | freed_bit);
  claimed.enter(level1_offset, page_bits, heap + 4096, 1 | freed_bit);
  claimed.enter(level0_offset, granule_bits, heap + 4096 + 512, 2);
  CHECK(!log.find(getpid(), heap).has_value());
  CHECK(log.find_freed(getpid(), heap)->number == 1);
  CHECK(log.find_freed(getpid(), heap + 4096)->number == 1);
  CHECK(log.find(getpid(), heap + 4096 + 600)->number == 2);
}

TEST_CASE("whatever a program writes, the reader returns") {
  AllocationLog log = new_log();
  Claimed claimed(log);
  log.poll();
  nearfar::Random random(7);
  for (int i = 0; i < 50; ++i) {
    claimed.write_garbage(random, heap);
    for (std::uint64_t offset = 0; offset < 4096; offset += 100)
      log.find(getpid(), heap + offset);
    log.find(getpid(), random.next());
    CHECK(log.sites(1).size() <= other_sites);
    log.site({1, static_cast<std::uint16_t>(random.next())});
    CHECK(log.images().size() == 1);
    log.lost();
    log.poll();
  }
  CHECK(ftruncate(claimed.file(), 0) != 0); // the size is sealed
}

TEST_CASE("a process that names itself as its parent is not followed forever") {
  AllocationLog log = new_log();
  Claimed claimed(log);
  SlotHeader header{};
  REQUIRE(pread(claimed.file(), &header, sizeof header, 0) == sizeof header);
  claimed.write(offsetof(SlotHeader, parent), header.self);
  log.poll();
  CHECK(!log.find(getpid(), heap).has_value());
  log.release(1);
  CHECK(log.images().empty());
}

TEST_CASE("slots are made ready again, also those whose process failed") {
  AllocationLog log = new_log(1);
  for (int i = 0; i < 5; ++i) {
    Claimed failed(log, SlotState::failed);
    REQUIRE(failed.file() >= 0);
    log.poll();
    Claimed garbage(log, static_cast<SlotState>(99));
    REQUIRE(garbage.file() >= 0);
    log.poll();
    Claimed joined(log);
    REQUIRE(joined.file() >= 0);
    log.poll();
    CHECK(log.images().size() == 1);
    log.release(log.images()[0].number);
  }
}

TEST_CASE("a sampled block counts for as many as it represents") {
  const double p = 1 - std::exp(-1000 / mean_distance_bytes);
  CHECK(static_cast<double>(weight_of(1000).allocations) / allocation_unit ==
        doctest::Approx(1 / p).epsilon(1e-4));
  CHECK(static_cast<double>(weight_of(1000).bytes) == doctest::Approx(1000 / p).epsilon(1e-4));
  const double half = 1 - std::exp(-(1.0 * large_bytes - 1) / mean_distance_bytes);
  CHECK(static_cast<double>(weight_of(large_bytes - 1).bytes) ==
        doctest::Approx((large_bytes - 1) / half).epsilon(1e-4));
  CHECK(weight_of(large_bytes).bytes == large_bytes);
}

TEST_CASE("distances between sampled bytes are exponential") {
  for (const double value : {1e-16, 0.1, 0.5, 1.0, 1.999, 3.0, 1e10})
    CHECK(natural_log(value) == doctest::Approx(std::log(value)).epsilon(1e-6));
  nearfar::Random random(1);
  constexpr int count = 100'000;
  double sum = 0;
  int below_mean = 0;
  for (int i = 0; i < count; ++i) {
    const auto distance = static_cast<double>(next_distance(random.next()));
    sum += distance;
    below_mean += distance < mean_distance_bytes ? 1 : 0;
  }
  CHECK(sum / count == doctest::Approx(mean_distance_bytes).epsilon(0.02));
  CHECK(below_mean == doctest::Approx(count * (1 - std::exp(-1))).epsilon(0.02));
}
