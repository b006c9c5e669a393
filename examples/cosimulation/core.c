/* A core with a few outstanding reads, in front of one simulated memory.
 *
 * Build   cc core.c $(nearfar config sim --cflags --libs) -o core
 * Run     nearfar profile export hbm2-2000
 *         ./core hbm2-2000.device
 *
 * The core issues one access a clock, to random lines of 64 MiB: three reads, then a write. It waits
 * while all of its reads are in flight, and while the memory does not accept the access.
 */
#include <nearfar/sim.h>

#include <stdio.h>

enum { OUTSTANDING = 10, ACCESSES = 100000, LINES = 1 << 20, LINE_BYTES = 64 };

struct core {
  nearfar_sim* memory;
  uint64_t random;
  unsigned free_slots[OUTSTANDING]; /* a slot is the id of a read */
  unsigned free_count;
  uint64_t issued_at[OUTSTANDING]; /* by slot */
  uint64_t reads;
  uint64_t waited; /* clocks of all reads together */
};

static int fail(const char* what) {
  fprintf(stderr, "core: %s: %s\n", what, nearfar_sim_error());
  return 1;
}

/* The data of a read have arrived. */
static void done(void* context, uint64_t slot, uint64_t clock) {
  struct core* core = context;
  core->free_slots[core->free_count++] = (unsigned)slot;
  core->waited += clock - core->issued_at[slot];
  ++core->reads;
}

static uint64_t random_address(struct core* core) {
  core->random = core->random * 6364136223846793005u + 1442695040888963407u;
  return (core->random >> 33) % LINES * LINE_BYTES;
}

/* Issues an access if it can be: 1 if it was accepted, 0 if not, -1 for an error. */
static int issue(struct core* core, uint64_t address, int write) {
  if (write) return nearfar_sim_enqueue(core->memory, address, 1, 0);
  if (core->free_count == 0) return 0;
  const unsigned slot = core->free_slots[core->free_count - 1];
  const int accepted = nearfar_sim_enqueue(core->memory, address, 0, slot);
  if (accepted == 1) {
    core->issued_at[slot] = nearfar_sim_clock(core->memory);
    --core->free_count;
  }
  return accepted;
}

static int run(struct core* core) {
  uint64_t address = random_address(core);
  for (unsigned accesses = 0; accesses < ACCESSES || core->free_count < OUTSTANDING;) {
    if (accesses < ACCESSES) {
      const int accepted = issue(core, address, accesses % 4 == 3);
      if (accepted < 0) return fail("an access");
      if (accepted) {
        ++accesses;
        address = random_address(core);
      }
    }
    if (nearfar_sim_tick(core->memory, 1) < 0) return fail("a clock");
  }
  return 0;
}

static int report(struct core* core) {
  struct nearfar_sim_work work;
  if (nearfar_sim_finish(core->memory, &work) != 0) return fail("the result");
  const double clock_ns = nearfar_sim_clock_ns(core->memory);
  const double accesses = (double)(work.reads + work.writes);
  const double ns = (double)work.clocks * clock_ns;
  printf("%llu reads, %llu writes in %llu clocks of %g ns\n", (unsigned long long)work.reads,
         (unsigned long long)work.writes, (unsigned long long)work.clocks, clock_ns);
  printf("read latency %.1f ns, bandwidth %.2f GB/s, row hits %.1f %%\n",
         (double)core->waited / (double)core->reads * clock_ns, accesses * LINE_BYTES / ns,
         100 * (double)work.row_hits / accesses);
  if (work.has_energy)
    printf("energy %.3g mJ\n",
           1e3 * (work.activate_J + work.array_write_J + work.read_J + work.write_J +
                  work.refresh_J + work.background_J));
  return 0;
}

int main(int count, char** arguments) {
  if (count != 2) return fprintf(stderr, "usage: core DEVICE_FILE\n"), 2;
  struct core core = {.random = 1, .free_count = OUTSTANDING};
  for (unsigned slot = 0; slot < OUTSTANDING; ++slot)
    core.free_slots[slot] = slot;
  const struct nearfar_sim_options options = {.page_policy = "open", .scheduler = "fr-fcfs"};
  core.memory = nearfar_sim_create(arguments[1], &options, done, &core);
  if (core.memory == NULL) return fail("the memory");
  const int failed = run(&core) || report(&core);
  nearfar_sim_destroy(core.memory);
  return failed;
}
