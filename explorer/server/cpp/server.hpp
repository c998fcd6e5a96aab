#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "request.hpp"
#include "site.hpp"

namespace normscope::explorer {

/// Serves a table of files in memory on this machine's loopback address, on one thread. It does not access
/// the file system; the size and the time of every request and answer are bounded. If more clients connect
/// than it holds connections, those that have been without progress the longest are dropped.
class Server {
 public:
  /// Listens on `port` of 127.0.0.1; 0 chooses a free one.
  ///
  /// Errors    Io, naming the port
  Server(std::vector<SiteFile> files, std::string policy, std::uint16_t port);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Answers requests until `go_on`, which is called several times a second, returns false or throws.
  void serve(const std::function<bool()>& go_on);

 private:
  struct Connection;

  /// Accepts the clients that wait; returns false where the system has no descriptors for them.
  bool accept();
  /// Closes the connection that has been without progress the longest, to make room for another.
  void drop_slowest();
  /// Reads or writes what the connection is ready for; returns false when it is to be closed.
  bool step(Connection& connection) const;
  void answer(Connection& connection, int status, const Request& request) const;

  std::vector<SiteFile> files_;  ///< sorted by path
  std::string policy_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::vector<Connection> connections_;
};

}  // namespace normscope::explorer
