#include "crash/tool/checkers.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <unistd.h>

#include "crash/tool/checker.hpp"
#include "crash/tool/private_images.hpp"
#include "nearfar/crash_checker.h"
#include "os/child.hpp"
#include "os/helper.hpp"
#include "os/pages.hpp"
#include "storelog/log_file.hpp"

namespace nearfar::crash {

namespace {

/// The host that died while the other went on, or -1.
int dead_host(CacheLoss loss) {
  if (loss == CacheLoss::host_0) return 0;
  return loss == CacheLoss::host_1 ? 1 : -1;
}

/// Numbers with spaces between.
std::string words(std::span<const std::uint64_t> numbers) {
  std::string all;
  for (const std::uint64_t number : numbers) {
    if (!all.empty()) all += ' ';
    all += std::to_string(number);
  }
  return all;
}

class Program final : public Checker {
public:
  Program(std::vector<char*> arguments, os::File output, std::uint64_t limit_ms,
          RecoveryLog recovery)
      : Checker("the checker", limit_ms), arguments_(std::move(arguments)),
        output_(std::move(output)), recovery_(std::move(recovery)) {}

  void record(bool wanted) override {
    if (!wanted) {
      for (const char* name : {"LD_PRELOAD", "NEARFAR_CRASH_LOG", "PMEM_IS_PMEM_FORCE"})
        unsetenv(name);
      if (!preloaded_.empty()) setenv("LD_PRELOAD", preloaded_.c_str(), 1);
      if (!persistent_.empty()) setenv("PMEM_IS_PMEM_FORCE", persistent_.c_str(), 1);
      return read();
    }
    unlink(recovery_.path.c_str());
    setenv("LD_PRELOAD", (recovery_.library + " " + preloaded_).c_str(), 1);
    setenv("NEARFAR_CRASH_LOG", recovery_.path.c_str(), 1);
    setenv("PMEM_IS_PMEM_FORCE", "1", 1);
  }
  const storelog::Log* log() const override { return known_ ? &log_ : nullptr; }

  const char* open(std::byte*, std::size_t bytes, const Moment& moment) override {
    set("NEARFAR_CRASH_ACKNOWLEDGED", moment.acknowledged);
    set("NEARFAR_CRASH_IN_FLIGHT", moment.in_flight);
    set("NEARFAR_CRASH_FINISHED", moment.finished);
    setenv("NEARFAR_CRASH_OPERATIONS", words(moment.operations).c_str(), 1);
    set("NEARFAR_CRASH_DEAD_HOST", dead_host(moment.loss));
    os::empty(output_);
    begin();
    Result<os::Ended> ended =
        os::run_program(arguments_.data(), "/dev/null", output_.fd(), limit_ms());
    if (!ended) give_up(ended.error());
    require_size(recovery_.image.c_str(), bytes);
    if (ended->hung || ended->signal != 0) return lost(*ended, {});
    return judge(ended->code, os::last_line(output_), "the checker exited with ");
  }

private:
  template <class Value>
  static void set(const char* name, Value value) {
    setenv(name, std::to_string(value).c_str(), 1);
  }
  void read() {
    known_ = false;
    Result<storelog::ReadLog> found = storelog::read_log(recovery_.path.c_str());
    if (!found || !found->complete || found->pool_path != recovery_.image) return;
    known_ = true;
    log_ = std::move(found->log);
    log_.image = {};
    names_.push_back(std::move(found->names));
    callers_.push_back(std::move(found->callers));
  }

  std::vector<char*> arguments_;
  os::File output_;
  RecoveryLog recovery_;
  // What the user had set, for a recovery that is not recorded.
  std::string preloaded_ = getenv("LD_PRELOAD") == nullptr ? "" : getenv("LD_PRELOAD");
  std::string persistent_ =
      getenv("PMEM_IS_PMEM_FORCE") == nullptr ? "" : getenv("PMEM_IS_PMEM_FORCE");
  bool known_ = false;
  storelog::Log log_;
  std::deque<std::deque<std::string>> names_; ///< that sites of findings point to
  std::deque<std::deque<storelog::Site>> callers_;
};

/// Called in a helper process, which shares the memory of the image.
class Function final : public Checker {
public:
  Function(nearfar_crash_checker* check, std::string path, os::File output, std::uint64_t limit_ms)
      : Checker("the checker", limit_ms), check_(check), path_(std::move(path)),
        output_(std::move(output)),
        helper_([this](std::string_view question) { return serve(question); }, output_.fd()) {}

  const char* open(std::byte* pool, std::size_t bytes, const Moment& moment) override {
    const nearfar_crash_image image{path_.c_str(),
                                    pool,
                                    bytes,
                                    moment.acknowledged,
                                    moment.in_flight,
                                    moment.finished,
                                    dead_host(moment.loss),
                                    moment.operations.size(),
                                    nullptr};
    std::string question(reinterpret_cast<const char*>(&image), sizeof image);
    question.append(reinterpret_cast<const char*>(moment.operations.data()),
                    moment.operations.size_bytes());
    begin();
    Result<os::Helper::Answer> answer = helper_.ask(question, limit_ms());
    if (!answer) return fail(Failure::crashed, answer.error().what);
    if (answer->ended.hung || answer->ended.signal != 0 || answer->ended.code != 0)
      return lost(answer->ended, {});
    int code = 0;
    std::memcpy(&code, answer->text.data(), sizeof code);
    return judge(code, answer->text.substr(sizeof code), "the checker returned ");
  }

private:
  /// What it maps of the image is its own copy, so that nothing has to be put back after it.
  std::string serve(std::string_view question) const {
    nearfar_crash_image image;
    std::memcpy(&image, question.data(), sizeof image); // its pointers are good here, after fork()
    std::vector<unsigned long> operations(image.operation_count);
    std::memcpy(operations.data(), question.data() + sizeof image,
                operations.size() * sizeof operations[0]);
    image.operations = operations.data();
    make_mappings_private();
    Result<os::File> file = os::open_existing(path_.c_str(), false);
    if (!file) _exit(1);
    Result<os::MappedRange> own =
        os::map_range(image.bytes, os::PageSize::small_4k, file->fd(), false);
    if (!own) _exit(1);
    image.memory = own->data();
    char why[256] = "";
    const int code = check_(&image, why, sizeof why);
    why[sizeof why - 1] = '\0';
    return std::string(reinterpret_cast<const char*>(&code), sizeof code) + why;
  }

  nearfar_crash_checker* check_;
  std::string path_;
  os::File output_;
  os::Helper helper_;
};

} // namespace

std::unique_ptr<Checked> program_checker(std::vector<char*> arguments, os::File output,
                                         std::uint64_t limit_ms, RecoveryLog recovery) {
  return std::make_unique<Program>(std::move(arguments), std::move(output), limit_ms,
                                   std::move(recovery));
}

Result<std::unique_ptr<Checked>> function_checker(const char* library, const char* function,
                                                  std::string path, os::File output,
                                                  std::uint64_t limit_ms) {
  void* loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL); // for good
  void* found = loaded == nullptr ? nullptr : dlsym(loaded, function);
  if (found == nullptr)
    return Error::make(Errc::not_found, "cannot call the checker: %s", dlerror())
        .try_next("give --checker a shared library and a function of it: ./check.so:check");
  return std::unique_ptr<Checked>(
      std::make_unique<Function>(reinterpret_cast<nearfar_crash_checker*>(found), std::move(path),
                                 std::move(output), limit_ms));
}

} // namespace nearfar::crash
