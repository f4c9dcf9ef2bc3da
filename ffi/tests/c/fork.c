// Processes that fork from one with a meter: their exchanges of the same time have ids of their own.
#define _POSIX_C_SOURCE 200809L
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CHILDREN = 4, ID = 37 };

static void write_id(tm_meter meter, int to) {
  char id[ID];
  tm_text text;
  tm_record record = {0};
  tm_exchange exchange = new_chat(meter, 1);
  open_stream(exchange, 2);
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 3, &record));
  text.buffer = id;
  text.capacity = sizeof id;
  text.length = 0;
  CHECK_OK(tm_record_text(record, TM_TEXT_VALUE_ID, &text));
  CHECK_OK(tm_record_free(record));
  CHECK(write(to, id, sizeof id) == sizeof id);
}

int main(void) {
  char ids[CHILDREN + 1][ID];
  int ends[2], at, other, status;
  tm_meter meter = new_meter();
  CHECK(pipe(ends) == 0);
  for (at = 0; at < CHILDREN; at++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      write_id(meter, ends[1]);
      CHECK_OK(tm_meter_free(meter));
      _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  write_id(meter, ends[1]);
  for (at = 0; at <= CHILDREN; at++) {
    CHECK(read(ends[0], ids[at], ID) == ID);
    for (other = 0; other < at; other++) CHECK(strcmp(ids[at], ids[other]) != 0);
  }
  CHECK_OK(tm_meter_free(meter));
  puts("ok");
  return 0;
}
