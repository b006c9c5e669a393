// A singly linked chain of nodes on a medium: the common part of list, skip list and queue.
//
// Invariants     from the root's head each node links the next; the last links 0. A node is linked
//                once.
// Durability     link: node, flush, fence, link to it, flush, fence. Unlink: the link before it,
//                flush, fence; then the node is free. Clear: head = 0, flush, fence. Each is atomic
//                and durable when it returns. Opening writes nothing.
// Memory         node_heap.hpp, recovered by reachability: recover() claims the nodes that it
//                visits.
// Thread safety  make() by several threads; the others under the locks of the owner.
#pragma once

#include "nearfar/persist/storable.hpp"
#include "structures/node_heap.hpp"
#include "structures/persistence_policy.hpp"

namespace nearfar::structures {

/// In the pool, on a cache line. Zeroed memory is an empty chain.
struct ChainRoot {
  std::uint64_t head;
  std::uint64_t unused[7]; ///< the head has a line of its own
  ChunkTable nodes;
};

template <class T>
struct Node {
  std::uint64_t next;
  T value;
};

template <class PersistencePolicy, persist::storable T>
class Chain {
public:
  Chain(PersistencePolicy& medium, ChainRoot& root)
      : policy_(medium), root_(root), heap_(medium, root.nodes) {}

  std::uint64_t& head() const { return root_.head; }
  Node<T>* at(std::uint64_t link) const {
    return link == 0 ? nullptr : policy_.template at<Node<T>>(link);
  }
  std::uint64_t link_of(const void* address) const { return policy_.link_of(address); }
  bool failed() const { return policy_.failed(); }

  /// A node that nothing links yet; its write-back has begun.
  Result<Node<T>*> make(const T& value, std::uint64_t next) {
    Result<std::uint64_t> link = heap_.take(sizeof(Node<T>));
    if (!link) return link.error();
    Node<T>* node = at(*link);
    node->next = next;
    node->value = value;
    policy_.stored(node, sizeof *node);
    policy_.flush(node, sizeof *node);
    return node;
  }
  void fence(Site site = Site::current()) {
    if constexpr (PersistencePolicy::durable) policy_.fence(site);
  }
  /// Links a durable node at `where`, a link of the chain.
  void link(std::uint64_t& where, const Node<T>* node) {
    policy_.store(where, policy_.link_of(node));
    policy_.flush(&where, sizeof where);
    policy_.fence();
  }
  /// Removes the node that `where` links from the chain.
  void unlink(std::uint64_t& where) {
    const std::uint64_t link = where;
    policy_.store(where, at(link)->next);
    policy_.flush(&where, sizeof where);
    policy_.fence();
    heap_.give_back(link, sizeof(Node<T>));
  }
  /// Links several runs of durable nodes with one fence.
  void link_runs(const std::vector<std::pair<std::uint64_t*, const Node<T>*>>& runs) {
    for (const auto& [where, node] : runs) {
      policy_.store(*where, policy_.link_of(node));
      policy_.flush(where, sizeof *where);
    }
    policy_.fence();
  }
  /// Frees nodes that were made and never linked.
  void drop(const std::vector<Node<T>*>& nodes) {
    for (const Node<T>* node : nodes)
      heap_.give_back(policy_.link_of(node), sizeof *node);
  }
  /// Changes the successor of a node that nothing links yet.
  void set_next(Node<T>* node, std::uint64_t next) {
    policy_.store(node->next, next);
    policy_.flush(&node->next, sizeof node->next);
  }
  void clear() {
    policy_.store(root_.head, 0);
    policy_.flush(&root_.head, sizeof root_.head);
    policy_.fence();
    heap_.reset();
  }

  /// At open, once: walks the chain and claims the memory of its nodes; calls visit(where, node)
  /// for each, which may refuse it. Fails with failed_check, which names the wrong link.
  template <class Visit>
  Status recover(Visit visit) {
    for (std::uint64_t* where = &root_.head; *where != 0;) {
      Node<T>* node = at(*where);
      if (!heap_.claim(*where, sizeof(Node<T>)) || !visit(where, node))
        return Error::make(Errc::failed_check, "the link at offset %llu of the pool is damaged: %s",
                           static_cast<unsigned long long>(policy_.link_of(where)),
                           "no node of this structure can lie where it leads")
            .try_next("restore the pool from a copy");
      where = &node->next;
    }
    return Done{};
  }

private:
  PersistencePolicy& policy_;
  ChainRoot& root_;
  NodeHeap<PersistencePolicy> heap_;
};

} // namespace nearfar::structures
