/* An independent STREAM-like loop to compare `nearfar bench stream` with: nothing but OpenMP.
 * Built by benchmarks/references.py with gcc -O3 -march=native -fopenmp.
 * Usage: stream ELEMENTS ITERATIONS -> best bytes/s of copy scale add triad, one line. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { copy, scale, add, triad, kernels };

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const size_t n = strtoul(argv[1], NULL, 10);
  const int iterations = atoi(argv[2]);
  const double s = 0.41421356237309503;
  double* restrict a = aligned_alloc(4096, n * sizeof *a);
  double* restrict b = aligned_alloc(4096, n * sizeof *b);
  double* restrict c = aligned_alloc(4096, n * sizeof *c);
  if (!a || !b || !c) return 3;
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) {
    a[i] = 1.0;
    b[i] = 2.0;
    c[i] = 0.0;
  }
  double best[kernels] = {1e30, 1e30, 1e30, 1e30};
  for (int k = 0; k < iterations; k++) {
    double times[kernels + 1];
    times[copy] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) c[i] = a[i];
    times[scale] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) b[i] = s * c[i];
    times[add] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) c[i] = a[i] + b[i];
    times[triad] = omp_get_wtime();
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
    times[kernels] = omp_get_wtime();
    for (int j = 0; j < kernels && k > 0; j++)
      if (times[j + 1] - times[j] < best[j]) best[j] = times[j + 1] - times[j];
  }
  const double bytes[kernels] = {16, 16, 24, 24};
  for (int j = 0; j < kernels; j++) printf("%.6g ", bytes[j] * (double)n / best[j]);
  printf("%g\n", a[n / 2] + b[n / 3] + c[n / 4]); /* the arrays are used */
  return 0;
}
