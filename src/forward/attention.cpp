#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/norm/kernels.hpp>

#include "layers.hpp"

namespace normscope::forward {
namespace {

/// Queries, keys or values of some heads, side by side: (tokens, parts × dim).
struct Parts {
  std::size_t rows = 0;
  std::size_t dim = 0;
  std::vector<const models::Linear*> maps{};
  std::vector<double> values{};

  [[nodiscard]] std::size_t width() const { return maps.size() * dim; }
  [[nodiscard]] MatrixView<double> all() { return {values.data(), rows, width()}; }
  [[nodiscard]] MatrixView<double> of(std::size_t part) {
    return {values.data() + part * dim, rows, dim, width()};
  }
};

Parts projected(const files::Checkpoint& checkpoint, std::vector<const models::Linear*> maps,
                MatrixView<const double> normed, unsigned threads, const Disturbance& disturbance) {
  Parts parts{.rows = normed.rows(), .dim = static_cast<std::size_t>(maps.front()->out)};
  parts.maps = std::move(maps);
  parts.values.resize(parts.rows * parts.width());
  apply(checkpoint, parts.maps, normed, threads, parts.all(), {}, disturbance);
  return parts;
}

void pass_own_norms(const files::Checkpoint& checkpoint, const models::Model& model,
                    const Disturbance& disturbance, Parts& parts) {
  for (std::size_t i = 0; i < parts.maps.size(); ++i) {
    const models::Norm* const own = models::own_norm(model, *parts.maps[i]);
    if (own == nullptr) continue;
    const NormSpec spec = models::read_norm(checkpoint, *own);
    const bool is_of_head = spec.width == parts.dim;
    if (!is_of_head && spec.width != parts.width()) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("not modelled: {}, of {} features", own->name, spec.width));
    }
    const MatrixView<double> rows = is_of_head ? parts.of(i) : parts.all();
    norm::normalize<double>(norm::view(spec), rows, rows, 1);
    disturb(disturbance, own->name + parts.maps[i]->weight.selector(),
            static_cast<std::ptrdiff_t>(rows.width()), change_of(disturbance, own->name), rows);
    if (!is_of_head) return;
  }
}

/// Clamps parts of `heads`.
void clamp(const std::vector<const models::Head*>& heads, Parts& parts) {
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const double clip = heads[i]->clip;
    for (std::size_t t = 0; t < parts.rows && clip != 0.0; ++t) {
      for (double& value : parts.of(i).row(t)) value = std::clamp(value, -clip, clip);
    }
  }
}

/// Rotates queries or keys; `heads` are those of the parts, whose rows are the last of contexts of `length`
/// tokens.
void turn(const std::vector<const models::Head*>& heads, bool are_queries, std::size_t contexts,
          std::size_t length, Parts& parts) {
  const std::size_t each = parts.rows / contexts;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (!heads[i]->rotary) continue;
    const models::Rotary& rotary = *heads[i]->rotary;
    for (std::size_t t = 0; t < parts.rows; ++t) {
      const std::span<double> part = parts.of(i).row(t);
      models::rotate(rotary, length - each + t % each, part);
      for (std::size_t j = 0; are_queries && j < rotary.dims; ++j) part[j] *= rotary.score_factor;
    }
  }
}

/// Attention weights of a query in place of its scores, of the positions up to its own. A sink, if there is
/// one, takes a share of them.
void softmax(std::span<double> scores, const std::optional<double>& sink) {
  const double most =
      std::max(*std::max_element(scores.begin(), scores.end()), sink.value_or(scores.front()));
  double sum = sink ? std::exp(*sink - most) : 0.0;
  for (double& score : scores) sum += score = std::exp(score - most);
  for (double& score : scores) score /= sum;
}

bool is_finite(MatrixView<const double> rows) {
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    // Any such number makes a sum of products with 0 a NaN.
    double sum = 0.0;
    for (const double value : rows.row(r)) sum += 0.0 * value;
    if (std::isnan(sum)) return false;
  }
  return true;
}

/// Queries whose scores are computed together.
constexpr std::size_t queries_together = 48;

/// Attention of the last queries of a context, as many as there are; `weights` gets the weights of the last
/// of them.
void attend(const models::Head& head, const std::optional<double>& sink, MatrixView<const double> queries,
            MatrixView<const double> keys, MatrixView<const double> values, bool sees_all,
            MatrixView<double> output, MatrixView<double> weights) {
  const std::size_t rows = keys.rows(), before = rows - queries.rows();
  const std::size_t window = head.window.value_or(rows);
  // The first key that a query at a position sees.
  const auto first_key = [&](std::size_t position) {
    return !sees_all && position + 1 > window ? position + 1 - window : 0;
  };
  std::vector<double> scores(std::min(queries_together, queries.rows()) * rows);
  for (std::size_t q = 0; q < queries.rows();) {
    // Blocks begin at the same positions, however many queries there are, and so do the sums over keys.
    const std::size_t start = (before + q) / queries_together * queries_together;
    const std::size_t end = std::min(queries.rows(), start + queries_together - before);
    const std::size_t first = first_key(start), seen = sees_all ? rows : before + end;
    const auto rows_of = [&](const MatrixView<const double>& of, std::size_t begin, std::size_t stop) {
      return MatrixView<const double>(of.row(begin).data(), stop - begin, of.width(), of.stride());
    };
    const MatrixView<double> block(scores.data(), end - q, seen - first);
    multiply(rows_of(queries, q, end), Factor<double>(rows_of(keys, first, seen)).transposed(), block);
    for (std::size_t i = 0; i < block.rows(); ++i) {
      const std::size_t t = before + q + i;
      const std::span<double> row = block.row(i);
      const std::size_t least = first_key(t) - first, most = (sees_all ? rows : t + 1) - first;
      for (std::size_t k = least; k < most; ++k) {
        double& score = row[k];
        score *= head.scale;
        if (head.soft_cap > 0.0) score = head.soft_cap * std::tanh(score / head.soft_cap);
        if (head.alibi) score += head.alibi->bias(first + k);
      }
      softmax(row.subspan(least, most - least), sink);
      std::fill_n(row.begin(), least, 0.0);
      std::fill(row.begin() + static_cast<std::ptrdiff_t>(most), row.end(), 0.0);
      if (const std::size_t unseen = rows - weights.rows(); t >= unseen) {
        std::copy(row.begin(), row.end(),
                  weights.row(t - unseen).begin() + static_cast<std::ptrdiff_t>(first));
      }
    }
    const MatrixView<double> sums(output.row(q).data(), block.rows(), output.width(), output.stride());
    if (is_finite(rows_of(values, first, seen))) {
      multiply(block, rows_of(values, first, seen), sums);
    } else {
      // A weight of 0 does not hide a value that is not finite from a query that does not see it.
      for (std::size_t i = 0; i < block.rows(); ++i) {
        const std::size_t t = before + q + i, least = first_key(t), most = sees_all ? rows : t + 1;
        const std::span<double> weights_of = block.row(i).subspan(least - first, most - least);
        multiply(MatrixView<const double>(weights_of.data(), 1, weights_of.size()),
                 rows_of(values, least, most), MatrixView<double>(sums.row(i).data(), 1, sums.width()));
      }
    }
    q = end;
  }
}

}  // namespace

std::vector<double> last_rows(MatrixView<const double> rows, std::size_t contexts) {
  std::vector<double> last;
  const std::size_t length = rows.rows() / contexts;
  for (std::size_t c = 0; c < contexts; ++c) {
    const std::span<const double> row = rows.row((c + 1) * length - 1);
    last.insert(last.end(), row.begin(), row.end());
  }
  return last;
}

std::vector<double> attended(const files::Checkpoint& checkpoint, const models::Model& model,
                             std::span<const std::size_t> heads, const AttentionInput& input,
                             const AttentionObserver& observer, unsigned threads,
                             const Disturbance& disturbance) {
  const MatrixView<const double> normed = input.rows;
  const std::size_t length = normed.rows() / input.contexts;
  NORMSCOPE_ASSERT(input.contexts == 1 || !observer.see);
  std::vector<const models::Head*> all;
  std::vector<const models::Head*> sharing;  // the first head of each key
  std::vector<const models::Linear*> query_maps;
  std::vector<const models::Linear*> key_maps;
  std::vector<const models::Linear*> value_maps;
  std::vector<std::size_t> key_of;
  for (const std::size_t index : heads) {
    const models::Head& head = model.heads[index];
    all.push_back(&head);
    query_maps.push_back(&*head.query);
    const auto known = std::find_if(sharing.begin(), sharing.end(), [&](const models::Head* other) {
      return other->key_value_head == head.key_value_head;
    });
    key_of.push_back(static_cast<std::size_t>(known - sharing.begin()));
    if (known != sharing.end()) continue;
    sharing.push_back(&head);
    key_maps.push_back(&*head.key);
    value_maps.push_back(&*head.value);
  }
  std::vector<double> last;
  if (input.last_only) last = last_rows(normed, input.contexts);
  const MatrixView<const double> asked =
      input.last_only ? MatrixView<const double>(last.data(), input.contexts, normed.width()) : normed;
  Parts queries = projected(checkpoint, std::move(query_maps), asked, threads, disturbance);
  Parts keys = projected(checkpoint, std::move(key_maps), normed, threads, disturbance);
  Parts values =
      projected(checkpoint, std::move(value_maps), input.of_values.value_or(normed), threads, disturbance);
  pass_own_norms(checkpoint, model, disturbance, queries);
  pass_own_norms(checkpoint, model, disturbance, keys);
  clamp(all, queries);
  clamp(sharing, keys);
  clamp(sharing, values);
  turn(all, true, input.contexts, length, queries);
  turn(sharing, false, input.contexts, length, keys);
  Parts result{
      .rows = asked.rows(), .dim = values.dim, .maps = std::vector<const models::Linear*>(all.size())};
  result.values.resize(result.rows * result.width());
  const std::size_t seen = observer.see ? normed.rows() - std::min(normed.rows(), observer.first) : 0;
  std::vector<double> weights(all.size() * seen * normed.rows());
  const auto weights_of = [&](std::size_t i) {
    return MatrixView<double>(weights.data() + i * seen * normed.rows(), seen, normed.rows());
  };
  const bool sees_all = model.decoder && model.decoder->encodes;
  std::vector<std::optional<double>> sinks;
  for (const models::Head* const head : all) {
    sinks.emplace_back();
    if (!head->sink) continue;
    double sink = models::read_number(checkpoint, *head->sink);
    disturb(disturbance, head->place(), 0, change_of(disturbance, head->sink->tensor), {&sink, 1, 1});
    sinks.back() = sink;
  }
  parallel_for(all.size() * input.contexts, 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const std::size_t i = k / input.contexts, context = k % input.contexts;
      const auto of = [&](Parts& parts, std::size_t part) {
        const MatrixView<double> rows = parts.of(part);
        const std::size_t each = rows.rows() / input.contexts;
        return MatrixView<double>(rows.row(context * each).data(), each, rows.width(), rows.stride());
      };
      attend(*all[i], sinks[i], of(queries, i), of(keys, key_of[i]), of(values, key_of[i]), sees_all,
             of(result, i), weights_of(i));
    }
  });
  disturb(disturbance, "attention of " + all.front()->norm, static_cast<std::ptrdiff_t>(normed.rows()), 0.0,
          result.all());
  for (std::size_t i = 0; i < all.size() && observer.see; ++i) observer.see(heads[i], weights_of(i));
  return std::move(result.values);
}

}  // namespace normscope::forward
