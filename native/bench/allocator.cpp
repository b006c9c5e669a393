#include "bench/allocator.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <string_view>

namespace nearfar::bench {

namespace {

/// A function or object of a preloaded library; null where no library has it.
template <class T>
T loaded(const std::string& symbol) {
  return reinterpret_cast<T>(dlsym(RTLD_DEFAULT, symbol.c_str()));
}

Error no_kind(std::string_view kind, const char* next) {
  return Error::make(Errc::bad_input, "memkind has no kind '%.*s'", static_cast<int>(kind.size()),
                     kind.data())
      .try_next("%s", next);
}

/// A kind over a file in a directory, which has no name and no bound but the file system's.
Result<void*> pmem_kind(const std::string& directory) {
  auto* create = loaded<int (*)(const char*, std::size_t, void**)>("memkind_create_pmem");
  void* kind = nullptr;
  const int code = create == nullptr ? -1 : create(directory.c_str(), 0, &kind);
  if (code == 0) return kind;
  return Error::make(Errc::unsupported, "memkind makes no pmem kind in '%s' (its error %d)",
                     directory.c_str(), code)
      .try_next("name a directory that exists and can be written to");
}

Result<void*> static_kind(std::string_view name) {
  std::string symbol = "MEMKIND_";
  for (const char c : name)
    symbol += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  auto* kind = loaded<void**>(symbol);
  if (kind == nullptr) return no_kind(name, "try default, regular, hugetlb, dax-kmem or pmem:DIR");
  auto* check = loaded<int (*)(void*)>("memkind_check_available");
  if (check != nullptr && check(*kind) == 0) return *kind;
  return Error::make(Errc::unsupported, "memkind's kind '%.*s' is not available on this machine",
                     static_cast<int>(name.size()), name.data())
      .try_next("use memkind:default, or pmem:DIR");
}

Result<Allocator> memkind(std::string_view kind) {
  Memkind found;
  found.malloc = loaded<void* (*)(void*, std::size_t)>("memkind_malloc");
  found.free = loaded<void (*)(void*, void*)>("memkind_free");
  if (found.malloc == nullptr || found.free == nullptr)
    return Error::make(Errc::not_found, "libmemkind is not loaded")
        .try_next("preload it: LD_PRELOAD=libmemkind.so.0");
  constexpr std::string_view pmem = "pmem:";
  Result<void*> handle =
      kind.starts_with(pmem) ? pmem_kind(std::string(kind.substr(pmem.size()))) : static_kind(kind);
  if (!handle) return handle.error();
  found.kind = *handle;
  return Allocator(found);
}

Result<Allocator> hmalloc(const std::string& tier) {
  Hmalloc found;
  found.malloc = loaded<void* (*)(int, std::size_t)>("hm_malloc");
  found.free = loaded<void (*)(void*)>("hm_free");
  auto* find = loaded<int (*)(const char*)>("hm_tier_find");
  auto* create = loaded<int (*)(const char*, const char*)>("hm_tier_create");
  auto* why = loaded<const char* (*)()>("hm_error");
  if (found.malloc == nullptr || found.free == nullptr || find == nullptr || create == nullptr ||
      why == nullptr)
    return Error::make(Errc::not_found, "libhmalloc is not loaded")
        .try_next("build it into the package: `make build`, in a checkout");
  found.tier = find(tier.c_str());
  if (found.tier < 0) found.tier = create("bench", tier.c_str());
  if (found.tier >= 0) return Allocator(found);
  const int code = errno;
  return Error::make(code == EINVAL ? Errc::bad_input : Errc::unsupported, "no tier '%s': %s",
                     tier.c_str(), why())
      .try_next("see `man 3 hmalloc` for the syntax of tiers");
}

/// The object that contains an address, from the loader; zeros if there is none.
Dl_info object_of(const void* address) {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) info = {};
  return info;
}

/// malloc, if it is in the object that also has `symbol`, or, if `elsewhere`, in any other one.
Result<Allocator> malloc_with(const char* symbol, const char* name, bool elsewhere) {
  const Dl_info wanted = object_of(loaded<void*>(symbol));
  const Dl_info ours = object_of(loaded<void*>("malloc"));
  const bool same = wanted.dli_fbase != nullptr && wanted.dli_fbase == ours.dli_fbase;
  if (ours.dli_fbase != nullptr && same != elsewhere) return Allocator(Malloc{});
  return Error::make(Errc::not_found, "malloc of this process is not %s's but that of %s", name,
                     ours.dli_fname == nullptr ? "?" : ours.dli_fname)
      .try_next("preload its library");
}

} // namespace

Result<Allocator> find_allocator(const char* name) {
  const std::string_view wanted = name;
  if (wanted == "glibc") return malloc_with("gnu_get_libc_version", name, false);
  if (wanted == "preload")
    return malloc_with("gnu_get_libc_version", "the preloaded library", true);
  if (wanted == "mimalloc") return malloc_with("mi_malloc", name, false);
  if (wanted == "jemalloc") return malloc_with("mallctl", name, false);
  constexpr std::string_view of_memkind = "memkind:";
  if (wanted.starts_with(of_memkind)) return memkind(wanted.substr(of_memkind.size()));
  constexpr std::string_view of_hmalloc = "hmalloc:";
  if (wanted.starts_with(of_hmalloc)) return hmalloc(std::string(wanted.substr(of_hmalloc.size())));
  return Error::make(Errc::bad_input, "no allocator '%s' is known", name)
      .try_next("use glibc, mimalloc, jemalloc, preload, memkind:KIND or hmalloc:TIER");
}

const char* library_of(const Allocator& allocator) {
  const void* function = loaded<const void*>("malloc");
  if (const auto* memkind = std::get_if<Memkind>(&allocator))
    function = reinterpret_cast<const void*>(memkind->malloc);
  if (const auto* hmalloc = std::get_if<Hmalloc>(&allocator))
    function = reinterpret_cast<const void*>(hmalloc->malloc);
  const Dl_info info = object_of(function);
  return info.dli_fname == nullptr ? "?" : info.dli_fname;
}

} // namespace nearfar::bench
