#include "sim/trace_source.hpp"

#include <algorithm>

namespace nearfar::sim {

namespace {

constexpr std::uint64_t max_physical_bytes = std::uint64_t{1} << 46;
constexpr std::size_t remembered = std::size_t{max_depends} + 1;

/// Whether `wanted` is "name:FILE" of the module, or a prefix of its build-id.
bool is_module(const std::string& wanted, const trace::Module& module) {
  constexpr const char* by_name = "name:";
  if (wanted.starts_with(by_name)) {
    const std::string file = wanted.substr(5);
    return module.path.substr(module.path.rfind('/') + 1) == file;
  }
  return !wanted.empty() && module.build_id.starts_with(wanted);
}

} // namespace

Result<TraceSource> TraceSource::open(const char* path, double instruction_ps,
                                      std::vector<ObjectRule> rules) {
  Result<trace::TraceReader> reader = trace::TraceReader::open(path);
  if (!reader) return reader.error();
  if (reader->header().line_bytes != line_bytes)
    return Error::make(Errc::bad_input, "%s has lines of %u bytes", path,
                       reader->header().line_bytes)
        .try_next("trace with lines of 64 bytes");
  return TraceSource(std::move(*reader), instruction_ps, std::move(rules));
}

Result<std::size_t> TraceSource::fill(std::span<Request> out) {
  std::size_t made = 0;
  while (made < out.size()) {
    if (next_ == block_.size()) {
      block_ = reader_.next();
      next_ = 0;
      if (block_.empty()) break;
    }
    const std::size_t count = std::min(out.size() - made, block_.size() - next_);
    for (std::size_t i = 0; i < count; ++i)
      translate(block_[next_ + i], out[made + i]);
    made += count;
    next_ += count;
  }
  return made;
}

void TraceSource::translate(const trace::Record& record, Request& request) {
  if (record.thread >= threads_.size()) threads_.resize(std::size_t{record.thread} + 1);
  Thread& thread = threads_[record.thread];
  request.address = record.line * line_bytes;
  if (physical_) request.address %= max_physical_bytes;
  request.gap = gap(thread, record);
  request.object = rules_.empty() ? no_object : class_of(record.object);
  request.depends = distance(thread, record);
  request.write = trace::writes(record.kind);
  request.prefetch = record.kind == trace::RecordKind::prefetch;
}

Time TraceSource::gap(Thread& thread, const trace::Record& record) {
  const std::uint64_t since =
      record.instructions > thread.instructions ? record.instructions - thread.instructions : 0;
  thread.instructions = std::max(thread.instructions, record.instructions);
  const double threads = static_cast<double>(std::max<std::size_t>(threads_.size(), 1));
  return static_cast<Time>(static_cast<double>(since) * instruction_ps_ / threads);
}

/// Time of the instructions after the last records.
Time TraceSource::tail() const {
  std::uint64_t counted = 0;
  for (const Thread& thread : threads_)
    counted += thread.instructions;
  const std::uint64_t all = reader_.totals()[trace::Total::instructions];
  const double threads = static_cast<double>(std::max<std::size_t>(threads_.size(), 1));
  return all > counted
             ? static_cast<Time>(static_cast<double>(all - counted) * instruction_ps_ / threads)
             : 0;
}

std::uint32_t TraceSource::distance(Thread& thread, const trace::Record& record) {
  if (thread.numbers.empty()) thread.numbers.resize(remembered);
  const std::uint64_t own = thread.records++;
  thread.numbers[own % remembered] = ++number_;
  if (record.depends == 0 || record.depends > own || record.depends > max_depends) return 0;
  const std::uint64_t back = number_ - thread.numbers[(own - record.depends) % remembered];
  return back > max_depends ? 0 : static_cast<std::uint32_t>(back);
}

std::uint32_t TraceSource::class_of(std::uint32_t object) {
  if (object >= classes_.size()) classes_.resize(std::size_t{object} * 2 + 64);
  if (classes_[object]) return classes_[object] - 1u;
  const std::vector<trace::Object>& objects = reader_.tables().objects;
  std::uint32_t found = object_anywhere;
  for (std::size_t i = 0; i < rules_.size() && object < objects.size(); ++i)
    if (matches(rules_[i], object, objects[object])) {
      found = rules_[i].near ? object_near : object_far;
      ++matched_objects_[i];
      break;
    }
  classes_[object] = static_cast<std::uint8_t>(found + 1);
  return found;
}

bool TraceSource::matches(const ObjectRule& rule, std::uint32_t number,
                          const trace::Object& object) const {
  if (rule.object != ObjectRule::any && rule.object != number) return false;
  if (rule.site != ObjectRule::any && rule.site != object.site) return false;
  if (object.bytes < rule.min_bytes || object.bytes > rule.max_bytes) return false;
  const std::vector<trace::Site>& sites = reader_.tables().sites;
  return rule.frames.empty() ||
         (object.site < sites.size() && frames_match(rule, sites[object.site]));
}

bool TraceSource::frames_match(const ObjectRule& rule, const trace::Site& site) const {
  const std::vector<trace::Module>& modules = reader_.tables().modules;
  if (site.frames.size() < rule.frames.size()) return false;
  for (std::size_t i = 0; i < rule.frames.size(); ++i) {
    const trace::Frame& frame = site.frames[i];
    if (frame.module < 0 || static_cast<std::size_t>(frame.module) >= modules.size()) return false;
    const trace::Module& module = modules[static_cast<std::size_t>(frame.module)];
    if (frame.offset != rule.frames[i].second || !is_module(rule.frames[i].first, module))
      return false;
  }
  return true;
}

} // namespace nearfar::sim
