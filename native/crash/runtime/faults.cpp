// Sees every store of an unmodified program: its pool is read-only, so a store faults; the page is
// opened, the one instruction is stepped over (the trap flag), and what it changed is recorded with
// the address of the instruction.
//
// Not seen       stores of a second thread into the same page while it is open are told at the next
//                step on that page, with the other's line; system calls that write into the pool
//                fail with EFAULT. Both are said in the documentation.
#include <csignal>
#include <cstdint>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "crash/runtime/recording.hpp"

namespace nearfar::crash::runtime {

namespace {

constexpr std::uintptr_t page_bytes = 4096;
constexpr greg_t trap_flag = 0x100;
constexpr int most_pages = 4; // one instruction touches at most two, a gather-scatter more

/// The instruction that is being stepped over.
thread_local void* open_page[most_pages];
thread_local int open_pages = 0;
thread_local const void* stepped = nullptr;
struct sigaction earlier_fault;
struct sigaction earlier_trap;

void pass_on(int signal, const struct sigaction& earlier, siginfo_t* info, void* context) {
  if ((earlier.sa_flags & SA_SIGINFO) != 0)
    earlier.sa_sigaction(signal, info, context);
  else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN)
    earlier.sa_handler(signal);
  else
    sigaction(signal, &earlier, nullptr); // the instruction runs again and has its way
}

void on_fault(int signal, siginfo_t* info, void* context) {
  auto* machine = static_cast<ucontext_t*>(context);
  const bool writes = (machine->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  if (!writes || region_of(info->si_addr) == nullptr || open_pages == most_pages) {
    pass_on(signal, earlier_fault, info, context);
    return;
  }
  void* page =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page_bytes - 1));
  syscall(SYS_mprotect, page, page_bytes, PROT_READ | PROT_WRITE);
  open_page[open_pages++] = page;
  stepped = reinterpret_cast<const void*>(machine->uc_mcontext.gregs[REG_RIP]);
  machine->uc_mcontext.gregs[REG_EFL] |= trap_flag;
}

void on_trap(int signal, siginfo_t* info, void* context) {
  if (open_pages == 0) {
    pass_on(signal, earlier_trap, info, context);
    return;
  }
  for (int i = 0; i < open_pages; ++i) {
    // Sites are return addresses everywhere, so one byte is added that readers take away.
    report_changes(open_page[i], static_cast<const char*>(stepped) + 1);
    syscall(SYS_mprotect, open_page[i], page_bytes, PROT_READ);
  }
  open_pages = 0;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
}

[[gnu::constructor]] void begin() {
  start();
  if (!started() || seen != Seen::faults) return;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &action, &earlier_fault);
  action.sa_sigaction = on_trap;
  sigaction(SIGTRAP, &action, &earlier_trap);
}

[[gnu::destructor]] void end() { finish(); }

} // namespace

} // namespace nearfar::crash::runtime
