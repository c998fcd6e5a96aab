#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

#include <normscope/core/random.hpp>

#include "planning.hpp"
#include "symmetries.hpp"

namespace normscope::rewrite {
namespace {

using forward::Branch;
using models::Head;
using models::Linear;
using models::Norm;

/// The readers of a norm with one role, as one map of blocks of equal size: a matrix, or one for each head.
class Bundle {
 public:
  /// `norm`: null for readers of the stream itself, which are those of the parts of heads.
  Bundle(const Planned& side, const Norm* norm, std::string_view role, std::size_t size,
         const std::optional<Linear>& part)
      : side_(side), norm_(norm), size_(size) {
    for (const Linear& reader : norm == nullptr ? side.model.stream_readers : norm->readers) {
      if (reader.role != role || (norm == nullptr && !(part && reader.covers(*part)))) continue;
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
  const Norm* norm_;
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
  // Rounding of the weights is multiplied by as much.
  constexpr double most_rounding = 0.05;
  const Eigen::MatrixXd products = b * a.transpose();
  Eigen::MatrixXd result = gram.ldlt().solve(products).transpose();
  if (!result.allFinite() || !(result.norm() * result.inverse().norm() * tolerance <=
                               most_rounding * static_cast<double>(result.rows())))
    return {};
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
  // Without turns that are only rounding.
  const Eigen::MatrixXd scales = result.diagonal().asDiagonal();
  if (rows_agree(a.topRows(dims), scales.topLeftCorner(dims, dims) * b.topRows(dims), tolerance))
    result = scales;
  if (rest > 0 && !rows_agree(a.bottomRows(rest), b.bottomRows(rest), tolerance)) {
    const auto of_rest = fitted(a.bottomRows(rest), b.bottomRows(rest), tolerance);
    if (!of_rest) return {};
    result.bottomRightCorner(rest, rest) = *of_rest;
  }
  return result;
}

class Heads {
 public:
  Heads(const BranchPair& pair, FoundSymmetries& found) : pair_(pair), found_(found) {}

  void match() { attention(pair_.old_branch, pair_.new_branch); }

 private:
  // Attention

  /// The maps of one model's attention branch.
  struct Attention {
    Attention(const Planned& side, const Branch& branch, const Norm* norm)
        : of(side), heads(branch.heads), out(*branch.mlp.out), may(freedom_of_heads(side.model, branch)) {
      for (const std::size_t h : heads) {
        const Head& head = side.model.heads[h];
        group.push_back(static_cast<std::size_t>(head.key_value_head));
        groups = std::max(groups, group.back() + 1);
      }
      const Head& first = head_at(0);
      query.emplace(side, norm, "query", first.head_dim, first.query);
      key.emplace(side, norm, "key", first.head_dim, first.key);
      value.emplace(side, norm, "value", static_cast<std::size_t>(out.in) / heads.size(), first.value);
      is_understood = out.in % heads.size() == 0 && is_whole(out) && query->has_blocks(heads.size()) &&
                      key->has_blocks(groups) && value->has_blocks(groups);
      for (std::size_t h = 0; h < heads.size() && is_understood; ++h) {
        const Head& head = head_at(h);
        const Bundle::Agreement of_query = query->agrees(h, head.query);
        const Bundle::Agreement of_key = key->agrees(group[h], head.key);
        is_understood = of_query.has && of_key.has && of_query.in_order == of_key.in_order &&
                        value->agrees(group[h], head.value).has;
        in_order = in_order && of_query.in_order;
      }
    }

    [[nodiscard]] const Head& head_at(std::size_t h) const { return of.model.heads[heads[h]]; }
    /// Whether pairs that a rotary embedding turns are next to each other in blocks of keys.
    [[nodiscard]] bool interleaved() const { return in_order && head_at(0).rotary->interleaved; }
    const Planned& of;
    std::vector<std::size_t> heads;
    const Linear& out;
    Freedom may;
    std::vector<std::size_t> group{};
    std::size_t groups = 0;
    std::optional<Bundle> query{}, key{}, value{};
    bool is_understood = false;
    bool in_order = true;  ///< whether blocks of queries and keys are in the order of the heads' own parts
  };

  /// What each head writes for the same vector at all positions, which no symmetry of a head changes.
  [[nodiscard]] static RowMajorMatrix sketch(const Attention& attention, const Norm& reader) {
    const auto dim = static_cast<Eigen::Index>(attention.value->size());
    const WrittenRows written(attention.of, attention.out, reader);
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
    if (!before.may.permutes_heads || !after.may.permutes_heads) return identity_order(count);
    const RowMajorMatrix a = sketch(before, pair_.old_reader);
    const RowMajorMatrix b = sketch(after, pair_.new_reader);
    std::vector<std::tuple<double, std::size_t, std::size_t>> distances;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < count; ++k) {
        const double change = (a.row(Eigen::Index(i)) - b.row(Eigen::Index(k))).norm();
        const double length = a.row(Eigen::Index(i)).norm();
        const bool is_none = change <= matching_slack * pair_.tolerance * length;
        // NaN has no order.
        const double distance = std::isnan(change) ? std::numeric_limits<double>::infinity() : change;
        distances.emplace_back(is_none && i == k ? -1.0 : distance, i, k);
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
    const Attention before(pair_.old_side, old_branch, pair_.old_norm);
    const Attention after(pair_.new_side, new_branch, pair_.new_norm);
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
      if (before.may.maps_values && after.may.maps_values) {
        const RowMajorMatrix value = before.value->read(g);
        const RowMajorMatrix new_value = after.value->read(groups[g]);
        if (!rows_agree(value, new_value, pair_.tolerance))
          of_values[g] = fitted(value, new_value, pair_.tolerance);
      }
      if (!before.may.maps_keys || !after.may.maps_keys) continue;
      const RowMajorMatrix key = before.key->read(g);
      const RowMajorMatrix new_key = after.key->read(groups[g]);
      const std::optional<models::Rotary>& rotary = before.head_at(0).rotary;
      if (!rows_agree(key, new_key, pair_.tolerance)) {
        of_keys[g] = fitted_keys(key, new_key, rotary, rotary && before.interleaved(), pair_.tolerance);
      }
    }
    const auto of_heads = [&](const BlockMatrices& matrices) {
      BlockMatrices result;
      for (const std::size_t g : before.group) result.push_back(matrices[g]);
      return result;
    };
    const bool permuted = !is_identity(*heads);
    if (permuted) {
      found_.note("permuted_heads",
                  after.out.weight.selector() + ": what it reads are the heads of OLD in another order");
      for (std::size_t h = 0; h < heads->size(); ++h) {
        found_.add_head(before.heads[h], after.heads[(*heads)[h]]);
      }
      add_norm(before, before.head_at(0).query, *heads);
      add_norm(before, before.head_at(0).key, groups);
    }
    if (permuted || has_any(of_keys)) {
      add_bundle(*before.query, *after.query, *heads, of_heads(undone(of_keys)));
      add_bundle(*before.key, *after.key, groups, of_keys);
    }
    if (has_any(of_keys)) {
      found_.note("mapped_keys",
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
      found_.add_writer(before.out, after.out, inputs,
                        blocks_of(of_heads(undone(of_values)), 0, heads->size(), dim));
    }
    if (has_any(of_values)) {
      found_.note("mapped_values",
                  fmt::format("{}: its values are those of OLD, multiplied by a matrix that {} makes up for",
                              after.value->maps().front()->weight.selector(), after.out.weight.selector()));
    }
    if (before.may.moves_constants && after.may.moves_constants) fold_constants(before, after);
  }

  /// The norm of all queries, or of all keys, has their features in their order.
  void add_norm(const Attention& of, const std::optional<Linear>& part, const Order& order) {
    const Norm* const norm = own_norm(of.of.model, *part);
    if (norm == nullptr || norm->width == part->out) return;
    Order features;
    for (const std::size_t block : order) {
      for (std::size_t i = 0; i < part->out; ++i) features.push_back(block * part->out + i);
    }
    found_.add_norm(*norm, std::move(features));
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
      found_.add_reader(*map, *source, outputs, blocks_of(matrices, block, count, before.size()));
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
    std::vector<double> scales(change.size());
    bool differs = false;
    std::size_t at = 0;
    const auto spec = [](const Planned& side, const Norm* norm) {
      return norm == nullptr ? NormSpec{} : read_norm(side.file, *norm);
    };
    const NormSpec old_spec = spec(pair_.old_side, pair_.old_norm);
    const NormSpec new_spec = spec(pair_.new_side, pair_.new_norm);
    for (std::size_t k = 0; k < before.value->maps().size(); ++k) {
      const Linear& map = *before.value->maps()[k];
      const Relabelled now = found_.reader_so_far(map, *after.value->maps()[k]);
      const Constant a = constant({pair_.old_side.file, map, old_spec});
      const Constant b = constant({pair_.new_side.file, now.map, new_spec, nullptr, &now.blocks});
      for (std::uint64_t i = 0; i < map.out; ++i, ++at) {
        change[at] = a.values[i] - b.values[i];
        scales[at] = a.scales[i] + b.scales[i];
        differs = differs || !(std::abs(change[at]) <= pair_.tolerance * scales[at]);
      }
    }
    if (!differs || !std::all_of(change.begin(), change.end(), [](double x) { return std::isfinite(x); }))
      return;
    at = 0;
    for (std::size_t k = 0; k < before.value->maps().size(); ++k) {
      const Linear& map = *before.value->maps()[k];
      Relabelled& now = found_.reader(map, *after.value->maps()[k]);
      now.blocks.shift.assign(change.begin() + static_cast<std::ptrdiff_t>(at),
                              change.begin() + static_cast<std::ptrdiff_t>(at + map.out));
      at += static_cast<std::size_t>(map.out);
    }
    Relabelled& out = found_.writer(before.out, after.out);
    Linear map = transposed(out.map);
    map.out_indices = out.inputs;
    const NormSpec none;
    const std::size_t dim = before.value->size();
    out.blocks.shift.assign(static_cast<std::size_t>(map.in), 0.0);
    std::vector<double> terms(out.blocks.shift.size());
    for (std::size_t h = 0; h < before.heads.size(); ++h) {
      const std::vector<double> rows =
          rows_of({pair_.new_side.file, map, none, nullptr, &out.blocks}, h * dim, dim);
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const std::size_t value = before.group[h] * dim + k / map.in;
        out.blocks.shift[k % map.in] -= rows[k] * change[value];
        terms[k % map.in] += std::abs(rows[k]) * scales[value];
      }
    }
    for (const double term : terms) out.blocks.shift_terms += term * term;
    found_.note("moved_value_bias",
                fmt::format("{}: what its bias adds is in the bias of {}, or the reverse",
                            after.value->maps().front()->weight.selector(), after.out.weight.selector()));
  }

  const BranchPair& pair_;
  FoundSymmetries& found_;
};

}  // namespace

Freedom freedom_of_heads(const models::Model& model, const forward::Branch& attention) {
  Freedom may;
  const Head& first = model.heads[attention.heads.front()];
  for (const std::size_t index : attention.heads) {
    const Head& head = model.heads[index];
    // A slope belongs to a head's place.
    if (head.alibi != first.alibi) may.permutes_heads = false;
    if (head.sink) may.moves_constants = false;
    // A clamp sees each feature: matrices do not commute with it, and constants are clamped too.
    if (head.clip != 0.0) may.maps_values = may.maps_keys = may.moves_constants = false;
    for (const auto part : {&Head::query, &Head::key}) {
      const Norm* const norm = own_norm(model, *(head.*part));
      if (norm != nullptr) may.maps_keys = false;
      // Each head may have a norm of its own, with a gain in a tensor of its own.
      if (norm != own_norm(model, *(first.*part))) may.permutes_heads = false;
    }
  }
  return may;
}

void match_heads(const BranchPair& branch, FoundSymmetries& found) { Heads(branch, found).match(); }

}  // namespace normscope::rewrite
