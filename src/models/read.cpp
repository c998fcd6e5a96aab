#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>
#include <normscope/models/model.hpp>

#include "inventory.hpp"

namespace normscope::models {

namespace {

// The name with every component that is a layer number replaced by "{}".
std::string form_of(std::string_view name) {
  std::string form;
  while (true) {
    const std::size_t dot = name.find('.');
    const std::string_view component = name.substr(0, dot);
    form += layer_number(component) ? "{}" : component;
    if (dot == std::string_view::npos) return form;
    form += '.';
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

std::optional<int> layer_number(std::string_view digits) {
  if (digits.empty() || digits.size() > 6 || (digits.size() > 1 && digits[0] == '0')) return {};
  int number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + (c - '0');
  }
  return number;
}

std::optional<int> first_number(std::string_view name) {
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of("./"), name.size());
    if (const std::optional<int> number = layer_number(name.substr(0, end))) return number;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return {};
}

Inventory::Inventory(const files::Checkpoint& checkpoint) : tensors_(checkpoint.tensors()) {
  for (const files::Tensor& tensor : tensors_) forms_.insert(form_of(tensor.name));
}

std::set<std::string, std::less<>> Inventory::prefixes_of(std::string_view pattern) const {
  std::set<std::string, std::less<>> prefixes;
  for (const std::string& form : forms_) {
    for (std::size_t at = form.find(pattern); at != std::string::npos; at = form.find(pattern, at + 1)) {
      if (at != 0 && form[at - 1] != '.') continue;
      if (form.find("{}") >= at) prefixes.insert(form.substr(0, at));
      break;
    }
  }
  return prefixes;
}

std::optional<std::string> Inventory::prefix_of(std::string_view pattern) const {
  return prefix_of(std::span(&pattern, 1));
}

std::optional<std::string> Inventory::prefix_of(std::span<const std::string_view> patterns) const {
  std::map<std::string, std::size_t, std::less<>> matches;
  for (const std::string& prefix : prefixes_of(patterns.front())) matches[prefix] = 1;
  if (matches.size() > 1) {
    for (const std::string_view pattern : patterns.subspan(1)) {
      for (const std::string& prefix : prefixes_of(pattern)) {
        if (const auto found = matches.find(prefix); found != matches.end()) ++found->second;
      }
    }
  }
  const auto is_worse = [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second < b.second : a.first.size() > b.first.size();
  };
  const auto best = std::max_element(matches.begin(), matches.end(), is_worse);
  return best == matches.end() ? std::nullopt : std::optional(best->first);
}

std::vector<int> Inventory::numbers_after(std::string_view head) const {
  std::vector<int> numbers;
  for (const files::Tensor& tensor : starting_with(head)) {
    const std::string_view rest = tensor.name.substr(head.size());
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) continue;
    const std::optional<int> number = layer_number(rest.substr(0, dot));
    if (number && (numbers.empty() || numbers.back() != *number)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::span<const files::Tensor> Inventory::starting_with(std::string_view head) const {
  const auto before = [](const files::Tensor& tensor, std::string_view name) { return tensor.name < name; };
  const auto first = std::lower_bound(tensors_.begin(), tensors_.end(), head, before);
  const auto last = std::partition_point(
      first, tensors_.end(), [&](const files::Tensor& tensor) { return tensor.name.starts_with(head); });
  return {first, last};
}

namespace {

const files::Tensor& tensor_of(const files::Checkpoint& checkpoint, const Slice& slice) {
  const files::Tensor* tensor = checkpoint.find(slice.tensor);
  if (tensor == nullptr) {
    throw Error(ErrorCode::Argument,
                fmt::format("model: {}: has no tensor \"{}\"", checkpoint.path().string(), slice.tensor));
  }
  if (!is_floating(tensor->dtype)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("model: {}: tensor \"{}\" is {}, expected a floating-point type",
                            checkpoint.file_of(*tensor).string(), slice.tensor, to_string(tensor->dtype)));
  }
  return *tensor;
}

void expect_modelled(const files::Checkpoint& checkpoint, const std::string& tensor,
                     const std::string& not_modelled) {
  if (not_modelled.empty()) return;
  throw Error(ErrorCode::Unsupported, fmt::format("model: {}: \"{}\" is not modelled: {}",
                                                  checkpoint.path().string(), tensor, not_modelled));
}

std::vector<double> read_slice(const files::Checkpoint& checkpoint, const Slice& slice) {
  return files::read(tensor_of(checkpoint, slice), slice.offset, slice.count);
}

}  // namespace

std::string Slice::selector() const { return index ? fmt::format("{}[{}]", tensor, *index) : tensor; }

std::string Head::place() const {
  return fmt::format("{}{}layer {} head {}", stack, stack.empty() ? "" : " ", layer, head);
}

bool Linear::covers(const Linear& part) const {
  if (weight.selector() != part.weight.selector() || role != part.role) return false;
  if (out_indices.empty()) return part.first_out >= first_out && part.first_out - first_out < out;
  return std::find(out_indices.begin(), out_indices.end(), part.first_out) != out_indices.end();
}

std::uint64_t Linear::stored_output(std::uint64_t output) const {
  return out_indices.empty() ? first_out + output : out_indices[output];
}

NormSpec read_norm(const files::Checkpoint& checkpoint, const Norm& norm) {
  expect_modelled(checkpoint, norm.name, norm.not_modelled);
  NormSpec spec;
  spec.kind = norm.kind;
  spec.width = norm.width;
  spec.groups = norm.groups;
  spec.eps = norm.eps;
  if (norm.gain) {
    spec.gain = read_slice(checkpoint, *norm.gain);
    if (spec.gain.size() == 1) spec.gain.resize(norm.width, spec.gain.front());
    for (double& gain : spec.gain) gain += norm.gain_offset;
  }
  if (norm.alpha) spec.alpha = read_slice(checkpoint, *norm.alpha)[0];
  if (norm.shift) spec.shift = read_slice(checkpoint, *norm.shift)[0];
  if (norm.bias) spec.bias = read_slice(checkpoint, *norm.bias);
  return spec;
}

NormSpec read_widest_norm(const files::Checkpoint& checkpoint, const Norm& norm) {
  if (norm.spans_positions) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("model: {}: \"{}\" is not modelled: it divides by several positions together, or "
                            "may, and its width then bounds none of them",
                            checkpoint.path().string(), norm.name));
  }
  if (!norm.kind_is_assumed || is_elementwise(norm.kind)) return read_norm(checkpoint, norm);
  Norm widest = norm;
  widest.kind = NormKind::rms;
  widest.groups = 1;
  widest.gain_offset = 0.0;
  NormSpec spec = read_norm(checkpoint, widest);
  for (double& gain : spec.gain) gain = std::max(std::abs(gain), std::abs(1.0 + gain));
  return spec;
}

std::vector<double> read_weight(const files::Checkpoint& checkpoint, const Linear& linear,
                                std::uint64_t first, std::uint64_t count) {
  NORMSCOPE_ASSERT(first + count <= linear.out);
  expect_modelled(checkpoint, linear.weight.tensor, linear.not_modelled);
  const files::Tensor& tensor = tensor_of(checkpoint, linear.weight);
  if (linear.in != 0 && count > files::largest_held / sizeof(double) / linear.in) {
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("model: {}: {} x {} elements of tensor \"{}\" requested at once, expected at most {}",
                    checkpoint.file_of(tensor).string(), count, linear.in, linear.weight.tensor,
                    files::largest_held / sizeof(double)));
  }
  if (linear.layout == Layout::out_in && linear.out_indices.empty()) {
    return files::read(tensor, linear.weight.offset + (linear.first_out + first) * linear.in,
                       count * linear.in);
  }
  std::vector<double> weight(static_cast<std::size_t>(count * linear.in));
  if (linear.layout == Layout::out_in) {
    for (std::uint64_t j = 0; j < count; ++j) {
      const std::uint64_t row = linear.stored_output(first + j);
      const std::vector<double> values =
          files::read(tensor, linear.weight.offset + row * linear.in, linear.in);
      std::copy(values.begin(), values.end(), weight.begin() + static_cast<std::ptrdiff_t>(j * linear.in));
    }
    return weight;
  }
  if (count == 0) return weight;
  // Each input's span that holds these outputs: gate and up of fused experts may alternate.
  std::vector<std::uint64_t> columns(count);
  for (std::uint64_t j = 0; j < count; ++j) columns[j] = linear.stored_output(first + j);
  const auto [least, most] = std::minmax_element(columns.begin(), columns.end());
  const std::uint64_t span = *most - *least + 1;
  constexpr std::uint64_t inputs_together = 16;  // so that whole cache lines of `weight` are written
  std::vector<double> spans;
  for (std::uint64_t first_in = 0; first_in < linear.in; first_in += inputs_together) {
    const std::uint64_t inputs = std::min(inputs_together, linear.in - first_in);
    spans.clear();
    for (std::uint64_t i = first_in; i < first_in + inputs; ++i) {
      const std::vector<double> values =
          files::read(tensor, linear.weight.offset + i * linear.stored_out + *least, span);
      spans.insert(spans.end(), values.begin(), values.end());
    }
    for (std::uint64_t j = 0; j < count; ++j) {
      const double* const column = spans.data() + (columns[j] - *least);
      double* const row = weight.data() + j * linear.in + first_in;
      for (std::uint64_t i = 0; i < inputs; ++i) row[i] = column[i * span];
    }
  }
  return weight;
}

std::uint64_t rows_at_once(const Linear& linear) {
  constexpr std::uint64_t least = 64;
  constexpr std::uint64_t most_elements = std::uint64_t{1} << 22U;
  if (linear.layout == Layout::out_in) return least;
  return std::max(least, most_elements / std::max<std::uint64_t>(1, linear.in));
}

double read_number(const files::Checkpoint& checkpoint, const Slice& slice) {
  return read_slice(checkpoint, slice).at(0);
}

std::vector<double> read_bias(const files::Checkpoint& checkpoint, const Linear& linear) {
  expect_modelled(checkpoint, linear.weight.tensor, linear.not_modelled);
  if (!linear.bias) return {};
  const std::vector<double> stored = read_slice(checkpoint, *linear.bias);
  std::vector<double> bias(linear.out);
  for (std::uint64_t j = 0; j < linear.out; ++j) {
    const std::uint64_t at = linear.stored_output(j);
    if (at >= stored.size()) {
      throw Error(ErrorCode::Shape,
                  fmt::format("model: {}: bias \"{}\" has {} elements, expected more than {}",
                              checkpoint.path().string(), linear.bias->tensor, stored.size(), at));
    }
    bias[j] = stored[at];
  }
  return bias;
}

}  // namespace normscope::models
