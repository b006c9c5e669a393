// SPDX-License-Identifier: MIT (LICENSE in this folder)
// The plug-in that QEMU's user-mode emulator loads: records every access of an unmodified program.
//
// Read or write  QEMU 7.2 does not filter callbacks by kind of access reliably, so one callback
//                receives both and queries the kind.
// Instructions   are counted once per translation block: inline while there is one thread, by a
//                call once there are more. QEMU retranslates everything when the second thread
//                starts, because atomic instructions are translated differently from then on.
// Values         in user mode guest addresses are host addresses (guest_base 0), so the plug-in
//                reads the memory of the program directly.
#include "trace/recorder/access_type.hpp"
#include "trace/recorder/allocation.hpp"
#include "trace/recorder/api.hpp"
#include "trace/recorder/cpu_time.hpp"
#include "trace/recorder/emulator.hpp"
#include "trace/recorder/follow_exec.hpp"
#include "trace/recorder/modules.hpp"
#include "trace/recorder/opcode.hpp"
#include "trace/recorder/remap.hpp"
#include "trace/recorder/thread_recorder.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

int qemu_plugin_version = NEARFAR_QEMU_API;

namespace {

using namespace nearfar::trace;

constexpr unsigned max_vcpus = ring::max_threads;

ring::Shared* shared = nullptr;
ThreadRecorder first_recorder;
ThreadRecorder* recorders[max_vcpus];
std::atomic<unsigned> vcpus{0};
bool multithreaded = false; ///< a second thread runs or has run
CodeRanges code_ranges;
ReportedSites reported_sites;
// Code of the shim that reports allocations, which is not part of the program. Set before any of it
// is executed.
std::uint64_t shim_low = 0, shim_high = 0;

/// While there is one thread: incremented by the translated code itself.
struct SingleThreadCounters {
  ThreadCounts counts;
  std::uint64_t wide_executions;
};
InlineCounters<SingleThreadCounters> single;

thread_local ThreadRecorder* calling_recorder = nullptr; ///< of the thread, during a system call
thread_local std::uint64_t call_arguments[3];
/// Of an mmap call: the file that it maps.
thread_local struct {
  int fd; ///< -1: none
  std::uint64_t offset;
  bool executable;
} mapped_file;
thread_local ExecAttempt exec_attempt;
EmulatorCommand emulator_command;
std::uint32_t this_process = 0; ///< its number among those of the ring

/// The last piece of a vector access, which QEMU reports in pieces of at most 8 bytes.
struct Piece {
  std::uint64_t code;
  std::uint64_t end;
  std::uint64_t execution;
  std::uint64_t executions; ///< executions of the instruction; used only with several threads
  bool store;
};
Piece pieces[max_vcpus];

std::uint64_t code_of(void* data) { return reinterpret_cast<std::uint64_t>(data); }

/// The most frequent accesses: kind and size are known, and blocks count them.
template <bool single_threaded, bool store, unsigned bytes>
void on_plain(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void* code) {
  ThreadRecorder& recorder = single_threaded ? first_recorder : *recorders[vcpu];
  recorder.access<store>(address, bytes, code_of(code));
}

template <bool single_threaded>
void on_push(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void* code) {
  ThreadRecorder& recorder = single_threaded ? first_recorder : *recorders[vcpu];
  if (!recorder.is_newest(address)) recorder.push(address);
  recorder.access<true>(address, 8, code_of(code));
}

template <bool store, unsigned bytes>
qemu_plugin_vcpu_mem_cb_t plain_callback() {
  return multithreaded ? on_plain<false, store, bytes> : on_plain<true, store, bytes>;
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

/// Looks the kind and size of the access up; QEMU is queried once per meminfo value.
template <void (*then)(unsigned vcpu, AccessType access, std::uint64_t address, void* code)>
void with_type(unsigned vcpu, qemu_plugin_meminfo_t info, std::uint64_t address, void* code) {
  AccessType access;
  if (!find_type(info, access)) [[unlikely]]
    return query_type<with_type<then>>(vcpu, info, address, code);
  then(vcpu, access, address, code);
}

void on_scalar(unsigned vcpu, AccessType access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  ThreadRecorder& recorder = *recorders[vcpu];
  recorder.count(store);
  recorder.access(address, bytes, store, code_of(code));
}

void on_stack(unsigned vcpu, AccessType access, std::uint64_t address, void* code) {
  if (access.store) recorders[vcpu]->push(address);
  on_scalar(vcpu, access, address, code);
}

/// If there are several threads, QEMU reports an atomic read-modify-write as one access.
void on_locked(unsigned vcpu, AccessType access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  ThreadRecorder& recorder = *recorders[vcpu];
  recorder.count(store);
  if (store && multithreaded) recorder.count(false);
  recorder.access(address, bytes, store, code_of(code));
}

bool is_piece(unsigned vcpu, std::uint64_t address, unsigned bytes, bool store, void* code) {
  Piece& piece = pieces[vcpu];
  const std::uint64_t execution = multithreaded ? piece.executions : single->wide_executions;
  const bool continues = piece.code == code_of(code) && piece.end == address &&
                         piece.execution == execution && piece.store == store;
  piece.code = code_of(code);
  piece.end = address + bytes;
  piece.execution = execution;
  piece.store = store;
  return continues;
}

void on_wide(unsigned vcpu, AccessType access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  ThreadRecorder& recorder = *recorders[vcpu];
  if (!is_piece(vcpu, address, bytes, store, code)) recorder.count(store);
  recorder.access(address, bytes, store, code_of(code));
}

void on_nt_store(unsigned vcpu, AccessType access, std::uint64_t address, void* code) {
  const auto [store, bytes] = access;
  ThreadRecorder& recorder = *recorders[vcpu];
  if (!is_piece(vcpu, address, bytes, store, code)) {
    recorder.count(store);
    ++recorder.slot->nt_stores;
  }
  recorder.store_non_temporal(address, code_of(code));
}

void on_wide_execution(unsigned vcpu, void*) { ++pieces[vcpu].executions; }
void on_flush(unsigned vcpu, void*) { ++recorders[vcpu]->slot->flushes; }

// Counts of a block, in one word for its callback.
constexpr unsigned loads_shift = 16, stores_shift = 32, floating_shift = 48;
constexpr std::uint64_t count_mask = 0xffff;

void on_block(unsigned vcpu, void* packed) {
  const std::uint64_t count = code_of(packed);
  ThreadCounts& totals = recorders[vcpu]->own_counts;
  totals.instructions += count & count_mask;
  totals.accesses[0] += count >> loads_shift & count_mask;
  totals.accesses[1] += count >> stores_shift & count_mask;
  totals.floating += count >> floating_shift;
}

void on_allocated(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void*) {
  ThreadRecorder& recorder = *recorders[vcpu];
  Allocation allocation;
  std::memcpy(&allocation, reinterpret_cast<const void*>(address), sizeof allocation);
  recorder.record_allocation(allocation, code_ranges, reported_sites);
}

void on_freed(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address, void*) {
  recorders[vcpu]->record_free(address);
}

/// Counts executions of a wide instruction, to separate the pieces of one from those of the next.
void watch_wide(qemu_plugin_insn* insn) {
  if (multithreaded)
    qemu_plugin_register_vcpu_insn_exec_cb(insn, on_wide_execution, QEMU_PLUGIN_CB_NO_REGS,
                                           nullptr);
  else
    single.count(insn, single->wide_executions, 1);
}

qemu_plugin_vcpu_mem_cb_t callback_of(const Decoded& decoded) {
  switch (decoded.opcode) {
  case Opcode::load: return plain_callback<false>(decoded.bytes);
  case Opcode::store: return plain_callback<true>(decoded.bytes);
  case Opcode::push: return multithreaded ? on_push<false> : on_push<true>;
  case Opcode::stack: return with_type<on_stack>;
  case Opcode::wide: return with_type<on_wide>;
  case Opcode::locked: return with_type<on_locked>;
  case Opcode::nt_store: return with_type<on_nt_store>;
  case Opcode::scalar:
  case Opcode::flush: break;
  }
  return with_type<on_scalar>;
}

/// `bits`: flags above the address of the code (DependenceDetector).
void call_back(qemu_plugin_insn* insn, qemu_plugin_vcpu_mem_cb_t callback, std::uint64_t bits = 0) {
  qemu_plugin_register_vcpu_mem_cb(insn, callback, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                   reinterpret_cast<void*>(qemu_plugin_insn_vaddr(insn) | bits));
}

/// Registers callbacks for an instruction, and adds it to the counts of the block.
void watch(qemu_plugin_insn* insn, ThreadCounts& block) {
  const CodeBytes code(insn);
  const Decoded decoded = decode(code.data, code.size);
  if (decoded.opcode == Opcode::wide || decoded.opcode == Opcode::nt_store) watch_wide(insn);
  if (decoded.opcode == Opcode::flush)
    qemu_plugin_register_vcpu_insn_exec_cb(insn, on_flush, QEMU_PLUGIN_CB_NO_REGS, nullptr);
  block.floating += decoded.floating;
  block.accesses[0] += decoded.opcode == Opcode::load;
  block.accesses[1] += decoded.opcode == Opcode::store || decoded.opcode == Opcode::push;
  call_back(insn, callback_of(decoded),
            decoded.pointer_chase ? DependenceDetector::pointer_chase : 0);
}

/// Shim code: registers callbacks only for its report instructions.
void watch_shim(qemu_plugin_tb* block, std::size_t instructions) {
  Mark mark = Mark::none;
  for (std::size_t i = 0; i < instructions; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    if (mark != Mark::none) call_back(insn, mark == Mark::allocated ? on_allocated : on_freed);
    const CodeBytes code(insn);
    mark = mark_of(code.data, code.size);
  }
}

void count_block(qemu_plugin_tb* block, const ThreadCounts& count) {
  if (multithreaded) {
    const std::uint64_t packed = count.instructions | count.accesses[0] << loads_shift |
                                 count.accesses[1] << stores_shift |
                                 count.floating << floating_shift;
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, QEMU_PLUGIN_CB_NO_REGS,
                                         reinterpret_cast<void*>(packed));
    return;
  }
  const auto add = [block](std::uint64_t& to, std::uint64_t value) {
    if (value > 0) single.count(block, to, value);
  };
  ThreadCounts& totals = single->counts;
  add(totals.instructions, count.instructions);
  add(totals.accesses[0], count.accesses[0]);
  add(totals.accesses[1], count.accesses[1]);
  add(totals.floating, count.floating);
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* block) {
  // When the first block is translated, the program is mapped.
  static bool modules_recorded = false;
  if (!modules_recorded) record_first_modules(*recorders[0], code_ranges);
  modules_recorded = true;
  ThreadCounts count{qemu_plugin_tb_n_insns(block), {0, 0}, 0};
  const std::uint64_t code = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(block, 0));
  if (code >= shim_low && code < shim_high) {
    watch_shim(block, count.instructions);
    return;
  }
  for (std::size_t i = 0; i < count.instructions; ++i)
    watch(qemu_plugin_tb_get_insn(block, i), count);
  count_block(block, count);
}

// System calls of x86-64.
constexpr std::int64_t call_mmap = 9, call_munmap = 11, call_brk = 12, call_mremap = 25,
                       call_execve = 59, call_execveat = 322;
bool is_exec(std::int64_t number) { return number == call_execve || number == call_execveat; }
constexpr std::uint64_t map_anonymous = 0x20, protect_execute = 4;

void on_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t a, std::uint64_t b,
             std::uint64_t c, std::uint64_t d, std::uint64_t e, std::uint64_t f, std::uint64_t,
             std::uint64_t) {
  calling_recorder = recorders[vcpu];
  calling_recorder->report_misses(); // before the call unmaps memory
  calling_recorder->publish_counts();
  call_arguments[0] = a;
  call_arguments[1] = b;
  call_arguments[2] = c;
  if (number == call_execve && shared->stop.load() == 0)
    emulator_command.follow(reinterpret_cast<const char*>(a), reinterpret_cast<char**>(b),
                            reinterpret_cast<char**>(c));
  if (is_exec(number)) exec_attempt.begin(*shared);
  if (number == call_mmap)
    mapped_file = {(d & map_anonymous) != 0 ? -1 : static_cast<int>(e), f,
                   (c & protect_execute) != 0};
}

void after_mmap(ThreadRecorder& recorder, std::uint64_t address) {
  recorder.emit(ring::EventKind::map, address, call_arguments[1]);
  if (mapped_file.fd < 0 || !mapped_file.executable) return;
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", mapped_file.fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  if (std::strstr(path, allocations_library) != nullptr) {
    shim_low = address;
    shim_high = address + call_arguments[1];
  }
  code_ranges.add(address, call_arguments[1]);
  recorder.events().emit_module(address, call_arguments[1], mapped_file.offset, path);
}

void after_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::int64_t result) {
  static std::atomic<std::uint64_t> program_break{0};
  ThreadRecorder& recorder = *recorders[vcpu];
  const auto got = static_cast<std::uint64_t>(result);
  if (is_exec(number)) exec_attempt.failed(*shared);
  if (result < 0 && result > -4096) return;
  if (number == call_mmap) {
    after_mmap(recorder, got);
  } else if (number == call_munmap) {
    recorder.emit(ring::EventKind::unmap, call_arguments[0], call_arguments[1]);
  } else if (number == call_mremap) {
    record_remap(recorder, call_arguments[0], call_arguments[1], got, call_arguments[2]);
  } else if (number == call_brk) {
    const std::uint64_t before = program_break.exchange(got);
    if (before != 0 && got > before) recorder.emit(ring::EventKind::map, before, got - before);
  }
}

void start_multithreading() {
  first_recorder.defer_misses(false);
  first_recorder.events().set_alone(false);
  first_recorder.own_counts = single->counts;
  first_recorder.counts = &first_recorder.own_counts;
  multithreaded = true;
}

void on_vcpu(qemu_plugin_id_t, unsigned vcpu) {
  if (vcpu >= max_vcpus) {
    std::fprintf(stderr,
                 "nearfar: the program runs more than %u threads at once; trace it with fewer\n",
                 max_vcpus);
    _exit(126);
  }
  const unsigned before = vcpus.fetch_add(1);
  if (before == 0) single.open();
  if (before == 1) start_multithreading(); // called by the first thread
  if (recorders[vcpu] == nullptr) {
    recorders[vcpu] = vcpu == 0
                          ? &first_recorder
                          : static_cast<ThreadRecorder*>(std::calloc(1, sizeof(ThreadRecorder)));
    if (recorders[vcpu] == nullptr || !recorders[vcpu]->open(*shared)) {
      std::fprintf(stderr, "nearfar: no memory to trace another thread; raise ulimit -v\n");
      _exit(126);
    }
  }
  ThreadRecorder& recorder = *recorders[vcpu];
  recorder.counts = multithreaded ? &recorder.own_counts : &single->counts;
  recorder.events().set_alone(before == 0 && this_process == 0);
  recorder.take_slot(calling_recorder != nullptr ? calling_recorder->slot->process : this_process);
  recorder.defer_misses(!multithreaded);
}

void end_recorder(ThreadRecorder& recorder) {
  recorder.report_misses();
  recorder.publish_counts();
}

void on_vcpu_end(qemu_plugin_id_t, unsigned vcpu) { end_recorder(*recorders[vcpu]); }

void on_end(qemu_plugin_id_t, void*) {
  shared->recorded_cpu_ns.fetch_add(process_cpu_ns());
  for (ThreadRecorder* recorder : recorders)
    if (recorder != nullptr) end_recorder(*recorder);
}

/// Parent and child both fill the ring.
void before_fork() { first_recorder.events().set_alone(false); }

/// A forked child is a process of its own, with the thread that forked.
void in_child() {
  if (calling_recorder == nullptr) return;
  calling_recorder->publish_counts();
  const std::uint32_t parent = calling_recorder->slot->process;
  const std::uint32_t child = shared->processes.fetch_add(1);
  calling_recorder->take_slot(child);
  calling_recorder->events().emit(ring::EventKind::fork, parent, child, 0);
  for (ThreadRecorder*& recorder : recorders)
    if (recorder != calling_recorder) recorder = nullptr; // these threads exist only in the parent
}

} // namespace

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int count, char** arguments) {
  constexpr char key[] = "ring=";
  if (count != 1 || std::strncmp(arguments[0], key, sizeof key - 1) != 0) {
    std::fprintf(stderr, "nearfar: this plug-in is loaded by `nearfar trace`\n");
    return 1;
  }
  if (info->system_emulation || std::strcmp(info->target_name, "x86_64") != 0) {
    std::fprintf(stderr, "nearfar: cannot trace this program; build it for 64-bit x86\n");
    return 1;
  }
  shared = ring::attach(arguments[0] + sizeof key - 1);
  if (shared == nullptr) return 1;
  emulator_command.find(&shared, arguments[0] + sizeof key - 1);
  if (shared->threads.load() > 0) this_process = shared->processes.fetch_add(1); // after an execve
  single.create();
  qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
  qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_end);
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
  qemu_plugin_register_vcpu_syscall_cb(id, on_call);
  qemu_plugin_register_vcpu_syscall_ret_cb(id, after_call);
  qemu_plugin_register_atexit_cb(id, on_end, nullptr);
  pthread_atfork(before_fork, nullptr, in_child);
  return 0;
}
