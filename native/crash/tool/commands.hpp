// The commands of nearfar-crash, and how their arguments come.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "crash/persistency.hpp"

namespace nearfar::crash {

/// KEY=VALUE arguments. Python wrote them: a missing key has its default, nothing is checked twice.
class Arguments {
public:
  Arguments(int count, char** values) : count_(count), values_(values) {}

  const char* text(std::string_view key, const char* otherwise = "") const {
    for (int i = 0; i < count_; ++i) {
      const std::string_view given = values_[i];
      if (given.starts_with(key) && given.size() > key.size() && given[key.size()] == '=')
        return values_[i] + key.size() + 1;
    }
    return otherwise;
  }
  std::uint64_t number(std::string_view key, std::uint64_t otherwise) const {
    const char* value = text(key, nullptr);
    return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
  }

private:
  int count_;
  char** values_;
};

inline CacheLoss loss_of(const Arguments& given) {
  if (std::string_view(given.text("platform")) == "eadr") return CacheLoss::none;
  const std::string_view loss = given.text("caches_lost"); // of an image that is replayed
  if (loss == "none") return CacheLoss::none;
  if (loss == "host_0") return CacheLoss::host_0;
  return loss == "host_1" ? CacheLoss::host_1 : CacheLoss::all;
}

int check(const Arguments& given);  ///< fills a structure and explores it
int sites(const Arguments& given);  ///< flushes, fences and log calls of such a run, for mutations
int make(const Arguments& given);   ///< makes a pool for a structure of libpmemobj
int fill(const Arguments& given);   ///< fills it, under the recorder
int turns(const Arguments& given);  ///< lists interleavings, from a log without any
int lint(const Arguments& given);   ///< what is wrong in the log of a program, without images
int run(const Arguments& given);    ///< explores the log of a program, or replays one image of it
int replay(const Arguments& given); ///< recovers one kept image

} // namespace nearfar::crash
