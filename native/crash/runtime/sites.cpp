#include "crash/runtime/sites.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <link.h>
#include <span>
#include <string_view>

#include "crash/library.hpp"
#include "crash/runtime/callers.hpp"
#include "crash/runtime/judging.hpp"
#include "crash/runtime/memory_map.hpp"

namespace nearfar::crash::runtime {

using storelog::LogWriter;
using storelog::Site;

namespace {

constexpr std::size_t stack_calls = 16;

/// Code addresses that were named already, each with its caller.
struct NamedCode {
  const void* code;
  std::optional<SiteNumber> caller;
  SiteNumber site;
};
constexpr std::size_t named_count = 1 << 14;
NamedCode named[named_count];
/// Sites that were written: a module that is loaded again has the same.
struct Written {
  std::uint64_t key = 0; ///< of the path
  std::uint64_t place = 0;
  std::optional<SiteNumber> caller;
  SiteNumber site{};
};
constexpr std::size_t written_count = 1 << 14;
Written written_sites[written_count];
std::optional<SiteNumber> unknown_site;

SiteNumber write(LogWriter& writer, const Site& site, std::optional<SiteNumber> caller,
                 bool of_library) {
  std::optional<std::uint32_t> number;
  if (caller) number = caller->number;
  const SiteNumber written{writer.site(site, number), of_library};
  writer.flush(); // a program that is killed leaves the names of what was judged
  return written;
}

SiteNumber write_once(LogWriter& writer, const Site& site, std::optional<SiteNumber> caller,
                      bool of_library) {
  const std::uint64_t key = std::hash<std::string_view>{}(site.file());
  const std::uint64_t mixed =
      (key ^ site.place()) * 31 + (caller ? 31 * (caller->number + 1ull) : 0);
  Written& known = written_sites[(mixed * 0x9e3779b97f4a7c15u) >> 50];
  if (known.key == key && known.place == site.place() && known.caller == caller) return known.site;
  known = {key, site.place(), caller, write(writer, site, caller, of_library)};
  return known.site;
}

/// The path of the file that is mapped at `code`. False if there is none, or if it does not fit.
bool find_file(const void* code, std::span<char> path) {
  const auto at = reinterpret_cast<std::uintptr_t>(code);
  bool found = false;
  for_each_mapping([&](const Mapping& one) {
    if (at < one.start || at >= one.end || one.path[0] != '/') return;
    const std::size_t bytes = std::strlen(one.path) + 1;
    if (bytes > path.size()) return;
    std::memcpy(path.data(), one.path, bytes);
    found = true;
  });
  return found;
}

SiteNumber name_code(LogWriter& writer, const void* code, std::optional<SiteNumber> caller) {
  Dl_info info;
  link_map* module = nullptr;
  if (code == nullptr ||
      dladdr1(code, &info, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0 ||
      info.dli_fname == nullptr) {
    // A store by no known code is followed, and not judged.
    if (code != nullptr) return write_once(writer, Site::code(generated_code, 0), caller, false);
    if (!unknown_site) unknown_site = write(writer, Site::unknown(), {}, true);
    return *unknown_site;
  }
  // Addresses as in the file's symbols, which do not begin at 0 in a program without -fpie.
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(code) - module->l_addr;
  char path[4096];
  const char* name = info.dli_fname;
  if (is_vdso(name))
    name = "[vdso]";
  else if (name[0] != '/') // the folder can have changed since
    name = find_file(code, path) ? path : Site::unknown().file();
  return write_once(writer, Site::code(name, offset), caller,
                    is_in_library(code) || (caller && caller->of_library));
}

struct Numbered {
  SiteNumber site;
  bool is_new; ///< it is remembered from now on
};

Numbered number_of(LogWriter& writer, const void* code, std::optional<SiteNumber> caller) {
  const std::uint64_t key = caller ? 31 * (caller->number + 1ull) : 0;
  std::size_t at = ((reinterpret_cast<std::uintptr_t>(code) + key) * 0x9e3779b97f4a7c15u) >> 50;
  for (std::size_t tries = 0; tries < 16; ++tries, at = (at + 1) % named_count) {
    if (named[at].code == code && named[at].caller == caller) return {named[at].site, false};
    if (named[at].code != nullptr) continue;
    const SiteNumber site = name_code(writer, code, caller);
    named[at] = {code, caller, site};
    return {site, true};
  }
  return {name_code(writer, code, caller), false};
}

/// The calls that led to a site when it was first seen.
void write_stack(LogWriter& writer, SiteNumber site) {
  const void* calls[stack_calls];
  std::uint32_t numbers[stack_calls];
  std::size_t count = 0;
  for (const void* call : program_stack(calls))
    numbers[count++] = number_of(writer, call, {}).site.number;
  writer.stack(site.number, {numbers, count});
}

/// The site of code that was reached by these calls, outermost first.
SiteNumber number_of_call(LogWriter& writer, const void* code, const Callers& callers) {
  std::optional<SiteNumber> caller;
  const auto add = [&](const Return& call) {
    if (call.code != nullptr) caller = number_of(writer, call.code, caller).site;
  };
  std::for_each(callers.outward.rbegin(), callers.outward.rend(), add);
  add(callers.program);
  add(callers.library);
  const auto [site, is_new] = number_of(writer, code, caller);
  // What a library does is not judged.
  if (is_new && judge() != nullptr && !site.of_library) write_stack(writer, site);
  return site;
}

/// Sites by the code and the depth of the stack. A function has several callers at one depth.
struct Known {
  const void* code = nullptr;
  const void* frame = nullptr;
  Callers callers;
  SiteNumber site{};
};
constexpr std::size_t ways = 8;
constexpr std::size_t known_count = 1 << 11;
struct KnownSet {
  Known known[ways];
  std::size_t next = 0; ///< to be replaced
};
KnownSet known_sets[known_count];

KnownSet& known_at(const void* code, const void* frame) {
  const auto key =
      reinterpret_cast<std::uintptr_t>(code) * 31 + reinterpret_cast<std::uintptr_t>(frame);
  return known_sets[(key * 0x9e3779b97f4a7c15u) >> 53];
}

std::atomic<bool> sites_are_old{false};

void forget_all() {
  std::fill(named, named + named_count, NamedCode{});
  for (KnownSet& set : known_sets)
    set = {};
}

} // namespace

void forget_sites() { sites_are_old = true; }

SiteNumber site_of(LogWriter& writer, const void* code) {
  if (sites_are_old.load(std::memory_order_relaxed) && sites_are_old.exchange(false)) forget_all();
  if (code == nullptr) return name_code(writer, code, {});
  // What a library does is not judged, so its calls are of no interest.
  if (judge() != nullptr && is_in_library(code)) return number_of(writer, code, {}).site;
  const void* const frame = __builtin_frame_address(0);
  KnownSet& set = known_at(code, frame);
  for (const Known& one : set.known)
    if (one.code == code && one.frame == frame && one.callers.are_there()) return one.site;
  const Callers callers = find_callers(code);
  const SiteNumber site = number_of_call(writer, code, callers);
  if (callers.are_there()) set.known[set.next++ % ways] = {code, frame, callers, site};
  return site;
}

} // namespace nearfar::crash::runtime
