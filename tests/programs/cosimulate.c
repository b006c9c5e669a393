/* Drives a memory with requests from standard input, and prints all that it reports: the accepted
 * requests with their clocks, completions, and the work. Usage: cosimulate DEVICE [OPTION=VALUE]... */
#include <nearfar/sim.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void done(void* out, uint64_t id, uint64_t clock) {
  fprintf(out, "done %" PRIu64 " %" PRIu64 "\n", id, clock);
}

static int fail(void) {
  fprintf(stderr, "%s\n", nearfar_sim_error());
  return 1;
}

/* A time; 0 is written as NEARFAR_SIM_AT_ONCE. */
static double time_ns(const char* text) {
  const double ns = atof(text);
  return ns == 0 ? NEARFAR_SIM_AT_ONCE : ns;
}

static int set(struct nearfar_sim_options* options, char* text) {
  char* value = strchr(text, '=');
  if (value == NULL) return -1;
  *value++ = '\0';
  if (strcmp(text, "page_policy") == 0) options->page_policy = value;
  else if (strcmp(text, "timeout_ns") == 0) options->timeout_ns = time_ns(value);
  else if (strcmp(text, "scheduler") == 0) options->scheduler = value;
  else if (strcmp(text, "row_hit_cap") == 0) options->row_hit_cap = (unsigned)atoi(value);
  else if (strcmp(text, "mapping") == 0) options->mapping = value;
  else if (strcmp(text, "power_down_after_ns") == 0) options->power_down_after_ns = time_ns(value);
  else if (strcmp(text, "self_refresh_after_ns") == 0) options->self_refresh_after_ns = time_ns(value);
  else if (strcmp(text, "read_queue") == 0) options->read_queue = (unsigned)atoi(value);
  else if (strcmp(text, "write_drain") == 0)
    return sscanf(value, "%u:%u:%u", &options->write_drain_from, &options->write_drain_to,
                  &options->write_drain_idle) - 3;
  else return -1;
  return 0;
}

int main(int count, char** arguments) {
  struct nearfar_sim_options options = {0};
  for (int i = 2; i < count; ++i)
    if (set(&options, arguments[i]) != 0) return 2;
  nearfar_sim* memory = nearfar_sim_create(arguments[1], &options, done, stdout);
  if (memory == NULL) return fail();
  uint64_t address, id = 0;
  int write, last = 0, more;
  while ((more = scanf("%" SCNu64 " %d", &address, &write)) == 2) {
    for (int accepted; (accepted = nearfar_sim_enqueue(memory, address, write, id)) != 1;)
      if (accepted < 0 || nearfar_sim_tick(memory, 1) < 0) return fail();
    printf("accepted %" PRIu64 " %" PRIu64 "\n", id++, nearfar_sim_clock(memory));
    if (last != write && nearfar_sim_tick(memory, 3) < 0) return fail();
    last = write;
  }
  if (nearfar_sim_tick(memory, 100000) < 0) return fail();
  struct nearfar_sim_work work;
  if (nearfar_sim_finish(memory, &work) != 0) return fail();
  printf("work %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n",
         work.clocks, work.reads, work.writes, work.row_hits, work.activates, work.refreshes,
         work.has_energy);
  printf("energy %.17g %.17g %.17g %.17g %.17g %.17g\n", work.activate_J, work.array_write_J,
         work.read_J, work.write_J, work.refresh_J, work.background_J);
  return nearfar_sim_destroy(memory) != 0;
}
