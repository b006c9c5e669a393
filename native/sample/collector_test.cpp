#include "sample/collector.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sample/stalled_access.hpp"

using namespace nearfar;
using namespace nearfar::sample;

// A load that overwrites its index; a sample that waited for it is at the next instruction.
asm(R"(
  .text
  .p2align 6
  .zero 64, 0x90
nearfar_test_load:
  mov (%rcx,%rax), %rax
nearfar_test_after_load:
  cmp %rax, %r13
  ret
)");
extern "C" const char nearfar_test_after_load[];

namespace {

constexpr unsigned kernel_rax = 0; // asm/perf_regs.h
constexpr unsigned kernel_rcx = 2;

/// Samples of this process, with its mappings as they are now.
class Collected {
public:
  Collected() { REQUIRE(seen.processes.read(getpid())); }

  const Sample& sampled(std::uint64_t rcx, std::uint64_t rax) {
    perf::Sample record;
    record.ip = reinterpret_cast<std::uint64_t>(nearfar_test_after_load);
    record.pid = static_cast<std::uint32_t>(getpid());
    record.tid = record.pid;
    record.user_registers.abi = PERF_SAMPLE_REGS_ABI_64;
    record.user_registers.present = static_cast<std::uint32_t>(register_mask());
    record.user_registers.values[kernel_rcx] = rcx;
    record.user_registers.values[kernel_rax] = rax;
    seen.take_clock(record);
    return seen.store.all().back();
  }
  trace::SiteKind kind(const Sample& sample) const { return seen.data.all()[sample.data].kind; }

private:
  Collector seen{CodeSource::running_process};
};

char table[1 << 16];

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

} // namespace

TEST_CASE("an index that a load left is taken for the next one") {
  Collected collected;
  const Sample& sample = collected.sampled(address_of(table), 4096);
  CHECK(sample.address == address_of(table) + 4096);
  CHECK(collected.kind(sample) == trace::SiteKind::statics);
}

TEST_CASE("a pointer that a load left in place of its index: the data is the array's") {
  void* pointed = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pointed != MAP_FAILED);
  Collected collected;
  const Sample& sample = collected.sampled(address_of(table), address_of(pointed));
  CHECK(sample.address == address_of(pointed));
  CHECK(collected.kind(sample) == trace::SiteKind::statics);
  munmap(pointed, 4096);
}

TEST_CASE("an address where nothing is mapped is unknown") {
  Collected collected;
  const Sample& sample = collected.sampled(16, 32);
  CHECK(sample.address == 0);
  CHECK(sample.data == 0);
}
