#include "alloclog/slots.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace nearfar::alloclog {

namespace {

constexpr unsigned pid_shift = 32;

SlotState state_of(std::uint64_t word) {
  return static_cast<SlotState>(static_cast<std::uint32_t>(word));
}
pid_t pid_of(std::uint64_t word) { return static_cast<pid_t>(word >> pid_shift); }

bool is_running(pid_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno != ESRCH); }

} // namespace

Slots::Slots(os::File file, Control* control)
    : file_(std::move(file)), control_(control), waiting_(max_slots), used_(max_slots) {}

Slots::~Slots() { munmap(control_, sizeof(Control)); }

Result<std::unique_ptr<Slots>> Slots::create(std::uint32_t clock_period_ns) {
  auto file = os::create_sized_in_memory("nearfar-allocation-log", sizeof(Control));
  if (!file) return file.error();
  void* memory = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file->fd(), 0);
  if (memory == MAP_FAILED)
    return Error::make(Errc::os_error, "cannot map the allocation log: %s", std::strerror(errno));
  auto* control = static_cast<Control*>(memory);
  std::memcpy(control->magic, magic, sizeof magic);
  control->version = version;
  control->clock_period_ns = clock_period_ns;
  return std::unique_ptr<Slots>(new Slots(std::move(*file), control));
}

std::string Slots::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.fd());
}

std::uint64_t Slots::state(std::uint32_t index) const {
  return std::atomic_ref(control_->slots[index].state).load(std::memory_order_acquire);
}

void Slots::set_state(std::uint32_t index, SlotState state) {
  std::atomic_ref(control_->slots[index].state)
      .store(state_word(state, 0), std::memory_order_release);
}

std::vector<Slots::Joined> Slots::take_joined() {
  std::vector<Joined> joined;
  for (std::uint32_t i = 0; i < max_slots; ++i) {
    if (!waiting_[i]) continue;
    const std::uint64_t word = state(i);
    const SlotState now = state_of(word);
    if (now == SlotState::ready || (now == SlotState::claimed && is_running(pid_of(word))))
      continue;
    if (now == SlotState::active) {
      joined.push_back({i, pid_of(word), std::move(*waiting_[i])});
      used_[i] = true;
    } else { // failed, killed while it joined, or overwritten
      set_state(i, SlotState::empty);
    }
    waiting_[i].reset();
  }
  return joined;
}

Status Slots::make_one_ready(std::uint32_t index) {
  const SlotUse use = slot_use(++serial_, index);
  auto file = SlotFile::create(use);
  if (!file) return file.error();
  control_->slots[index].use = use;
  control_->slots[index].descriptor = file->fd();
  waiting_[index] = std::move(*file);
  set_state(index, SlotState::ready);
  return Done{};
}

Status Slots::make_ready(std::uint32_t count) {
  std::uint32_t ready = 0;
  for (const auto& file : waiting_)
    if (file) ++ready;
  for (std::uint32_t i = 0; i < max_slots && ready < count; ++i) {
    if (waiting_[i] || used_[i]) continue;
    if (Status made = make_one_ready(i); !made) return made;
    ++ready;
  }
  return Done{};
}

void Slots::free(std::uint32_t index) {
  used_[index] = false;
  set_state(index, SlotState::empty);
}

std::uint64_t Slots::lost_processes() const {
  return std::atomic_ref(control_->lost_processes).load(std::memory_order_relaxed);
}

} // namespace nearfar::alloclog
