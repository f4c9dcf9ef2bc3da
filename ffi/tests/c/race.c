// Two threads that race for one number: what ThreadSanitizer has to find.
#include <pthread.h>
#include <stdio.h>

static int shared;

static void *count(void *unused) {
  int at;
  (void)unused;
  for (at = 0; at < 1000; at++) shared++;
  return NULL;
}

int main(void) {
  pthread_t threads[2];
  int at;
  for (at = 0; at < 2; at++) pthread_create(&threads[at], NULL, count, NULL);
  for (at = 0; at < 2; at++) pthread_join(threads[at], NULL);
  printf("%d\n", shared);
  return 0;
}
