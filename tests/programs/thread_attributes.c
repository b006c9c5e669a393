// Threads whose first allocation is by libc, in pthread_getattr_np(), which holds a lock meanwhile.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static void* look(void* unused) {
  (void)unused;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return NULL;
  pthread_attr_destroy(&attributes);
  return &look;
}

int main(void) {
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    void* done = NULL;
    if (pthread_create(&thread, NULL, look, NULL) != 0) return 1;
    pthread_join(thread, &done);
    if (done == NULL) return 1;
  }
  puts("ok");
  return 0;
}
