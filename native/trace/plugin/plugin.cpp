// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The recorder that QEMU's user-mode emulator loads: sees every access of an unmodified program.
//
// Read and write The filter at registration lets wrong ones through in 7.2, so that one callback
//                gets both and asks which it was.
// Instructions   are counted by a translation block as it is entered: in place while there is one
//                thread, by a call once there are more (the emulator translates everything anew
//                when the second thread is made, because atomics change then).
// Values         guest addresses are host addresses in user mode (guest_base 0), so memory is read.
#include "trace/plugin/allocation.hpp"
#include "trace/plugin/api.hpp"
#include "trace/plugin/capture.hpp"
#include "trace/plugin/cpu_time.hpp"
#include "trace/plugin/follow_exec.hpp"
#include "trace/plugin/meaning.hpp"
#include "trace/plugin/modules.hpp"
#include "trace/plugin/opcode.hpp"
#include "trace/plugin/remap.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

int qemu_plugin_version = 1;

namespace {

using namespace nearfar::trace;

constexpr unsigned most_vcpus = ring::most_threads;

ring::Shared* shared = nullptr;
Core first; ///< of the first thread
Core* cores[most_vcpus];
std::atomic<unsigned> vcpus{0};
bool side_by_side = false; ///< there is or was a second thread
CodeRanges code_ranges;
ToldSites told_sites;
// Code of the library that tells of allocations, which is no part of the program. Set before any of
// it is executed.
std::uint64_t teller_low = 0, teller_high = 0;

// While there is one thread: changed by the translated code itself.
Clock counts;
std::uint64_t wide_executions = 0;

thread_local Core* calling = nullptr; ///< who is in a system call
thread_local std::uint64_t asked[4];  ///< its arguments
thread_local ExecAttempt exec_attempt;
EmulatorCommand emulator_command;
std::uint32_t this_process = 0; ///< its number among those of the ring

/// The vector access that is being pieced together.
struct Piece {
  std::uint64_t code;
  std::uint64_t end;
  std::uint64_t execution;
  std::uint64_t executions; ///< counted here where threads run side by side
  bool store;
};
Piece pieces[most_vcpus];

std::uint64_t code_of(void* data) { return reinterpret_cast<std::uint64_t>(data); }

/// The most frequent ones: what they are is known, and they are counted by block.
template <bool alone, bool store, unsigned bytes>
void on_plain(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void* code) {
  Core& core = alone ? first : *cores[vcpu];
  core.touch<store>(address, bytes, code_of(code));
}

template <bool alone>
void on_push(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void* code) {
  Core& core = alone ? first : *cores[vcpu];
  if (!core.is_youngest(address)) core.pushed(address);
  core.touch<true>(address, 8, code_of(code));
}

template <bool store, unsigned bytes>
qemu_plugin_vcpu_mem_cb_t plain_callback() {
  return side_by_side ? on_plain<false, store, bytes> : on_plain<true, store, bytes>;
}

template <bool store>
qemu_plugin_vcpu_mem_cb_t plain_callback(unsigned bytes) {
  switch (bytes) {
  case 1: return plain_callback<store, 1>();
  case 2: return plain_callback<store, 2>();
  case 4: return plain_callback<store, 4>();
  default: return plain_callback<store, 8>();
  }
}

/// A callback that is told what the access is; where that is not known yet, the emulator is asked.
template <void (*then)(unsigned vcpu, Meaning access, std::uint64_t address, void* code)>
void knowing(unsigned vcpu, qemu_plugin_meminfo_t info, std::uint64_t address, void* code) {
  Meaning access;
  if (!is_known(info, access)) [[unlikely]]
    return learn<knowing<then>>(vcpu, info, address, code);
  then(vcpu, access, address, code);
}

void on_scalar(unsigned vcpu, Meaning access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  Core& core = *cores[vcpu];
  core.count(store);
  core.touch(address, bytes, store, code_of(code));
}

void on_stack(unsigned vcpu, Meaning access, std::uint64_t address, void* code) {
  if (access.store) cores[vcpu]->pushed(address);
  on_scalar(vcpu, access, address, code);
}

/// With several threads the emulator tells of one access that both reads and writes.
void on_locked(unsigned vcpu, Meaning access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  Core& core = *cores[vcpu];
  core.count(store);
  if (store && side_by_side) core.count(false);
  core.touch(address, bytes, store, code_of(code));
}

bool is_piece(unsigned vcpu, std::uint64_t address, unsigned bytes, bool store, void* code) {
  Piece& piece = pieces[vcpu];
  const std::uint64_t execution = side_by_side ? piece.executions : wide_executions;
  const bool further = piece.code == code_of(code) && piece.end == address &&
                       piece.execution == execution && piece.store == store;
  piece.code = code_of(code);
  piece.end = address + bytes;
  piece.execution = execution;
  piece.store = store;
  return further;
}

void on_wide(unsigned vcpu, Meaning access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  Core& core = *cores[vcpu];
  if (!is_piece(vcpu, address, bytes, store, code)) core.count(store);
  core.touch(address, bytes, store, code_of(code));
}

void on_nt_store(unsigned vcpu, Meaning access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  Core& core = *cores[vcpu];
  if (!is_piece(vcpu, address, bytes, store, code)) {
    core.count(store);
    ++core.slot->nt_stores;
  }
  core.store_past(address, code_of(code));
}

void on_wide_execution(unsigned vcpu, void*) { ++pieces[vcpu].executions; }
void on_flush(unsigned vcpu, void*) { ++cores[vcpu]->slot->flushes; }

// What a block counts, in one word for its callback.
constexpr unsigned loads_shift = 16, stores_shift = 32, floating_shift = 48;
constexpr std::uint64_t count_mask = 0xffff;

void on_block(unsigned vcpu, void* packed) {
  const std::uint64_t count = code_of(packed);
  Clock& ticks = cores[vcpu]->ticks;
  ticks.instructions += count & count_mask;
  ticks.accesses[0] += count >> loads_shift & count_mask;
  ticks.accesses[1] += count >> stores_shift & count_mask;
  ticks.floating += count >> floating_shift;
}

void on_allocated(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void*) {
  Core& core = *cores[vcpu];
  Allocation allocation;
  std::memcpy(&allocation, reinterpret_cast<const void*>(address), sizeof allocation);
  core.tell_allocation(allocation, code_ranges, told_sites);
}

void on_freed(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void*) {
  cores[vcpu]->tell_freed(address);
}

/// Wide instructions count their executions, so that pieces of one are told from another's.
void watch_wide(qemu_plugin_insn* insn) {
  if (side_by_side)
    qemu_plugin_register_vcpu_insn_exec_cb(insn, on_wide_execution, QEMU_PLUGIN_CB_NO_REGS,
                                           nullptr);
  else
    qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &wide_executions,
                                               1);
}

qemu_plugin_vcpu_mem_cb_t callback_of(const Decoded& decoded) {
  switch (decoded.opcode) {
  case Opcode::load: return plain_callback<false>(decoded.bytes);
  case Opcode::store: return plain_callback<true>(decoded.bytes);
  case Opcode::push: return side_by_side ? on_push<false> : on_push<true>;
  case Opcode::stack: return knowing<on_stack>;
  case Opcode::wide: return knowing<on_wide>;
  case Opcode::locked: return knowing<on_locked>;
  case Opcode::nt_store: return knowing<on_nt_store>;
  case Opcode::scalar:
  case Opcode::flush: break;
  }
  return knowing<on_scalar>;
}

/// `bits`: of Core, above the address of the code.
void call_back(qemu_plugin_insn* insn, qemu_plugin_vcpu_mem_cb_t callback, std::uint64_t bits = 0) {
  qemu_plugin_register_vcpu_mem_cb(insn, callback, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                   reinterpret_cast<void*>(qemu_plugin_insn_vaddr(insn) | bits));
}

/// Has an instruction watched; what it is goes into the block's counts.
void watch(qemu_plugin_insn* insn, Clock& block) {
  const Decoded decoded = decode(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
  if (decoded.opcode == Opcode::wide || decoded.opcode == Opcode::nt_store) watch_wide(insn);
  if (decoded.opcode == Opcode::flush)
    qemu_plugin_register_vcpu_insn_exec_cb(insn, on_flush, QEMU_PLUGIN_CB_NO_REGS, nullptr);
  block.floating += decoded.floating;
  block.accesses[0] += decoded.opcode == Opcode::load;
  block.accesses[1] += decoded.opcode == Opcode::store || decoded.opcode == Opcode::push;
  call_back(insn, callback_of(decoded), decoded.chases ? Core::chases : 0);
}

/// Has what the teller tells heard, and nothing else of it.
void listen(qemu_plugin_tb* block, std::size_t instructions) {
  Mark mark = Mark::none;
  for (std::size_t i = 0; i < instructions; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    if (mark != Mark::none) call_back(insn, mark == Mark::allocated ? on_allocated : on_freed);
    mark = mark_of(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
  }
}

void count_block(qemu_plugin_tb* block, const Clock& count) {
  if (side_by_side) {
    const std::uint64_t packed = count.instructions | count.accesses[0] << loads_shift |
                                 count.accesses[1] << stores_shift |
                                 count.floating << floating_shift;
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, QEMU_PLUGIN_CB_NO_REGS,
                                         reinterpret_cast<void*>(packed));
    return;
  }
  const auto add = [block](std::uint64_t& to, std::uint64_t value) {
    if (value > 0)
      qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &to, value);
  };
  add(counts.instructions, count.instructions);
  add(counts.accesses[0], count.accesses[0]);
  add(counts.accesses[1], count.accesses[1]);
  add(counts.floating, count.floating);
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* block) {
  static bool told_modules = false; // when the first block is translated, the program is mapped
  if (!told_modules) tell_first_modules(*cores[0], code_ranges);
  told_modules = true;
  Clock count{qemu_plugin_tb_n_insns(block), {0, 0}, 0};
  const std::uint64_t code = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0));
  if (code >= teller_low && code < teller_high) {
    listen(block, count.instructions);
    return;
  }
  for (std::size_t i = 0; i < count.instructions; ++i)
    watch(qemu_plugin_tb_get_insn(block, i), count);
  count_block(block, count);
}

// System calls of x86-64.
constexpr std::int64_t call_mmap = 9, call_munmap = 11, call_brk = 12, call_mremap = 25,
                       call_execve = 59, call_execveat = 322;
constexpr std::uint64_t map_anonymous = 0x20, protect_execute = 4;

void on_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t a, std::uint64_t b,
             std::uint64_t c, std::uint64_t d, std::uint64_t e, std::uint64_t f, std::uint64_t,
             std::uint64_t) {
  calling = cores[vcpu];
  calling->tell_counts();
  asked[0] = a;
  asked[1] = b;
  asked[2] = c;
  if (number == call_execve && shared->stop.load() == 0)
    emulator_command.follow(reinterpret_cast<const char*>(a), reinterpret_cast<char**>(b),
                            reinterpret_cast<char**>(c));
  if (number == call_execve || number == call_execveat) exec_attempt.begin(*shared);
  if (number == call_mmap) {
    asked[2] = (d & map_anonymous) != 0 ? ~std::uint64_t{0} : e;
    asked[3] = (c & protect_execute) != 0 ? f : ~std::uint64_t{0};
  }
}

void after_mmap(Core& core, std::uint64_t address) {
  const std::uint64_t file = asked[2];
  core.tell(ring::What::map, address, asked[1], core.slot->instructions);
  if (static_cast<std::int32_t>(file) < 0 || asked[3] == ~std::uint64_t{0}) return;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", static_cast<int>(file));
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  if (std::strstr(path, allocations_library) != nullptr) {
    teller_low = address;
    teller_high = address + asked[1];
  }
  code_ranges.add(address, asked[1]);
  core.tell_module(address, asked[1], asked[3], path);
}

void after_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::int64_t result) {
  static std::atomic<std::uint64_t> program_break{0};
  Core& core = *cores[vcpu];
  const auto got = static_cast<std::uint64_t>(result);
  if (number == call_execve || number == call_execveat) exec_attempt.failed(*shared);
  if (result < 0 && result > -4096) return;
  if (number == call_mmap) {
    after_mmap(core, got);
  } else if (number == call_munmap) {
    core.tell(ring::What::unmap, asked[0], asked[1], core.slot->instructions);
  } else if (number == call_mremap) {
    tell_remapped(core, asked[0], asked[1], got, asked[2]);
  } else if (number == call_brk) {
    const std::uint64_t before = program_break.exchange(got);
    if (before != 0 && got > before)
      core.tell(ring::What::map, before, got - before, core.slot->instructions);
  }
}

void run_side_by_side() {
  first.fills_ring_alone(false);
  first.ticks = counts;
  first.clock = &first.ticks;
  side_by_side = true;
}

void on_vcpu(qemu_plugin_id_t, unsigned vcpu) {
  if (vcpu >= most_vcpus) {
    std::fprintf(stderr, "nearfar: more than %u threads at once cannot be traced\n", most_vcpus);
    _exit(126);
  }
  const unsigned before = vcpus.fetch_add(1);
  if (before == 1) run_side_by_side(); // the thread that makes the second one is the first
  if (cores[vcpu] == nullptr) {
    cores[vcpu] = vcpu == 0 ? &first : static_cast<Core*>(std::calloc(1, sizeof(Core)));
    if (cores[vcpu] == nullptr || !cores[vcpu]->open(*shared)) {
      std::fprintf(stderr, "nearfar: no memory to trace another thread\n");
      _exit(126);
    }
  }
  Core& core = *cores[vcpu];
  core.clock = side_by_side ? &core.ticks : &counts;
  core.fills_ring_alone(before == 0 && this_process == 0);
  core.take_slot(calling != nullptr ? calling->slot->process : this_process);
}

void on_vcpu_end(qemu_plugin_id_t, unsigned vcpu) { cores[vcpu]->tell_counts(); }

void on_end(qemu_plugin_id_t, void*) {
  shared->recorded_cpu_ns.fetch_add(process_cpu_ns());
  for (Core* core : cores)
    if (core != nullptr) core->tell_counts();
}

/// Parent and child will both fill the ring.
void before_fork() { first.fills_ring_alone(false); }

/// A forked child is a process of its own, with the thread that forked.
void in_child() {
  if (calling == nullptr) return;
  calling->tell_counts();
  const std::uint32_t parent = calling->slot->process;
  const std::uint32_t child = shared->processes.fetch_add(1);
  calling->take_slot(child);
  calling->tell(ring::What::fork, parent, child, 0);
  for (Core*& core : cores)
    if (core != calling) core = nullptr; // their threads are the parent's
}

} // namespace

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int count, char** arguments) {
  constexpr char key[] = "ring=";
  if (count != 1 || std::strncmp(arguments[0], key, sizeof key - 1) != 0) {
    std::fprintf(stderr, "nearfar: this plug-in is loaded by `nearfar trace`\n");
    return 1;
  }
  if (info->system_emulation || std::strcmp(info->target_name, "x86_64") != 0) {
    std::fprintf(stderr, "nearfar: only programs for 64-bit x86 are traced\n");
    return 1;
  }
  shared = ring::attach(arguments[0] + sizeof key - 1);
  if (shared == nullptr) return 1;
  emulator_command.find(&shared, arguments[0] + sizeof key - 1);
  if (shared->threads.load() > 0) this_process = shared->processes.fetch_add(1); // after an execve
  qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
  qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_end);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_vcpu_syscall_cb(id, on_call);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, after_call);
  qemu_plugin_register_atexit_cb(id, on_end, nullptr);
  pthread_atfork(before_fork, nullptr, in_child);
  return 0;
}
