/* Quicksort of pseudo-random integers: argv[1] of them. */
#include <stdlib.h>

static void sort(unsigned *a, long low, long high) {
  while (low < high) {
    unsigned pivot = a[(low + high) / 2];
    long i = low, j = high;
    while (i <= j) {
      while (a[i] < pivot) ++i;
      while (a[j] > pivot) --j;
      if (i <= j) {
        unsigned t = a[i];
        a[i++] = a[j];
        a[j--] = t;
      }
    }
    sort(a, low, j);
    low = i;
  }
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 1000;
  unsigned *a = malloc((size_t)n * sizeof *a), x = 1;
  for (long i = 0; i < n; ++i) a[i] = x = x * 1664525u + 1013904223u;
  sort(a, 0, n - 1);
  for (long i = 1; i < n; ++i)
    if (a[i - 1] > a[i]) return 1;
  return 0;
}
