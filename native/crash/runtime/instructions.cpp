#include "crash/runtime/instructions.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "crash/library.hpp"
#include "crash/runtime/callers.hpp"
#include "crash/runtime/kernel.hpp"
#include "crash/runtime/recording.hpp"
#include "crash/runtime/sites.hpp"

namespace nearfar::crash::runtime {

namespace {

using os::page_bytes;

constexpr std::uint8_t breakpoint = 0xcc;  // int3
constexpr std::uint8_t report_mark = 0x3e; // the prefix of the DS segment
constexpr std::size_t longest = 15;        ///< bytes of an instruction
constexpr std::size_t largest_vector = 64;
constexpr std::size_t lead_in = 512; ///< bytes that are decoded before one of interest

/// An instruction that a breakpoint hides.
struct Hidden {
  std::atomic<std::uint8_t*> at; ///< null: its module was unloaded
  ZydisMnemonic what;
  std::uint8_t bytes;
  ZydisDecodedOperandMem address; ///< of a flush
};
constexpr int max_hidden = 4096;
Hidden hidden[max_hidden];
std::atomic<int> hidden_count{0};

/// A module that was searched: the addresses that it has.
struct Module {
  std::uintptr_t key; ///< of its program headers
  std::uintptr_t begin, end;
  bool is_loaded; ///< found by the search that is made now
};
constexpr int max_modules = 512;
Module searched[max_modules];
int searched_count = 0;
std::atomic_flag searching = ATOMIC_FLAG_INIT;

const ZydisDecoder& decoder() {
  static const ZydisDecoder made = [] {
    ZydisDecoder one;
    ZydisDecoderInit(&one, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return one;
  }();
  return made;
}

bool is_flush(ZydisMnemonic what) {
  return what == ZYDIS_MNEMONIC_CLFLUSH || what == ZYDIS_MNEMONIC_CLFLUSHOPT ||
         what == ZYDIS_MNEMONIC_CLWB;
}
bool is_fence(ZydisMnemonic what) {
  return what == ZYDIS_MNEMONIC_SFENCE || what == ZYDIS_MNEMONIC_MFENCE;
}

/// Where bytes come next that can be of a flush or fence: all have the opcode 0F AE.
std::size_t next_suspicious(const std::uint8_t* code, std::size_t bytes, std::size_t from) {
  while (from + 2 < bytes) {
    const void* const found = std::memchr(code + from + 1, 0xae, bytes - from - 2);
    if (found == nullptr) break;
    const auto at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - code);
    if (code[at - 1] == 0x0f && (code[at + 1] & 0x30) == 0x30) return at - 1;
    from = at;
  }
  return bytes;
}

/// The function that the dynamic linker calls when it has loaded a library, for debuggers.
std::uint8_t* loader_call = nullptr;

bool place_breakpoint(std::uint8_t* at) {
  void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(at) & ~(page_bytes - 1));
  if (system_call(SYS_mprotect, page, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    return false;
  __atomic_store_n(at, breakpoint, __ATOMIC_SEQ_CST);
  return system_call(SYS_mprotect, page, page_bytes, PROT_READ | PROT_EXEC) == 0;
}

bool hide(std::uint8_t* at, std::size_t left) {
  const int count = hidden_count.load();
  int number = 0; // an entry of a module that was unloaded is used again
  while (number < count && hidden[number].at.load() != nullptr)
    ++number;
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (number == max_hidden ||
      !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), at, left, &instruction, operands)))
    return false;
  Hidden& one = hidden[number];
  one.what = instruction.mnemonic;
  one.bytes = instruction.length;
  one.address = operands[0].mem;
  one.at = at; // before the breakpoint, which another thread can meet at once
  if (number == count) hidden_count.store(count + 1);
  return place_breakpoint(at);
}

/// nearfar/crash_intrinsics.h reports its instructions itself. It marks them by a prefix that has no
/// effect.
bool is_reported(const ZydisDecodedInstruction& instruction) {
  const auto* const prefixes = instruction.raw.prefixes;
  return std::any_of(prefixes, prefixes + instruction.raw.prefix_count,
                     [](const auto& prefix) { return prefix.value == report_mark; });
}

/// How many flushes and fences a segment has that are not seen, and how many `flushes` are among them:
/// with `watch`, those that could not be replaced.
int search(std::uint8_t* code, std::size_t bytes, bool watch, int* flushes = nullptr) {
  int unseen = 0;
  ZydisDecodedInstruction instruction;
  std::size_t at = 0; // the first instruction that was not decoded
  for (std::size_t found = next_suspicious(code, bytes, 0); found < bytes;
       found = next_suspicious(code, bytes, std::max(at, found + 1))) {
    // Decoding that begins anywhere falls into step with the instructions after a few of them.
    at = std::max(at, found - std::min(found, lead_in));
    while (at <= found) {
      const std::size_t left = std::min(bytes - at, longest);
      if (!ZYAN_SUCCESS(
              ZydisDecoderDecodeInstruction(&decoder(), nullptr, code + at, left, &instruction))) {
        ++at;
        continue;
      }
      const ZydisMnemonic what = instruction.mnemonic;
      if ((is_flush(what) || is_fence(what)) && !is_reported(instruction))
        if (!watch || !hide(code + at, left)) {
          ++unseen;
          if (flushes != nullptr) *flushes += is_flush(what) ? 1 : 0;
        }
      at += instruction.length;
    }
  }
  return unseen;
}

/// Whether a module is not searched: it does not flush, or only by functions that the recorder
/// replaces. In other link namespaces, it replaces none (`is_replaced` is false).
bool is_left_out(const dl_phdr_info& module, bool is_replaced) {
  const std::string_view path = module.dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (is_pmem(path)) return is_replaced;
  for (const char* known : {"linux-vdso", "ld-linux", "libc.so", "libZydis", "libnearfar-",
                            "libm.so", "libstdc++", "libgcc_s"})
    if (name.starts_with(known)) return true;
  return false;
}

Module module_of(const dl_phdr_info& info) {
  Module module{reinterpret_cast<std::uintptr_t>(info.dlpi_phdr), UINTPTR_MAX, 0, true};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    module.begin = std::min(module.begin, info.dlpi_addr + segment.p_vaddr);
    module.end = std::max(module.end, info.dlpi_addr + segment.p_vaddr + segment.p_memsz);
  }
  return module;
}

/// Others can be loaded at the addresses of a module that was unloaded, or the same one again.
void forget_unloaded() {
  for (int i = 0; i < searched_count;) {
    if (searched[i].is_loaded) {
      ++i;
      continue;
    }
    const Module gone = searched[i];
    searched[i] = searched[--searched_count];
    for (int j = 0; j < hidden_count.load(); ++j)
      if (const auto at = reinterpret_cast<std::uintptr_t>(hidden[j].at.load());
          at >= gone.begin && at < gone.end)
        hidden[j].at = nullptr;
    forget_sites();
    forget_owners();
  }
}

/// Modules that dlmopen() loaded apart from those of the program, by visit() of dl_iterate_phdr(3).
template <class Visit>
void visit_other_namespaces(const Visit& visit) {
  if (_r_debug.r_version < 2) return; // there are none
  const auto* own = reinterpret_cast<const r_debug_extended*>(&_r_debug);
  asm("" : "+r"(own)); // the declared object is smaller than it is
  for (const r_debug_extended* space = own->r_next; space != nullptr; space = space->r_next) {
    if (space->base.r_state != r_debug::RT_CONSISTENT) continue;
    for (const link_map* map = space->base.r_map; map != nullptr; map = map->l_next) {
      Dl_info found;
      if (dladdr(map->l_ld, &found) == 0) continue;
      const auto* const begin = static_cast<const char*>(found.dli_fbase);
      const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(begin);
      if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) continue;
      dl_phdr_info module{};
      module.dlpi_addr = map->l_addr;
      module.dlpi_name = map->l_name;
      module.dlpi_phdr = reinterpret_cast<const ElfW(Phdr)*>(begin + header->e_phoff);
      module.dlpi_phnum = header->e_phnum;
      visit(module);
    }
  }
}

int find_loaded(dl_phdr_info* module, std::size_t, void*) {
  const auto key = reinterpret_cast<std::uintptr_t>(module->dlpi_phdr);
  for (int i = 0; i < searched_count; ++i)
    if (searched[i].key == key) searched[i].is_loaded = true;
  return 0;
}

struct Search {
  bool watch;
  bool is_replaced; ///< see is_left_out()
};

int search_module(dl_phdr_info* module, std::size_t, void* context) {
  const auto [watch, is_replaced] = *static_cast<const Search*>(context);
  const Module found = module_of(*module);
  if (std::any_of(searched, searched + searched_count,
                  [&](const Module& one) { return one.key == found.key; }))
    return 0;
  if (searched_count == max_modules) return 0;
  searched[searched_count++] = found;
  if (is_left_out(*module, is_replaced)) return 0;
  int unseen = 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = module->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    auto* code = reinterpret_cast<std::uint8_t*>(module->dlpi_addr + segment.p_vaddr);
    unseen += search(code, segment.p_filesz, watch);
  }
  if (unseen > 0) report_unseen(unseen, module->dlpi_name);
  return 0;
}

std::uint64_t value_of(ZydisRegister name, const ucontext_t& machine, std::uint64_t next) {
  constexpr int general[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};
  if (name == ZYDIS_REGISTER_RIP) return next;
  if (ZydisRegisterGetClass(name) != ZYDIS_REGCLASS_GPR64) return 0;
  return static_cast<std::uint64_t>(machine.uc_mcontext.gregs[general[ZydisRegisterGetId(name)]]);
}

std::uint64_t address_of(const ZydisDecodedOperandMem& memory, const ucontext_t& machine,
                         std::uint64_t next) {
  return value_of(memory.base, machine, next) +
         value_of(memory.index, machine, next) * memory.scale +
         static_cast<std::uint64_t>(memory.disp.value);
}

const void* address_of(const Hidden& flush, const ucontext_t& machine) {
  const auto next = reinterpret_cast<std::uint64_t>(flush.at.load()) + flush.bytes;
  return reinterpret_cast<const void*>(address_of(flush.address, machine, next));
}

/// Puts a breakpoint into that function, which does nothing but return.
void watch_loader() {
  constexpr std::uint8_t ret = 0xc3;
  constexpr std::uint8_t marked_ret[] = {0xf3, 0x0f, 0x1e, 0xfa, ret}; // endbr64 before it
  if (loader_call != nullptr) return;
  auto* at = reinterpret_cast<std::uint8_t*>(_r_debug.r_brk);
  if (at == nullptr || (*at != ret && std::memcmp(at, marked_ret, sizeof marked_ret) != 0))
    return; // then later libraries are searched at the end
  loader_call = at;
  if (!place_breakpoint(at)) loader_call = nullptr;
}

} // namespace

void search_modules(bool watch) {
  if (searching.test_and_set()) return; // another thread, or the code under this handler, does it
  for (int i = 0; i < searched_count; ++i)
    searched[i].is_loaded = false;
  dl_iterate_phdr(find_loaded, nullptr);
  visit_other_namespaces([](dl_phdr_info& module) { find_loaded(&module, 0, nullptr); });
  forget_unloaded();
  Search own{watch, true}, apart{watch, false};
  dl_iterate_phdr(search_module, &own);
  visit_other_namespaces([&](dl_phdr_info& module) { search_module(&module, 0, &apart); });
  if (watch) watch_loader();
  searching.clear();
}

int count_flushes(const void* code, std::size_t bytes) {
  int flushes = 0;
  // Without a watch, nothing is stored there.
  const int unseen =
      search(static_cast<std::uint8_t*>(const_cast<void*>(code)), bytes, false, &flushes);
  return flushes > 0 ? unseen : 0;
}

bool on_breakpoint(ucontext_t* machine) {
  greg_t& next = machine->uc_mcontext.gregs[REG_RIP];
  auto* const at = reinterpret_cast<std::uint8_t*>(next) - 1;
  if (at == loader_call) {
    auto& stack = machine->uc_mcontext.gregs[REG_RSP];
    next = *reinterpret_cast<const greg_t*>(stack);
    stack += static_cast<greg_t>(sizeof(greg_t));
    if (_r_debug.r_state == r_debug::RT_CONSISTENT) search_modules(true);
    return true;
  }
  const Hidden* const end = hidden + hidden_count.load();
  const Hidden* const found = std::find_if(hidden, const_cast<Hidden*>(end),
                                           [&](const Hidden& one) { return one.at.load() == at; });
  if (found == end) return false;
  const void* code = at + 1; // sites are return addresses, from which readers take one byte away
  if (found->what == ZYDIS_MNEMONIC_CLFLUSH)
    report_clflush(address_of(*found, *machine), code);
  else if (is_flush(found->what))
    report(EventKind::flush, address_of(*found, *machine), 1, code);
  if (is_fence(found->what)) report(EventKind::fence, nullptr, 0, code);
  next += found->bytes - 1;
  return true;
}

bool is_non_temporal(const void* code) {
  ZydisDecodedInstruction instruction;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeInstruction(&decoder(), nullptr, code, longest, &instruction)))
    return false;
  switch (instruction.mnemonic) {
  case ZYDIS_MNEMONIC_MOVNTI:
  case ZYDIS_MNEMONIC_MOVNTQ:
  case ZYDIS_MNEMONIC_MOVNTDQ:
  case ZYDIS_MNEMONIC_MOVNTPS:
  case ZYDIS_MNEMONIC_MOVNTPD:
  case ZYDIS_MNEMONIC_VMOVNTDQ:
  case ZYDIS_MNEMONIC_VMOVNTPS:
  case ZYDIS_MNEMONIC_VMOVNTPD:
  case ZYDIS_MNEMONIC_MASKMOVQ:
  case ZYDIS_MNEMONIC_MASKMOVDQU:
  case ZYDIS_MNEMONIC_VMASKMOVDQU:
  case ZYDIS_MNEMONIC_MOVDIRI:
  case ZYDIS_MNEMONIC_MOVDIR64B: return true;
  default: return false;
  }
}

bool stores_all(const void* code) {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code, longest, &instruction, operands)))
    return true;
  switch (instruction.mnemonic) {
  case ZYDIS_MNEMONIC_CMPXCHG:
  case ZYDIS_MNEMONIC_CMPXCHG8B:
  case ZYDIS_MNEMONIC_CMPXCHG16B:
  case ZYDIS_MNEMONIC_FXSAVE:
  case ZYDIS_MNEMONIC_FXSAVE64:
  case ZYDIS_MNEMONIC_XSAVE:
  case ZYDIS_MNEMONIC_XSAVE64:
  case ZYDIS_MNEMONIC_XSAVEC:
  case ZYDIS_MNEMONIC_XSAVEC64:
  case ZYDIS_MNEMONIC_XSAVEOPT:
  case ZYDIS_MNEMONIC_XSAVEOPT64:
  case ZYDIS_MNEMONIC_MASKMOVQ:
  case ZYDIS_MNEMONIC_MASKMOVDQU:
  case ZYDIS_MNEMONIC_VMASKMOVDQU:
  case ZYDIS_MNEMONIC_VMASKMOVPS:
  case ZYDIS_MNEMONIC_VMASKMOVPD:
  case ZYDIS_MNEMONIC_VPMASKMOVD:
  case ZYDIS_MNEMONIC_VPMASKMOVQ: return false;
  default: return instruction.avx.mask.mode <= ZYDIS_MASK_MODE_DISABLED;
  }
}

const std::byte* first_stored(const void* fault, const ucontext_t& machine) {
  const auto* const first = static_cast<const std::byte*>(fault);
  const auto code = static_cast<std::uint64_t>(machine.uc_mcontext.gregs[REG_RIP]);
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), reinterpret_cast<const void*>(code), longest,
                                           &instruction, operands)))
    return first;
  const auto at = reinterpret_cast<std::uint64_t>(fault);
  const std::uint64_t page = at / page_bytes * page_bytes;
  for (int i = 0; i < instruction.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY ||
        (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
      continue;
    if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) return first - (at - page);
    if (operand.size != 0 && operand.size <= 8 * largest_vector) return first;
    const std::uint64_t begin = address_of(operand.mem, machine, code + instruction.length);
    return begin > at || at - begin > page_bytes ? first : first - (at - std::max(begin, page));
  }
  return first;
}

std::size_t stored_bytes(const void* code) {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code, longest, &instruction, operands)))
    return 1;
  for (int i = 0; i < instruction.operand_count; ++i)
    if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0)
      return operands[i].mem.type == ZYDIS_MEMOP_TYPE_VSIB || operands[i].size == 0
                 ? page_bytes // a scatter, or the state of the processor
                 : operands[i].size / 8u;
  return 1;
}

} // namespace nearfar::crash::runtime
