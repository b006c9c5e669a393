// Persistent programming in which usual mistakes do not compile.
//
// A pool is a libpmemobj file with objects of the program's types. Four steps:
//
//  1. Types. Every member is a field; links are ptr, typed by their pool.
//
//       struct list_pool;                                   // names the pool's type
//       struct node {
//         field<std::int64_t> key;
//         field<ptr<node, list_pool>> next;
//       };
//       struct list { field<ptr<node, list_pool>> first; };
//       struct list_pool {
//         using root = list;
//         static constexpr char name[] = "list";
//         static constexpr std::uint64_t layouts[] = {0};   // replace 0 by the number of the error
//       };
//
//  2. A pool in a tier: shm: (emulated by DRAM), fsdax:, or file: (durable by msync).
//
//       auto opened = pool<list_pool>::open_or_create("file:/data/list.pool");
//       if (!opened) { ... opened.error().what, opened.error().next ... }
//
//  3. Changes, in transactions. A transaction is atomic and durable, also if the body returns an
//     error or throws, if memory runs out, or if power fails.
//
//       nearfar::Status done = opened->transact([&](auto& tx) {
//         auto made = tx.template make<node>(5, tx.root().first.get());  // new: no log needed
//         tx.publish(tx.root().first, std::move(made));                  // allocated and linked
//       });
//
//  4. Reads, which wait for transactions under the same guard.
//
//       opened->read([](const auto& r) { use(r.root().first->key); });
//
// Durability     a transaction is durable when transact() returns without an error. On the redo
//                path its record is stored, followed by one fence; then its changes are applied in
//                place and written back later (native/persist/redo_log.hpp). On the undo path
//                libpmemobj snapshots before each change and flushes at commit.
// New roots      zero: null links, numbers 0.
// Errors         returned by value; the library does not throw; exceptions of a body propagate.
// Thread safety  transactions and reads from any thread. Independent data can have a guard of its
//                own: transact(guard, body).
// Limits         one open pool of a type in a process; fields of at most 4088 bytes, aligned to at
//                most 8; structures of at most 16 members, without C arrays (use std::array); a
//                transaction takes at most half the log; commits of the redo path are serialized.
// More           docs/how-to/persist.md; examples/sorted_list.
#pragma once

#include "nearfar/persist/pool.hpp"
