#include "topo/tlb.hpp"

#include <cpuid.h>

namespace nearfar::topo {

namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// Zeros for a leaf that the processor does not have.
Registers cpuid(unsigned leaf, unsigned part = 0) {
  Registers registers;
  if (!__get_cpuid_count(leaf, part, &registers.eax, &registers.ebx, &registers.ecx,
                         &registers.edx))
    return {};
  return registers;
}

unsigned bits(unsigned word, unsigned high, unsigned low) {
  return word >> low & ((2u << (high - low)) - 1);
}

void add(std::vector<TlbLevel>& levels, unsigned entries, unsigned ways) {
  if (entries > 0 && ways > 0 && ways <= entries) levels.push_back({entries, ways});
}

/// Unit of the number of entries of the second level: 32 from family 1Ah on, according to a bit
/// that hypervisors omit.
unsigned amd_unit() {
  constexpr unsigned first_family = 0x1a;
  const unsigned signature = cpuid(1).eax;
  const unsigned family = bits(signature, 11, 8) + bits(signature, 27, 20);
  const bool documented = bits(cpuid(0x8000'0021).eax, 14, 14) != 0;
  return documented || family >= first_family ? 32 : 1;
}

std::vector<TlbLevel> of_amd() {
  constexpr unsigned ways_of_code[16] = {0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0};
  constexpr unsigned fully = 0xff, fully_code = 0xf;
  const unsigned first = cpuid(0x8000'0005).ebx, second = cpuid(0x8000'0006).ebx;
  std::vector<TlbLevel> levels;
  const unsigned entries = bits(first, 23, 16), ways = bits(first, 31, 24);
  add(levels, entries, ways == fully ? entries : ways);
  const unsigned more = bits(second, 27, 16) * amd_unit(), code = bits(second, 31, 28);
  if (!levels.empty()) add(levels, more, code == fully_code ? more : ways_of_code[code]);
  return levels;
}

/// Leaf 18h: a part for each buffer.
std::vector<TlbLevel> of_intel() {
  constexpr unsigned for_data = 1, shared = 3, for_loads = 4, small_pages = 1;
  std::vector<TlbLevel> levels;
  const unsigned last = cpuid(0x18).eax;
  for (unsigned level = 1; level <= 2; ++level)
    for (unsigned part = 0; part <= last && levels.size() < level; ++part) {
      const Registers registers = cpuid(0x18, part);
      const unsigned type = bits(registers.edx, 4, 0);
      const bool right = type == for_data || type == shared || type == for_loads;
      if (!right || bits(registers.edx, 7, 5) != level || (registers.ebx & small_pages) == 0)
        continue;
      const unsigned ways = bits(registers.ebx, 31, 16);
      add(levels, ways * registers.ecx, ways);
    }
  return levels;
}

/// Leaf 2: a byte for each buffer; those of server processors from 2011 on.
std::vector<TlbLevel> of_old_intel() {
  struct Known {
    unsigned byte;
    TlbLevel level;
  };
  constexpr Known first[] = {{0x03, {64, 4}}};
  constexpr Known second[] = {{0xca, {512, 4}}, {0xc1, {1024, 8}}, {0xc3, {1536, 6}}};
  const Registers registers = cpuid(2);
  const auto lists = [&registers](unsigned byte) {
    for (const unsigned word :
         {registers.eax & ~0xffu, registers.ebx, registers.ecx, registers.edx})
      for (unsigned low = 0; word >> 31 == 0 && low < 32; low += 8)
        if (bits(word, low + 7, low) == byte) return true;
    return false;
  };
  std::vector<TlbLevel> levels;
  for (const Known& known : first)
    if (lists(known.byte)) levels.push_back(known.level);
  for (const Known& known : second)
    if (levels.size() == 1 && lists(known.byte)) levels.push_back(known.level);
  return levels;
}

} // namespace

std::vector<TlbLevel> data_tlb() {
  constexpr unsigned intel = 0x756e6547, amd = 0x68747541,
                     hygon = 0x6f677948; // "Genu" "Auth" "Hygo"
  const unsigned maker = cpuid(0).ebx;
  if (maker == amd || maker == hygon) return of_amd();
  if (maker != intel) return {};
  const std::vector<TlbLevel> levels = of_intel();
  return levels.empty() ? of_old_intel() : levels;
}

} // namespace nearfar::topo
