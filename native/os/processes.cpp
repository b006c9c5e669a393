#include "os/processes.hpp"

#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <sys/uio.h>
#include <unistd.h>

namespace nearfar::os {

namespace {

void add_children(pid_t process, pid_t thread, std::vector<pid_t>& found) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/children", process, thread);
  std::FILE* children = std::fopen(path, "re");
  if (children == nullptr) return;
  int child = 0;
  while (std::fscanf(children, "%d", &child) == 1)
    found.push_back(child);
  std::fclose(children);
}

} // namespace

std::size_t read_memory_of(pid_t process, std::uint64_t address, void* to, std::size_t bytes) {
  const iovec here{to, bytes};
  const iovec there{reinterpret_cast<void*>(address), bytes};
  const ssize_t got = process_vm_readv(process, &here, 1, &there, 1, 0);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::vector<pid_t> threads_of(pid_t process) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/task", process);
  std::vector<pid_t> found;
  DIR* threads = opendir(path);
  if (threads == nullptr) return found;
  while (const dirent* thread = readdir(threads))
    if (const int number = std::atoi(thread->d_name); number > 0) found.push_back(number);
  closedir(threads);
  return found;
}

std::vector<pid_t> process_tree(pid_t process) {
  std::vector<pid_t> found{process};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const pid_t thread : threads_of(found[i]))
      add_children(found[i], thread, found);
  return found;
}

std::string name_of(pid_t process) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/comm", process);
  char name[32] = "";
  std::FILE* comm = std::fopen(path, "re");
  if (comm == nullptr) return name;
  const bool is_read = std::fgets(name, sizeof name, comm) != nullptr;
  std::fclose(comm);
  const std::string found = is_read ? name : "";
  return found.substr(0, found.find('\n'));
}

int cpu_count() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

} // namespace nearfar::os
