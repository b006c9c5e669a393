// Other processes: their memory, threads and descendants.
//
// Privileges     processes of the same user, where ptrace is permitted (Yama).
// Thread safety  any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace nearfar::os {

/// Copies memory of a process. Returns the bytes that could be read, from the start on.
std::size_t read_memory_of(pid_t process, std::uint64_t address, void* to, std::size_t bytes);

/// Threads of a process; empty if it is not there.
std::vector<pid_t> threads_of(pid_t process);

/// A process and all that it has started, as far as they run.
std::vector<pid_t> process_tree(pid_t process);

/// Name of a process as the kernel has it, at most 15 characters; empty if it is not there.
std::string name_of(pid_t process);

/// Number of CPUs that are online, by number from 0 on without gaps.
int cpu_count();

} // namespace nearfar::os
