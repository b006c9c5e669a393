#include "crash/workload.hpp"

#include "base/random.hpp"

namespace nearfar::crash {

std::vector<Operation> mixed_operations(std::size_t count, std::uint64_t seed, bool moves) {
  Random random(seed);
  std::vector<Operation> operations;
  std::vector<std::uint64_t> inserted;
  const std::uint64_t keys = max_key(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool growing = i * 5 < count * 3;
    const bool inserts = random.below(12) < (growing ? 9u : 4u);
    Operation operation;
    operation.value = random.next() | 1;
    if (inserts || inserted.empty()) {
      operation.key = 1 + random.below(keys);
      inserted.push_back(operation.key);
    } else {
      operation.what =
          moves && random.below(2) == 0 ? Operation::What::move : Operation::What::remove;
      operation.key =
          random.below(3) == 0 ? 1 + random.below(keys) : inserted[random.below(inserted.size())];
    }
    operations.push_back(operation);
  }
  return operations;
}

} // namespace nearfar::crash
