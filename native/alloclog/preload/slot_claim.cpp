#include "alloclog/preload/slot_claim.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nearfar::alloclog {

namespace {

constinit Control* control = nullptr;
constinit char folder[64] = ""; ///< /proc/PID/fd/ of the reader
constinit std::size_t folder_length = 0;

/// Opens a file of the reader: only /proc/NUMBER/fd/NUMBER, a regular file of this size whose first
/// bytes are ours. -1 if it is not.
int open_ours(const char* path, std::uint64_t bytes, void* first, std::size_t first_bytes) {
  // A descriptor that stands for a device or a pipe must not be waited for, nor become a terminal.
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return -1;
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) == bytes &&
      pread(fd, first, first_bytes, 0) == static_cast<ssize_t>(first_bytes))
    return fd;
  close(fd);
  return -1;
}

template <class Header>
bool is_ours(const Header& header) {
  return std::memcmp(header.magic, magic, sizeof magic) == 0 && header.version == version;
}

/// Maps a file and closes it. nullptr if the system refused.
void* map_and_close(int fd, std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, bytes, MADV_DONTDUMP);
  return memory;
}

/// FOLDER/NUMBER.
void write_path(char (&path)[96], std::int32_t descriptor) {
  char digits[12];
  std::size_t length = 0;
  for (auto rest = static_cast<std::uint32_t>(descriptor); length == 0 || rest != 0; rest /= 10)
    digits[length++] = static_cast<char>('0' + rest % 10);
  std::memcpy(path, folder, folder_length);
  for (std::size_t i = 0; i < length; ++i)
    path[folder_length + i] = digits[length - 1 - i];
  path[folder_length + length] = '\0';
}

std::byte* map_slot(std::int32_t descriptor, SlotUse use) {
  if (descriptor < 0) return nullptr;
  char path[96];
  write_path(path, descriptor);
  SlotHeader header{};
  const int fd = open_ours(path, slot_bytes, &header, sizeof header);
  if (fd < 0) return nullptr;
  if (!is_ours(header) || header.self != use) {
    close(fd);
    return nullptr;
  }
  auto* memory = static_cast<std::byte*>(map_and_close(fd, slot_bytes));
  if (memory == nullptr) return nullptr;
  madvise(memory, slot_bytes, MADV_NOHUGEPAGE);
  if (madvise(memory, slot_bytes, MADV_DONTFORK) == 0) return memory;
  munmap(memory, slot_bytes);
  return nullptr;
}

/// Claims one of the slots, if one is ready.
ControlSlot* claim_ready(std::uint32_t pid) {
  for (ControlSlot& slot : control->slots) {
    std::atomic_ref state(slot.state);
    std::uint64_t ready = state_word(SlotState::ready, 0);
    if (state.load(std::memory_order_acquire) == ready &&
        state.compare_exchange_strong(ready, state_word(SlotState::claimed, pid)))
      return &slot;
  }
  return nullptr;
}

void introduce(SlotHeader& header, SlotUse parent) {
  header.parent = parent;
  header.order = std::atomic_ref(control->joined).fetch_add(1);
}

} // namespace

bool open_control(const char* path) {
  const char* last = std::strrchr(path, '/');
  if (std::strncmp(path, "/proc/", 6) != 0 || std::strlen(path) >= sizeof folder) return false;
  folder_length = static_cast<std::size_t>(last + 1 - path);
  std::memcpy(folder, path, folder_length);
  struct {
    char magic[sizeof alloclog::magic];
    std::uint32_t version;
  } first{};
  const int fd = open_ours(path, sizeof(Control), &first, sizeof first);
  if (fd < 0) return false;
  if (!is_ours(first)) {
    close(fd);
    return false;
  }
  control = static_cast<Control*>(map_and_close(fd, sizeof(Control)));
  return control != nullptr;
}

ClaimedSlot claim_slot(SlotUse parent) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  ControlSlot* slot = claim_ready(pid);
  ClaimedSlot claimed;
  if (slot != nullptr) {
    claimed = {map_slot(slot->descriptor, slot->use), slot->use, control->clock_period_ns};
    if (claimed.memory != nullptr)
      introduce(*reinterpret_cast<SlotHeader*>(claimed.memory), parent);
    const SlotState reached = claimed.memory != nullptr ? SlotState::active : SlotState::failed;
    std::atomic_ref(slot->state).store(state_word(reached, pid), std::memory_order_release);
  }
  if (claimed.memory == nullptr) std::atomic_ref(control->lost_processes).fetch_add(1);
  return claimed;
}

} // namespace nearfar::alloclog
