/* The four programs of the Seoul thesis as a user would write them: quick N, merge N, lbm EDGE,
 * matmul ROWS. Each converts an input, which is read once, into the arrays that it works on, which
 * are what the thesis put near by hand: sorted array, merge buffer, cells, matrices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { directions = 19, steps = 3 };

static unsigned state = 1;
static unsigned draw(void) { return state = state * 1664525u + 1013904223u; }

static unsigned* input_of(size_t n) {
  unsigned* input = malloc(n * sizeof *input);
  for (size_t i = 0; i < n; ++i) input[i] = draw();
  return input;
}

static void quicksort(unsigned* a, long low, long high) {
  while (low < high) {
    const unsigned pivot = a[low + (high - low) / 2];
    long i = low, j = high;
    while (i <= j) {
      while (a[i] < pivot) ++i;
      while (a[j] > pivot) --j;
      if (i <= j) {
        const unsigned t = a[i];
        a[i++] = a[j];
        a[j--] = t;
      }
    }
    quicksort(a, low, j);
    low = i;
  }
}

static void mergesort(unsigned* a, unsigned* buffer, long begin, long end) {
  if (end - begin < 2) return;
  const long middle = begin + (end - begin) / 2;
  mergesort(a, buffer, begin, middle);
  mergesort(a, buffer, middle, end);
  long left = begin, right = middle;
  for (long i = begin; i < end; ++i)
    buffer[i] = right >= end || (left < middle && a[left] <= a[right]) ? a[left++] : a[right++];
  memcpy(a + begin, buffer + begin, (size_t)(end - begin) * sizeof *a);
}

static int sort(long n, int merges) {
  const unsigned* input = input_of((size_t)n);
  unsigned* a = malloc((size_t)n * sizeof *a);
  for (long i = 0; i < n; ++i) a[i] = input[i];
  if (merges)
    mergesort(a, malloc((size_t)n * sizeof *a), 0, n);
  else
    quicksort(a, 0, n - 1);
  for (long i = 1; i < n; ++i)
    if (a[i - 1] > a[i]) return 1;
  return 0;
}

static int matmul(long n) {
  const size_t cells = (size_t)(n * n);
  const unsigned* input = input_of(cells);
  double *a = malloc(cells * sizeof *a), *b = malloc(cells * sizeof *b),
         *c = malloc(cells * sizeof *c);
  for (size_t i = 0; i < cells; ++i) {
    a[i] = input[i] % 7;
    b[i] = input[i] % 5;
  }
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) {
      double sum = 0;
      for (long k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  return c[0] < 0;
}

/* Lattice Boltzmann in a periodic cube: each cell's parts relax towards their mean and move on. */
static void step(const double* from, double* to, long n) {
  static const int moves[directions][3] = {
      {0, 0, 0},  {1, 0, 0},   {-1, 0, 0},  {0, 1, 0},  {0, -1, 0}, {0, 0, 1},   {0, 0, -1},
      {1, 1, 0},  {-1, -1, 0}, {1, -1, 0},  {-1, 1, 0}, {1, 0, 1},  {-1, 0, -1}, {1, 0, -1},
      {-1, 0, 1}, {0, 1, 1},   {0, -1, -1}, {0, 1, -1}, {0, -1, 1}};
  for (long z = 0; z < n; ++z)
    for (long y = 0; y < n; ++y)
      for (long x = 0; x < n; ++x) {
        const double* cell = from + ((z * n + y) * n + x) * directions;
        double mean = 0;
        for (int q = 0; q < directions; ++q) mean += cell[q] / directions;
        for (int q = 0; q < directions; ++q) {
          const long tx = (x + moves[q][0] + n) % n, ty = (y + moves[q][1] + n) % n,
                     tz = (z + moves[q][2] + n) % n;
          to[((tz * n + ty) * n + tx) * directions + q] = cell[q] + (mean - cell[q]) / 1.25;
        }
      }
}

static int lbm(long n) {
  const size_t parts = (size_t)(n * n * n) * directions;
  const unsigned* input = input_of(parts);
  double *a = malloc(parts * sizeof *a), *b = malloc(parts * sizeof *b);
  for (size_t i = 0; i < parts; ++i) a[i] = 1 + input[i] * 1e-12;
  memset(b, 0, parts * sizeof *b);
  for (int i = 0; i < steps; ++i) step(i % 2 ? b : a, i % 2 ? a : b, n);
  double mass = 0;
  const double* last = steps % 2 ? b : a;
  for (size_t i = 0; i < parts; ++i) mass += last[i];
  return mass < (double)parts;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long n = atol(argv[2]);
  if (!strcmp(argv[1], "quick") || !strcmp(argv[1], "merge")) return sort(n, argv[1][0] == 'm');
  if (!strcmp(argv[1], "lbm")) return lbm(n);
  return strcmp(argv[1], "matmul") ? 2 : matmul(n);
}
