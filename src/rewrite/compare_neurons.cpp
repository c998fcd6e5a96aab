#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <normscope/core/random.hpp>

#include "planning.hpp"
#include "symmetries.hpp"

namespace normscope::rewrite {
namespace {

using forward::Mlp;
using models::Activation;
using models::Linear;
using models::Norm;

constexpr std::size_t probes = 4;
constexpr std::uint64_t elements_at_once = std::uint64_t{1} << 20U;

/// What tells the things of a model apart that may be in another order: a row for each, and the length that a
/// difference of each entry is compared with.
struct Marks {
  Eigen::MatrixXd values;
  Eigen::MatrixXd lengths;

  explicit Marks(std::size_t count)
      : values(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(probes)),
        lengths(values.rows(), values.cols()) {}
};

/// Products of rows with vectors of signs, the same for both models, and the lengths of the rows.
struct Probed {
  Eigen::MatrixXd products;
  Eigen::VectorXd lengths;

  explicit Probed(const Rows& rows)
      : products(static_cast<Eigen::Index>(rows.map.out), static_cast<Eigen::Index>(probes)),
        lengths(products.rows()) {
    Random random(20);
    Eigen::MatrixXd signs(static_cast<Eigen::Index>(rows.map.in), products.cols());
    for (Eigen::Index k = 0; k < signs.size(); ++k) signs.data()[k] = random.uniform() < 0.5 ? -1.0 : 1.0;
    const std::uint64_t step =
        std::max<std::uint64_t>(1, elements_at_once / std::max<std::uint64_t>(1, rows.map.in));
    for (std::uint64_t first = 0; first < rows.map.out; first += step) {
      const std::uint64_t count = std::min(step, rows.map.out - first);
      const RowMajorMatrix part = rows.read(first, count);
      products.middleRows(static_cast<Eigen::Index>(first), part.rows()) = part * signs;
      lengths.segment(static_cast<Eigen::Index>(first), part.rows()) = part.rowwise().norm();
    }
  }
};

/// For each thing of OLD, the one of NEW whose marks are nearest to its own; those without one keep the order
/// of what is left.
struct Match {
  Order order;
  bool complete = true;  ///< whether each has one

  Match(const Marks& before, const Marks& after, double tolerance)
      : order(static_cast<std::size_t>(before.values.rows()), none) {
    const std::size_t count = order.size();
    std::vector<bool> taken(count);
    const auto distance = [&](std::size_t i, std::size_t k) {
      double most = 0.0;
      for (Eigen::Index c = 0; c < before.values.cols(); ++c) {
        const double change = std::abs(after.values(Eigen::Index(k), c) - before.values(Eigen::Index(i), c));
        const double allowed = matching_slack * tolerance * before.lengths(Eigen::Index(i), c);
        if (change != 0.0) most = std::max(most, change / allowed);
      }
      return most;
    };
    const auto take = [&](std::size_t i, std::size_t k) {
      order[i] = k;
      taken[k] = true;
    };
    for (std::size_t i = 0; i < count; ++i) {
      if (distance(i, i) <= 1.0) take(i, i);
    }
    Order sorted = identity_order(count);
    // NaN has no order.
    const auto first_mark = [&](std::size_t k) {
      const double value = after.values(Eigen::Index(k), 0);
      return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
    };
    std::sort(sorted.begin(), sorted.end(),
              [&](std::size_t a, std::size_t b) { return first_mark(a) < first_mark(b); });
    for (std::size_t i = 0; i < count; ++i) {
      if (order[i] != none) continue;
      const double wanted = before.values(Eigen::Index(i), 0);
      const double allowed = matching_slack * tolerance * before.lengths(Eigen::Index(i), 0);
      std::size_t best = none;
      double nearest = 1.0;
      for (auto k = std::lower_bound(sorted.begin(), sorted.end(), wanted - allowed,
                                     [&](std::size_t a, double value) { return first_mark(a) < value; });
           k != sorted.end() && first_mark(*k) <= wanted + allowed; ++k) {
        if (taken[*k] || distance(i, *k) > nearest) continue;
        nearest = distance(i, *k);
        best = *k;
      }
      if (best != none) take(i, best);
    }
    std::size_t left = 0;
    for (std::size_t& place : order) {
      if (place != none) continue;
      complete = false;
      while (taken[left]) ++left;
      place = left++;
    }
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
};

class Neurons {
 public:
  Neurons(const BranchPair& pair, FoundSymmetries& found) : pair_(pair), found_(found) {}

  void match() {
    const forward::Branch& before = pair_.old_branch;
    const forward::Branch& after = pair_.new_branch;
    if ((before.experts.router == nullptr) != (after.experts.router == nullptr)) return;
    if (before.experts.router != nullptr) {
      experts(before.experts, after.experts);
    } else {
      mlp(before.mlp, after.mlp);
    }
  }

 private:
  // MLPs

  /// How an MLP changes if the maps of its neurons are multiplied.
  [[nodiscard]] bool scales(const Mlp& mlp) const {
    // What is clamped, or has 1 added, has no scale.
    if (pair_.old_side.model.decoder->clamped_gate) return false;
    return mlp.gate != nullptr || activation() == Activation::relu ||
           activation() == Activation::squared_relu;
  }
  [[nodiscard]] bool squares(const Mlp& mlp) const {
    return mlp.gate == nullptr && activation() == Activation::squared_relu;
  }
  [[nodiscard]] Activation activation() const { return *pair_.old_side.model.decoder->activation; }

  /// What tells neurons apart, whatever their scale may be.
  [[nodiscard]] Marks marks(const Planned& side, const Mlp& mlp, const Norm* norm, const Norm& reader) const {
    const Probed in(reader_rows(side, *mlp.in, norm));
    const WrittenRows written(side, *mlp.out, reader);
    const Probed out(written.rows);
    Marks result(static_cast<std::size_t>(in.lengths.size()));
    const auto product = [&](Eigen::Index column, Eigen::Index of_in, Eigen::Index of_out) {
      const Eigen::ArrayXd factor = in.products.col(of_in).array();
      const Eigen::ArrayXd length = in.lengths.array();
      result.values.col(column) =
          (squares(mlp) ? factor.square().eval() : factor) * out.products.col(of_out).array();
      result.lengths.col(column) = (squares(mlp) ? length.square().eval() : length) * out.lengths.array();
    };
    const auto copy = [&](Eigen::Index column, const Probed& from, Eigen::Index probe) {
      result.values.col(column) = from.products.col(probe);
      result.lengths.col(column) = from.lengths;
    };
    if (mlp.gate != nullptr && !scales(mlp)) {
      const Probed gate(reader_rows(side, *mlp.gate, norm));
      copy(0, gate, 0);
      copy(1, in, 0);
      copy(2, in, 1);
      copy(3, out, 0);
    } else if (mlp.gate != nullptr) {
      const Probed gate(reader_rows(side, *mlp.gate, norm));
      copy(0, gate, 0);
      copy(1, gate, 1);
      product(2, 0, 1);
      product(3, 2, 3);
    } else if (scales(mlp)) {
      product(0, 0, 1);
      product(1, 2, 3);
      product(2, 1, 2);
      product(3, 3, 0);
    } else {
      copy(0, in, 0);
      copy(1, in, 1);
      copy(2, out, 0);
      copy(3, out, 1);
    }
    return result;
  }

  /// The factors by which rows of NEW are those of OLD.
  [[nodiscard]] std::vector<double> factors(const Mlp& before, const Mlp& after, const Order& order) const {
    const Rows old_rows = reader_rows(pair_.old_side, *before.in, pair_.old_norm);
    const Rows new_rows = reader_rows(pair_.new_side, *after.in, pair_.new_norm);
    const auto count = static_cast<std::size_t>(before.in->out);
    // Rows of NEW are read in their own order, and multiplied with those of OLD.
    std::vector<double> result(count, 1.0);
    Linear ordered = *after.in;
    ordered.out_indices.clear();
    for (const std::size_t output : order) ordered.out_indices.push_back(after.in->stored_output(output));
    const Rows in_order{pair_.new_side, ordered, new_rows.norm, new_rows.turn, new_rows.centered};
    const std::uint64_t step = std::max<std::uint64_t>(1, elements_at_once / before.in->in);
    for (std::uint64_t first = 0; first < count; first += step) {
      const std::uint64_t rows = std::min<std::uint64_t>(step, count - first);
      const RowMajorMatrix a = old_rows.read(first, rows);
      const RowMajorMatrix b = in_order.read(first, rows);
      for (Eigen::Index k = 0; k < a.rows(); ++k) {
        const double factor = a.row(k).dot(b.row(k)) / b.row(k).squaredNorm();
        const bool may_be = before.gate != nullptr ? factor != 0.0 : factor > 0.0;
        if (std::isfinite(factor) && may_be && std::abs(factor - 1.0) > pair_.tolerance)
          result[first + static_cast<std::size_t>(k)] = factor;
      }
    }
    return result;
  }

  /// `moved` if the MLP of NEW is another one than that in the place of OLD's.
  void mlp(const Mlp& before, const Mlp& after, bool moved = false) {
    if ((before.gate == nullptr) != (after.gate == nullptr) || before.in->in != after.in->in ||
        before.in->out != after.in->out || before.out->in != before.in->out ||
        after.out->in != before.in->out || before.out->out != after.out->out || !is_whole(*before.out) ||
        !is_whole(*after.out)) {
      return;
    }
    const Order order = Match(marks(pair_.old_side, before, pair_.old_norm, pair_.old_reader),
                              marks(pair_.new_side, after, pair_.new_norm, pair_.new_reader), pair_.tolerance)
                            .order;
    Blocks of_in;
    Blocks of_out;
    if (scales(before)) {
      of_in.matrices = factors(before, after, order);
      if (std::all_of(of_in.matrices.begin(), of_in.matrices.end(), [](double x) { return x == 1.0; }))
        of_in.matrices.clear();
      for (const double factor : of_in.matrices)
        of_out.matrices.push_back(1.0 / (squares(before) ? factor * factor : factor));
    }
    if (!moved && is_identity(order) && of_in.matrices.empty()) return;
    if (!is_identity(order)) {
      found_.note("permuted_neurons",
                  after.in->weight.selector() + ": its neurons are those of OLD in another order");
    }
    if (!of_in.matrices.empty()) {
      found_.note("scaled_neurons",
                  fmt::format("{}: its neurons are multiples of those of OLD, which {} makes up for",
                              after.in->weight.selector(), after.out->weight.selector()));
    }
    if (before.gate != nullptr) found_.add_reader(*before.gate, *after.gate, order, {});
    found_.add_reader(*before.in, *after.in, order, std::move(of_in));
    found_.add_writer(*before.out, *after.out, order, std::move(of_out));
  }

  [[nodiscard]] static Marks marks_of(const Rows& rows) {
    const Probed probed(rows);
    Marks result(static_cast<std::size_t>(rows.map.out));
    result.values = probed.products;
    result.lengths.colwise() = probed.lengths;
    return result;
  }

  void experts(const forward::Experts& before, const forward::Experts& after) {
    if (before.mlps.size() != after.mlps.size() || before.shared.has_value() != after.shared.has_value() ||
        before.router->in != after.router->in || before.router->out != after.router->out) {
      return;
    }
    const Marks old_marks = marks_of(reader_rows(pair_.old_side, *before.router, pair_.old_norm));
    const Match match(old_marks, marks_of(reader_rows(pair_.new_side, *after.router, pair_.new_norm)),
                      pair_.tolerance);
    // The order decides between experts with equal outputs of the router.
    const bool ordered = !match.complete || has_equal(old_marks);
    const Order order = ordered ? identity_order(before.mlps.size()) : match.order;
    for (std::size_t e = 0; e < order.size(); ++e) mlp(before.mlps[e], after.mlps[order[e]], order[e] != e);
    if (before.shared) mlp(*before.shared, *after.shared);
    if (is_identity(order)) return;
    found_.note("permuted_experts",
                after.router->weight.selector() + ": its experts are those of OLD in another order");
    found_.add_reader(*before.router, *after.router, order, {});
    if (before.correction != nullptr && after.correction != nullptr) {
      found_.add_reader(*before.correction, *after.correction, order, {});
    }
  }

  [[nodiscard]] bool has_equal(const Marks& marks) const {
    for (Eigen::Index a = 0; a < marks.values.rows(); ++a) {
      for (Eigen::Index b = 0; b < a; ++b) {
        if (((marks.values.row(a) - marks.values.row(b)).array().abs() <=
             matching_slack * pair_.tolerance * marks.lengths.row(a).array())
                .all()) {
          return true;
        }
      }
    }
    return false;
  }

  const BranchPair& pair_;
  FoundSymmetries& found_;
};

}  // namespace

void match_neurons(const BranchPair& branch, FoundSymmetries& found) { Neurons(branch, found).match(); }

}  // namespace normscope::rewrite
