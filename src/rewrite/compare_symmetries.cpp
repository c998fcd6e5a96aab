#include "compare_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace normscope::rewrite {
namespace {

constexpr std::uint64_t compared_elements = std::uint64_t{1} << 20U;

/// b - a, where the same value that is not finite is no difference.
double difference(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)) ? 0.0 : b - a; }

/// 1 for what is not finite.
double relative(double error, double scale) {
  return std::isfinite(error) && std::isfinite(scale) ? error / scale : 1.0;
}

double ratio(double squared_error, double squared_length) {
  if (squared_error == 0.0) return 0.0;
  return relative(std::sqrt(squared_error), squared_length == 0.0 ? 1.0 : std::sqrt(squared_length));
}

std::uint64_t outputs_of_block(const models::Linear& map) {
  return std::max<std::uint64_t>(1, compared_elements / std::max<std::uint64_t>(1, map.in));
}

/// Whether the norm's outputs have no mean over all features, so that what a map does with it has no effect.
bool centers(const NormSpec& norm) { return facts(norm.kind).centers && norm.groups == 1; }

struct Sums {
  double composite = 0.0;
  double composite_sum = 0.0;
  double raw = 0.0;
  double twice = 0.0;
  double length = 0.0;
  double weight = 0.0;
  double old_bias = 0.0;
  double new_bias = 0.0;
  double magnitude = 0.0;

  /// Of the composite, without that of its mean over the inputs where that has no effect. NaN stays.
  [[nodiscard]] double composite_error(std::uint64_t inputs, bool without_mean) const {
    if (!without_mean) return composite;
    return std::max(composite - composite_sum * composite_sum / static_cast<double>(inputs), 0.0);
  }
};

}  // namespace

double relative_change(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) {
    const auto is_zero = [](double value) { return value == 0.0; };
    const bool absent = (a.empty() && std::all_of(b.begin(), b.end(), is_zero)) ||
                        (b.empty() && std::all_of(a.begin(), a.end(), is_zero));
    return absent ? 0.0 : 1.0;
  }
  double error = 0.0;
  double length = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double change = difference(a[i], b[i]);
    error += change * change;
    length += a[i] * a[i];
  }
  return ratio(error, length);
}

ReaderComparison compare_readers(const MapOfFile& before, const MapOfFile& after) {
  ReaderComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  const std::vector<double> new_bias = read_bias(after.file, after.map);
  const std::uint64_t in = before.map.in;
  const bool subtract_means = centers(before.norm) && centers(after.norm);
  for (std::uint64_t first = 0; first < before.map.out; first += outputs_of_block(before.map)) {
    const std::uint64_t count = std::min(outputs_of_block(before.map), before.map.out - first);
    const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
    const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
    // The weights of a turned map say nothing without its norm's gain, which is no diagonal of them.
    const std::vector<double> turned =
        after.turn == nullptr ? std::vector<double>() : rows_of(after, first, count);
    for (std::uint64_t i = 0; i < count; ++i) {
      Sums sums;
      for (std::uint64_t j = 0; j < in; ++j) {
        const double a = old_weight[i * in + j];
        const double b = new_weight[i * in + j];
        const double a_gain = a * before.norm.gain_at(j);
        const double b_gain = turned.empty() ? b * after.norm.gain_at(j) : turned[i * in + j];
        const double composite = difference(a_gain, b_gain);
        const double raw = turned.empty() ? difference(a, b) : composite;
        const double twice = turned.empty() ? difference(a_gain, b) : composite;
        sums.composite += composite * composite;
        sums.composite_sum += composite;
        sums.raw += raw * raw;
        sums.twice += twice * twice;
        sums.length += a_gain * a_gain;
        sums.weight += a * a;
        sums.old_bias += a * before.norm.bias_at(j);
        sums.new_bias += b * after.norm.bias_at(j);
        sums.magnitude += std::abs(a * before.norm.bias_at(j)) + std::abs(b * after.norm.bias_at(j));
      }
      result.composite =
          std::max(result.composite, ratio(sums.composite_error(in, subtract_means), sums.length));
      result.raw = std::max(result.raw, ratio(sums.raw, sums.weight));
      result.folded_twice = std::max(result.folded_twice, ratio(sums.twice, sums.length));
      const double old_constant = old_bias.empty() ? 0.0 : old_bias[first + i];
      const double new_constant = new_bias.empty() ? 0.0 : new_bias[first + i];
      const double error = std::abs(difference(old_constant + sums.old_bias, new_constant + sums.new_bias));
      const double scale = std::abs(old_constant) + std::abs(new_constant) + sums.magnitude;
      if (error != 0.0) result.bias = std::max(result.bias, relative(error, scale));
    }
  }
  return result;
}

ReaderComparison compare_unembeddings(const MapOfFile& before, const MapOfFile& after) {
  ReaderComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::uint64_t in = before.map.in;
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  const std::vector<double> new_bias = read_bias(after.file, after.map);
  const bool subtract_means = centers(before.norm) && centers(after.norm);
  // The composite and the constant of each output, for both maps.
  const auto each_output = [&](const auto& use) {
    for (std::uint64_t first = 0; first < before.map.out; first += outputs_of_block(before.map)) {
      const std::uint64_t count = std::min(outputs_of_block(before.map), before.map.out - first);
      const std::vector<double> a = rows_of(before, first, count);
      const std::vector<double> b = rows_of(after, first, count);
      const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
      const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
      for (std::uint64_t i = 0; i < count; ++i) {
        double constant =
            (new_bias.empty() ? 0.0 : new_bias[first + i]) - (old_bias.empty() ? 0.0 : old_bias[first + i]);
        double scale = std::abs(new_bias.empty() ? 0.0 : new_bias[first + i]) +
                       std::abs(old_bias.empty() ? 0.0 : old_bias[first + i]);
        for (std::uint64_t j = 0; j < in; ++j) {
          const double of_old = old_weight[i * in + j] * before.norm.bias_at(j);
          const double of_new = new_weight[i * in + j] * after.norm.bias_at(j);
          constant += of_new - of_old;
          scale += std::abs(of_old) + std::abs(of_new);
        }
        use(a.data() + i * in, b.data() + i * in, constant, scale);
      }
    }
  };
  std::vector<double> shift(in);
  double constant_shift = 0.0;
  const double outputs = static_cast<double>(before.map.out);
  each_output([&](const double* a, const double* b, double constant, double) {
    for (std::uint64_t j = 0; j < in; ++j) shift[j] += (b[j] - a[j]) / outputs;
    constant_shift += constant / outputs;
  });
  each_output([&](const double* a, const double* b, double constant, double scale) {
    Sums sums;
    for (std::uint64_t j = 0; j < in; ++j) {
      const double change = b[j] - a[j] - shift[j];
      sums.composite += change * change;
      sums.composite_sum += change;
      sums.length += a[j] * a[j];
    }
    result.composite =
        std::max(result.composite, ratio(sums.composite_error(in, subtract_means), sums.length));
    const double error = std::abs(constant - constant_shift);
    if (error != 0.0) result.bias = std::max(result.bias, relative(error, scale + std::abs(constant_shift)));
  });
  result.raw = result.folded_twice = result.composite;
  return result;
}

namespace {

/// How a vector that is written to a stream changes.
struct WrittenVector {
  double error = 0.0, error_sum = 0.0, length = 0.0;

  void add(double before, double change) {
    error += change * change;
    error_sum += change;
    length += before * before;
  }
  /// Relative to the whole vector: a constant one has length 0 after its mean is subtracted.
  void compare(std::uint64_t features, WriterComparison& result) const {
    // NaN stays, since it is not less than 0.
    const double centered = std::max(error - error_sum * error_sum / static_cast<double>(features), 0.0);
    result.raw = std::max(result.raw, ratio(error, length));
    result.centered = std::max(result.centered, ratio(centered, length));
  }
};

}  // namespace

WriterComparison compare_writers(const MapOfFile& before, const MapOfFile& after) {
  WriterComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const std::uint64_t in = before.map.in;
  // One more for the bias.
  std::vector<WrittenVector> inputs(in + 1);
  const auto add = [](WrittenVector& input, double a, double b) { input.add(a, difference(a, b)); };
  for (std::uint64_t first = 0; first < before.map.out; first += outputs_of_block(before.map)) {
    const std::uint64_t count = std::min(outputs_of_block(before.map), before.map.out - first);
    const std::vector<double> old_weight = read_weight(before.file, before.map, first, count);
    const std::vector<double> new_weight = read_weight(after.file, after.map, first, count);
    for (std::uint64_t at = 0; at < count * in; ++at) add(inputs[at % in], old_weight[at], new_weight[at]);
  }
  const std::vector<double> old_bias = read_bias(before.file, before.map);
  const std::vector<double> new_bias = read_bias(after.file, after.map);
  for (std::uint64_t i = 0; i < before.map.out; ++i) {
    add(inputs[in], old_bias.empty() ? 0.0 : old_bias[i], new_bias.empty() ? 0.0 : new_bias[i]);
  }
  for (const WrittenVector& input : inputs) input.compare(before.map.out, result);
  return result;
}

WriterComparison compare_turned_writers(const MapOfFile& before, const MapOfFile& after) {
  WriterComparison result{before.map.weight.selector(), after.map.weight.selector()};
  const models::Linear old_map = transposed(before.map);
  const models::Linear new_map = transposed(after.map);
  const std::uint64_t width = old_map.in;
  const auto compare = [&](const double* a, const double* b) {
    WrittenVector written;
    for (std::uint64_t j = 0; j < width; ++j) written.add(a[j], b[j] - a[j]);
    written.compare(width, result);
  };
  for (std::uint64_t first = 0; first < old_map.out; first += outputs_of_block(old_map)) {
    const std::uint64_t count = std::min(outputs_of_block(old_map), old_map.out - first);
    const std::vector<double> a = rows_of({before.file, old_map, before.norm}, first, count);
    const std::vector<double> b = rows_of({after.file, new_map, after.norm, after.turn}, first, count);
    for (std::uint64_t k = 0; k < count; ++k) compare(a.data() + k * width, b.data() + k * width);
  }
  std::vector<double> old_bias = read_bias(before.file, before.map);
  std::vector<double> new_bias = read_bias(after.file, after.map);
  old_bias.resize(width);
  new_bias.resize(width);
  after.turn->apply_transposed(new_bias);
  compare(old_bias.data(), new_bias.data());
  return result;
}

namespace {

using files::Checkpoint;
using models::Linear;
using models::Model;
using models::Norm;

constexpr std::uint64_t rows_of_a_step = 64;

/// The part of a name that the tensors of one branch share: "h.0.mlp." of "h.0.mlp.c_fc.weight".
std::string branch_of(const std::string& tensor) {
  const std::size_t last = tensor.rfind('.');
  const std::size_t before = last == std::string::npos || last == 0 ? last : tensor.rfind('.', last - 1);
  return before == std::string::npos ? std::string() : tensor.substr(0, before + 1);
}

/// The reader with this role, if it is a whole stored matrix: comparisons name matrices, not their parts.
const Linear* reader_of(const Norm& norm, std::string_view role) {
  const auto found = std::find_if(norm.readers.begin(), norm.readers.end(), [&](const Linear& reader) {
    return reader.role == role && reader.out == reader.stored_out;
  });
  return found == norm.readers.end() ? nullptr : &*found;
}

const Linear* writer_of(const Model& model, std::string_view role, const std::string& branch) {
  for (const Norm& norm : model.norms) {
    for (const Linear& writer : norm.writers) {
      if (writer.role == role && !branch.empty() && writer.weight.tensor.starts_with(branch)) return &writer;
    }
  }
  return nullptr;
}

/// Calls `use` with each row of a map, in order.
template <typename Use>
void each_row(const Checkpoint& file, const Linear& map, const Use& use) {
  for (std::uint64_t first = 0; first < map.out; first += rows_of_a_step) {
    const std::uint64_t count = std::min(rows_of_a_step, map.out - first);
    const std::vector<double> rows = read_weight(file, map, first, count);
    for (std::uint64_t k = 0; k < count; ++k) use(first + k, rows.data() + k * map.in);
  }
}

/// A fingerprint of numbers, of 64 bits: equal numbers have equal ones.
void add_to(std::uint64_t& print, double value) {
  std::uint64_t bits = 0;
  const double number = value == 0.0 ? 0.0 : value;
  std::memcpy(&bits, &number, sizeof bits);
  print = (print ^ bits) * 0x9e3779b97f4a7c15ULL;
  print ^= print >> 29;
}

/// Fingerprints of the neurons of an MLP: what each reads, with biases, and writes; sorted.
std::vector<std::uint64_t> neurons(const Checkpoint& file, const Linear& in, const Linear* gate,
                                   const Linear& out) {
  std::vector<std::uint64_t> prints(in.out, 1);
  for (const Linear* map : {&in, gate}) {
    if (map == nullptr) continue;
    each_row(file, *map, [&](std::uint64_t row, const double* values) {
      for (std::uint64_t i = 0; i < map->in; ++i) add_to(prints[row], values[i]);
    });
    const std::vector<double> bias = read_bias(file, *map);
    for (std::uint64_t row = 0; row < bias.size(); ++row) add_to(prints[row], bias[row]);
  }
  each_row(file, out, [&](std::uint64_t, const double* values) {
    for (std::uint64_t i = 0; i < out.in; ++i) add_to(prints[i], values[i]);
  });
  std::sort(prints.begin(), prints.end());
  return prints;
}

/// The sums that give the factor between two vectors.
struct Proportion {
  double before = 0.0, after = 0.0, product = 0.0;

  void add(double a, double b) {
    before += a * a;
    after += b * b;
    product += a * b;
  }
  /// The factor by which the new vector is the old one; empty if it is no multiple.
  [[nodiscard]] std::optional<double> factor(double tolerance) const {
    if (before == 0.0 && after == 0.0) return 1.0;
    if (!(before > 0.0)) return {};
    const double result = product / before;
    const double left = after - result * product;
    if (!(left <= tolerance * tolerance * after + 1e-14 * after)) return {};
    return result;
  }
};

class Symmetries {
 public:
  Symmetries(const Checkpoint& old_file, const Model& old_model, const Checkpoint& new_file,
             const Model& new_model, Comparison& result)
      : old_file_(old_file), old_(old_model), new_file_(new_file), new_(new_model), result_(result) {}

  /// Requires  `differing` are the selectors of the readers of the new norm that differ, at least one
  void look_at(const Norm& old_norm, const Norm& new_norm, std::set<std::string> differing) {
    differing_ = std::move(differing);
    permuted(old_norm, new_norm);
    scaled_values(old_norm, new_norm);
    scaled_queries(old_norm, new_norm);
  }

  [[nodiscard]] std::set<std::string> take() { return std::move(explained_); }

 private:
  [[nodiscard]] bool differ(const Linear& a, const Linear* b = nullptr) const {
    return differing_.contains(a.weight.selector()) ||
           (b != nullptr && differing_.contains(b->weight.selector()));
  }

  void explain(std::initializer_list<const Linear*> maps, const std::string& sentence) {
    for (const Linear* map : maps) {
      if (map != nullptr) explained_.insert(map->weight.selector());
    }
    result_.not_compared.push_back(sentence);
  }

  void permuted(const Norm& old_norm, const Norm& new_norm) {
    const Linear* const old_in = reader_of(old_norm, "mlp in");
    const Linear* const new_in = reader_of(new_norm, "mlp in");
    const Linear* const old_gate = reader_of(old_norm, "mlp gate");
    const Linear* const new_gate = reader_of(new_norm, "mlp gate");
    if (old_in == nullptr || new_in == nullptr || (old_gate == nullptr) != (new_gate == nullptr)) return;
    if (!differ(*new_in, new_gate)) return;
    const Linear* const old_out = writer_of(old_, "mlp out", branch_of(old_in->weight.tensor));
    const Linear* const new_out = writer_of(new_, "mlp out", branch_of(new_in->weight.tensor));
    if (old_out == nullptr || new_out == nullptr || old_in->out != old_out->in ||
        new_in->out != old_in->out || new_out->in != old_out->in ||
        (old_gate != nullptr && old_gate->out != old_in->out)) {
      return;
    }
    if (neurons(old_file_, *old_in, old_gate, *old_out) != neurons(new_file_, *new_in, new_gate, *new_out))
      return;
    explain({new_in, new_gate, new_out},
            fmt::format(
                "{}: the neurons of NEW seem to be those of OLD in another order, which computes the same",
                new_in->weight.selector()));
  }

  [[nodiscard]] std::vector<std::optional<double>> row_factors(const Linear& before,
                                                               const Linear& after) const {
    std::vector<Proportion> sums(before.out);
    for (std::uint64_t first = 0; first < before.out; first += rows_of_a_step) {
      const std::uint64_t count = std::min(rows_of_a_step, before.out - first);
      const std::vector<double> a = read_weight(old_file_, before, first, count);
      const std::vector<double> b = read_weight(new_file_, after, first, count);
      for (std::uint64_t k = 0; k < a.size(); ++k) sums[first + k / before.in].add(a[k], b[k]);
    }
    const std::vector<double> a = read_bias(old_file_, before);
    const std::vector<double> b = read_bias(new_file_, after);
    for (std::uint64_t row = 0; row < std::max(a.size(), b.size()); ++row) {
      sums[row].add(a.empty() ? 0.0 : a[row], b.empty() ? 0.0 : b[row]);
    }
    return factors(sums);
  }

  [[nodiscard]] std::vector<std::optional<double>> column_factors(const Linear& before,
                                                                  const Linear& after) const {
    std::vector<Proportion> sums(before.in);
    for (std::uint64_t first = 0; first < before.out; first += rows_of_a_step) {
      const std::uint64_t count = std::min(rows_of_a_step, before.out - first);
      const std::vector<double> a = read_weight(old_file_, before, first, count);
      const std::vector<double> b = read_weight(new_file_, after, first, count);
      for (std::uint64_t k = 0; k < a.size(); ++k) sums[k % before.in].add(a[k], b[k]);
    }
    return factors(sums);
  }

  [[nodiscard]] std::vector<std::optional<double>> factors(const std::vector<Proportion>& sums) const {
    std::vector<std::optional<double>> result;
    for (const Proportion& sum : sums) result.push_back(sum.factor(result_.tolerance));
    return result;
  }

  /// Whether the factors of `many` features, in heads of `dim`, undo those of the heads that they share.
  [[nodiscard]] bool undo(const std::vector<std::optional<double>>& few,
                          const std::vector<std::optional<double>>& many, std::size_t dim) const {
    if (dim == 0 || few.empty() || many.size() % few.size() != 0 || few.size() % dim != 0) return false;
    const std::size_t sharing = many.size() / few.size();
    for (std::size_t j = 0; j < many.size(); ++j) {
      const std::optional<double>& other = few[j / dim / sharing * dim + j % dim];
      if (!many[j] || !other || !(std::abs(*many[j] * *other - 1.0) <= 4.0 * result_.tolerance)) return false;
    }
    return true;
  }

  [[nodiscard]] static bool same_shape(const Linear* a, const Linear* b) {
    return a != nullptr && b != nullptr && a->in == b->in && a->out == b->out;
  }

  [[nodiscard]] std::size_t head_dim() const { return old_.heads.empty() ? 0 : old_.heads.front().head_dim; }

  void scaled_values(const Norm& old_norm, const Norm& new_norm) {
    const Linear* const old_value = reader_of(old_norm, "value");
    const Linear* const new_value = reader_of(new_norm, "value");
    if (!same_shape(old_value, new_value) || !differ(*new_value)) return;
    const Linear* const old_out = writer_of(old_, "attention out", branch_of(old_value->weight.tensor));
    const Linear* const new_out = writer_of(new_, "attention out", branch_of(new_value->weight.tensor));
    if (!same_shape(old_out, new_out)) return;
    if (!undo(row_factors(*old_value, *new_value), column_factors(*old_out, *new_out), head_dim())) return;
    explain({new_value, new_out},
            fmt::format("{}: its rows are multiples of those of OLD, which {} makes up for",
                        new_value->weight.selector(), new_out->weight.selector()));
  }

  void scaled_queries(const Norm& old_norm, const Norm& new_norm) {
    const Linear* const old_query = reader_of(old_norm, "query");
    const Linear* const new_query = reader_of(new_norm, "query");
    const Linear* const old_key = reader_of(old_norm, "key");
    const Linear* const new_key = reader_of(new_norm, "key");
    if (!same_shape(old_query, new_query) || !same_shape(old_key, new_key)) return;
    if (!differ(*new_query, new_key)) return;
    if (!undo(row_factors(*old_key, *new_key), row_factors(*old_query, *new_query), head_dim())) return;
    explain({new_query, new_key},
            fmt::format("{}: its rows are multiples of those of OLD, which {} may make up for",
                        new_query->weight.selector(), new_key->weight.selector()));
  }

  const Checkpoint& old_file_;
  const Model& old_;
  const Checkpoint& new_file_;
  const Model& new_;
  Comparison& result_;
  std::set<std::string> explained_{};
  std::set<std::string> differing_{};
};

bool differs(const ReaderComparison& reader, double tolerance) {
  return !(reader.composite <= tolerance && reader.bias <= tolerance);
}

}  // namespace

std::set<std::string> made_up_for(const Checkpoint& old_file, const Model& old_model,
                                  const Checkpoint& new_file, const Model& new_model, const NormPairs& norms,
                                  Comparison& result) {
  Symmetries symmetries(old_file, old_model, new_file, new_model, result);
  for (std::size_t n = 0; n < norms.pairs.size(); ++n) {
    const NormComparison& norm = result.norms[n];
    // Weights are compared without the gain, so the gain has to be the same.
    if (norm.gain_change > result.tolerance || norm.bias_change > result.tolerance) continue;
    std::set<std::string> differing;
    for (const ReaderComparison& reader : norm.readers) {
      if (differs(reader, result.tolerance)) differing.insert(reader.new_weight);
    }
    if (differing.empty()) continue;
    const auto& [old_index, new_index] = norms.pairs[n];
    symmetries.look_at(old_model.norms[old_index], new_model.norms[new_index], std::move(differing));
  }
  std::set<std::string> explained = symmetries.take();
  for (NormComparison& norm : result.norms) {
    const bool all =
        std::all_of(norm.readers.begin(), norm.readers.end(), [&](const ReaderComparison& reader) {
          return !differs(reader, result.tolerance) || explained.contains(reader.new_weight);
        });
    if (norm.agreement == Agreement::different && norm.agrees_itself && all)
      norm.agreement = Agreement::undecided;
  }
  return explained;
}

}  // namespace normscope::rewrite
