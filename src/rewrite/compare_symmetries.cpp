#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/forward/plan.hpp>

#include "compare_steps.hpp"
#include "planning.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using forward::Branch;
using forward::Mlp;
using models::Activation;
using models::Head;
using models::Linear;
using models::Model;
using models::Norm;

using Order = std::vector<std::size_t>;

constexpr std::size_t probes = 4;
constexpr std::uint64_t elements_at_once = std::uint64_t{1} << 20U;
/// Differences of this many tolerances are no difference, when numbers of two models are matched.
constexpr double slack = 16.0;

bool is_identity(const Order& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

Order identity(std::size_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

/// One of both models.
struct Planned {
  const Checkpoint& file;
  const Model& model;
  forward::Plan plan;
  const Turns* turns = nullptr;  ///< null for OLD

  [[nodiscard]] const Rotation* turn(const Norm& norm) const {
    return turns == nullptr ? nullptr : turn_of(*turns, norm);
  }
};

/// Rows of a map with what it reads; `centered` without the means over its inputs.
struct Rows {
  const Planned& side;
  const Linear& map;
  NormSpec norm{};
  const Rotation* turn = nullptr;
  bool centered = false;

  [[nodiscard]] RowMajorMatrix read(std::uint64_t first, std::uint64_t count) const {
    const std::vector<double> values = rows_of({side.file, map, norm, turn}, first, count);
    RowMajorMatrix rows =
        row_major(values, static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(map.in));
    if (centered) rows.colwise() -= rows.rowwise().mean().eval();
    return rows;
  }
};

Rows reader_rows(const Planned& side, const Linear& map, const Norm& norm) {
  const bool centered = facts(norm.kind).centers && norm.groups == 1;
  return {side, map, read_norm(side.file, norm), side.turn(norm), centered};
}

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
        const double allowed = slack * tolerance * before.lengths(Eigen::Index(i), c);
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
    Order sorted = identity(count);
    const auto first_mark = [&](std::size_t k) { return after.values(Eigen::Index(k), 0); };
    std::sort(sorted.begin(), sorted.end(),
              [&](std::size_t a, std::size_t b) { return first_mark(a) < first_mark(b); });
    for (std::size_t i = 0; i < count; ++i) {
      if (order[i] != none) continue;
      const double wanted = before.values(Eigen::Index(i), 0);
      const double allowed = slack * tolerance * before.lengths(Eigen::Index(i), 0);
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

/// The readers of a norm with one role, as one map of blocks of equal size: a matrix, or one for each head.
class Bundle {
 public:
  Bundle(const Planned& side, const Norm& norm, std::string_view role, std::size_t size)
      : side_(side), norm_(norm), size_(size) {
    for (const Linear& reader : norm.readers) {
      if (reader.role != role) continue;
      fits_ = fits_ && size != 0 && reader.out % size == 0;
      outputs_ += static_cast<std::size_t>(reader.out);
      maps_.push_back(&reader);
    }
  }

  [[nodiscard]] const std::vector<const Linear*>& maps() const { return maps_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool has_blocks(std::size_t count) const {
    return fits_ && outputs_ == count * size_ && (maps_.size() == 1 || maps_.size() == count);
  }

  /// The map that has a block, and its first output there.
  [[nodiscard]] std::pair<const Linear*, std::size_t> find(std::size_t block) const {
    std::size_t output = block * size_;
    std::size_t k = 0;
    while (output >= maps_[k]->out) output -= static_cast<std::size_t>(maps_[k++]->out);
    return {maps_[k], output};
  }

  [[nodiscard]] RowMajorMatrix read(std::size_t block) const {
    const auto [map, first] = find(block);
    return reader_rows(side_, *map, norm_).read(first, size_);
  }

  /// Whether a block has the outputs of a part of a head; and whether they are in its order.
  struct Agreement {
    bool has = false, in_order = false;
  };
  [[nodiscard]] Agreement agrees(std::size_t block, const std::optional<Linear>& part) const {
    const auto [map, first] = find(block);
    if (!part || part->out != size_ || place_of(part->weight) != place_of(map->weight)) return {};
    std::vector<std::uint64_t> mine;
    std::vector<std::uint64_t> of_part;
    for (std::size_t i = 0; i < size_; ++i) {
      mine.push_back(map->stored_output(first + i));
      of_part.push_back(part->stored_output(i));
    }
    const bool in_order = mine == of_part;
    std::sort(mine.begin(), mine.end());
    std::sort(of_part.begin(), of_part.end());
    return {mine == of_part, in_order};
  }

 private:
  const Planned& side_;
  const Norm& norm_;
  std::size_t size_ = 0, outputs_ = 0;
  bool fits_ = true;
  std::vector<const Linear*> maps_{};
};

/// An invertible matrix for each block of a bundle, or none where it is the identity.
using BlockMatrices = std::vector<std::optional<Eigen::MatrixXd>>;

bool has_any(const BlockMatrices& matrices) {
  return std::any_of(matrices.begin(), matrices.end(), [](const auto& matrix) { return matrix.has_value(); });
}

/// The matrices by which what reads the outputs of these blocks is multiplied, transposed.
BlockMatrices undone(const BlockMatrices& matrices) {
  BlockMatrices result(matrices.size());
  for (std::size_t k = 0; k < matrices.size(); ++k) {
    if (matrices[k]) result[k] = matrices[k]->inverse().transpose();
  }
  return result;
}

/// Whether each row of `b` is that of `a` to `tolerance`.
bool rows_agree(const RowMajorMatrix& a, const RowMajorMatrix& b, double tolerance) {
  return ((a - b).rowwise().norm().array() <= tolerance * a.rowwise().norm().array()).all();
}

/// The matrix M for which M b is nearest to a: a diagonal one if that is near enough. Empty if b does not
/// determine it.
std::optional<Eigen::MatrixXd> fitted(const RowMajorMatrix& a, const RowMajorMatrix& b, double tolerance) {
  const Eigen::VectorXd squares = b.rowwise().squaredNorm();
  if (squares.size() == 0 || !(squares.minCoeff() > 0.0) || !a.allFinite() || !b.allFinite()) return {};
  const Eigen::VectorXd factors = a.cwiseProduct(b).rowwise().sum().cwiseQuotient(squares);
  if (rows_agree(a, factors.asDiagonal() * b, tolerance) && factors.cwiseAbs().minCoeff() > 0.0) {
    return Eigen::MatrixXd(factors.asDiagonal());
  }
  const Eigen::MatrixXd gram = b * b.transpose();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> spectrum(gram, Eigen::EigenvaluesOnly);
  if (!(spectrum.eigenvalues()(0) > 1e-12 * spectrum.eigenvalues()(gram.rows() - 1))) return {};
  const Eigen::MatrixXd products = b * a.transpose();
  Eigen::MatrixXd result = gram.ldlt().solve(products).transpose();
  if (!result.allFinite() || !result.inverse().allFinite()) return {};
  return result;
}

/// Likewise for keys: a matrix that commutes with the rotations of the rotary embedding.
std::optional<Eigen::MatrixXd> fitted_keys(const RowMajorMatrix& a, const RowMajorMatrix& b,
                                           const std::optional<models::Rotary>& rotary, bool interleaved,
                                           double tolerance) {
  if (!rotary) return fitted(a, b, tolerance);
  const auto dims = static_cast<Eigen::Index>(rotary->dims);
  const Eigen::Index rest = a.rows() - dims;
  Eigen::MatrixXd result = Eigen::MatrixXd::Identity(a.rows(), a.rows());
  for (Eigen::Index j = 0; j < dims / 2; ++j) {
    const Eigen::Index p = interleaved ? 2 * j : j;
    const Eigen::Index q = interleaved ? 2 * j + 1 : j + dims / 2;
    const double squares = b.row(p).squaredNorm() + b.row(q).squaredNorm();
    if (!(squares > 0.0)) return {};
    const double cosine = (a.row(p).dot(b.row(p)) + a.row(q).dot(b.row(q))) / squares;
    const double sine = (a.row(q).dot(b.row(p)) - a.row(p).dot(b.row(q))) / squares;
    result(p, p) = result(q, q) = cosine;
    result(q, p) = sine;
    result(p, q) = -sine;
    if (!(cosine * cosine + sine * sine > 0.0)) return {};
  }
  if (rest > 0 && !rows_agree(a.bottomRows(rest), b.bottomRows(rest), tolerance)) {
    const auto of_rest = fitted(a.bottomRows(rest), b.bottomRows(rest), tolerance);
    if (!of_rest) return {};
    result.bottomRightCorner(rest, rest) = *of_rest;
  }
  return result;
}

class Finder {
 public:
  Finder(const Planned& before, const Planned& after, double tolerance)
      : old_(before), new_(after), tolerance_(tolerance) {}

  Relabelling find() {
    if (old_.plan.steps.size() != new_.plan.steps.size()) return {};
    for (std::size_t s = 0; s < old_.plan.steps.size(); ++s) {
      const forward::Step& before = old_.plan.steps[s];
      const forward::Step& after = new_.plan.steps[s];
      if (before.before.size() != after.before.size()) return {};
      for (std::size_t k = 0; k < before.before.size(); ++k) {
        look_at(before, before.before[k], after, after.before[k]);
      }
    }
    for (const auto& [kind, found] : found_) {
      result_.findings.push_back(
          {kind, found.sentence + (found.count > 1 ? fmt::format("; so for {} branches", found.count) : "")});
    }
    return std::move(result_);
  }

 private:
  void look_at(const forward::Step& old_step, const Branch& before, const forward::Step& new_step,
               const Branch& after) {
    if (before.heads.size() != after.heads.size() || before.norm != after.norm) return;
    old_norm_ = &old_.model.norms[before.norm];
    new_norm_ = &new_.model.norms[after.norm];
    old_reader_ = before.after != nullptr ? before.after : &old_.model.norms[old_step.norm];
    new_reader_ = after.after != nullptr ? after.after : &new_.model.norms[new_step.norm];
    if (!before.heads.empty()) {
      attention(before, after);
    } else if (before.experts.router != nullptr && after.experts.router != nullptr) {
      experts(before.experts, after.experts);
    } else if (before.experts.router == nullptr && after.experts.router == nullptr) {
      mlp(before.mlp, after.mlp);
    }
  }

  void note(const char* kind, std::string sentence) {
    Found& found = found_[kind];
    if (found.count++ == 0) found.sentence = std::move(sentence);
  }

  /// What a map writes for each of its inputs.
  struct Written {
    Linear map;
    Rows rows;
    Written(const Planned& side, const Linear& out, const Norm& reader)
        : map(transposed(out)), rows{side, map, {}, side.turn(reader), true} {}
  };

  static bool is_whole(const Linear& map) { return map.out == map.stored_out && map.out_indices.empty(); }

  void add_reader(const Linear& before, const Linear& after, const Order& order, Blocks blocks) {
    Relabelled entry{after, {}, std::move(blocks)};
    if (!is_identity(order)) {
      entry.map.out_indices.clear();
      for (const std::size_t output : order) entry.map.out_indices.push_back(after.stored_output(output));
    }
    result_.readers.insert_or_assign(&before, std::move(entry));
  }

  void add_writer(const Linear& before, const Linear& after, const Order& order, Blocks blocks) {
    Relabelled entry{after, {}, std::move(blocks)};
    if (!is_identity(order)) entry.inputs.assign(order.begin(), order.end());
    result_.writers.insert_or_assign(place_of(before.weight), std::move(entry));
  }

  // MLPs

  /// How an MLP changes if the maps of its neurons are multiplied.
  [[nodiscard]] bool scales(const Mlp& mlp) const {
    return mlp.gate != nullptr || activation() == Activation::relu ||
           activation() == Activation::squared_relu;
  }
  [[nodiscard]] bool squares(const Mlp& mlp) const {
    return mlp.gate == nullptr && activation() == Activation::squared_relu;
  }
  [[nodiscard]] Activation activation() const { return *old_.model.decoder->activation; }

  /// What tells neurons apart, whatever their scale may be.
  [[nodiscard]] Marks marks(const Planned& side, const Mlp& mlp, const Norm& norm, const Norm& reader) const {
    const Probed in(reader_rows(side, *mlp.in, norm));
    const Written written(side, *mlp.out, reader);
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
    if (mlp.gate != nullptr) {
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
    const Rows old_rows = reader_rows(old_, *before.in, *old_norm_);
    const Rows new_rows = reader_rows(new_, *after.in, *new_norm_);
    const auto count = static_cast<std::size_t>(before.in->out);
    // Rows of NEW are read in their own order, and multiplied with those of OLD.
    std::vector<double> result(count, 1.0);
    Linear ordered = *after.in;
    ordered.out_indices.clear();
    for (const std::size_t output : order) ordered.out_indices.push_back(after.in->stored_output(output));
    const Rows in_order{new_, ordered, new_rows.norm, new_rows.turn, new_rows.centered};
    const std::uint64_t step = std::max<std::uint64_t>(1, elements_at_once / before.in->in);
    for (std::uint64_t first = 0; first < count; first += step) {
      const std::uint64_t rows = std::min<std::uint64_t>(step, count - first);
      const RowMajorMatrix a = old_rows.read(first, rows);
      const RowMajorMatrix b = in_order.read(first, rows);
      for (Eigen::Index k = 0; k < a.rows(); ++k) {
        const double factor = a.row(k).dot(b.row(k)) / b.row(k).squaredNorm();
        const bool may_be = before.gate != nullptr ? factor != 0.0 : factor > 0.0;
        if (std::isfinite(factor) && may_be && std::abs(factor - 1.0) > tolerance_)
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
    const Order order = Match(marks(old_, before, *old_norm_, *old_reader_),
                              marks(new_, after, *new_norm_, *new_reader_), tolerance_)
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
      note("permuted_neurons",
           after.in->weight.selector() + ": its neurons are those of OLD in another order");
    }
    if (!of_in.matrices.empty()) {
      note("scaled_neurons",
           fmt::format("{}: its neurons are multiples of those of OLD, which {} makes up for",
                       after.in->weight.selector(), after.out->weight.selector()));
    }
    if (before.gate != nullptr) add_reader(*before.gate, *after.gate, order, {});
    add_reader(*before.in, *after.in, order, std::move(of_in));
    add_writer(*before.out, *after.out, order, std::move(of_out));
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
    const Marks old_marks = marks_of(reader_rows(old_, *before.router, *old_norm_));
    const Match match(old_marks, marks_of(reader_rows(new_, *after.router, *new_norm_)), tolerance_);
    // Of experts with equal outputs of the router, the order decides.
    const bool ordered = !match.complete || has_equal(old_marks);
    const Order order = ordered ? identity(before.mlps.size()) : match.order;
    for (std::size_t e = 0; e < order.size(); ++e) mlp(before.mlps[e], after.mlps[order[e]], order[e] != e);
    if (before.shared) mlp(*before.shared, *after.shared);
    if (is_identity(order)) return;
    note("permuted_experts",
         after.router->weight.selector() + ": its experts are those of OLD in another order");
    add_reader(*before.router, *after.router, order, {});
  }

  [[nodiscard]] bool has_equal(const Marks& marks) const {
    for (Eigen::Index a = 0; a < marks.values.rows(); ++a) {
      for (Eigen::Index b = 0; b < a; ++b) {
        if (((marks.values.row(a) - marks.values.row(b)).array().abs() <=
             slack * tolerance_ * marks.lengths.row(a).array())
                .all()) {
          return true;
        }
      }
    }
    return false;
  }

  // Attention

  /// Of one model: the maps of an attention branch.
  struct Attention {
    Attention(const Planned& side, const Branch& branch, const Norm& norm)
        : of(side), heads(branch.heads), out(*branch.mlp.out) {
      for (const std::size_t h : heads) {
        const Head& head = side.model.heads[h];
        group.push_back(static_cast<std::size_t>(head.key_value_head));
        groups = std::max(groups, group.back() + 1);
      }
      const std::size_t dim = side.model.heads[heads.front()].head_dim;
      query.emplace(side, norm, "query", dim);
      key.emplace(side, norm, "key", dim);
      value.emplace(side, norm, "value", static_cast<std::size_t>(out.in) / heads.size());
      is_understood = out.in % heads.size() == 0 && is_whole(out) && query->has_blocks(heads.size()) &&
                      key->has_blocks(groups) && value->has_blocks(groups);
      for (std::size_t h = 0; h < heads.size() && is_understood; ++h) {
        const Head& head = first_head(h);
        const Bundle::Agreement of_query = query->agrees(h, head.query);
        const Bundle::Agreement of_key = key->agrees(group[h], head.key);
        is_understood = of_query.has && of_key.has && of_query.in_order == of_key.in_order &&
                        value->agrees(group[h], head.value).has;
        in_order = in_order && of_query.in_order;
      }
    }

    [[nodiscard]] const Head& first_head(std::size_t h = 0) const { return of.model.heads[heads[h]]; }
    /// Whether pairs that a rotary embedding turns are next to each other in blocks of keys.
    [[nodiscard]] bool interleaved() const { return in_order && first_head().rotary->interleaved; }
    /// The norm of queries or of keys; null if there is none.
    [[nodiscard]] const Norm* part_norm(const std::optional<Linear>& part) const {
      return own_norm(of.model, *part);
    }
    /// Whether a norm on queries or keys tells heads apart.
    [[nodiscard]] bool tells_heads_apart() const {
      for (const Norm* norm : {part_norm(first_head().query), part_norm(first_head().key)}) {
        if (norm != nullptr && norm->width != first_head().head_dim) return true;
      }
      return false;
    }
    [[nodiscard]] bool normalizes() const {
      return part_norm(first_head().query) != nullptr || part_norm(first_head().key) != nullptr;
    }

    const Planned& of;
    std::vector<std::size_t> heads;
    const Linear& out;
    std::vector<std::size_t> group{};
    std::size_t groups = 0;
    std::optional<Bundle> query{}, key{}, value{};
    bool is_understood = false;
    bool in_order = true;  ///< whether blocks of queries and keys are in the order of the heads' own parts
  };

  /// What each head writes for the same vector at all positions, which no symmetry of a head changes.
  [[nodiscard]] static RowMajorMatrix sketch(const Attention& attention, const Norm& reader) {
    const auto dim = static_cast<Eigen::Index>(attention.value->size());
    const Written written(attention.of, attention.out, reader);
    RowMajorMatrix result(static_cast<Eigen::Index>(attention.heads.size()),
                          static_cast<Eigen::Index>(written.map.in));
    std::vector<Eigen::VectorXd> of_groups(attention.groups);
    Random random(21);
    Eigen::VectorXd probe(static_cast<Eigen::Index>(attention.value->maps().front()->in));
    for (double& x : probe) x = random.normal();
    for (std::size_t g = 0; g < attention.groups; ++g) of_groups[g] = attention.value->read(g) * probe;
    for (Eigen::Index h = 0; h < result.rows(); ++h) {
      const RowMajorMatrix rows =
          written.rows.read(static_cast<std::uint64_t>(h * dim), static_cast<std::uint64_t>(dim));
      result.row(h) = of_groups[attention.group[static_cast<std::size_t>(h)]].transpose() * rows;
    }
    return result;
  }

  /// For each head of OLD the one of NEW that writes the same; empty if these are not of the same groups.
  [[nodiscard]] std::optional<Order> order_of_heads(const Attention& before, const Attention& after) const {
    const std::size_t count = before.heads.size();
    if (before.tells_heads_apart() || after.tells_heads_apart()) return identity(count);
    const RowMajorMatrix a = sketch(before, *old_reader_);
    const RowMajorMatrix b = sketch(after, *new_reader_);
    std::vector<std::tuple<double, std::size_t, std::size_t>> distances;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < count; ++k) {
        const double change = (a.row(Eigen::Index(i)) - b.row(Eigen::Index(k))).norm();
        const double length = a.row(Eigen::Index(i)).norm();
        const bool is_none = change <= slack * tolerance_ * length;
        distances.emplace_back(is_none && i == k ? -1.0 : change, i, k);
      }
    }
    std::sort(distances.begin(), distances.end());
    Order order(count, count);
    std::vector<bool> taken(count);
    for (const auto& [distance, i, k] : distances) {
      if (order[i] != count || taken[k]) continue;
      order[i] = k;
      taken[k] = true;
    }
    Order groups(before.groups, before.groups);
    for (std::size_t h = 0; h < count; ++h) {
      std::size_t& group = groups[before.group[h]];
      if (group == before.groups) group = after.group[order[h]];
      if (group != after.group[order[h]]) return {};
    }
    return order;
  }

  void attention(const Branch& old_branch, const Branch& new_branch) {
    const Attention before(old_, old_branch, *old_norm_);
    const Attention after(new_, new_branch, *new_norm_);
    if (!before.is_understood || !after.is_understood || before.groups != after.groups ||
        before.query->size() != after.query->size() || before.out.in != after.out.in ||
        before.query->maps().size() != after.query->maps().size() ||
        before.value->maps().size() != after.value->maps().size() || before.out.out != after.out.out) {
      return;
    }
    const std::optional<Order> heads = order_of_heads(before, after);
    if (!heads) return;
    Order groups(before.groups);
    for (std::size_t h = 0; h < heads->size(); ++h) groups[before.group[h]] = after.group[(*heads)[h]];
    BlockMatrices of_keys(before.groups);
    BlockMatrices of_values(before.groups);
    for (std::size_t g = 0; g < before.groups; ++g) {
      const RowMajorMatrix value = before.value->read(g);
      const RowMajorMatrix new_value = after.value->read(groups[g]);
      if (!rows_agree(value, new_value, tolerance_)) of_values[g] = fitted(value, new_value, tolerance_);
      if (before.normalizes() || after.normalizes()) continue;
      const RowMajorMatrix key = before.key->read(g);
      const RowMajorMatrix new_key = after.key->read(groups[g]);
      const std::optional<models::Rotary>& rotary = before.first_head().rotary;
      if (!rows_agree(key, new_key, tolerance_)) {
        of_keys[g] = fitted_keys(key, new_key, rotary, rotary && before.interleaved(), tolerance_);
      }
    }
    const auto of_heads = [&](const BlockMatrices& matrices) {
      BlockMatrices result;
      for (const std::size_t g : before.group) result.push_back(matrices[g]);
      return result;
    };
    const bool permuted = !is_identity(*heads);
    if (permuted) {
      note("permuted_heads",
           after.out.weight.selector() + ": what it reads are the heads of OLD in another order");
    }
    if (permuted || has_any(of_keys)) {
      add_bundle(*before.query, *after.query, *heads, of_heads(undone(of_keys)));
      add_bundle(*before.key, *after.key, groups, of_keys);
    }
    if (has_any(of_keys)) {
      note("mapped_keys",
           fmt::format("{}: its keys are those of OLD, multiplied by a matrix that the queries "
                       "make up for",
                       after.key->maps().front()->weight.selector()));
    }
    if (permuted || has_any(of_values)) {
      add_bundle(*before.value, *after.value, groups, of_values);
      Order inputs;
      const std::size_t dim = before.value->size();
      for (const std::size_t h : *heads) {
        for (std::size_t i = 0; i < dim; ++i) inputs.push_back(h * dim + i);
      }
      add_writer(before.out, after.out, inputs,
                 blocks_of(of_heads(undone(of_values)), 0, heads->size(), dim));
    }
    if (has_any(of_values)) {
      note("mapped_values",
           fmt::format("{}: its values are those of OLD, multiplied by a matrix that {} makes up for",
                       after.value->maps().front()->weight.selector(), after.out.weight.selector()));
    }
    fold_constants(before, after);
  }

  static Blocks blocks_of(const BlockMatrices& matrices, std::size_t first, std::size_t count,
                          std::size_t size) {
    Blocks result;
    result.size = size;
    if (!has_any(matrices)) return result;
    for (std::size_t k = first; k < first + count; ++k) {
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < size; ++j) {
          result.matrices.push_back(matrices[k] ? (*matrices[k])(Eigen::Index(i), Eigen::Index(j))
                                    : i == j    ? 1.0
                                                : 0.0);
        }
      }
    }
    return result;
  }

  void add_bundle(const Bundle& before, const Bundle& after, const Order& order,
                  const BlockMatrices& matrices) {
    std::size_t block = 0;
    for (const Linear* const map : before.maps()) {
      const std::size_t count = static_cast<std::size_t>(map->out) / before.size();
      const auto [source, unused] = after.find(order[block]);
      Order outputs;
      for (std::size_t k = 0; k < count; ++k) {
        const auto [other, first] = after.find(order[block + k]);
        NORMSCOPE_ASSERT(other == source);
        for (std::size_t i = 0; i < before.size(); ++i) outputs.push_back(first + i);
      }
      add_reader(*map, *source, outputs, blocks_of(matrices, block, count, before.size()));
      block += count;
    }
  }

  /// The constant that a reader adds, with the bias of its norm.
  struct Constant {
    std::vector<double> values, scales;
  };
  static Constant constant(const MapOfFile& map) {
    Constant result;
    result.values = bias_of(map);
    result.values.resize(map.map.out);
    for (const double value : result.values) result.scales.push_back(std::abs(value));
    if (map.norm.bias.empty()) return result;
    const std::vector<double> weights = weights_of(map, 0, map.map.out);
    for (std::uint64_t k = 0; k < weights.size(); ++k) {
      const double product = weights[k] * map.norm.bias_at(k % map.map.in);
      result.values[k / map.map.in] += product;
      result.scales[k / map.map.in] += std::abs(product);
    }
    return result;
  }

  /// Attention weights sum to one, so that constants of values may be in the output's bias.
  void fold_constants(const Attention& before, const Attention& after) {
    std::vector<double> change(before.value->size() * before.groups);
    bool differs = false;
    std::size_t at = 0;
    const NormSpec old_spec = read_norm(old_.file, *old_norm_);
    const NormSpec new_spec = read_norm(new_.file, *new_norm_);
    for (std::size_t k = 0; k < before.value->maps().size(); ++k) {
      const Linear& map = *before.value->maps()[k];
      const auto entry = result_.readers.find(&map);
      const Relabelled same{*after.value->maps()[k]};
      const Relabelled& now = entry == result_.readers.end() ? same : entry->second;
      const Constant a = constant({old_.file, map, old_spec});
      const Constant b = constant({new_.file, now.map, new_spec, nullptr, &now.blocks});
      for (std::uint64_t i = 0; i < map.out; ++i, ++at) {
        change[at] = a.values[i] - b.values[i];
        differs = differs || !(std::abs(change[at]) <= tolerance_ * (a.scales[i] + b.scales[i]));
      }
    }
    if (!differs || !std::all_of(change.begin(), change.end(), [](double x) { return std::isfinite(x); }))
      return;
    at = 0;
    for (std::size_t k = 0; k < before.value->maps().size(); ++k) {
      const Linear& map = *before.value->maps()[k];
      Relabelled& now = result_.readers.try_emplace(&map, Relabelled{*after.value->maps()[k]}).first->second;
      now.blocks.shift.assign(change.begin() + static_cast<std::ptrdiff_t>(at),
                              change.begin() + static_cast<std::ptrdiff_t>(at + map.out));
      at += static_cast<std::size_t>(map.out);
    }
    Relabelled& out =
        result_.writers.try_emplace(place_of(before.out.weight), Relabelled{after.out}).first->second;
    Linear map = transposed(out.map);
    map.out_indices = out.inputs;
    const NormSpec none;
    const std::size_t dim = before.value->size();
    out.blocks.shift.assign(static_cast<std::size_t>(map.in), 0.0);
    for (std::size_t h = 0; h < before.heads.size(); ++h) {
      const std::vector<double> rows = rows_of({new_.file, map, none, nullptr, &out.blocks}, h * dim, dim);
      for (std::size_t k = 0; k < rows.size(); ++k) {
        out.blocks.shift[k % map.in] -= rows[k] * change[before.group[h] * dim + k / map.in];
      }
    }
    note("moved_value_bias",
         fmt::format("{}: what its bias adds is in the bias of {}, or the reverse",
                     after.value->maps().front()->weight.selector(), after.out.weight.selector()));
  }

  struct Found {
    std::size_t count = 0;
    std::string sentence{};
  };

  const Planned& old_;
  const Planned& new_;
  double tolerance_ = 0.0;
  const Norm* old_norm_ = nullptr;  ///< that the branch reads
  const Norm* new_norm_ = nullptr;
  const Norm* old_reader_ = nullptr;  ///< that reads what it writes
  const Norm* new_reader_ = nullptr;
  Relabelling result_{};
  std::map<std::string, Found> found_{};
};

}  // namespace

Relabelling find_relabelling(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                             const Model& new_model, const Turns& turns, double tolerance) {
  const auto plan = [](const Model& model) -> std::optional<forward::Plan> {
    try {
      return forward::plan_of(model, true);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unsupported) throw;
      return {};
    }
  };
  std::optional<forward::Plan> of_old = plan(old_model);
  std::optional<forward::Plan> of_new = plan(new_model);
  if (!of_old || !of_new || old_model.decoder->activation != new_model.decoder->activation) return {};
  const Planned before{old_file, old_model, std::move(*of_old)};
  const Planned after{new_file, new_model, std::move(*of_new), &turns};
  return Finder(before, after, tolerance).find();
}

}  // namespace normscope::rewrite
