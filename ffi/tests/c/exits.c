// Failing calls in the destructor of a thread's variable and in a function of atexit: each is a status, and the process
// goes on.
#include <pthread.h>

#include "check.h"

static pthread_key_t key;
static int destroyed;

static void fail(void) {
  tm_exchange forged;
  char buffer[256];
  tm_text text;
  tm_status status;
  forged.id = 12345;
  text.buffer = buffer;
  text.capacity = sizeof buffer;
  text.length = 0;
  CHECK_STATUS(tm_exchange_discard(forged), TM_STATUS_HANDLE);
  status = tm_error_message(&text);
  CHECK(status == TM_STATUS_OK || status == TM_STATUS_ABSENT);
}

static void at_exit(void) {
  fail();
  puts("ok");
}

static void destroy(void *unused) {
  (void)unused;
  fail();
  destroyed = 1;
}

static void *work(void *unused) {
  fail();
  CHECK(pthread_setspecific(key, &key) == 0);
  return unused;
}

int main(void) {
  pthread_t thread;
  fail();
  CHECK(atexit(at_exit) == 0);
  CHECK(pthread_key_create(&key, destroy) == 0);
  CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(destroyed);
  return 0;
}
