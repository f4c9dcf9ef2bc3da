// An inference server that meters its answers. POST /v1/chat/completions streams the events of a file, as a model would
// generate them; GET /metrics has the meter's page. The lines that metering adds are marked with `tokenmeter:`.
//
//   c++ -std=c++17 server.cpp $(pkg-config --cflags --libs tokenmeter cpp-httplib) -o server
//   ./server answer.sse 8080 20
//
// The arguments: a file of server-sent events, the port (0: any), and the pause before each event in milliseconds.
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <httplib.h>
#include <tokenmeter.hpp>

#include "metering.hpp"  // tokenmeter: the calls for one request

// The events of a stream, each with the empty line that ends it.
static std::vector<std::string> events_of(const char *path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> events;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find("\n\n", at);
    end = end == std::string::npos ? text.size() : end + 2;
    events.push_back(text.substr(at, end - at));
    at = end;
  }
  return events;
}

static int serve(const char *path, int port, std::chrono::milliseconds pause) {
  const std::vector<std::string> events = events_of(path);
  tokenmeter::Meter meter;  // tokenmeter: one for the process
  httplib::Server server;

  server.Post("/v1/chat/completions", [&](const httplib::Request &request, httplib::Response &response) {
    auto metering = std::make_shared<Metering>(meter, request, request.path);  // tokenmeter: the whole request
    metering->head(200, "text/event-stream");                    // tokenmeter: the head of the response
    response.set_chunked_content_provider(
        "text/event-stream",
        [&, metering, next = std::size_t{0}](std::size_t, httplib::DataSink &sink) mutable {
          if (next == events.size()) {
            sink.done();
            return true;
          }
          std::this_thread::sleep_for(pause);
          if (!sink.is_writable()) return false;  // the client left: no more tokens for it
          const std::string &event = events[next++];
          metering->part(event);  // tokenmeter: each part, when it is written
          return sink.write(event.data(), event.size());
        },
        // tokenmeter: every way out. An answer that the server itself breaks off ends with TM_CLOSE_CUT.
        [metering](bool is_whole) {
          const auto record = metering->end(is_whole ? TM_CLOSE_CLEAN : TM_CLOSE_CLIENT_GONE);
          if (record) std::cout << record->json() << std::endl;
        });
  });

  // tokenmeter: the page
  server.Get("/metrics", [&](const httplib::Request &, httplib::Response &response) {
    response.set_content(meter.metrics(), "text/plain; version=0.0.4; charset=utf-8");
  });

  if (port == 0) {
    port = server.bind_to_any_port("127.0.0.1");
  } else if (!server.bind_to_port("127.0.0.1", port)) {
    port = -1;
  }
  if (port < 0) throw std::runtime_error("the port is not free");
  std::cout << "http://127.0.0.1:" << port << std::endl;
  return server.listen_after_bind() ? 0 : 1;
}

int main(int argc, char **argv) {
  try {
    if (argc < 3) throw std::runtime_error("usage: server FILE PORT [PAUSE_MS]");
    return serve(argv[1], std::stoi(argv[2]), std::chrono::milliseconds(argc > 3 ? std::stoi(argv[3]) : 0));
  } catch (const std::exception &error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
