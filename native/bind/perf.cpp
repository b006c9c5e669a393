#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <vector>

#include "bind/convert.hpp"
#include "perf/file.hpp"
#include "perf/memory_access.hpp"

namespace nb = nanobind;

namespace nearfar::bind {

namespace {

using namespace nearfar::perf;

/// The samples of one event, a vector for each field.
struct SampleColumns {
  bool is_ibs_op = false;
  std::vector<std::uint32_t> pid, tid;
  std::vector<std::uint64_t> time_ns, ip, period, address, latency_cycles;
  std::vector<std::uint8_t> user_mode, exact_ip, level, load, store, tlb_miss;
  std::vector<std::uint32_t> registers_present;
  std::vector<std::uint64_t> registers; ///< Registers::count a sample

  void add(const Sample& sample);

private:
  void add_access(const Sample& sample);
};

void SampleColumns::add(const Sample& sample) {
  pid.push_back(sample.pid);
  tid.push_back(sample.tid);
  time_ns.push_back(sample.time);
  ip.push_back(sample.ip);
  period.push_back(sample.period);
  user_mode.push_back(sample.user_mode);
  exact_ip.push_back(sample.exact_ip);
  add_access(sample);
  if (!sample.has(PERF_SAMPLE_REGS_USER)) return;
  registers_present.push_back(sample.user_registers.present);
  registers.insert(registers.end(), sample.user_registers.values.begin(),
                   sample.user_registers.values.end());
}

/// Of an event that is not of memory accesses, such as a page fault, the address alone.
void SampleColumns::add_access(const Sample& sample) {
  MemoryAccess unknown;
  unknown.address = sample.addr;
  const MemoryAccess access = memory_access(sample, is_ibs_op).value_or(unknown);
  address.push_back(access.address.value_or(0));
  latency_cycles.push_back(access.latency_cycles);
  level.push_back(static_cast<std::uint8_t>(access.source.level));
  load.push_back(access.source.load);
  store.push_back(access.source.store);
  tlb_miss.push_back(access.source.tlb_miss);
}

/// All that is kept of a file. Names and build ids are copies.
struct PerfContents {
  struct KeptMapping {
    Mapping mapping;
    std::string file;
    std::vector<std::uint8_t> build_id;
  };
  struct KeptComm {
    Comm comm;
    std::string name;
  };

  std::vector<FileEvent> events;
  FileFacts facts;
  bool complete = true;
  std::vector<SampleColumns> samples; ///< by event
  std::vector<KeptMapping> mappings;
  std::vector<KeptComm> comms;
  std::vector<Fork> forks;
  std::vector<Exit> exits;
  std::uint64_t lost = 0;
};

std::string pmu_of(const FileEvent& event, const FileFacts& facts) {
  const auto found = facts.pmus.find(event.attr.type);
  return found == facts.pmus.end() ? std::string() : found->second;
}

class Keeper {
public:
  Keeper(DataFile& file, PerfContents& contents) : file_(file), contents_(contents) {}

  void keep(const EventRecord& found) {
    event_ = found.event;
    std::visit(*this, found.record);
  }

  void operator()(const Sample& sample) {
    for (std::size_t next = contents_.samples.size(); next <= event_; ++next) {
      contents_.samples.emplace_back();
      contents_.samples.back().is_ibs_op = pmu_of(file_.events()[next], file_.facts()) == "ibs_op";
    }
    contents_.samples[event_].add(sample);
  }
  void operator()(const Mapping& mapping) {
    contents_.mappings.push_back(
        {mapping, std::string(mapping.file), {mapping.build_id.begin(), mapping.build_id.end()}});
  }
  void operator()(const Comm& comm) { contents_.comms.push_back({comm, std::string(comm.name)}); }
  void operator()(const Fork& fork) { contents_.forks.push_back(fork); }
  void operator()(const Exit& exit) { contents_.exits.push_back(exit); }
  void operator()(const Lost& lost) { contents_.lost += lost.count; }
  void operator()(const LostSamples& lost) { contents_.lost += lost.count; }
  void operator()(const Throttle&) {}
  void operator()(const OtherRecord&) {}

private:
  DataFile& file_;
  PerfContents& contents_;
  std::size_t event_ = 0;
};

Result<PerfContents> read_contents(const char* path) {
  Result<DataFile> file = DataFile::open(path);
  if (!file) return file.error();
  PerfContents contents;
  Keeper keeper(*file, contents);
  for (;;) {
    Result<const EventRecord*> next = file->next();
    if (!next) return next.error();
    if (*next == nullptr) break;
    keeper.keep(**next);
  }
  contents.events = file->events();
  contents.facts = file->facts();
  contents.complete = file->complete();
  contents.samples.resize(contents.events.size());
  return contents;
}

/// An array of NumPy that owns what was the vector's.
template <class T>
nb::object array(std::vector<T>& values, std::size_t columns = 0) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(
      kept, [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
  using Array = nb::ndarray<nb::numpy, T>;
  if (columns == 0) return nb::cast(Array(kept->data(), {kept->size()}, owner));
  return nb::cast(Array(kept->data(), {kept->size() / columns, columns}, owner));
}

nb::dict samples_dict(SampleColumns& samples) {
  nb::dict d;
  d["pid"] = array(samples.pid);
  d["tid"] = array(samples.tid);
  d["time_ns"] = array(samples.time_ns);
  d["ip"] = array(samples.ip);
  d["period"] = array(samples.period);
  d["user_mode"] = array(samples.user_mode);
  d["exact_ip"] = array(samples.exact_ip);
  d["address"] = array(samples.address);
  d["latency_cycles"] = array(samples.latency_cycles);
  d["level"] = array(samples.level);
  d["load"] = array(samples.load);
  d["store"] = array(samples.store);
  d["tlb_miss"] = array(samples.tlb_miss);
  d["registers_present"] = array(samples.registers_present);
  d["registers"] = array(samples.registers, Registers::count);
  return d;
}

nb::dict event_dict(const FileEvent& event, const FileFacts& facts, SampleColumns& samples) {
  nb::dict d;
  d["name"] = event.name;
  d["pmu"] = pmu_of(event, facts);
  d["type"] = event.attr.type;
  d["config"] = event.attr.config;
  d["fields"] = event.attr.sample_type;
  d["samples"] = samples_dict(samples);
  return d;
}

/// Names of files and programs have no encoding.
nb::object text(const std::string& bytes) {
  return nb::steal(
      PyUnicode_DecodeFSDefaultAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
}

std::string hexadecimal(const std::vector<std::uint8_t>& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

nb::dict mapping_dict(const PerfContents::KeptMapping& kept) {
  nb::dict d;
  d["pid"] = kept.mapping.pid;
  d["time_ns"] = kept.mapping.sample_id.time;
  d["address"] = kept.mapping.address;
  d["length"] = kept.mapping.length;
  d["file_offset"] = kept.mapping.file_offset;
  d["executable"] = kept.mapping.executable;
  d["user_mode"] = kept.mapping.user_mode;
  d["file"] = text(kept.file);
  d["build_id"] = hexadecimal(kept.build_id);
  return d;
}

nb::dict comm_dict(const PerfContents::KeptComm& kept) {
  nb::dict d;
  d["pid"] = kept.comm.pid;
  d["tid"] = kept.comm.tid;
  d["time_ns"] = kept.comm.sample_id.time;
  d["exec"] = kept.comm.exec;
  d["name"] = text(kept.name);
  return d;
}

nb::dict task_dict(const Task& task) {
  nb::dict d;
  d["pid"] = task.pid;
  d["parent_pid"] = task.parent_pid;
  d["tid"] = task.tid;
  d["parent_tid"] = task.parent_tid;
  d["time_ns"] = task.time;
  return d;
}

nb::dict build_id_dict(const FileBuildId& found) {
  nb::dict d;
  d["pid"] = found.pid;
  d["file"] = text(found.file);
  d["build_id"] = hexadecimal(found.bytes);
  return d;
}

template <class Items, class Convert>
nb::list list_of(const Items& items, const Convert& convert) {
  nb::list list;
  for (const auto& item : items)
    list.append(convert(item));
  return list;
}

nb::dict read_perf_data(const char* path) {
  PerfContents contents = run_unlocked([&] { return read_contents(path); });
  nb::dict d;
  d["cpu"] = text(contents.facts.cpu);
  d["complete"] = contents.complete;
  nb::list events;
  for (std::size_t i = 0; i < contents.events.size(); ++i)
    events.append(event_dict(contents.events[i], contents.facts, contents.samples[i]));
  d["events"] = events;
  d["mappings"] = list_of(contents.mappings, mapping_dict);
  d["comms"] = list_of(contents.comms, comm_dict);
  d["forks"] = list_of(contents.forks, task_dict);
  d["exits"] = list_of(contents.exits, task_dict);
  d["build_ids"] = list_of(contents.facts.build_ids, build_id_dict);
  d["lost"] = contents.lost;
  return d;
}

} // namespace

void register_perf(nb::module_& module) {
  nb::list levels;
  for (const std::string_view level : memory_level_names)
    levels.append(nb::str(level.data(), level.size()));
  module.attr("PERF_MEMORY_LEVELS") = nb::tuple(levels);
  module.def("read_perf_data", read_perf_data, nb::arg("path"));
}

} // namespace nearfar::bind
