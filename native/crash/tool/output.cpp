#include "crash/tool/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

namespace nearfar::crash {

namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

bool write_image(const std::string& path, const std::vector<std::byte>& image) {
  const File file(std::fopen(path.c_str(), "wb"));
  return file != nullptr &&
         std::fwrite(image.data(), 1, image.size(), file.get()) == image.size() &&
         std::fflush(file.get()) == 0;
}

/// Products of many lines leave the range of numbers, which JSON has no word for.
double finite(double images) { return std::min(images, std::numeric_limits<double>::max()); }

std::string place_of_one(const storelog::Site& site) {
  char text[32];
  if (site.is_code())
    std::snprintf(text, sizeof text, "+0x%" PRIx64, site.offset());
  else
    std::snprintf(text, sizeof text, ":%" PRIu64, site.line());
  const std::string_view path = site.file();
  const std::size_t own = path.rfind("/native/"); // our own sources are named from the repository
  return std::string(own == path.npos ? path : path.substr(own + 1)) + text;
}

} // namespace

std::string place(const storelog::Site& site) {
  const std::string here = place_of_one(site);
  return site.caller() == nullptr ? here : here + " called from " + place(*site.caller());
}

const char* name(storelog::EventKind kind) {
  constexpr const char* names[] = {"",      "store", "nt_store", "flush",  "fence", "log",
                                   "begin", "end",   "tx_begin", "tx_end", "load"};
  return names[static_cast<std::size_t>(kind)];
}

int print_error(const Error& error) {
  const bool callers =
      error.code == Errc::bad_input || error.code == Errc::not_found || error.code == Errc::exists;
  std::printf("error\t%d\t%s\t%s\n", callers ? 2 : 3, error.what, error.next);
  return callers ? 2 : 3;
}

void print_progress(const Progress& progress) {
  std::printf("progress\t%" PRIu64 "\t%.0f\t%" PRIu64 "\t%.4f\n", progress.states,
              finite(progress.left), progress.violations, progress.done);
  std::fflush(stdout);
}

void print_finding(const Finding& finding, const char* image) {
  std::printf("finding\t%s\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%d\t%d\t%d\t%" PRIu64
              "\t%" PRIu64 "\t%s\t%s\t%s\t%s\n",
              name(finding.failure), finding.what.c_str(), name(finding.missing),
              place(finding.store).c_str(), place(finding.before).c_str(), finding.event,
              finding.acknowledged, finding.in_flight, finding.finished, finding.during_recovery,
              finding.violations, finding.found_at, image == nullptr ? "" : image,
              name(finding.loss), name(finding.kind), place(finding.at).c_str());
  for (const std::uint64_t number : finding.operations)
    std::printf("operation\t%" PRIu64 "\n", number);
  for (const BlamedLine& line : finding.lines)
    std::printf("line\t%" PRIu64 "\t%d\t%s\n", line.address, line.durable,
                place(line.store).c_str());
}

int print_exploration(const Exploration& result, const char* folder) {
  int failed = 0; ///< errno of the first image that was not written
  for (std::size_t i = 0; i < result.findings.size(); ++i) {
    std::string path;
    if (folder[0] != '\0' && !result.findings[i].image.empty()) {
      path = std::string(folder) + "/" + std::to_string(i + 1) + ".image";
      if (!write_image(path, result.findings[i].image)) {
        if (failed == 0) failed = errno;
        std::remove(path.c_str());
        path.clear();
      }
    }
    print_finding(result.findings[i], path.c_str());
  }
  if (failed != 0)
    std::printf("warning\tcannot keep images in %s: %s; name another folder after --images\n",
                folder, std::strerror(failed));
  std::printf("result\t%" PRIu64 "\t%.0f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.9g\t%" PRIu64
              "\t%" PRIu64 "\t%" PRIu64 "\t%d\t%" PRIu64 "\t%" PRIu64 "\n",
              result.states, finite(result.states_left), result.points, result.violations,
              result.recovery_states, result.seconds, result.confirmed, result.stores,
              result.stores_tried, result.cut_off, result.places, result.places_tried);
  return 0;
}

void print_count(const CrashCount& count) {
  std::printf("crash\t%s\t%" PRIu64 "\t%.0f\t%" PRIu64 "\n", name(count.loss), count.states,
              finite(count.states_left), count.violations);
}

Result<std::vector<std::byte>> read_image(const char* path) {
  const File file(std::fopen(path, "rb"));
  if (file == nullptr)
    return Error::make(Errc::not_found, "cannot open image '%s': %s", path, std::strerror(errno))
        .try_next("name an image that was kept");
  std::vector<std::byte> image;
  std::byte block[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(block, 1, sizeof block, file.get())) > 0)
    image.insert(image.end(), block, block + got);
  return image;
}

} // namespace nearfar::crash
