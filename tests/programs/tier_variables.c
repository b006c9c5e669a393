/* Variables in the far tier, next to others that must stay where they are. Prints what the kernel's map
 * says of each, and whether contents survived. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nearfar/hmalloc_var.h>

int before = 11;
HM_TIER_VAR(far) int filled = 7;
HM_TIER_VAR(far) static char table[10000] = "kept";
int after = 13;

/* The line of the map that holds an address, from its permissions on. */
static void show(const char* name, const void* address) {
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) {
    unsigned long low = 0, high = 0;
    char flags[8] = "";
    if (sscanf(line, "%lx-%lx %7s", &low, &high, flags) == 3 && (unsigned long)address >= low &&
        (unsigned long)address < high)
      printf("%s %s %s\n", name, flags[3] == 's' ? "shared" : "private",
             strstr(line, "(deleted)") ? "unnamed-file" : strchr(line, '/') ? "program" : "memory");
  }
  fclose(maps);
}

int main(void) {
  show("filled", &filled);
  show("table", table + 9999);
  show("before", &before);
  show("after", &after);
  printf("values %d %s %d %d\n", filled, table, before, after);
  struct hm_pages pages;
  if (hm_residency(table, sizeof table, &pages) == 0) printf("absent %zu\n", pages.absent);
  filled = 8;
  pid_t child = fork();
  if (child == 0) {
    filled = 99;
    _exit(filled == 99 && strcmp(table, "kept") == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d, then %d\n", status, filled);
  return 0;
}
