#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run.hpp"

namespace normscope::lab {

/// A completed run.
struct Done {
  Json configuration{};
  std::uint64_t seed = 0;
  std::vector<Metric> metrics{};  ///< in the order of steps, then names
  double started = 0.0;           ///< seconds since 1970; 0: unknown
  std::string origin{};           ///< machine, version and revision of the source; empty: unknown

  [[nodiscard]] bool is(std::string_view key, const Json& value) const;
  /// The last value of that name.
  ///
  /// Errors    Argument if there is none
  [[nodiscard]] double last(std::string_view name) const;
  /// The value at that step, or else at the last before it.
  ///
  /// Errors    Argument if there is none
  [[nodiscard]] double at(std::string_view name, std::uint64_t step) const;
  [[nodiscard]] bool has(std::string_view name) const;
};

/// Statistics of a number over seeds.
struct Spread {
  double mean = 0.0;
  double deviation = 0.0;  ///< standard deviation over seeds, n − 1; 0 for one seed
  double least = 0.0;
  double most = 0.0;
  std::size_t count = 0;
};

/// The completed runs of an experiment at one size.
class Results {
 public:
  explicit Results(std::vector<Done> runs) : runs_(std::move(runs)) {}

  [[nodiscard]] const std::vector<Done>& runs() const { return runs_; }
  /// The runs whose configuration has `value` for `key`, sorted by seed.
  [[nodiscard]] Results where(std::string_view key, const Json& value) const;
  /// The distinct values of `key`, in the order they were planned.
  [[nodiscard]] std::vector<Json> all(std::string_view key) const;

  /// Statistics of one number per run.
  ///
  /// Requires  at least one run
  [[nodiscard]] Spread spread(const std::function<double(const Done&)>& number) const;
  [[nodiscard]] Spread last(std::string_view name) const;
  [[nodiscard]] Spread at(std::string_view name, std::uint64_t step) const;
  /// One number per run.
  [[nodiscard]] std::vector<double> numbers(const std::function<double(const Done&)>& number) const;
  /// Number of seeds with a run.
  [[nodiscard]] std::size_t seeds() const;

  /// Comparison of two sets of runs paired by seed: how often the second number is larger, and mean and
  /// standard deviation of second − first.
  struct Paired {
    std::vector<double> differences{};  ///< one per seed
    Spread difference{};
    std::size_t larger = 0;
  };
  [[nodiscard]] static Paired paired(const Results& first, const Results& second,
                                     const std::function<double(const Done&)>& number);

 private:
  std::vector<Done> runs_;
};

}  // namespace normscope::lab
