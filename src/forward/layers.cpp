#include "layers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/kernels.hpp>

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
  for (std::size_t i = 0; i < parts.maps.size(); ++i) {
    apply(checkpoint, *parts.maps[i], normed, threads, parts.of(i), {}, disturbance);
  }
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

/// Rotates queries or keys; `heads` are those of the parts.
void turn(const std::vector<const models::Head*>& heads, bool are_queries, Parts& parts) {
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (!heads[i]->rotary) continue;
    const models::Rotary& rotary = *heads[i]->rotary;
    for (std::size_t t = 0; t < parts.rows; ++t) {
      const std::span<double> part = parts.of(i).row(t);
      models::rotate(rotary, t, part);
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

/// `weights` gets the attention weights of the last queries, as many as it has rows.
void attend(const models::Head& head, const std::optional<double>& sink, MatrixView<const double> queries,
            MatrixView<const double> keys, MatrixView<const double> values, bool sees_all,
            MatrixView<double> output, MatrixView<double> weights) {
  const std::size_t rows = queries.rows();
  std::vector<double> scores(rows);
  for (std::size_t t = 0; t < rows; ++t) {
    const std::size_t window = head.window.value_or(rows);
    const std::size_t first = !sees_all && t + 1 > window ? t + 1 - window : 0;
    const std::size_t count = sees_all ? rows : t + 1 - first;
    const MatrixView<double> row(scores.data(), 1, count);
    multiply(
        MatrixView<const double>(queries.row(t).data(), 1, queries.width()),
        Factor<double>(MatrixView<const double>(keys.row(first).data(), count, keys.width(), keys.stride()))
            .transposed(),
        row);
    for (std::size_t i = 0; i < count; ++i) {
      double& score = scores[i];
      score *= head.scale;
      if (head.soft_cap > 0.0) score = head.soft_cap * std::tanh(score / head.soft_cap);
      if (head.alibi) score += head.alibi->bias(first + i);
    }
    softmax(row.row(0), sink);
    if (const std::size_t unseen = rows - weights.rows(); t >= unseen) {
      std::copy_n(scores.begin(), count,
                  weights.row(t - unseen).begin() + static_cast<std::ptrdiff_t>(first));
    }
    multiply(row, MatrixView<const double>(values.row(first).data(), count, values.width(), values.stride()),
             MatrixView<double>(output.row(t).data(), 1, output.width()));
  }
}

/// Weights that are in memory together.
constexpr std::size_t most_weights = std::size_t{1} << 24;

/// The signs of one place of a disturbed pass; FNV-1a of its name.
Random signs_of(const Disturbance& disturbance, std::string_view place, std::uint64_t index) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ disturbance.seed;
  for (const char c : place) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return Random((hash ^ index) * 0x100000001b3U);
}

double sign(Random& random) { return (random.bits() >> 63U) != 0 ? 1.0 : -1.0; }

/// Disturbs rows of a map from output `first` on. The lengths of the rows; empty without a disturbance.
std::vector<double> disturbed_weights(const Disturbance& disturbance, const models::Linear& map,
                                      std::uint64_t first, std::size_t width, std::vector<double>& weight) {
  std::vector<double> lengths;
  if (disturbance.seed == 0 || width == 0) return lengths;
  const std::string place = map.weight.selector();
  const double change = change_of(disturbance, place);
  for (std::size_t i = 0; i < weight.size() / width; ++i) {
    const std::span<double> row(weight.data() + i * width, width);
    lengths.push_back(std::sqrt(sum_of_squares(row)));
    if (change == 0.0) continue;
    Random random = signs_of(disturbance, place, first + i);
    const double size = change * lengths.back() / std::sqrt(static_cast<double>(width));
    for (double& value : row) value += size * sign(random);
  }
  return lengths;
}

/// Moves each product by the bound of its rounding: γ |W_i| |x|, by Cauchy and Schwarz.
void disturb_products(const Disturbance& disturbance, const models::Linear& map, MatrixView<const double> x,
                      const std::vector<double>& lengths, MatrixView<double> y) {
  const double unit = rounding(static_cast<std::ptrdiff_t>(x.width()));
  Random random = signs_of(disturbance, map.role + map.weight.selector(), lengths.size());
  for (std::size_t r = 0; r < y.rows(); ++r) {
    const double length = std::sqrt(sum_of_squares(x.row(r)));
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      y.row(r)[i] += unit * lengths[i] * length * sign(random);
    }
  }
}

}  // namespace

double change_of(const Disturbance& disturbance, std::string_view name) {
  if (disturbance.seed == 0) return 0.0;
  auto at = disturbance.changes.find(name);
  if (at == disturbance.changes.end()) at = disturbance.changes.find(std::string_view());
  return at == disturbance.changes.end() ? 0.0 : at->second;
}

void disturb(const Disturbance& disturbance, std::string_view place, std::ptrdiff_t terms, double relative,
             MatrixView<double> rows) {
  if (disturbance.seed == 0) return;
  Random random = signs_of(disturbance, place, rows.width());
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    double most = 0.0;
    for (const double value : rows.row(r)) most = std::max(most, std::abs(value));
    for (double& value : rows.row(r)) {
      value += (rounding(terms) * most + relative * std::abs(value)) * sign(random);
    }
  }
}

std::vector<double> attended(const files::Checkpoint& checkpoint, const models::Model& model,
                             std::span<const std::size_t> heads, MatrixView<const double> normed,
                             const AttentionObserver& observer, unsigned threads,
                             const Disturbance& disturbance, const MatrixView<const double>* of_values) {
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
  Parts queries = projected(checkpoint, std::move(query_maps), normed, threads, disturbance);
  Parts keys = projected(checkpoint, std::move(key_maps), normed, threads, disturbance);
  Parts values = projected(checkpoint, std::move(value_maps), of_values != nullptr ? *of_values : normed,
                           threads, disturbance);
  pass_own_norms(checkpoint, model, disturbance, queries);
  pass_own_norms(checkpoint, model, disturbance, keys);
  clamp(all, queries);
  clamp(sharing, keys);
  clamp(sharing, values);
  turn(all, true, queries);
  turn(sharing, false, keys);
  Parts result{
      .rows = normed.rows(), .dim = values.dim, .maps = std::vector<const models::Linear*>(all.size())};
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
  parallel_for(all.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      attend(*all[i], sinks[i], queries.of(i), keys.of(key_of[i]), values.of(key_of[i]), sees_all,
             result.of(i), weights_of(i));
    }
  });
  disturb(disturbance, "attention of " + all.front()->norm, static_cast<std::ptrdiff_t>(normed.rows()), 0.0,
          result.all());
  for (std::size_t i = 0; i < all.size() && observer.see; ++i) observer.see(heads[i], weights_of(i));
  return std::move(result.values);
}

void apply(const files::Checkpoint& checkpoint, const models::Linear& map, MatrixView<const double> x,
           unsigned threads, MatrixView<double> y, const Progress& progress, const Disturbance& disturbance) {
  if (x.width() != map.in) {
    throw Error(ErrorCode::Unsupported, fmt::format("not modelled: \"{}\" reads {} features, expected {}",
                                                    map.weight.selector(), map.in, x.width()));
  }
  std::vector<double> bias = models::read_bias(checkpoint, map);
  if (!bias.empty()) {
    const double change = map.bias ? change_of(disturbance, map.bias->selector()) : 0.0;
    disturb(disturbance, "bias of " + map.weight.selector(), 0, change, {bias.data(), 1, bias.size()});
  }
  const auto outputs = static_cast<std::size_t>(map.out);
  const std::size_t block = std::max<std::size_t>(1, most_weights / std::max<std::size_t>(1, x.width()));
  for (std::size_t first = 0; first < outputs; first += block) {
    progress("weights", first, outputs);
    const std::size_t count = std::min(block, outputs - first);
    std::vector<double> lengths(disturbance.seed == 0 ? 0 : count);
    parallel_for(count, 64, threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> weight = models::read_weight(checkpoint, map, first + begin, end - begin);
      const std::vector<double> of_rows =
          disturbed_weights(disturbance, map, first + begin, x.width(), weight);
      std::copy(of_rows.begin(), of_rows.end(), lengths.begin() + static_cast<std::ptrdiff_t>(begin));
      const MatrixView<const double> part(weight.data(), end - begin, x.width());
      multiply(x, Factor<double>(part).transposed(),
               MatrixView<double>(y.data() + first + begin, x.rows(), end - begin, y.stride()));
    });
    if (!lengths.empty()) {
      disturb_products(disturbance, map, x, lengths,
                       MatrixView<double>(y.data() + first, x.rows(), count, y.stride()));
    }
  }
  for (std::size_t r = 0; r < x.rows() && !bias.empty(); ++r) {
    const std::span<double> row = y.row(r);
    for (std::size_t i = 0; i < outputs; ++i) row[i] += bias[i];
  }
}

std::vector<double> apply(const files::Checkpoint& checkpoint, const models::Linear& map,
                          MatrixView<const double> x, unsigned threads, const Disturbance& disturbance) {
  const auto outputs = static_cast<std::size_t>(map.out);
  std::vector<double> y(x.rows() * outputs);
  apply(checkpoint, map, x, threads, {y.data(), x.rows(), outputs}, {}, disturbance);
  return y;
}

std::vector<double> table_row(const files::Checkpoint& checkpoint, const models::Linear& table,
                              std::size_t index, const Disturbance& disturbance) {
  models::Linear row = table;
  row.weight.offset += index * table.out;
  row.layout = models::Layout::out_in;
  row.in = table.out;
  row.out = row.stored_out = 1;
  std::vector<double> values = models::read_weight(checkpoint, row, 0, 1);
  (void)disturbed_weights(disturbance, row, index, values.size(), values);
  return values;
}

}  // namespace normscope::forward
