#include "bench/mapped.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/random.hpp"
#include "kernels/team.hpp"
#include "os/block_io.hpp"
#include "os/clock.hpp"

namespace nearfar::bench {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t largest_block = std::size_t{1} << 20;

/// Each page of the file starts with a word that encodes its offset, in every version of the file.
std::uint64_t page_tag(std::size_t offset) { return Random(offset / page).next(); }

void tag_pages(std::byte* block, std::size_t bytes, std::size_t offset) {
  for (std::size_t at = 0; at < bytes; at += page) {
    const std::uint64_t tag = page_tag(offset + at);
    std::memcpy(block + at, &tag, sizeof tag);
  }
}

bool carries_tag(const std::byte* block, std::size_t offset) {
  std::uint64_t tag = 0;
  std::memcpy(&tag, block, sizeof tag);
  return tag == page_tag(offset);
}

std::vector<std::size_t> block_offsets(const Access& access, std::size_t bytes) {
  std::vector<std::size_t> offsets(bytes / access.block_bytes);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    offsets[i] = i * access.block_bytes;
  if (access.random) {
    Random random(access.seed);
    for (std::size_t i = offsets.size(); i > 1; --i)
      std::swap(offsets[i - 1], offsets[random.below(i)]);
  }
  return offsets;
}

/// Runs move(offset) over the blocks until they or the budget end, then finish(), and returns the
/// time of both. The clock is read once in 16 blocks: under 2 ns a block.
template <class Move, class Finish>
Result<IoSample> timed(const std::vector<std::size_t>& offsets, std::size_t block_bytes,
                       std::uint64_t budget_ns, const Move& move, const Finish& finish) {
  IoSample sample;
  const os::UsageMeter meter;
  const std::uint64_t start = os::now_ns();
  std::size_t done = 0;
  for (; done < offsets.size(); ++done) {
    if (done % 16 == 0 && done > 0 && os::now_ns() - start > budget_ns) break;
    if (Status moved = move(offsets[done]); !moved) return moved.error();
  }
  if (Status finished = finish(); !finished) return finished.error();
  sample.seconds = static_cast<double>(os::now_ns() - start) * 1e-9;
  sample.usage = meter.since();
  sample.bytes = done * block_bytes;
  return sample;
}

Status nothing_to_finish() { return Done{}; }

/// Loads from each page; stores only if writes must not fault either: a load leaves the pages
/// clean, so that no write-back runs during the measurement.
void fill_page_tables(std::byte* file, std::size_t bytes, bool store) {
  for (std::size_t at = 0; at < bytes; at += page) {
    auto* first = reinterpret_cast<volatile std::byte*>(file + at);
    const std::byte value = *first;
    if (store) *first = value;
  }
}

Error wrong_block() {
  return Error::make(Errc::failed_check, "a block read is not the one that was asked for")
      .try_next("report this with the file system's name and the kernel's version");
}

} // namespace

MappedBench::MappedBench(os::File file, std::size_t bytes, int cpu)
    : file_(std::move(file)), bytes_(bytes), cpu_(cpu),
      storage_(uring_depth * largest_block + page) {
  const auto raw = reinterpret_cast<std::uintptr_t>(storage_.data());
  buffer_ = storage_.data() + ((raw + page - 1) / page * page - raw);
}

Result<MappedBench> MappedBench::create(const char* path, std::size_t bytes, int cpu) {
  if (bytes == 0 || bytes % largest_block != 0)
    return Error::make(Errc::bad_input, "%zu bytes is not a whole number of MiB", bytes)
        .try_next("give --size in MiB, for example 256MiB");
  if (Status s = os::check_directory(path); !s) return s.error();
  Result<std::size_t> room = os::free_space(path);
  if (!room) return room.error();
  if (bytes > *room)
    return Error::make(Errc::no_space, "%zu bytes do not fit at %s, which has %zu bytes free",
                       bytes, path, *room)
        .try_next("ask for a smaller --size, or name another --path");
  Result<os::File> file = os::create_unnamed(path);
  if (!file) return file.error();
  if (Status reserved = os::reserve_space(*file, bytes); !reserved) return reserved.error();
  MappedBench bench(std::move(*file), bytes, cpu);
  for (std::size_t offset = 0; offset < bytes; offset += largest_block) {
    tag_pages(bench.buffer_, largest_block, offset);
    if (Status s = os::write_at(bench.file_, bench.buffer_, largest_block, offset); !s)
      return s.error();
  }
  if (Status flushed = os::flush_file(bench.file_); !flushed) return flushed.error();
  return bench;
}

Result<os::MappedRange> MappedBench::map_file(bool& sync) const {
  sync = os::is_dax(file_);
  if (sync) {
    Result<os::MappedRange> range = os::map_range(bytes_, os::PageSize::system, file_.fd(), true);
    if (range) return range;
    sync = false;
  }
  return os::map_range(bytes_, os::PageSize::system, file_.fd(), false);
}

Result<MappingFacts> MappedBench::facts() {
  MappingFacts facts;
  facts.descriptor = file_.fd();
  facts.dax = os::is_dax(file_);
  Result<os::MappedRange> range = map_file(facts.map_sync);
  if (!range) return range.error();
  std::uint64_t touched = 0;
  for (std::size_t at = 0; at < bytes_; at += page)
    touched +=
        std::to_integer<std::uint64_t>(*static_cast<volatile std::byte*>(range->data() + at));
  asm volatile("" : : "r"(touched));
  Result<os::Residency> residency = os::residency(*range);
  if (!residency) return residency.error();
  facts.first_address = reinterpret_cast<std::uintptr_t>(range->data());
  facts.last_address = facts.first_address + bytes_ - 1;
  facts.page_bytes = residency->kernel_page_bytes;
  facts.huge_bytes = residency->huge_bytes;
  return facts;
}

Result<os::File> MappedBench::reopen(bool direct) const {
  char name[32];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", file_.fd());
  return os::open_existing(name, direct);
}

Status MappedBench::set_warmth(Warmth warmth) {
  if (warmth == Warmth::cold) return os::drop_page_cache(file_, bytes_);
  for (std::size_t offset = 0; offset < bytes_; offset += largest_block)
    if (Status s = os::read_at(file_, buffer_, largest_block, offset); !s) return s;
  return Done{};
}

Result<IoSample> MappedBench::run(const Access& access, std::uint64_t budget_ns) {
  if (access.block_bytes == 0 || access.block_bytes % page != 0 ||
      access.block_bytes > largest_block || bytes_ % access.block_bytes != 0)
    return Error::make(Errc::bad_input, "blocks of %zu bytes cannot be used", access.block_bytes)
        .try_next("a block is a multiple of 4096, at most 1 MiB, and divides the file");
  // A result has no empty state, so the thread leaves what it got in a slot of its own.
  std::unique_ptr<Result<IoSample>> outcome;
  const auto work = [&](std::size_t) {
    if (Status ready = set_warmth(access.warmth); !ready) {
      outcome = std::make_unique<Result<IoSample>>(ready.error());
      return;
    }
    switch (access.method) {
    case Method::mapped:
      outcome = std::make_unique<Result<IoSample>>(run_mapped(access, budget_ns));
      break;
    case Method::buffered:
    case Method::direct:
      outcome = std::make_unique<Result<IoSample>>(run_calls(access, budget_ns));
      break;
    case Method::uring:
      outcome = std::make_unique<Result<IoSample>>(run_uring(access, budget_ns));
      break;
    }
  };
  if (Result<kernels::TeamRun> ran = kernels::run_team({&cpu_, 1}, work); !ran) return ran.error();
  return std::move(*outcome);
}

Result<IoSample> MappedBench::run_mapped(const Access& access, std::uint64_t budget_ns) {
  bool sync = false;
  Result<os::MappedRange> range = map_file(sync);
  if (!range) return range.error();
  std::byte* file = range->data();
  const std::vector<std::size_t> offsets = block_offsets(access, bytes_);
  if (access.warmth == Warmth::resident) fill_page_tables(file, bytes_, access.write);
  if (access.write) {
    const auto store = [&](std::size_t offset) -> Status {
      tag_pages(buffer_, access.block_bytes, offset);
      std::memcpy(file + offset, buffer_, access.block_bytes);
      return Done{};
    };
    return timed(offsets, access.block_bytes, budget_ns, store,
                 [&] { return os::sync_range(file, bytes_); });
  }
  const auto load = [&](std::size_t offset) -> Status {
    std::memcpy(buffer_, file + offset, access.block_bytes);
    asm volatile("" : : "r"(buffer_) : "memory"); // the buffer is looked at: nothing is left out
    if (!carries_tag(buffer_, offset)) return wrong_block();
    return Done{};
  };
  return timed(offsets, access.block_bytes, budget_ns, load, nothing_to_finish);
}

Result<IoSample> MappedBench::run_calls(const Access& access, std::uint64_t budget_ns) {
  Result<os::File> file = reopen(access.method == Method::direct);
  if (!file) return file.error();
  const std::vector<std::size_t> offsets = block_offsets(access, bytes_);
  if (access.write) {
    const auto store = [&](std::size_t offset) {
      tag_pages(buffer_, access.block_bytes, offset);
      return os::write_at(*file, buffer_, access.block_bytes, offset);
    };
    return timed(offsets, access.block_bytes, budget_ns, store,
                 [&] { return os::flush_file(*file); });
  }
  const auto load = [&](std::size_t offset) -> Status {
    if (Status s = os::read_at(*file, buffer_, access.block_bytes, offset); !s) return s;
    if (!carries_tag(buffer_, offset)) return wrong_block();
    return Done{};
  };
  return timed(offsets, access.block_bytes, budget_ns, load, nothing_to_finish);
}

Result<IoSample> MappedBench::run_uring(const Access& access, std::uint64_t budget_ns) {
  Result<os::File> file = reopen(true);
  if (!file) return file.error();
  Result<os::Ring> ring = os::Ring::create(*file, uring_depth);
  if (!ring) return ring.error();
  const std::vector<std::size_t> offsets = block_offsets(access, bytes_);
  std::vector<std::size_t> offset_of(uring_depth); // what each slot of the buffer holds
  std::vector<unsigned> idle(uring_depth);
  std::iota(idle.begin(), idle.end(), 0u);
  const auto slot_data = [&](unsigned slot) { return buffer_ + slot * access.block_bytes; };
  const auto reap = [&]() -> Status {
    Result<unsigned> slot = ring->reap_one();
    if (!slot) return slot.error();
    idle.push_back(*slot);
    if (!access.write && !carries_tag(slot_data(*slot), offset_of[*slot])) return wrong_block();
    return Done{};
  };
  const auto move = [&](std::size_t offset) -> Status {
    if (idle.empty())
      if (Status s = reap(); !s) return s;
    const unsigned slot = idle.back();
    idle.pop_back();
    offset_of[slot] = offset;
    if (access.write) tag_pages(slot_data(slot), access.block_bytes, offset);
    return ring->submit({slot, access.write, slot_data(slot), access.block_bytes, offset});
  };
  const auto drain = [&]() -> Status {
    while (idle.size() < uring_depth)
      if (Status s = reap(); !s) return s;
    return access.write ? os::flush_file(*file) : Status(Done{});
  };
  return timed(offsets, access.block_bytes, budget_ns, move, drain);
}

} // namespace nearfar::bench
