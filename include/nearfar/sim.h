/* A simulated memory that a C or C++ simulator drives, clock by clock.
 *
 * Purpose        The exact engine of `nearfar sim` as the memory of a CPU model. Results are equal
 *                to those of nearfar.SimulatedMemory in Python for the same requests.
 * Device         A file that `nearfar profile export PROFILE` writes (docs/formats/device.md).
 * Example        nearfar_sim* memory = nearfar_sim_create("ddr4-3200.device", NULL, done, core);
 *                each clock of the memory:
 *                    while (core has a read && nearfar_sim_enqueue(memory, address, 0, id) == 1)
 *                      the read is in flight;
 *                    nearfar_sim_tick(memory, 1); which calls done(core, id, clock)
 *                nearfar_sim_finish(memory, &work);
 *                nearfar_sim_destroy(memory);
 *                examples/cosimulation has the whole program.
 *
 * Units          Times are clocks of the memory since its creation; nearfar_sim_clock_ns() is the
 *                length of one. Addresses are byte addresses; a request accesses the line of 64
 *                bytes that contains its address. Energies are joules.
 *
 * Thread safety  A memory is used by one thread at a time. Several memories may be used by several
 *                threads concurrently.
 *
 * Errors         Functions that return a pointer return NULL and set errno; those that return an
 *                int return -1 and set errno. nearfar_sim_error() returns the message with the next
 *                step.
 *                - EINVAL: an invalid option, device file or argument; a memory that is NULL, was
 *                  destroyed or is finished
 *                - ENOENT, EACCES: the device file does not exist or cannot be read
 *                - EBUSY: nearfar_sim_tick(), _finish() or _destroy() in the memory's own callback
 *                - ENOMEM: out of host memory; the simulated memory can only be destroyed
 *                Use of a destroyed memory is detected: its handle (8 bytes) is not freed. Pointers
 *                that nearfar_sim_create() did not return are not detected.
 */
#ifndef NEARFAR_SIM_H
#define NEARFAR_SIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define NEARFAR_SIM_NOTHROW noexcept
#else
#define NEARFAR_SIM_NOTHROW
#endif
#define NEARFAR_SIM_API __attribute__((visibility("default")))

/** A simulated memory. */
typedef struct nearfar_sim nearfar_sim;

/** Called when the data of a read have arrived. `context`: argument of nearfar_sim_create(); `id`:
 *  argument of nearfar_sim_enqueue(); `clock`: time of arrival. It may call nearfar_sim_enqueue(),
 *  _accepts(), _clock() and _clock_ns() of its memory. C++: it must not throw. */
typedef void (*nearfar_sim_done)(void* context, uint64_t id, uint64_t clock);

/** An idle time of 0 ns in nearfar_sim_options, where 0 selects the default. */
#define NEARFAR_SIM_AT_ONCE (-1.0)

/** Settings of the memory controller. NULL or 0 selects the default: `= {0}` sets all defaults.
 *  Devices without command timings have no controller; they use read_queue only. */
struct nearfar_sim_options {
  /** When a row that no request needs is closed. "open" (default): when a request needs another row
   *  of the bank. "closed": with its last access. "timeout": after timeout_ns. */
  const char* page_policy;
  double timeout_ns;         /**< idle time of a row until "timeout" closes it (100); rounded up to
                                  whole clocks; NEARFAR_SIM_AT_ONCE: 0 */
  const char* scheduler;     /**< "fr-fcfs" (default): ready commands first; "fcfs": the oldest
                                  request only */
  unsigned row_hit_cap;      /**< accesses to an open row after which an older request for another
                                  row of the bank goes first (default: no limit) */
  unsigned write_drain_from; /**< queued writes of a channel that start a drain (32) */
  unsigned write_drain_to;   /**< queued writes that end a drain (16 if both are 0) */
  unsigned write_drain_idle; /**< queued writes that start a drain while no read waits (1) */
  /** Address fields from the highest bits to the lowest: ro row (first), ra rank, ba bank, bg bank
   *  group, co column, ch channel (default: "rorabacobgch"). */
  const char* mapping;
  double power_down_after_ns;   /**< idle time of a rank until power-down (default: never);
                                     NEARFAR_SIM_AT_ONCE: 0 */
  double self_refresh_after_ns; /**< idle time of a rank until self-refresh, likewise */
  unsigned read_queue;          /**< capacity of a channel's read queue (32) */
};

/** Work of a memory: accesses of 64 bytes, commands, and energy by cause. */
struct nearfar_sim_work {
  uint64_t clocks; /**< until the end of the simulation */
  uint64_t reads;
  uint64_t writes;
  uint64_t row_hits;
  uint64_t activates;
  uint64_t refreshes;
  int has_energy; /**< 0: the device has no energy figures, and all energies are 0 */
  double activate_J;
  double array_write_J; /**< write of the cells when a row is closed (PCM) */
  double read_J;
  double write_J;
  double refresh_J;
  double background_J; /**< 0 if the device has no figures of it */
};

/** Creates a memory at clock 0. `options` may be NULL (all defaults). `done` may be NULL; reads are
 *  then counted by nearfar_sim_tick() only. */
NEARFAR_SIM_API nearfar_sim* nearfar_sim_create(const char* device_file,
                                                const struct nearfar_sim_options* options,
                                                nearfar_sim_done done,
                                                void* context) NEARFAR_SIM_NOTHROW
    __attribute__((warn_unused_result));

/** Destroys a memory; NULL is ignored. Reads in flight are dropped without a call of `done`. */
NEARFAR_SIM_API int nearfar_sim_destroy(nearfar_sim* memory) NEARFAR_SIM_NOTHROW;

/** Returns 1 if nearfar_sim_enqueue() would accept this request now, 0 if not. `write` is 0 for a
 *  read. */
NEARFAR_SIM_API int nearfar_sim_accepts(nearfar_sim* memory, uint64_t address,
                                        int write) NEARFAR_SIM_NOTHROW;

/** Requests a line at the current clock. Returns 1 if the request is accepted, and 0, without an
 *  effect, if the queue of its channel is full. When a read completes, `done` is called with its
 *  `id`; ids need not be unique. A write is posted: it is complete when it is accepted. */
NEARFAR_SIM_API int nearfar_sim_enqueue(nearfar_sim* memory, uint64_t address, int write,
                                        uint64_t id) NEARFAR_SIM_NOTHROW
    __attribute__((warn_unused_result));

/** Advances by `clocks`, then calls `done` for each read that completed in this time, in order of
 *  time. Returns the number of these reads. N calls with 1 clock equal one call with N clocks if
 *  nothing is enqueued in between. Errors: EINVAL, without an effect, if the simulated time would
 *  exceed 53 days. */
NEARFAR_SIM_API int nearfar_sim_tick(nearfar_sim* memory, uint64_t clocks) NEARFAR_SIM_NOTHROW;

/** Returns the current clock. Errors: returns 0 and sets errno. */
NEARFAR_SIM_API uint64_t nearfar_sim_clock(nearfar_sim* memory) NEARFAR_SIM_NOTHROW;

/** Returns the length of a clock in ns; 1 for a device without command timings. Errors: returns
 *  0 and sets errno. */
NEARFAR_SIM_API double nearfar_sim_clock_ns(nearfar_sim* memory) NEARFAR_SIM_NOTHROW;

/** Ends the simulation: drains all posted writes and fills in `work`. Reads in flight are counted;
 *  `done` is not called for them. May be called again. Afterwards, nearfar_sim_enqueue(),
 *  _accepts() and _tick() are errors. */
NEARFAR_SIM_API int nearfar_sim_finish(nearfar_sim* memory,
                                       struct nearfar_sim_work* work) NEARFAR_SIM_NOTHROW;

/** Returns the message of the last failure in this thread; "" if there was none. Valid until the
 *  next failure. */
NEARFAR_SIM_API const char* nearfar_sim_error(void) NEARFAR_SIM_NOTHROW;

#ifdef __cplusplus
}
#endif
#endif
