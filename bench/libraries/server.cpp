// The explorer's server against cpp-httplib: one page, alone and while 16 clients have begun a request that
// they do not finish.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include <httplib.h>

#include <normscope/core/error.hpp>

#include "pairs.hpp"
#include "server.hpp"

namespace normscope::bench {
namespace {

constexpr std::size_t page_bytes = 100000;

int connect_to(std::uint16_t port) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int status = ::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (client < 0 || status != 0) throw Error(ErrorCode::Io, "bench: cannot connect to a server");
  return client;
}

void send_text(int client, const std::string& text) {
  const auto sent = ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(text.size())) throw Error(ErrorCode::Io, "bench: cannot send a request");
}

/// Number of bytes of the answer's body.
double fetch(std::uint16_t port) {
  const int client = connect_to(port);
  send_text(client, "GET /page HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                        "\r\nConnection: close\r\n\r\n");
  std::string answer;
  char buffer[65536];
  for (ssize_t count = 0; (count = ::recv(client, buffer, sizeof buffer, 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(client);
  return static_cast<double>(answer.size() - (answer.find("\r\n\r\n") + 4));
}

/// Clients that never finish their request.
class SlowClients {
 public:
  SlowClients(std::uint16_t port, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      clients_.push_back(connect_to(port));
      send_text(clients_.back(), "GET /page HTTP/1.1\r\n");
    }
    if (count > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  SlowClients(const SlowClients&) = delete;
  SlowClients& operator=(const SlowClients&) = delete;
  ~SlowClients() {
    for (const int client : clients_) ::close(client);
  }

 private:
  std::vector<int> clients_;
};

Contender contender(const std::string& name, std::uint16_t port, std::size_t slow) {
  const auto bytes = std::make_shared<std::vector<double>>(1);
  return {name,
          [=] {
            const SlowClients clients(port, slow);
            bytes->front() = fetch(port);
          },
          [=] { return *bytes; }};
}

}  // namespace

void server_rows(bool quick, const Show& show) {
  const std::string page(page_bytes, 'x');
  explorer::Server own({{"/page", "text/plain", "\"1\"", page}}, "default-src 'none'", 0);
  std::atomic<bool> go_on = true;
  std::thread own_thread([&] { own.serve([&] { return go_on.load(); }); });

  httplib::Server theirs;
  theirs.Get("/page", [&](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(page, "text/plain");
  });
  const int port = theirs.bind_to_any_port("127.0.0.1");
  std::thread their_thread([&] { theirs.listen_after_bind(); });

  for (const std::size_t slow : quick ? std::vector<std::size_t>{0} : std::vector<std::size_t>{0, 16}) {
    show(compare("page", {.text = slow == 0 ? "alone" : "16 slow", .dtype = "HTTP"},
                 contender("normscope", own.port(), slow),
                 {contender("cpp-httplib", static_cast<std::uint16_t>(port), slow)}, slow == 0 ? 11 : 1,
                 0.0));
  }
  go_on = false;
  theirs.stop();
  own_thread.join();
  their_thread.join();
}

}  // namespace normscope::bench
