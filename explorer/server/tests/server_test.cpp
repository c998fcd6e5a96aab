#include "server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace normscope::explorer {
namespace {

/// A server on a thread of its own, with one large file and a private one.
class Running {
 public:
  Running()
      : large_(std::size_t{32} << 20, 'x'),
        server_({site_file("/large", "text/plain", large_), private_file("/mine")}, "default-src 'none'", 0),
        thread_([this] { server_.serve([this] { return !stopped_.load() && ++turns_ > 0; }); }) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    stopped_ = true;
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const { return server_.port(); }
  [[nodiscard]] long turns() const { return turns_.load(); }

 private:
  static SiteFile private_file(const char* path) {
    SiteFile file = site_file(path, "text/plain", "secret");
    file.is_private = true;
    return file;
  }

  std::string large_;
  Server server_;
  std::atomic<bool> stopped_ = false;
  std::atomic<long> turns_ = 0;
  std::thread thread_;
};

class Client {
 public:
  Client(const Running& server, const std::string& path)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: localhost:" + std::to_string(server.port()) + "\r\n\r\n";
    EXPECT_EQ(::send(socket_, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(socket_); }

  /// What has arrived when the server closes, or after 20 seconds.
  [[nodiscard]] std::string answer() const {
    std::string text;
    std::vector<char> buffer(std::size_t{1} << 16);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (ssize_t count = 0; (count = ::recv(socket_, buffer.data(), buffer.size(), 0)) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(count));
    return text;
  }

 private:
  int socket_;
};

TEST(Server, SlowReadersDoNotKeepOthersWaiting) {
  const Running server;
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 80; ++i) slow.push_back(std::make_unique<Client>(server, "/large"));
  // None of them reads. With 64 connections at most, the server used to wait until one timed out.
  EXPECT_NE(Client(server, "/mine").answer().find("\r\n\r\nsecret"), std::string::npos);
}

TEST(Server, SendsAWholeLargeFile) {
  const Running server;
  EXPECT_GT(Client(server, "/large").answer().size(), std::size_t{32} << 20);
}

TEST(Server, WhatIsPrivateIsNotStored) {
  const Running server;
  EXPECT_NE(Client(server, "/mine").answer().find("Cache-Control: no-store\r\n"), std::string::npos);
  EXPECT_NE(Client(server, "/none").answer().find("Cache-Control: no-cache\r\n"), std::string::npos);
}

TEST(Server, DoesNotSpinWithoutDescriptors) {
  const Running server;
  static_cast<void>(Client(server, "/mine").answer());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // The next client has a descriptor, its server has none.
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(client) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const long turns = server.turns();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(server.turns() - turns, 100);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ::close(client);
  EXPECT_NE(Client(server, "/mine").answer().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace normscope::explorer
