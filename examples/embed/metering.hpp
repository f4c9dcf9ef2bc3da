// The metering of one request in a server on cpp-httplib. A failure ends the metering, never the answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include <tokenmeter.hpp>

class Metering {
 public:
  // Begins with a whole request. `Http` is httplib::Request. `path` is its path in the API, without a prefix of the server.
  template <typename Http>
  Metering(tokenmeter::Meter &meter, const Http &http, const std::string &path) {
    guard([&] {
      tokenmeter::Request request;
      request.method = http.method;
      request.path = path;
      request.peer = http.remote_addr;
      request.at_ns = now_ns();
      request.unix_ns = since_epoch_ns(std::chrono::system_clock::now());
      for (const auto &[name, value] : http.headers) request.headers.push_back({name, value});
      exchange_ = meter.begin(request);
      if (!exchange_) return;
      exchange_->request_body(http.body);
      exchange_->request_complete(now_ns());
    });
  }

  // The head of the response.
  void head(int status, const std::string &content_type) {
    guard([&] {
      const auto number = static_cast<std::uint16_t>(status);
      if (!exchange_->response_head(number, {{"content-type", content_type}}, now_ns())) exchange_.reset();
    });
  }

  // A part of the response's body, when it is written.
  void part(std::string_view bytes) {
    guard([&] { exchange_->response_body(bytes, now_ns()); });
  }

  // Ends the exchange; further calls do nothing.
  std::optional<tokenmeter::Record> end(tm_close close) {
    std::optional<tokenmeter::Record> record;
    guard([&] {
      record = exchange_->end(close, now_ns());
      exchange_.reset();
    });
    return record;
  }

 private:
  template <typename Time>
  static std::uint64_t since_epoch_ns(Time time) {
    const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
    return static_cast<std::uint64_t>(since.count());
  }

  static std::uint64_t now_ns() { return since_epoch_ns(std::chrono::steady_clock::now()); }

  template <typename Calls>
  void guard(Calls calls) {
    if (is_over_) return;
    try {
      calls();
    } catch (const std::exception &error) {
      std::cerr << "metering: " << error.what() << std::endl;
      exchange_.reset();
    }
    is_over_ = !exchange_;
  }

  std::optional<tokenmeter::Exchange> exchange_;
  bool is_over_ = false;
};
