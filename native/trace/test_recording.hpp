// A recorder and a collector in one process, for tests.
#pragma once

#include <cstdlib>
#include <doctest/doctest.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test_support.hpp"
#include "trace/collector.hpp"
#include "trace/reader.hpp"
#include "trace/recorder/thread_recorder.hpp"

namespace nearfar::trace {

inline constexpr std::uint64_t test_code = 0x401000;

/// Records accesses to the test's own memory.
class Recording {
public:
  explicit Recording(std::uint64_t max_records = 0)
      : ring_(make_ring()), file_(make_file()), recorder_(new_recorder()) {
    HierarchyConfig plan;
    plan.l2 = {16384, 8};
    plan.prefetch = false;
    plan.after = After::l2;
    Result<CacheFilter> filter = CacheFilter::create(plan);
    REQUIRE(filter);
    collector_.emplace(ring_.shared(), std::move(*filter), file_.fd(),
                       Header{64, After::l2, {{"recorder", "test"}}}, max_records);
    thread_ = std::thread([this] { collected_.emplace(collector_->run()); });
  }
  ~Recording() {
    recorder_->slot->life.unlock(); // a mutex of this thread that is unmapped stays in libc's list
    recorder_->close();
    std::free(recorder_);
  }

  ThreadRecorder& recorder() { return *recorder_; }
  ring::Shared& shared() { return ring_.shared(); }
  ThreadCounts& counts() { return recorder_->own_counts; }
  template <bool store = false>
  void access(const void* at, std::uint64_t from = test_code) {
    ++recorder_->own_counts.instructions;
    ++recorder_->own_counts.accesses[store];
    recorder_->access<store>(reinterpret_cast<std::uint64_t>(at), 8, from);
  }

  std::vector<Record> finish() {
    recorder_->publish_counts();
    collector_->end();
    thread_.join();
    REQUIRE(*collected_);
    collected = **collected_;
    Result<TraceReader> opened = TraceReader::open(path_.c_str());
    REQUIRE(opened);
    reader.emplace(std::move(*opened));
    std::vector<Record> all;
    for (auto part = reader->next(); !part.empty(); part = reader->next())
      all.insert(all.end(), part.begin(), part.end());
    CHECK(reader->complete());
    return all;
  }
  std::optional<TraceReader> reader;
  Collected collected;
  const std::string& path() const { return path_; }

private:
  RingFile make_ring() {
    Result<RingFile> ring = RingFile::create({16, 4});
    REQUIRE(ring);
    return std::move(*ring);
  }
  os::File make_file() {
    Result<os::File> file = os::create_new(path_.c_str());
    REQUIRE(file);
    return std::move(*file);
  }
  ThreadRecorder* new_recorder() {
    auto* recorder = static_cast<ThreadRecorder*>(std::calloc(1, sizeof(ThreadRecorder)));
    REQUIRE(recorder->open(ring_.shared()));
    recorder->counts = &recorder->own_counts;
    recorder->take_slot(0);
    return recorder;
  }

  test::Folder folder_ = test::Folder::quick();
  std::string path_ = folder_.path("trace");
  RingFile ring_;
  os::File file_;
  ThreadRecorder* recorder_;
  std::optional<Collector> collector_;
  std::optional<Result<Collected>> collected_;
  std::thread thread_;
};

} // namespace nearfar::trace
