// Clients of the admin listener that leave before their response, in a program that does not ignore SIGPIPE.
#include "check.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 100

static int connected(int port) {
  struct sockaddr_in address = {0};
  int client = socket(AF_INET, SOCK_STREAM, 0);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(client >= 0 && connect(client, (struct sockaddr *)&address, sizeof address) == 0);
  return client;
}

static void leave_at_once(int port, const char *request, int by_reset) {
  const struct linger reset = {1, 0};
  int client = connected(port);
  CHECK(send(client, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
  if (by_reset) CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
  close(client);
}

// The number of threads of this process whose mask has these signals (bit 0 is signal 1).
static int threads_that_block(uint64_t signals) {
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *task;
  int count = 0;
  CHECK(tasks != NULL);
  while ((task = readdir(tasks)) != NULL) {
    char path[300], line[200];
    unsigned long long mask = 0;
    FILE *status;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    status = task->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (status == NULL) continue;
    while (fgets(line, sizeof line, status) != NULL) sscanf(line, "SigBlk: %llx", &mask);
    fclose(status);
    count += (mask & signals) == signals;
  }
  closedir(tasks);
  return count;
}

int main(int count, char **arguments) {
  const uint64_t pipe_and_term = UINT64_C(1) << (SIGPIPE - 1) | UINT64_C(1) << (SIGTERM - 1);
  const uint64_t fault = UINT64_C(1) << (SIGSEGV - 1);
  tm_meter meter = new_meter();
  tm_exporters exporters = {0};
  tm_exporters_options all = {0};
  sigset_t own;
  char buffer[64];
  tm_text text = {NULL, 0, 0};
  int index, port, left = 2000;

  CHECK(count == 3);
  CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  all.size = sizeof all;
  all.listen = tm_text_of("127.0.0.1:0");
  all.ledger = tm_text_of(arguments[1]);
  all.otlp_variables = tm_text_of(arguments[2]);
  CHECK_OK(tm_exporters_start(meter, &all, &exporters));

  // The threads of the library block what is for the host; the calling thread is as before.
  CHECK(threads_that_block(pipe_and_term) >= 3);
  // A thread that starts blocks all for a moment.
  while (threads_that_block(fault) > 0 && left > 0) left -= usleep(10000) == 0;
  CHECK(left > 0);
  CHECK(pthread_sigmask(SIG_BLOCK, NULL, &own) == 0);
  CHECK(!sigismember(&own, SIGPIPE) && !sigismember(&own, SIGTERM));

  text.buffer = buffer;
  text.capacity = sizeof buffer;
  CHECK_OK(tm_exporters_address(exporters, &text));
  port = atoi(strrchr(buffer, ':') + 1);
  for (index = 0; index < CLIENTS; index++) {
    leave_at_once(port, "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", index % 2);
    leave_at_once(port, "GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n", index % 2);
  }
  CHECK_OK(tm_exporters_shutdown(exporters));
  CHECK_OK(tm_meter_free(meter));
  puts("ok");
  return 0;
}
