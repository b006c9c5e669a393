// SPDX-License-Identifier: MIT (LICENSE in this folder)
// Continues the recording in the program that a process becomes (execve).
//
// Emulator       execve is replaced by an execve of the emulator, with the same plug-in and ring,
//                on that program. Scripts are resolved here: the emulator runs ELF files only.
// Not followed   programs that the emulator cannot run or this process cannot read, set-user-ID
//                programs, processes to which the ring or the emulator is not visible (chroot,
//                other user), and execveat. The system call then runs the program unrecorded.
// Variables      LD_* variables are passed with -E, because in the environment they would affect
//                the emulator. The allocation library is prepended to LD_PRELOAD; it removes itself
//                when the program starts.
// Thread safety  follow() in the thread that calls execve; it allocates.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <initializer_list>
#include <sys/stat.h>
#include <unistd.h>

namespace nearfar::trace {

/// Whether the kernel can read a zero-terminated text there; a bad pointer fails the program's call
/// with EFAULT, and must not end the emulator.
inline bool is_readable(const void* text) {
  return access(static_cast<const char*>(text), F_OK) == 0 || errno != EFAULT;
}

/// Number of words up to nullptr; -1 if one cannot be read.
inline std::ptrdiff_t count_words(const char* const* words) {
  std::ptrdiff_t count = 0;
  if (words == nullptr) return 0;
  for (;; ++count) {
    if (!is_readable(words + count)) return -1;
    if (words[count] == nullptr) return count;
    if (!is_readable(words[count])) return -1;
  }
}

/// A command line that grows at the front. Empty if it cannot be read.
class Words {
public:
  Words(const char* const* arguments, std::size_t room) {
    const std::ptrdiff_t found = count_words(arguments);
    if (found < 0) return;
    const auto count = static_cast<std::size_t>(found);
    memory_ = static_cast<const char**>(std::calloc(room + count + 1, sizeof *memory_));
    if (memory_ == nullptr) return;
    first = memory_ + room;
    for (std::size_t i = 0; i < count; ++i)
      first[i] = arguments[i];
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  ~Words() { std::free(memory_); }

  bool is_empty() const { return memory_ == nullptr || first[0] == nullptr; }
  void prepend(const char* word) { *--first = word; }

  const char** first = nullptr; ///< ended by nullptr

private:
  const char** memory_ = nullptr;
};

/// A program as execve gets it, with scripts replaced by their interpreters.
class ExecTarget {
public:
  static constexpr std::size_t max_words = 10; ///< the most words that interpreters add

  ExecTarget(const char* path, Words& words) : path_(path), words_(words) {}

  /// False if the emulator cannot run it.
  bool resolve() {
    if (words_.is_empty()) return false;
    for (Line& line : lines_) {
      if (!read_head(line)) return false;
      if (std::memcmp(line.text, "#!", 2) != 0) return is_emulated(line);
      if (!use_interpreter(line.text + 2)) return false;
    }
    return false;
  }
  const char* path() const { return path_; }

private:
  /// The begin of a file: of a script, as much as the kernel reads.
  struct Line {
    char text[257];
  };

  bool read_head(Line& line) const {
    struct stat facts {};
    if (stat(path_, &facts) != 0 || !S_ISREG(facts.st_mode) ||
        (facts.st_mode & (S_ISUID | S_ISGID)) != 0 || access(path_, X_OK) != 0)
      return false;
    const int fd = open(path_, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    std::memset(line.text, 0, sizeof line.text);
    const ssize_t got = read(fd, line.text, sizeof line.text - 1);
    close(fd);
    return got > 2;
  }

  static bool is_emulated(const Line& line) {
    Elf64_Ehdr elf;
    std::memcpy(&elf, line.text, sizeof elf);
    return std::memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0 && elf.e_ident[EI_CLASS] == ELFCLASS64 &&
           elf.e_machine == EM_X86_64;
  }

  /// `text`: after "#!", the interpreter and at most one argument, which may contain blanks.
  bool use_interpreter(char* text) {
    constexpr char blanks[] = " \t";
    char* end = std::strchr(text, '\n');
    if (end == nullptr) return false;
    while (end > text && std::strchr(blanks, end[-1]) != nullptr)
      --end;
    *end = '\0';
    text += std::strspn(text, blanks);
    char* argument = text + std::strcspn(text, blanks);
    if (*argument != '\0') {
      *argument++ = '\0';
      argument += std::strspn(argument, blanks);
    }
    if (*text == '\0') return false;
    words_.first[0] = path_;
    if (*argument != '\0') words_.prepend(argument);
    words_.prepend(text);
    path_ = text;
    return true;
  }

  static constexpr int max_interpreters = 4;
  const char* path_;
  Words& words_;
  Line lines_[max_interpreters + 1];
};

inline constexpr char allocations_library[] = "/libnearfar-trace-allocations.so";

/// Command line of the emulator that runs the program of this process.
class EmulatorCommand {
public:
  /// `address`: any in the plug-in; `ring`: the path of the ring.
  void find(const void* address, const char* ring) {
    const ssize_t length = readlink("/proc/self/exe", emulator_, sizeof emulator_ - 1);
    Dl_info info;
    if (length <= 0 || dladdr(address, &info) == 0) return;
    std::snprintf(ring_, sizeof ring_, "%s", ring);
    const char* slash = std::strrchr(info.dli_fname, '/');
    const int folder = slash == nullptr ? 0 : static_cast<int>(slash - info.dli_fname);
    std::snprintf(allocations_, sizeof allocations_, "%.*s%s", folder, info.dli_fname,
                  allocations_library);
    std::snprintf(plugin_, sizeof plugin_, "%s,ring=%s", info.dli_fname, ring);
  }

  /// Runs the program of an execve. Returns if it is not followed.
  void follow(const char* path, const char* const* arguments,
              const char* const* environment) const {
    constexpr std::size_t own_words = 12;
    const std::ptrdiff_t count = count_words(environment);
    if (count < 0 || !is_readable(path)) return;
    Words words(arguments, own_words + 2 * static_cast<std::size_t>(count) + ExecTarget::max_words);
    const Words variables(environment, 0);
    ExecTarget target(path, words);
    // /proc/self/exe is the emulator here; QEMU itself maps it to the program.
    if (!is_usable() || variables.first == nullptr || std::strncmp(path, "/proc/", 6) == 0 ||
        !target.resolve())
      return;
    const char* name = words.first[0];
    words.first[0] = target.path();
    words.prepend(name);
    words.prepend("-0");
    char preload[2][max_preload];
    if (!move_loader_variables(variables, preload, words)) return;
    for (const char* word : {plugin_, "-plugin", "max", "-cpu", emulator_})
      words.prepend(word);
    execve(emulator_, const_cast<char* const*>(words.first),
           const_cast<char* const*>(variables.first));
  }

private:
  bool is_usable() const { return access(emulator_, X_OK) == 0 && access(ring_, R_OK | W_OK) == 0; }

  static constexpr std::size_t max_preload = 8192;

  /// False if a variable contains a comma, which -E uses as separator, or LD_PRELOAD is too long.
  bool move_loader_variables(const Words& variables, char (&preload)[2][max_preload],
                             Words& words) const {
    constexpr char preload_name[] = "LD_PRELOAD=";
    const char* others = "";
    const char** kept = variables.first;
    for (const char** variable = kept; *variable != nullptr; ++variable) {
      if (std::strncmp(*variable, "LD_", 3) != 0) {
        *kept++ = *variable;
        continue;
      }
      if (std::strchr(*variable, ',') != nullptr) return false;
      if (std::strncmp(*variable, preload_name, sizeof preload_name - 1) == 0) {
        others = *variable + sizeof preload_name - 1;
        continue;
      }
      words.prepend(*variable);
      words.prepend("-E");
    }
    *kept = nullptr;
    std::snprintf(preload[0], max_preload, "NEARFAR_TRACE_PRELOAD=%s", others);
    const int length =
        std::snprintf(preload[1], max_preload, "%s%s %s", preload_name, allocations_, others);
    for (const char* variable : preload) {
      words.prepend(variable);
      words.prepend("-E");
    }
    return length < static_cast<int>(max_preload);
  }

  char emulator_[4096] = "";
  char plugin_[4096 + 256] = "";
  char ring_[128] = "";
  char allocations_[4096 + 64] = ""; ///< the library that reports allocations
};

} // namespace nearfar::trace
