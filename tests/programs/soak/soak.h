/* What the parts of the soak share. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- random.c */

struct random {
  uint64_t state;
};
struct random random_of(uint64_t seed);
/* Other numbers in each call. */
struct random new_random(void);
uint64_t next_random(struct random* random);
/* A number below `limit`. */
uint64_t random_below(struct random* random, uint64_t limit);
/* True once in `times`. */
bool once_in(struct random* random, uint64_t times);

/* ---- blocks.c */

/* A block whose bytes follow from the seed; `at` is NULL if there is none. */
struct piece {
  unsigned char* at;
  size_t size;
  uint64_t seed;
};
/* Each returns false if memory is exhausted. A piece that cannot be resized stays as it was. */
bool take_piece(struct random* random, size_t size, struct piece* piece);
bool resize_piece(struct random* random, size_t size, struct piece* piece);
/* Ends the program if a byte has changed. */
void check_piece(const struct piece* piece);
/* Checks a piece and frees it. Does nothing if there is none. */
void return_piece(struct random* random, struct piece* piece);
/* Mostly small, at times above 512 KiB. */
size_t random_size(struct random* random);

/* ---- exchange.c */

/* Slots through which threads hand pieces to each other. While a thread forks, no piece is put into a
 * slot or taken out, so that a child finds each slot as its parent left it. */
void open_exchange(void);
/* Puts a piece, which may be none, into a slot; returns what was there. */
struct piece swap_piece(struct random* random, struct piece piece);
/* The following are for a process with one thread. */
void check_exchange(void);
void return_exchange(struct random* random, unsigned once_in_slots);
/* Pieces that no thread changes after open_exchange(). */
void check_stable(void);
void return_stable(struct random* random);
/* Set in a handler: it may have interrupted a thread that holds locks, so that its forks acquire none
 * of the exchange. */
extern _Thread_local bool in_handler;

/* ---- watchdog.c */

struct counts {
  _Atomic uint64_t checked, forks, handler_forks, threads, loads, signals, full;
};
struct actor {
  _Atomic(const char*) phase;
  _Atomic(const char*) child_phase; /* of the child that it waits for */
  _Atomic uint64_t steps;
  _Atomic int thread; /* 0: none at the moment */
  _Atomic int child;
};
enum { workers = 4, actor_count = workers + 5 };
/* Calls that change what libc knows of libraries and threads. */
struct calls {
  _Atomic uint64_t begun, ended;
};
struct shared {
  struct calls libc;
  struct counts counts;
  struct actor actors[actor_count];
};
extern struct shared* shared; /* shared with child processes */
extern _Thread_local struct actor* me;
extern bool is_child;

void open_watchdog(unsigned limit_s);
/* Names what the thread does next. Returns the phase before. */
const char* enter(const char* phase);
/* Ends the program, after a report on all threads, if one has made no step for too long. */
void watch(void);
/* Ends the program after a message. */
void fail(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- children.c */

/* A child that does what programs do after a fork. */
void fork_and_work(struct random* random);
/* A child that only async-signal-safe functions are allowed to. */
void fork_in_handler(void);
/* A program of its own, whose tiers are empty. */
int run_alone(struct random* random);

/* ---- actors.c */

extern _Atomic bool stop;    /* threads end */
extern _Atomic bool hanging; /* a fault: workers hang */
void start_actors(char** libraries, unsigned library_count);
bool actors_ended(void);
void churn(struct random* random, struct piece* held, unsigned count, unsigned steps);
