// A persistent queue: first in, first out.
//
// Invariants     the root's head links the oldest value; each node links the next younger.
// Durability     push: node, flush, fence, the youngest's link to it, flush, fence. Pop: the head
//                past the oldest, flush, fence; then its memory is free. Clear: the head, flush,
//                fence. bulk_load: all nodes, flush, fence, one link to the first, flush, fence.
//                Every call is atomic, and durable when it returns.
// Memory         node_heap.hpp: rebuilt at open by walking the queue; nothing leaks.
// Thread safety  push, pop, front, size by any number of threads: one lock, which a push acquires
//                only after its node is durable. The others require that no other thread runs;
//                for_each may not call the queue.
// Errors         no_space: without an effect. failed_check: the pool is damaged. os_error: msync.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "structures/chain.hpp"

namespace nearfar::structures {

template <class PersistencePolicy, persist::storable T>
class Queue {
public:
  /// Recovers the queue at `root`. Fails with failed_check if it is damaged.
  static Result<std::unique_ptr<Queue>> open(PersistencePolicy& medium, ChainRoot& root) {
    std::unique_ptr<Queue> queue(new Queue(medium, root));
    if (Status found = queue->recover(); !found) return found.error();
    return queue;
  }

  Status push(const T& value) {
    Result<Node<T>*> node = chain_.make(value, 0);
    if (!node) return node.error();
    chain_.fence();
    const std::lock_guard guard(mutex_);
    chain_.link(*end_, *node);
    end_ = &(*node)->next;
    ++size_;
    if (chain_.failed()) return sync_failed();
    return Done{};
  }

  /// Removes and returns the oldest value; none if the queue is empty.
  Result<std::optional<T>> pop() {
    const std::lock_guard guard(mutex_);
    const Node<T>* oldest = chain_.at(chain_.head());
    if (oldest == nullptr) return std::optional<T>();
    const std::optional<T> value(oldest->value);
    if (end_ == &oldest->next) end_ = &chain_.head();
    chain_.unlink(chain_.head());
    --size_;
    if (chain_.failed()) return sync_failed();
    return value;
  }

  /// The oldest value; none if the queue is empty.
  std::optional<T> front() const {
    const std::lock_guard guard(mutex_);
    const Node<T>* oldest = chain_.at(chain_.head());
    return oldest == nullptr ? std::nullopt : std::optional<T>(oldest->value);
  }
  std::size_t size() const {
    const std::lock_guard guard(mutex_);
    return size_;
  }

  Status clear() {
    const std::lock_guard guard(mutex_);
    chain_.clear();
    end_ = &chain_.head();
    size_ = 0;
    if (chain_.failed()) return sync_failed();
    return Done{};
  }

  /// Pushes many values with two fences in total; after a crash all of them are there, or none.
  Status bulk_load(const std::vector<T>& values) {
    const std::lock_guard guard(mutex_);
    std::vector<Node<T>*> made;
    std::uint64_t next = 0;
    for (auto value = values.rbegin(); value != values.rend(); ++value) {
      Result<Node<T>*> node = chain_.make(*value, next);
      if (!node) {
        chain_.drop(made);
        return node.error();
      }
      made.push_back(*node);
      next = chain_.link_of(*node);
    }
    if (made.empty()) return Done{};
    chain_.fence();
    chain_.link(*end_, made.back());
    end_ = &made.front()->next;
    size_ += made.size();
    if (chain_.failed()) return sync_failed();
    return Done{};
  }

  /// Calls visit(value), the oldest first.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::lock_guard guard(mutex_);
    for (const Node<T>* node = chain_.at(chain_.head()); node; node = chain_.at(node->next))
      visit(node->value);
  }

  /// Checks all invariants again, only from the pool. Fails with failed_check.
  Status verify() const {
    const std::lock_guard guard(mutex_);
    Queue fresh(policy_, root_);
    if (Status found = fresh.recover(); !found) return found;
    if (fresh.size_ == size_ && fresh.end_ == end_) return Done{};
    return Error::make(Errc::failed_check, "the queue counts %zu values and holds %zu", size_,
                       fresh.size_);
  }

private:
  Queue(PersistencePolicy& medium, ChainRoot& root)
      : policy_(medium), root_(root), chain_(medium, root), end_(&chain_.head()) {}

  Status recover() {
    return chain_.recover([&](std::uint64_t*, Node<T>* node) {
      end_ = &node->next;
      ++size_;
      return true;
    });
  }

  PersistencePolicy& policy_;
  ChainRoot& root_;
  Chain<PersistencePolicy, T> chain_;
  std::uint64_t* end_; ///< the link that a push stores into
  mutable std::mutex mutex_;
  std::size_t size_ = 0;
};

} // namespace nearfar::structures
