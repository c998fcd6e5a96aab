#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "request.hpp"
#include "site.hpp"

namespace normscope::explorer {

/// Serves a table of files on this machine's loopback address and nothing else: no file system behind it, a
/// bound on the size and the time of every request, one thread.
class Server {
 public:
  /// Listens at `port` of 127.0.0.1; 0 takes any that is free.
  /// Errors    Io, naming the port
  Server(std::vector<SiteFile> files, std::string policy, std::uint16_t port);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Answers requests until `go_on`, which is asked several times a second, returns false or throws.
  void serve(const std::function<bool()>& go_on);

 private:
  struct Connection;

  void accept();
  /// Moves a connection on; false when it is over.
  bool step(Connection& connection) const;
  void answer(Connection& connection, int status, const Request& request) const;

  std::vector<SiteFile> files_;  ///< sorted by path
  std::string policy_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::vector<Connection> connections_;
};

}  // namespace normscope::explorer
