// Streaming triad over 3 x 64 MiB. args: MiB-each repeats
#include "common.h"
__attribute__((noinline)) static void triad(double* a, const double* b, const double* c, size_t n,
                                            double s) {
  for (size_t i = 0; i < n; i++)
    a[i] = b[i] + s * c[i];
}
int main(int argc, char** argv) {
  size_t n = arg(argc, argv, 1, 64) * (1 << 20) / 8, repeats = arg(argc, argv, 2, 60);
  double* a = (double*)malloc(n * 8);
  double* b = (double*)malloc(n * 8);
  double* c = (double*)malloc(n * 8);
  for (size_t i = 0; i < n; i++) {
    a[i] = 0;
    b[i] = i;
    c[i] = 1;
  }
  for (size_t k = 0; k < repeats; k++) {
    triad(a, b, c, n, 0.5 + k);
    double* t = b;
    b = a;
    a = t;
    for (size_t i = 0; i < 8; i++)
      b[i] *= 1e-3;
  }
  double sum = 0;
  for (size_t i = 0; i < n; i += 4096)
    sum += a[i];
  printf("%g\n", sum);
}
