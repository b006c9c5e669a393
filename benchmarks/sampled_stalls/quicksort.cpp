// Own quicksort of 16 M ints (64 MiB). args: ints(thousands)
#include "common.h"
#include <utility>
__attribute__((noinline)) static void quicksort(int* a, long lo, long hi) {
  while (hi - lo > 16) {
    int p = a[(lo + hi) / 2];
    long i = lo, j = hi;
    while (i <= j) {
      while (a[i] < p)
        i++;
      while (a[j] > p)
        j--;
      if (i <= j) std::swap(a[i++], a[j--]);
    }
    if (j - lo < hi - i) {
      quicksort(a, lo, j);
      lo = i;
    } else {
      quicksort(a, i, hi);
      hi = j;
    }
  }
  for (long i = lo + 1; i <= hi; i++) {
    int v = a[i];
    long j = i - 1;
    while (j >= lo && a[j] > v) {
      a[j + 1] = a[j];
      j--;
    }
    a[j + 1] = v;
  }
}
int main(int argc, char** argv) {
  long n = (long)arg(argc, argv, 1, 16384) * 1000;
  int* a = (int*)malloc(n * sizeof(int));
  Rng r{3};
  for (long i = 0; i < n; i++)
    a[i] = (int)(r() >> 33);
  quicksort(a, 0, n - 1);
  for (long i = 1; i < n; i++)
    if (a[i - 1] > a[i]) return 1;
  printf("%d %d\n", a[0], a[n / 2]);
}
