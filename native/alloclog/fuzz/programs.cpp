// The reader of the allocation log, with the input in the place of a program: it claims slots and
// writes into the control region and its log, in between the reader's calls.
#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloclog/log.hpp"
#include "fuzz_target.hpp"

using namespace nearfar::alloclog;

namespace {

using nearfar::fuzz::Choices;

constexpr std::uint64_t heap = 0x7000'1234'5000;

class Program {
public:
  explicit Program(const AllocationLog& log) {
    const int fd = open(log.variable_value().c_str(), O_RDWR);
    if (fd < 0) std::abort();
    void* memory = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) std::abort();
    control_ = static_cast<Control*>(memory);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    munmap(control_, sizeof(Control));
    for (const int file : files_)
      if (file >= 0) close(file);
  }

  /// Claims the first ready slot, in any state.
  void claim(SlotState state) {
    for (std::uint32_t i = 0; i < max_slots; ++i) {
      ControlSlot& slot = control_->slots[i];
      if (slot.state != state_word(SlotState::ready, 0)) continue;
      int& file = files_[claims_++ % files_.size()];
      if (file >= 0) close(file);
      file = open(("/proc/self/fd/" + std::to_string(slot.descriptor)).c_str(), O_RDWR);
      slot.state = state_word(state, static_cast<std::uint32_t>(getpid()));
      return;
    }
  }
  /// Writes a word at a place that the reader looks at, or near one.
  void write(Choices& choices) {
    const int file = files_[choices.take<std::uint8_t>() % files_.size()];
    const std::uint64_t offset = offset_of(choices);
    const auto word = choices.take<std::uint64_t>();
    if (file >= 0 && pwrite(file, &word, sizeof word, static_cast<off_t>(offset)) < 0) return;
  }
  void write_control(Choices& choices) {
    constexpr std::size_t words = (offsetof(Control, slots) + 8 * sizeof(ControlSlot)) / 8;
    const std::size_t at = choices.take<std::uint8_t>() % words;
    reinterpret_cast<std::uint64_t*>(control_)[at] = choices.take<std::uint64_t>();
  }

private:
  static std::uint64_t offset_of(Choices& choices) {
    const auto where = choices.take<std::uint16_t>();
    const std::uint64_t near = heap + where % 64 * 4096;
    switch (where >> 13) {
    case 0: return where % sizeof(SlotHeader);
    case 1: return sites_offset + where % 4096 * sizeof(SiteRecord);
    case 2: return tracked_offset + where % 4096 * sizeof(TrackedBlock);
    case 3: return level2_offset + (near >> unit_bits) * sizeof(Entry);
    case 4: return level1_offset + (near >> page_bits) * sizeof(Entry);
    default: return level0_offset + (near >> granule_bits) * sizeof(Entry) + where % 256;
    }
  }

  Control* control_ = nullptr;
  std::array<int, 4> files_ = {-1, -1, -1, -1};
  std::size_t claims_ = 0;
};

void look(const AllocationLog& log, std::uint64_t address) {
  for (const std::uint64_t at : {address, heap + address % (64 << 12)})
    if (const auto found = log.find(getpid(), at)) {
      if ((found->number & ~site_mask) != 0 || found->number == freed_entry) std::abort();
      if (const auto site = log.site(*found); site && site->chain.size() > max_frames) std::abort();
    }
  for (const ProcessImage& image : log.images())
    if (log.sites(image.number).size() > other_sites) std::abort();
  log.lost();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nearfar::Result<AllocationLog> log = AllocationLog::create(3);
  if (!log) std::abort();
  Program program(*log);
  Choices choices(data, size);
  program.claim(SlotState::active);
  while (choices.more()) {
    switch (choices.take<std::uint8_t>() % 8) {
    case 0: program.claim(static_cast<SlotState>(choices.take<std::uint8_t>() % 6)); break;
    case 1: program.write_control(choices); break;
    case 2: log->poll(); break;
    case 3: look(*log, choices.take<std::uint64_t>()); break;
    case 4: log->release(choices.take<std::uint8_t>() % 8); break;
    default: program.write(choices); break;
    }
  }
  log->poll();
  look(*log, heap);
  return 0;
}
