#include "trace/collector.hpp"

#include <algorithm>
#include <bit>

#include "os/clock.hpp"
#include "os/process.hpp"

namespace nearfar::trace {

namespace {

constexpr std::uint32_t ring_events = 1u << 18; // 8 MiB
constexpr std::uint64_t batch = 1u << 14;       // events consumed before producers see the room
constexpr std::uint64_t min_batch = 1u << 12;   // fewer are not worth the producers' cache misses
// Prefetch distances in events: of the ring, and of the sets of the cache models.
constexpr std::uint64_t ring_ahead = 48, far_ahead = 16, near_ahead = 8;
constexpr std::uint64_t flush_every_ns = 1'000'000'000;
/// After this time an unpublished event may be that of a killed thread.
constexpr std::uint64_t publish_timeout_ns = 50'000'000;
constexpr unsigned line_bytes = 1u << ring::line_shift;

std::uint64_t page_address(std::uint32_t process, std::uint64_t address) {
  return address | std::uint64_t{process} << process_shift;
}

/// An access of the program itself, not of a prefetcher or a cache.
bool is_demand(RecordKind kind) { return kind == RecordKind::load || kind == RecordKind::store; }

} // namespace

Result<RingFile> RingFile::create(const FirstLevel& first) {
  if (!std::has_single_bit(first.sets) || first.sets > ring::max_sets || first.ways == 0 ||
      first.ways > cache::Cache::max_ways)
    return Error::make(Errc::bad_input, "invalid first level of %u sets of %u ways", first.sets,
                       first.ways)
        .try_next("choose a size with a power of two of sets, up to %u", ring::max_sets);
  Result<os::File> file = os::create_in_memory("nearfar-trace");
  if (!file) return file.error();
  const std::size_t bytes = ring::Shared::bytes(ring_events);
  if (Status reserved = os::reserve_space(*file, bytes); !reserved)
    return Error(reserved.error()).try_next("check the limits on file size (ulimit -f) and memory");
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd(), 0);
  if (at == MAP_FAILED)
    return Error::make(Errc::os_error, "cannot map a ring of %zu bytes", bytes)
        .try_next("check the limit on memory (ulimit -v)");
  auto* shared = static_cast<ring::Shared*>(at); // zeroed: the file is new
  shared->capacity = ring_events;
  shared->consumer = static_cast<std::uint32_t>(os::process_number());
  shared->l1_sets = first.sets;
  shared->l1_ways = first.ways;
  shared->processes = 1;
  shared->collector.create();
  for (ring::ThreadSlot& slot : shared->slots)
    slot.life.create();
  shared->magic = ring::magic;
  return RingFile(std::move(*file), shared);
}

RingFile::~RingFile() {
  if (shared_ == nullptr) return;
  shared_->stop = 1; // threads that still run are not recorded
  munmap(shared_, ring::Shared::bytes(ring_events));
}

std::string RingFile::path() const {
  return "/proc/" + std::to_string(os::process_number()) + "/fd/" + std::to_string(file_.fd());
}

Result<Collected> Collector::run() {
  shared_->collector.lock();
  shared_->collecting.store(1, std::memory_order_release);
  std::uint64_t last_flush_ns = os::now_ns();
  while (writer_.failed() == 0) {
    const bool ended = ended_.load();
    if (ended) shared_->stop = 1; // so that the ring becomes empty
    const std::uint64_t taken = take_batch(ended);
    if (taken == 0 && ended) break;
    if (taken < min_batch && !ended) os::sleep_ms(1);
    flush_regularly(last_flush_ns);
  }
  shared_->stop = 1;
  shared_->collector.unlock();
  refresh_totals();
  objects_.write_totals();
  if (ended_.load() && exit_code_) writer_.set_exit_code(*exit_code_);
  const Status finished = writer_.finish();
  if (!finished) return finished.error();
  Collected done{writer_.totals,
                 filter_.other_llc_misses,
                 writer_.written_records(),
                 writer_.bytes(),
                 slots(),
                 shared_->processes,
                 shared_->lost,
                 lost_events_,
                 0,
                 shared_->executed,
                 shared_->recorded_cpu_ns,
                 {},
                 std::move(touched_),
                 std::move(touches_)};
  for (std::uint32_t i = 0; i < done.threads; ++i) {
    const ring::ThreadSlot& slot = shared_->slots[i];
    done.float_instructions += slot.floating;
    programs_.count(slot.process, slot.instructions);
  }
  done.programs = programs_.take();
  return done;
}

std::uint32_t Collector::slots() const {
  return std::min<std::uint32_t>(shared_->threads, ring::max_threads);
}

/// A trace that is truncated later lacks at most the last second.
void Collector::flush_regularly(std::uint64_t& last_flush_ns) {
  const std::uint64_t now = os::now_ns();
  if (in_windows_ || now - last_flush_ns < flush_every_ns) return;
  refresh_totals();
  writer_.flush();
  last_flush_ns = now;
}

bool Collector::is_ready(std::uint64_t position) const {
  const ring::Event& event = shared_->at(position);
  return event.ready.load(std::memory_order_acquire) == static_cast<std::uint32_t>(position + 1);
}

/// Whether a running thread may have reserved the position.
bool Collector::is_claimed(std::uint64_t position) const {
  for (std::uint32_t i = 0; i < slots(); ++i) {
    ring::ThreadSlot& slot = shared_->slots[i];
    if (slot.claim.load(std::memory_order_acquire) == position + 1 && slot.life.is_held())
      return true;
  }
  return false;
}

/// Whether a reserved, unpublished position will never be published.
bool Collector::was_abandoned(std::uint64_t position) {
  const std::uint64_t now = os::now_ns();
  if (waiting_for_ != position || waiting_since_ns_ == 0) {
    waiting_for_ = position;
    waiting_since_ns_ = now;
  }
  return now - waiting_since_ns_ >= publish_timeout_ns && !is_claimed(position);
}

/// Consumes a batch of events; returns their number.
std::uint64_t Collector::take_batch(bool ended) {
  const std::uint64_t begin = shared_->head.load(std::memory_order_relaxed);
  const std::uint64_t tail = shared_->tail.load(std::memory_order_acquire);
  std::uint64_t head = begin;
  while (head < tail && head - begin < batch) {
    prefetch(head, tail);
    std::size_t taken = take(head, tail);
    if (taken == 0) {
      if (!ended && !was_abandoned(head)) break;
      // Retry: the producer may have published just before it cleared its claim.
      taken = take(head, tail);
    }
    if (taken == 0) ++lost_events_; // its thread was killed between reserving and publishing
    head += std::max<std::size_t>(taken, 1);
  }
  refresh_totals();
  shared_->head.store(head, std::memory_order_release);
  return head - begin;
}

/// The event at a position, if it is published and an access of a known thread; else nullptr.
const ring::Event* Collector::upcoming(std::uint64_t position, std::uint64_t tail) const {
  if (position >= tail || !is_ready(position)) return nullptr;
  const ring::Event& event = shared_->at(position);
  const bool known = ring::is_access(event.kind) && event.thread < threads_.size();
  return known ? &event : nullptr;
}

/// Prefetches what the models of large caches require for the next events.
void Collector::prefetch(std::uint64_t position, std::uint64_t tail) const {
  asm volatile("prefetcht0 %0" : : "m"(shared_->at(position + ring_ahead)));
  if (const ring::Event* event = upcoming(position + far_ahead, tail)) {
    const Thread& of = threads_[event->thread];
    filter_.warm(event->thread, line_of(of, event->a & ring::low_mask));
    filter_.warm_write_back(event->thread,
                            line_of(of, ring::fourth_of(*event) << ring::line_shift));
  }
  if (const ring::Event* event = upcoming(position + near_ahead, tail)) {
    const Thread& of = threads_[event->thread];
    filter_.warm_victim(event->thread, line_of(of, event->a & ring::low_mask));
  }
}

/// Consumes an event with the words that follow it. Returns the number of entries, 0 if some are
/// not published yet.
std::size_t Collector::take(std::uint64_t position, std::uint64_t tail) {
  if (!is_ready(position)) return 0;
  const ring::Event& event = shared_->at(position);
  if (ring::is_access(event.kind)) {
    handle_access(event);
    return 1;
  }
  const std::size_t further = event.detail;
  words_.clear();
  for (std::size_t i = 1; i <= further; ++i) {
    if (position + i >= tail || !is_ready(position + i)) return 0;
    const ring::Event& more = shared_->at(position + i);
    words_.insert(words_.end(), {more.a, more.b, more.c});
  }
  handle(event, words_);
  return 1 + further;
}

Collector::Thread& Collector::thread(std::uint16_t number) {
  while (number >= threads_.size()) {
    const std::uint32_t process = shared_->slots[threads_.size()].process;
    writer_.thread(process);
    threads_.push_back({process, 0, 0, 0, {}});
  }
  return threads_[number];
}

/// Unpacks the event of an access.
Collector::Access Collector::access_of(const ring::Event& event) {
  return {event.kind,
          event.detail,
          event.thread,
          event.a & ring::low_mask,
          event.b & ring::low_mask,
          event.c & ring::low_mask};
}

std::uint64_t Collector::line_of(const Thread& of, std::uint64_t address) {
  return (address | std::uint64_t{of.process} << process_shift) >> ring::line_shift;
}

void Collector::handle_access(const ring::Event& event) {
  const Access access = access_of(event);
  Thread& of = thread(event.thread);
  if (access.kind == ring::EventKind::write_back || access.kind == ring::EventKind::nt_store) {
    if (access.kind == ring::EventKind::write_back)
      filter_.write_back(access.thread, line_of(of, access.address));
    else
      filter_.nt_store(access.thread, line_of(of, access.address));
    emit(of, access, 0);
    return;
  }
  const std::size_t recent = of.producers.size();
  const std::uint64_t waits_for =
      access.parent == 0 ? 0 : of.producers[(of.misses - access.parent) % recent];
  filter_.missed(access.thread, line_of(of, access.address), static_cast<RecordKind>(access.kind));
  const std::uint64_t own = emit(of, access, waits_for);
  // A load that hit a simulated cache has no record; its dependents depend on its producer.
  if (access.kind == ring::EventKind::load)
    of.producers[of.misses++ % recent] = own != 0 ? own : waits_for;
  if (const std::uint64_t victim = ring::fourth_of(event); victim != 0) {
    filter_.write_back(access.thread, line_of(of, victim << ring::line_shift));
    emit(of, access, 0);
  }
}

/// Writes the lines that passed the filter. Returns 1 + the record of the access itself, 0 if it
/// did not pass.
std::uint64_t Collector::emit(Thread& of, const Access& access, std::uint64_t waits_for) {
  std::uint64_t own = 0;
  for (const Transfer& transfer : filter_.transfers) {
    if (is_demand(transfer.kind)) own = of.records + 1;
    if (in_windows_ && touches_.size() < max_touches)
      touches_.push_back({access.instructions, transfer.line << 1 | writes(transfer.kind)});
    if (windows_.open())
      write(of, access, transfer, waits_for);
    else
      leave_out(access, transfer);
    ++of.records;
    if (windows_.add_record()) open_window();
  }
  filter_.transfers.clear();
  return own;
}

void Collector::write(Thread& of, const Access& access, const Transfer& transfer,
                      std::uint64_t waits_for) {
  Record record;
  record.line = transfer.line;
  record.kind = transfer.kind;
  record.thread = access.thread;
  record.instructions = access.instructions;
  if (transfer.kind != RecordKind::write_back) record.code = access.code;
  record.object = object_of(access, transfer);
  if (is_demand(transfer.kind) && waits_for > of.records_before_window)
    record.depends = static_cast<std::uint32_t>(of.records + 1 - waits_for);
  if (touched_.may_change(transfer.line))
    touched_.add(transfer.line, objects_.owner_of(record.object));
  writer_.record(record);
}

/// Counts a line outside of the windows, and records the touch of its page.
void Collector::leave_out(const Access& access, const Transfer& transfer) {
  if (touched_.may_change(transfer.line))
    touched_.add(transfer.line, objects_.owner_of(object_of(access, transfer)));
  ++writer_.totals[Total::left_out];
}

/// For demand accesses the exact address is known; otherwise the line address is used.
std::uint32_t Collector::object_of(const Access& access, const Transfer& transfer) {
  const std::uint64_t address = transfer.line * line_bytes;
  const auto process = static_cast<std::uint32_t>(address >> process_shift);
  return objects_.ensure_object_at(process, is_demand(transfer.kind) ? access.address
                                                                     : address & ring::low_mask);
}

/// Records before a window are not in the trace: nothing depends on them.
void Collector::open_window() {
  for (Thread& each : threads_)
    each.records_before_window = each.records;
}

void Collector::handle(const ring::Event& event, const std::vector<std::uint64_t>& words) {
  const std::uint32_t process = thread(event.thread).process;
  // a, b, now and fourth of wide events; others have three numbers of 64 bits.
  const std::uint64_t a = event.a & ring::low_mask, b = event.b & ring::low_mask;
  const std::uint64_t now = event.c & ring::low_mask, fourth = ring::fourth_of(event);
  switch (event.kind) {
  case ring::EventKind::site:
    objects_.site(event.a, {words.begin(), words.begin() + static_cast<std::ptrdiff_t>(
                                                               std::min(event.b, words.size()))});
    break;
  case ring::EventKind::allocate: objects_.allocated(process, a, b, fourth, now); break;
  case ring::EventKind::free: objects_.freed(process, event.a, now); break;
  case ring::EventKind::reallocate: objects_.reallocated(process, fourth, a, b, now); break;
  case ring::EventKind::map:
    objects_.mapped(process, event.a, event.b, now);
    unmap_pages(process, event.a, event.b); // the previous mapping is gone
    break;
  case ring::EventKind::unmap:
    objects_.unmapped(process, event.a, event.b, now);
    unmap_pages(process, event.a, event.b);
    break;
  case ring::EventKind::remap:
    objects_.remapped(process, a, fourth, now);
    touched_.moved(page_address(process, a), page_address(process, b), fourth);
    break;
  case ring::EventKind::stack: objects_.stack(process, event.a, event.b, now); break;
  case ring::EventKind::module: {
    const std::string path(reinterpret_cast<const char*>(words.data()), words.size() * 8);
    objects_.module(process, event.a, event.c, path.c_str());
    programs_.mapped(process, path.c_str());
    break;
  }
  case ring::EventKind::fork: {
    const auto parent = static_cast<std::uint32_t>(event.a);
    const auto child = static_cast<std::uint32_t>(event.b);
    objects_.forked(parent, child);
    programs_.forked(parent, child);
    break;
  }
  case ring::EventKind::more: // its event was lost
  case ring::EventKind::load: // handle_access()
  case ring::EventKind::store:
  case ring::EventKind::write_back:
  case ring::EventKind::nt_store: break;
  }
}

void Collector::unmap_pages(std::uint32_t process, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t begin = page_address(process, address);
  touched_.unmapped(begin, begin + bytes);
}

void Collector::refresh_totals() {
  Totals totals = filter_.totals;
  totals[Total::left_out] = writer_.totals[Total::left_out];
  for (std::uint32_t i = 0; i < slots(); ++i) {
    const ring::ThreadSlot& slot = shared_->slots[i];
    totals[Total::instructions] += slot.instructions;
    totals[Total::loads] += slot.accesses[0];
    totals[Total::stores] += slot.accesses[1];
    totals[Total::l1_misses] += slot.l1_misses;
    totals[Total::nt_stores] += slot.nt_stores;
    totals[Total::flushes] += slot.flushes;
  }
  writer_.totals = totals;
}

} // namespace nearfar::trace
