/* Product of two square matrices of doubles, row by column: argv[1] rows. */
#include <stdlib.h>

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 20;
  size_t bytes = (size_t)(n * n) * sizeof(double);
  double *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
  for (long i = 0; i < n * n; ++i) {
    a[i] = (double)(i % 7);
    b[i] = (double)(i % 5);
  }
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) {
      double sum = 0;
      for (long k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  return c[0] < 0;
}
