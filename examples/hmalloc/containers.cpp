// C++ containers with allocators for tiers: an ordered index in near memory, texts in far memory.
//
// Build   c++ -std=c++20 containers.cpp $(pkg-config --cflags --libs hmalloc) -o containers
// Run     NEARFAR_HMALLOC_FAR=numa:1 ./containers   or another tier (default: file:/tmp)
#include <nearfar/hmalloc.hpp>

#include <cstdio>
#include <functional>
#include <map>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

using Entry = std::pair<const int, std::size_t>;
using Index = std::map<int, std::size_t, std::less<>, nearfar::TierAllocator<Entry>>;

const char* side(const void* ptr) {
  const hm_tier tier = hm_tier_of(ptr);
  return tier == HM_FAR ? "far" : tier == HM_NEAR ? "near" : "elsewhere";
}

} // namespace

int main() try {
  if (hm_tier_find("far") != HM_FAR && hm_tier_create("far", "file:/tmp,capacity=64MiB") != HM_FAR)
    throw std::bad_alloc();

  Index index{nearfar::TierAllocator<Entry>(HM_NEAR)}; // each node of the tree
  nearfar::TierResource far(HM_FAR);
  std::pmr::vector<std::pmr::string> texts(&far); // the vector, and each string in it
  for (int key = 0; key < 1000; ++key) {
    index.emplace(3 * key, texts.size());
    texts.emplace_back("the text of key " + std::to_string(3 * key) +
                       ", too long to be kept inside");
  }

  const auto found = index.find(300);
  const std::pmr::string& text = texts[found->second];
  std::printf("the index is %s, its texts are %s\n", side(&*found), side(text.data()));
  std::printf("%s\n", text.c_str());
} catch (const std::bad_alloc&) {
  std::fprintf(stderr, "containers: %s\n", hm_error());
  return 1;
}
