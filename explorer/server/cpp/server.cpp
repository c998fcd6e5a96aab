#include "server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::explorer {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t most_connections = 64;
constexpr auto request_timeout = 10s;
constexpr auto send_timeout = 30s;     // between two pieces of an answer
constexpr auto answer_timeout = 300s;  // of a whole answer
constexpr auto close_timeout = 2s;
/// Bytes that one connection is sent before the others have their turn.
constexpr std::size_t largest_turn = std::size_t{1} << 20;
constexpr int poll_ms = 200;

[[noreturn]] void fail(std::uint16_t port, const char* what, const char* remedy = "") {
  throw Error(ErrorCode::Io,
              fmt::format("explore: {} 127.0.0.1:{}: {}{}", what, port, std::strerror(errno), remedy));
}

}  // namespace

/// One request and its answer; every connection carries one.
struct Server::Connection {
  enum class State { asking, answered, closing };

  int socket;
  Clock::time_point deadline;
  State state = State::asking;
  std::string sent{};  ///< received from the client
  std::string head{};  ///< of the answer
  std::string_view body{};
  std::size_t done = 0;                               ///< bytes of head and body that are sent
  Clock::time_point progress = Clock::now();          ///< when bytes last arrived or left
  Clock::time_point last = Clock::time_point::max();  ///< when the answer is given up
};

Server::Server(std::vector<SiteFile> files, std::string policy, std::uint16_t port)
    : files_(std::move(files)), policy_(std::move(policy)) {
  std::sort(files_.begin(), files_.end(),
            [](const SiteFile& a, const SiteFile& b) { return a.path < b.path; });
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0) fail(port, "cannot open a socket for");
  const int yes = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int error = errno;
    ::close(listener_);
    errno = error;
    fail(port, "cannot listen on", "; choose another port with --port");
  }
  port_ = ntohs(address.sin_port);
}

Server::~Server() {
  for (const Connection& connection : connections_) ::close(connection.socket);
  ::close(listener_);
}

void Server::serve(const std::function<bool()>& go_on) {
  std::vector<pollfd> polled;
  bool accepts = true;
  while (go_on()) {
    polled.clear();
    polled.push_back({listener_, static_cast<short>(accepts ? POLLIN : 0), 0});
    for (const Connection& connection : connections_) {
      const bool answering = connection.state == Connection::State::answered;
      polled.push_back({connection.socket, static_cast<short>(answering ? POLLOUT : POLLIN), 0});
    }
    if (::poll(polled.data(), polled.size(), poll_ms) < 0 && errno != EINTR)
      fail(port_, "cannot wait for connections on");
    const Clock::time_point now = Clock::now();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      bool open = polled[i + 1].revents == 0 || step(connection);
      if (open && now > connection.deadline) {
        open = connection.state == Connection::State::asking;
        if (open) answer(connection, 408, {});
      }
      if (!open) {
        ::close(connection.socket);
      } else if (kept++ != i) {
        connections_[kept - 1] = std::move(connection);
      }
    }
    connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(kept), connections_.end());
    // Where there are no descriptors left, the client keeps waiting, so the listener is left out once.
    accepts = polled[0].revents == 0 || accept();
  }
}

bool Server::accept() {
  for (std::size_t accepted = 0; accepted < most_connections; ++accepted) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (exhausted) drop_slowest();
      return !exhausted;
    }
    if (connections_.size() == most_connections) drop_slowest();
    connections_.push_back({socket, Clock::now() + request_timeout});
  }
  return true;
}

void Server::drop_slowest() {
  const auto slowest =
      std::min_element(connections_.begin(), connections_.end(),
                       [](const Connection& a, const Connection& b) { return a.progress < b.progress; });
  if (slowest == connections_.end()) return;
  ::close(slowest->socket);
  connections_.erase(slowest);
}

bool Server::step(Connection& connection) const {
  char buffer[4096];
  if (connection.state != Connection::State::answered) {
    const ssize_t count = ::recv(connection.socket, buffer, sizeof buffer, 0);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    if (connection.state == Connection::State::closing) return true;
    connection.progress = Clock::now();
    connection.sent.append(buffer, static_cast<std::size_t>(count));
    const Parsed parsed = parse_request(connection.sent, port_);
    if (parsed.status != 0) answer(connection, parsed.status, parsed.request);
    return true;
  }
  const std::size_t whole = connection.head.size() + connection.body.size();
  const std::size_t turn_end = std::min(whole, connection.done + largest_turn);
  while (connection.done < turn_end) {
    const bool in_head = connection.done < connection.head.size();
    const std::string_view rest = in_head ? std::string_view(connection.head).substr(connection.done)
                                          : connection.body.substr(connection.done - connection.head.size());
    const ssize_t count = ::send(connection.socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.done += static_cast<std::size_t>(count);
    connection.progress = Clock::now();
    connection.deadline = std::min(connection.progress + send_timeout, connection.last);
  }
  if (connection.done < whole) return true;
  // If the socket were closed while the client still sends, the answer would be lost: read to the end first.
  ::shutdown(connection.socket, SHUT_WR);
  connection.state = Connection::State::closing;
  connection.deadline = Clock::now() + close_timeout;
  return true;
}

void Server::answer(Connection& connection, int status, const Request& request) const {
  const SiteFile* file = nullptr;
  if (status == 200) {
    const std::string_view path = request.path == "/" ? "/index.html" : request.path;
    const auto found = std::lower_bound(files_.begin(), files_.end(), path,
                                        [](const SiteFile& a, std::string_view b) { return a.path < b; });
    if (found == files_.end() || found->path != path) {
      status = 404;
    } else {
      file = &*found;
      if (request.if_none_match == file->etag) status = 304;
    }
  }
  static constexpr std::string_view refusal = "Normscope's explorer serves its own pages only.\n";
  connection.body = file != nullptr ? file->body : refusal;
  connection.head = fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Connection: close\r\n"
      "Content-Security-Policy: {}; frame-ancestors 'none'\r\n"
      "Cross-Origin-Opener-Policy: same-origin\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Referrer-Policy: no-referrer\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Cache-Control: {}\r\n",
      status, reason(status), policy_, file != nullptr && file->is_private ? "no-store" : "no-cache");
  if (file != nullptr) connection.head += fmt::format("ETag: {}\r\n", file->etag);
  if (status == 405) connection.head += "Allow: GET, HEAD\r\n";
  if (status != 304) {
    connection.head +=
        fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n",
                    file != nullptr ? file->type : "text/plain; charset=utf-8", connection.body.size());
  }
  connection.head += "\r\n";
  if (request.head_only || status == 304) connection.body = {};
  connection.state = Connection::State::answered;
  connection.deadline = Clock::now() + send_timeout;
  connection.last = Clock::now() + answer_timeout;
  connection.sent.clear();
}

}  // namespace normscope::explorer
