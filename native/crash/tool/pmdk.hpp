// PMDK's three hash maps (structures/pmdk_map.hpp) under the explorer: they work through
// libpmemobj's logs and allocator, whose stores no call in the source reports.
//
// How            1. make_pool() makes a pool, fill_pool() fills it in a process of its own under
//                   the preloaded recorder, which writes the log.
//                2. Every image is recovered by a replay of libpmemobj's logs of our own, walked,
//                   and compared with the model: nothing may be lost, torn, or leaked. The replay
//                   sees what it reads, so that only lines that matter branch.
//                3. Of these images one in so many, or every one, is opened by pmemobj_open() in a
//                   helper process (os/helper.hpp); it must hold the same.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crash/subject.hpp"
#include "crash/trace.hpp"
#include "os/file.hpp"

namespace nearfar::crash {

bool is_pmdk(std::string_view structure);

/// Makes a pool with an empty map in it.
Status make_pool(std::string_view structure, const char* path, std::size_t operations);
/// Opens it and executes the operations, each of which is recorded.
Status fill_pool(std::string_view structure, const char* path,
                 const std::vector<Operation>& operations);

/// What the operation must do, on a plain DRAM model of it.
void apply_to_pmdk_model(std::string_view structure, const Operation& operation, Contents& model);

/// Opens pools by libpmemobj, in a process that may die of it.
class Library {
public:
  /// `image` stays open, and is the pool; `keys` are all that can be in it.
  Library(std::string_view structure, const os::File& image, std::uint64_t keys,
          std::uint64_t limit_ms);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  /// Opens the image, takes the map up, and lists what it holds, sorted. The file is not changed.
  /// Failure::none, or how and why not.
  Failure look(Contents& found, std::string& why);

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The replay, with `library` as a second opinion. `pool` is a sound image, for what never changes.
std::unique_ptr<Checked> pmdk_subject(std::string_view structure, const Trace& trace,
                                      Library& library);

} // namespace nearfar::crash
