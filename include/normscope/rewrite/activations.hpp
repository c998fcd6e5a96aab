#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/plan.hpp>

/// Compares old and new composites of a rewrite on rows that entered a norm when a model ran.
namespace normscope::rewrite {

/// Inputs of one norm.
struct Activations {
  std::size_t norm = 0;      ///< index in `models::Model::norms`
  std::size_t given = 0;     ///< rows that there were
  std::vector<double> rows;  ///< those tried (n × width)
};

/// Largest number of rows tried for each norm, spread evenly over those given.
inline constexpr std::size_t most_rows = 256;

struct ReaderOnRows {
  std::string reader;
  /// Largest |y' - y| of an output, in units of the certificates: of the largest value that W_i G u can take.
  double largest = 0.0;
  double relative = 0.0;  ///< largest |y' - y| / |y| of a row's outputs
};

struct NormOnRows {
  std::string norm;
  std::size_t given = 0;
  std::size_t tried = 0;
  double mean_share = 0.0;  ///< largest share of a row's squared length along (1, ..., 1)
  std::vector<ReaderOnRows> readers{};
};

/// Computes y = W (G n(x) + b) + c of `before` and of `after`, which is `before` rewritten by `plan`, in
/// float64 from the values stored in both. If the stream of a norm is centred, `after` has an RMSNorm and
/// reads x minus its mean.
///
/// Errors    as `models::read_norm` and `models::read_weight`
///
/// Cost      4 n flops for every weight of the readers
[[nodiscard]] std::vector<NormOnRows> compare_on_rows(const files::Checkpoint& before,
                                                      const files::Checkpoint& after,
                                                      const models::Model& model, const Plan& plan,
                                                      const std::vector<Activations>& activations,
                                                      unsigned threads = 0);

}  // namespace normscope::rewrite
