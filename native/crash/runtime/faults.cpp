// Sees every store of an unmodified program: its pool is read-only, so a store faults; the page is
// opened, the one instruction is stepped over (the trap flag), and what it changed is recorded with
// the address of the instruction.
//
// Limits         stores of a second thread into the same page while it is open are recorded at the
//                next step on that page, without a line; system calls that write into the pool fail
//                with EFAULT, but for those of system_calls.cpp. Both are in the documentation.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "crash/runtime/handlers.hpp"
#include "crash/runtime/instructions.hpp"
#include "crash/runtime/kernel.hpp"
#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

namespace {

using os::page_bytes;
constexpr greg_t trap_flag = 0x100;
constexpr int max_pages = 4; // one instruction touches at most two, a gather-scatter more

/// The kernel's set of signals: bit n - 1 is signal n.
using Signals = std::uint64_t;
constexpr Signals bit(int signal) { return Signals{1} << (signal - 1); }
/// These two stay open, for what a signal handler of the program stores has to fault, too.
constexpr Signals ours = bit(SIGSEGV) | bit(SIGTRAP);

/// The instruction that is being stepped over.
struct OpenPage {
  void* start;
  const std::byte* first; ///< that the instruction stores
};
thread_local OpenPage open_page[max_pages];
thread_local int open_pages = 0;
thread_local const void* stepped = nullptr;
thread_local Signals blocked_before = 0;
struct sigaction earlier_fault;
struct sigaction earlier_trap;
bool handles_faults = false;
bool handles_traps = false;

/// What is blocked once the handler returns. The kernel's set has 8 bytes, glibc's type has more.
Signals blocked(const ucontext_t* machine) {
  Signals set;
  std::memcpy(&set, &machine->uc_sigmask, sizeof set);
  return set;
}
void block(ucontext_t* machine, Signals set) {
  std::memcpy(&machine->uc_sigmask, &set, sizeof set);
}

/// Calls the program's own handler with the signals blocked that it asked for, or has the signal
/// end the program.
void pass_on(int signal, const struct sigaction& earlier, siginfo_t* info, void* context) {
  const bool handled = (earlier.sa_flags & SA_SIGINFO) != 0 ||
                       (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN);
  if (!handled) {
    if (signal == SIGSEGV) note_own_fault();
    handles_faults = handles_traps = false; // so that the kernel gets what follows
    sigaction(signal, &earlier, nullptr);
    system_call(SYS_tgkill, getpid(), system_call(SYS_gettid), signal);
    return;
  }
  Signals set;
  std::memcpy(&set, &earlier.sa_mask, sizeof set);
  set = (set | blocked(static_cast<ucontext_t*>(context))) & ~ours;
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, &set, nullptr, sizeof set);
  if ((earlier.sa_flags & SA_SIGINFO) != 0)
    earlier.sa_sigaction(signal, info, context);
  else
    earlier.sa_handler(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  auto* machine = static_cast<ucontext_t*>(context);
  const bool writes = (machine->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  const RecordedRegion* region = region_of(info->si_addr);
  const auto into = static_cast<std::size_t>(
      region == nullptr ? 0 : static_cast<char*>(info->si_addr) - region->start);
  const bool is_ours = writes && region != nullptr && region->is_writable(into);
  if (!is_ours || info->si_code == SEGV_PKUERR || open_pages == max_pages) {
    pass_on(signal, earlier_fault, info, context);
    return;
  }
  void* page =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page_bytes - 1));
  system_call(SYS_mprotect, page, page_bytes, PROT_READ | PROT_WRITE);
  if (has_failed()) return;
  if (open_pages == 0) { // a signal that came before the step would store to the open page unseen
    blocked_before = blocked(machine);
    block(machine, ~ours);
  }
  open_page[open_pages++] = {page, first_stored(info->si_addr, *machine)};
  stepped = reinterpret_cast<const void*>(machine->uc_mcontext.gregs[REG_RIP]);
  machine->uc_mcontext.gregs[REG_EFL] |= trap_flag;
}

void on_trap(int signal, siginfo_t* info, void* context) {
  auto* machine = static_cast<ucontext_t*>(context);
  if (open_pages == 0) {
    if (!on_breakpoint(machine)) pass_on(signal, earlier_trap, info, context);
    return;
  }
  const EventKind kind = is_non_temporal(stepped) ? EventKind::nt_store : EventKind::store;
  for (int i = 0; i < open_pages; ++i) {
    // Sites are return addresses everywhere, so one byte is added that readers take away.
    report_changes(kind, {{open_page[i].first, stored_bytes(stepped)}, stores_all(stepped)},
                   static_cast<const char*>(stepped) + 1);
    if (!has_failed()) system_call(SYS_mprotect, open_page[i].start, page_bytes, PROT_READ);
  }
  open_pages = 0;
  block(machine, blocked_before);
  machine->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
}

[[gnu::destructor]] void end() {
  if (started()) search_modules(false);
  finish();
}

/// Where no destructors run.
void end_if_recorded() {
  if (is_recorded()) end();
}

[[gnu::constructor]] void begin() {
  start();
  if (!started()) return;
  at_quick_exit(end_if_recorded);     // the first function that is given to it runs last
  const bool programs = has_handlers; // these two never interrupt the recorder
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigfillset(&action.sa_mask);
  action.sa_sigaction = on_fault;
  if (seen == Seen::faults) sigaction(SIGSEGV, &action, &earlier_fault);
  action.sa_sigaction = on_trap;
  sigaction(SIGTRAP, &action, &earlier_trap);
  handles_faults = seen == Seen::faults;
  handles_traps = true;
  has_handlers = programs;
}

[[noreturn]] void end_and_exit(int code) {
  end_if_recorded();
  for (;;)
    system_call(SYS_exit_group, code);
}

} // namespace

struct sigaction* program_action(int signal) {
  if (signal == SIGSEGV && handles_faults) return &earlier_fault;
  return signal == SIGTRAP && handles_traps ? &earlier_trap : nullptr;
}

} // namespace nearfar::crash::runtime

// No destructors run at these ends.
extern "C" {
[[gnu::visibility("default"), noreturn]] void _exit(int code) {
  nearfar::crash::runtime::end_and_exit(code);
}
[[gnu::visibility("default"), noreturn]] void _Exit(int code) noexcept {
  nearfar::crash::runtime::end_and_exit(code);
}
}
