#include "os/numa.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/address_space.hpp"
#include "os/process.hpp"

namespace nearfar::os {

namespace {

// linux/mempolicy.h; older headers lack the last one.
constexpr int mode_preferred = 1, mode_bind = 2, mode_local = 4, mode_preferred_many = 5,
              mode_weighted = 6;
constexpr unsigned flag_move = 2;

int mode_of(Policy policy, unsigned long nodes) {
  switch (policy) {
  case Policy::local: return mode_local;
  case Policy::prefer: return (nodes & (nodes - 1)) == 0 ? mode_preferred : mode_preferred_many;
  case Policy::bind: return mode_bind;
  case Policy::weighted: return mode_weighted;
  }
  return mode_local;
}

/// A list as sysfs writes it: "0-2,5".
unsigned long read_node_list(const char* path) {
  char text[256];
  if (!read_text(path, text, sizeof text)) return 1; // a kernel without NUMA has node 0
  unsigned long nodes = 0;
  for (const char* at = text; *at >= '0' && *at <= '9';) {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long node = first; node <= last && node < max_nodes; ++node)
      nodes |= 1ul << node;
    at = *end == ',' ? end + 1 : end;
  }
  return nodes;
}

std::size_t kib_after(const char* text, const char* key) {
  const char* found = std::strstr(text, key);
  return found == nullptr ? 0 : std::strtoull(found + std::strlen(key), nullptr, 10) << 10;
}

} // namespace

int set_policy(std::byte* at, std::size_t bytes, Policy policy, unsigned long nodes, bool move) {
  const bool with_nodes = policy != Policy::local;
  const long done =
      syscall(SYS_mbind, at, bytes, mode_of(policy, nodes), with_nodes ? &nodes : nullptr,
              with_nodes ? static_cast<unsigned long>(max_nodes) + 1 : 0ul, move ? flag_move : 0u);
  return done == 0 ? 0 : errno;
}

int locate_pages(const void* const* pages, std::size_t count, int* nodes) {
  return syscall(SYS_move_pages, 0, count, pages, nullptr, nodes, 0) == 0 ? 0 : errno;
}

int locate_pages(const std::byte* first, std::size_t count, int* nodes) {
  constexpr std::size_t most = 1024;
  const void* pages[most];
  if (count > most) return EINVAL;
  for (std::size_t i = 0; i < count; ++i)
    pages[i] = first + i * page_bytes;
  return locate_pages(pages, count, nodes);
}

bool is_present(const std::byte* page) {
  const void* pages[1] = {page};
  int node = -1;
  return locate_pages(pages, 1, &node) == 0 && node >= 0;
}

int count_elsewhere(const std::byte* first, std::size_t bytes, int node, std::size_t& elsewhere) {
  constexpr std::size_t most = 1024;
  int nodes[most];
  elsewhere = 0;
  const std::size_t pages = (bytes + page_bytes - 1) / page_bytes;
  for (std::size_t at = 0; at < pages; at += most) {
    const std::size_t count = pages - at < most ? pages - at : most;
    if (const int code = locate_pages(first + at * page_bytes, count, nodes); code != 0)
      return code;
    for (std::size_t i = 0; i < count; ++i)
      elsewhere += nodes[i] >= 0 && nodes[i] != node ? 1 : 0;
  }
  return 0;
}

unsigned long nodes_with_memory() { return read_node_list("/sys/devices/system/node/has_memory"); }
unsigned long nodes_with_processors() { return read_node_list("/sys/devices/system/node/has_cpu"); }

unsigned interleave_weight(int node) {
  char path[80];
  char text[16];
  std::snprintf(path, sizeof path, "/sys/kernel/mm/mempolicy/weighted_interleave/node%d", node);
  return read_text(path, text, sizeof text) ? static_cast<unsigned>(std::atoi(text)) : 0;
}

bool node_memory(int node, NodeMemory& memory) {
  char path[80];
  char text[2048];
  std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
  if (!read_text(path, text, sizeof text)) return false;
  memory.free_bytes = kib_after(text, "MemFree:");
  memory.total_bytes = kib_after(text, "MemTotal:");
  return true;
}

std::size_t free_bytes_of(unsigned long nodes) {
  if (nodes == 0) return SIZE_MAX;
  std::size_t bytes = 0;
  for (; nodes != 0; nodes &= nodes - 1) {
    NodeMemory memory;
    if (!node_memory(__builtin_ctzl(nodes), memory)) return SIZE_MAX;
    bytes += memory.free_bytes;
  }
  return bytes;
}

} // namespace nearfar::os
