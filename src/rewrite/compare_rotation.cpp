#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>

#include "compare_steps.hpp"
#include "planning.hpp"

namespace normscope::rewrite {
namespace {

using files::Checkpoint;
using models::Linear;
using models::Model;
using models::Norm;

/// Rows that determine a rotation, for each feature of the stream: about as many, of every map some.
constexpr double most_rows = 32.0;
constexpr std::uint64_t elements_turned_at_once = std::uint64_t{1} << 20U;

std::uint64_t rows_of_a_block(std::uint64_t width) {
  return std::max<std::uint64_t>(1, elements_turned_at_once / std::max<std::uint64_t>(1, width));
}

bool is_whole(const Linear& map) {
  return map.out == map.stored_out && map.out_indices.empty() && map.not_modelled.empty();
}

/// Maps of both models whose rows are vectors of the stream, or are applied to such vectors.
struct MapPair {
  Linear before;
  Linear after;
  std::size_t norm = 0;  ///< that the map reads
  bool reads = false;
};

/// A stack of both models, if its stream may be turned.
class TurnedStack {
 public:
  TurnedStack(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
              const Model& new_model, double tolerance, TurnedBy by)
      : old_file_(old_file),
        old_(old_model),
        new_file_(new_file),
        new_(new_model),
        tolerance_(tolerance),
        by_(by) {}

  /// Null if no rotation of that stack is looked for, or tables tell that there is none.
  std::shared_ptr<const Rotation> find(const std::string& stack) {
    if (!collect(stack) || !may_be_turned()) return nullptr;
    if (by_ == TurnedBy::tables) {
      std::erase_if(pairs_, [](const MapPair& pair) { return !is_table(pair.before.role); });
    }
    return as_permutation(align());
  }

 private:
  /// Whether no symmetry of a branch changes maps of that role.
  static bool is_table(std::string_view role) {
    return role == "token embedding" || role == "position embedding" || role == "unembedding";
  }

  /// Collects the maps of the stack; false if something stands in the way.
  bool collect(const std::string& stack) {
    pairs_.clear();
    width_ = 0;
    centers_ = false;
    std::vector<Linear> known;
    for (std::size_t n = 0; n < old_.norms.size(); ++n) {
      const Norm& before = old_.norms[n];
      const Norm& after = new_.norms[n];
      if (before.stack != stack || !reads_stream(before)) continue;
      if (!why_not_turned(before).empty() || !why_not_turned(after).empty()) return false;
      if (before.width != after.width || (width_ != 0 && before.width != width_)) return false;
      if (before.writers.size() != after.writers.size() || before.readers.size() != after.readers.size()) {
        return false;
      }
      width_ = before.width;
      centers_ = centers_ || facts(before.kind).centers || facts(after.kind).centers;
      for (std::size_t w = 0; w < before.writers.size(); ++w) {
        const std::size_t count = known.size();
        add_once(known, before.writers[w]);
        if (known.size() == count) continue;
        const Linear& old_map = before.writers[w];
        const Linear& new_map = after.writers[w];
        if (!is_whole(old_map) || !is_whole(new_map) || old_map.stored_out != width_) return false;
        pairs_.push_back({transposed(old_map), transposed(new_map), n, false});
      }
      for (std::size_t r = 0; r < before.readers.size(); ++r) {
        if (before.readers[r].in != width_ || after.readers[r].in != width_) return false;
        pairs_.push_back({before.readers[r], after.readers[r], n, true});
      }
    }
    return width_ > 1 && std::all_of(pairs_.begin(), pairs_.end(), [](const MapPair& pair) {
             return pair.before.in == pair.after.in && pair.before.out == pair.after.out;
           });
  }

  /// The composite W G of a reader, or what a writer writes; without the mean, if a LayerNorm reads it.
  [[nodiscard]] std::vector<double> rows(const Checkpoint& file, const Model& model, const Linear& map,
                                         const MapPair& pair, std::uint64_t first,
                                         std::uint64_t count) const {
    const NormSpec spec = pair.reads ? read_norm(file, model.norms[pair.norm]) : NormSpec{};
    std::vector<double> result = rows_of({file, map, spec}, first, count);
    if (!centers_) return result;
    for (std::uint64_t k = 0; k < count; ++k) {
      double* const row = result.data() + k * width_;
      double sum = 0.0;
      for (std::size_t j = 0; j < width_; ++j) sum += row[j];
      for (std::size_t j = 0; j < width_; ++j) row[j] -= sum / static_cast<double>(width_);
    }
    return result;
  }

  /// Whether rows of the first map, the token embedding, are as long in both models, and not the same: a turn
  /// that keeps as many rows as the stream has features keeps everything.
  [[nodiscard]] bool may_be_turned() const {
    const MapPair& table = pairs_.front();
    const std::uint64_t count = std::min<std::uint64_t>(table.before.out, 16);
    const std::vector<double> before = rows(old_file_, old_, table.before, table, 0, count);
    const std::vector<double> after = rows(new_file_, new_, table.after, table, 0, count);
    bool is_same = table.before.out >= width_;
    for (std::uint64_t k = 0; k < count; ++k) {
      double old_length = 0.0;
      double new_length = 0.0;
      double change = 0.0;
      for (std::size_t j = 0; j < width_; ++j) {
        const double a = before[k * width_ + j];
        const double b = after[k * width_ + j];
        old_length += a * a;
        new_length += b * b;
        change += (b - a) * (b - a);
      }
      is_same = is_same && change <= tolerance_ * tolerance_ * old_length;
      if (!(std::abs(std::sqrt(new_length) - std::sqrt(old_length)) <=
            2.0 * tolerance_ * std::sqrt(old_length))) {
        return false;
      }
    }
    return !is_same;
  }

  /// The orthogonal factor of Σ X'ᵀ X over the rows of all maps, each of mean length 1, or over some of them
  /// where there are very many: of all orthogonal matrices it brings those rows nearest to each other.
  [[nodiscard]] std::vector<double> align() const {
    double total = 0.0;
    for (const MapPair& pair : pairs_) total += static_cast<double>(pair.before.out);
    const double n = static_cast<double>(width_);
    const double part = std::min(1.0, most_rows * n / total);
    std::vector<double> sums(width_ * width_);
    for (const MapPair& pair : pairs_) {
      const std::uint64_t step = rows_of_a_block(width_);
      const std::uint64_t blocks = (pair.before.out + step - 1) / step;
      const auto wanted = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(blocks)));
      for (std::uint64_t k = 0; k < wanted; ++k) {
        const std::uint64_t first = k * blocks / wanted * step;
        const std::uint64_t count = std::min(step, pair.before.out - first);
        std::vector<double> before = rows(old_file_, old_, pair.before, pair, first, count);
        const std::vector<double> after = rows(new_file_, new_, pair.after, pair, first, count);
        double squares = 0.0;
        for (const double value : before) squares += value * value;
        if (!(squares > 0.0) || !std::isfinite(squares)) continue;
        const double scale = static_cast<double>(count) / squares;
        for (double& value : before) value *= scale;
        add_product(after, before, count, sums);
      }
    }
    if (centers_) {
      // Q maps (1, ..., 1) to itself, which no row contains.
      double trace = 0.0;
      for (const double value : sums) trace += value * value;
      for (double& value : sums) value += std::sqrt(trace) / n / n;
    }
    return orthogonal_factor(std::move(sums));
  }

  void add_product(const std::vector<double>& after, const std::vector<double>& before, std::uint64_t count,
                   std::vector<double>& sums) const {
    const Factor<double> left = Factor<double>(after.data(), count, width_, width_).transposed();
    const Factor<double> right(before.data(), count, width_, width_);
    parallel_for(width_, 64, 0, [&](std::size_t from, std::size_t to) {
      multiply(
          Factor<double>(left.data + from * left.row_step, to - from, count, left.row_step, left.column_step),
          right, MatrixView<double>(sums.data() + from * width_, to - from, width_), Into::add);
    });
  }

  [[nodiscard]] std::vector<double> orthogonal_factor(std::vector<double> sums) const {
    Svd svd = singular_value_decomposition(Factor<double>(sums.data(), width_, width_, width_));
    multiply(Factor<double>(svd.left.data(), width_, width_, width_),
             Factor<double>(svd.right.data(), width_, width_, width_).transposed(),
             MatrixView<double>(sums.data(), width_, width_));
    return sums;
  }

  /// A matrix whose rows are all near a unit vector, up to the sign, is made a signed permutation, which
  /// is exact.
  [[nodiscard]] std::shared_ptr<const Rotation> as_permutation(std::vector<double> q) const {
    std::vector<double> exact(q.size());
    std::vector<bool> taken(width_);
    for (std::size_t i = 0; i < width_; ++i) {
      for (std::size_t j = 0; j < width_; ++j) {
        const double value = q[i * width_ + j];
        if (!(std::abs(value) > 0.9)) continue;
        if (taken[j]) break;
        taken[j] = true;
        exact[i * width_ + j] = value < 0.0 ? -1.0 : 1.0;
      }
    }
    const bool is_permutation = std::find(taken.begin(), taken.end(), false) == taken.end();
    const bool is_finite = std::all_of(q.begin(), q.end(), [](double value) { return std::isfinite(value); });
    if (!is_finite) return nullptr;
    auto result =
        std::make_shared<const Rotation>(Rotation::nearest(std::move(is_permutation ? exact : q), width_));
    return centers_ && !result->keeps_ones() ? nullptr : result;
  }

  const Checkpoint& old_file_;
  const Model& old_;
  const Checkpoint& new_file_;
  const Model& new_;
  double tolerance_ = 0.0;
  TurnedBy by_ = TurnedBy::all;
  std::vector<MapPair> pairs_{};
  std::size_t width_ = 0;
  bool centers_ = false;
};

}  // namespace

Linear transposed(const Linear& map) {
  Linear result = map;
  result.layout = map.layout == models::Layout::out_in ? models::Layout::in_out : models::Layout::out_in;
  result.in = map.stored_out;
  result.out = result.stored_out = map.in;
  result.bias.reset();
  return result;
}

std::vector<double> rows_of(const MapOfFile& map, std::uint64_t first, std::uint64_t count) {
  std::vector<double> rows = weights_of(map, first, count);
  if (!map.norm.gain.empty()) {
    for (std::size_t at = 0; at < rows.size(); ++at) rows[at] *= map.norm.gain_at(at % map.map.in);
  }
  if (map.turn != nullptr) map.turn->apply_transposed(rows, 0);
  return rows;
}

const Rotation* turn_of(const Turns& turns, const Norm& norm) {
  const auto found = reads_stream(norm) ? turns.find(norm.stack) : turns.end();
  return found == turns.end() ? nullptr : found->second.get();
}

Turns find_turns(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
                 const Model& new_model, double tolerance, TurnedBy by) {
  Turns result;
  if (!old_model.rotates_exactly && !new_model.rotates_exactly) return result;
  TurnedStack turned(old_file, old_model, new_file, new_model, tolerance, by);
  for (const std::string& stack : stacks_of(old_model, reads_stream)) {
    if (auto rotation = turned.find(stack)) result.emplace(stack, std::move(rotation));
  }
  return result;
}

}  // namespace normscope::rewrite
