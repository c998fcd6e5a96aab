#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include <normscope/core/error.hpp>

namespace normscope {

/// Callback for reporting progress and cancelling work. It is called from one thread at a time, and returns
/// false to cancel.
class Progress {
 public:
  using Callback = std::function<bool(std::string_view what, std::size_t done, std::size_t total)>;

  Progress() = default;
  explicit Progress(Callback callback) : callback_(std::move(callback)) {}

  /// Reports `done` of `total` steps of `what`.
  ///
  /// Errors    Cancelled when the callback asks to stop
  void operator()(std::string_view what, std::size_t done, std::size_t total) const {
    if (callback_ && !callback_(what, done, total)) {
      throw Error(ErrorCode::Cancelled, "cancelled");
    }
  }

 private:
  Callback callback_;
};

}  // namespace normscope
