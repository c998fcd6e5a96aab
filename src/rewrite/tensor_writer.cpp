#include "output_files.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/files/source.hpp>

#include "matrix.hpp"
#include "matrix_rewrite.hpp"

namespace normscope::rewrite {
namespace {

/// Pieces shorter than this are written together.
constexpr std::size_t shortest = std::size_t{1} << 20U;

}  // namespace

WriteBehind::WriteBehind(Write write, std::uint64_t begin)
    : write_(std::move(write)), skipped_(static_cast<std::size_t>(begin % page)) {
  filling_.resize(skipped_);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error&) {
    // Without another thread, `hand_over` writes.
  }
}

WriteBehind::~WriteBehind() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::span<std::byte> WriteBehind::room(std::size_t size) {
  if (filling_.size() >= shortest + page) {
    hand_over(filling_.size() / page * page);
  }
  filling_.resize(filling_.size() + size);
  return std::span(filling_).last(size);
}

void WriteBehind::finish() {
  hand_over(filling_.size());
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_waiting_; });
  if (failure_) std::rethrow_exception(failure_);
}

/// Has the first `size` bytes written; the others begin the next piece.
void WriteBehind::hand_over(std::size_t size) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_waiting_; });
    if (failure_) std::rethrow_exception(failure_);
    std::swap(filling_, writing_);
    filling_.assign(writing_.begin() + static_cast<std::ptrdiff_t>(size), writing_.end());
    writing_.resize(size);
    is_waiting_ = thread_.joinable();
  }
  if (!thread_.joinable()) write_writing();
  changed_.notify_all();
}

void WriteBehind::write_writing() { write_(std::span(writing_).subspan(std::exchange(skipped_, 0))); }

void WriteBehind::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_waiting_ || ends_; });
    if (ends_) return;
    lock.unlock();
    std::exception_ptr failure;
    try {
      write_writing();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    is_waiting_ = false;
    changed_.notify_all();
  }
}

namespace {

using files::Tensor;

constexpr std::uint64_t copied_at_a_time = std::uint64_t{1} << 20U;
/// Rounding of float64 by an offset that is added and subtracted.
constexpr double of_an_offset = 0x1p-51;

}  // namespace

TensorWriter::TensorWriter(const files::Checkpoint& checkpoint, const models::Model& model, const Plan& plan,
                           unsigned threads)
    : checkpoint_(checkpoint), model_(model), plan_(plan), threads_(threads) {
  for (const Edit& edit : plan.edits) edits_[edit.tensor].push_back(&edit);
  for (auto& [name, edits] : edits_) {
    std::sort(edits.begin(), edits.end(),
              [](const Edit* a, const Edit* b) { return a->from.offset < b->from.offset; });
    for (std::size_t i = 1; i < edits.size(); ++i) {
      if (edits[i]->from.offset < edits[i - 1]->from.offset + edits[i - 1]->from.count) {
        throw Error(ErrorCode::Unsupported, fmt::format("rewrite: {}: tensor {} would be changed twice",
                                                        checkpoint.path().string(), files::quote(name)));
      }
    }
  }
}

/// Largest length of the vectors that a rewritten reader reads, without a bias that is folded into it.
double TensorWriter::longest_input(std::size_t index) const {
  const NormSpec& spec = plan_.specs[index];
  const double radius = longest_output(spec);
  if (!plan_.options.migrate) return radius;
  const NormSpec norm = read_norm(checkpoint_, model_.norms[index]);
  double stretch = 0.0;
  double squares = 0.0;
  for (std::size_t j = 0; j < spec.width; ++j) {
    stretch = std::max(stretch, std::abs(norm.gain_at(j) / spec.gain_at(j)));
    squares += norm.bias_at(j) * norm.bias_at(j) / (spec.gain_at(j) * spec.gain_at(j));
  }
  return radius * stretch + std::sqrt(squares);
}

double TensorWriter::offset_of(std::size_t index, const models::Slice& part) const {
  const models::Norm& norm = model_.norms[index];
  return norm.gain && norm.gain->tensor == part.tensor ? norm.gain_offset : 0.0;
}

/// The values of a gain or bias, as they are used, over the scales that migrate to the readers, minus the
/// offset that the file leaves out.
std::vector<double> TensorWriter::divided_by_scale(std::size_t index, const models::Slice& part) const {
  const double offset = offset_of(index, part);
  std::vector<double> values = read(*checkpoint_.find(part.tensor), part.offset, part.count);
  for (std::size_t j = 0; j < values.size(); ++j) {
    values[j] = (values[j] + offset) / plan_.specs[index].gain_at(j) - offset;
  }
  return values;
}

/// Largest length of the error of what rewritten readers read, by gains and biases that their dtype rounds.
double TensorWriter::input_error(std::size_t index) const {
  if (!plan_.options.migrate) return 0.0;
  const models::Norm& norm = model_.norms[index];
  double largest = 0.0;
  double squares = 0.0;
  for (const std::optional<models::Slice>* part : {&norm.gain, &norm.bias}) {
    if (!*part) continue;
    const std::vector<double> values = divided_by_scale(index, **part);
    std::vector<std::byte> encoded;
    const std::vector<double> stored =
        store(*checkpoint_.find((*part)->tensor), values, [&](std::size_t size) -> std::span<std::byte> {
          encoded.resize(size);
          return encoded;
        });
    const double offset = offset_of(index, **part);
    for (std::size_t j = 0; j < values.size(); ++j) {
      const double error = std::abs(stored[j] - values[j]) +
                           (offset == 0.0 ? 0.0 : of_an_offset * (std::abs(values[j]) + offset));
      if (part == &norm.gain) largest = std::max(largest, error);
      if (part == &norm.bias) squares += error * error;
    }
  }
  return longest_output(plan_.specs[index]) * largest + std::sqrt(squares);
}

void copy_elements(const Tensor& tensor, std::uint64_t first, std::uint64_t count, const Sink& sink) {
  const std::uint64_t width = bits(tensor.dtype);
  // Sub-byte types have no edits, so ranges begin and end in whole bytes.
  const std::uint64_t begin = first * width / 8;
  const std::uint64_t end =
      first + count == tensor.elements() ? tensor.bytes.size() : (first + count) * width / 8;
  for (std::uint64_t at = begin; at < end; at += copied_at_a_time) {
    const std::uint64_t size = std::min(copied_at_a_time, end - at);
    tensor.bytes.part(at, size).copy_to(sink(static_cast<std::size_t>(size)));
  }
}

void TensorWriter::write(const files::TensorHeader& header, const Sink& sink, Written& written) {
  const auto found = edits_.find(header.name);
  const bool is_head = plan_.untied && plan_.untied->head == header.name;
  const Tensor& tensor = *checkpoint_.find(is_head ? plan_.untied->table : header.name);
  std::uint64_t done = 0;
  if (found != edits_.end()) {
    for (const Edit* edit : found->second) {
      copy_elements(tensor, done, edit->from.offset - done, sink);
      write_edit(tensor, *edit, sink, written);
      done = edit->from.offset + edit->from.count;
    }
  }
  copy_elements(tensor, done, tensor.elements() - done, sink);
}

void TensorWriter::write_edit(const Tensor& tensor, const Edit& edit, const Sink& sink, Written& written) {
  Certificate certificate;
  models::Slice slice = edit.from;
  slice.tensor = edit.tensor;
  certificate.tensor = slice.selector();
  certificate.change = edit.change;
  certificate.dtype = tensor.dtype;
  certificate.rounding = unit_roundoff(tensor.dtype);
  certificate.undo_roundings = undo_roundings(plan_, edit);
  certificate.norm = model_.norms[*edit.norm].name;
  UndoPart part{static_cast<std::uint64_t>(&edit - plan_.edits.data())};
  if (edit.change == Change::scale_inputs) {
    scale_inputs({tensor, edit.map}, plan_.specs[*edit.norm], longest_input(*edit.norm),
                 input_error(*edit.norm), threads_, sink, certificate, part);
  } else if (edit.change == Change::rotate_inputs) {
    rotate_inputs({tensor, edit.map}, plan_.specs[*edit.norm], *edit.rotation, threads_, sink, certificate,
                  part);
  } else if (edit.change == Change::center_outputs || edit.change == Change::rotate_outputs) {
    const models::Norm& norm = model_.norms[*edit.norm];
    NormSpec reader;
    reader.kind = norm.kind;
    reader.width = norm.width;
    reader.eps = norm.eps;
    if (edit.rotation) {
      rotate_outputs({tensor, edit.map}, reader, edit.centers, *edit.rotation, threads_, sink, certificate,
                     part);
    } else {
      center_outputs({tensor, edit.map}, reader, threads_, sink, certificate, part);
    }
  } else {
    write_vector(tensor, edit, sink, certificate);
  }
  part.roundings = certificate.undo_roundings;
  if (is_of_matrix(edit.change)) written.parts.push_back(std::move(part));
  const bool is_exact = edit.change == Change::neutral_gain || edit.change == Change::zero;
  if (!is_exact) written.certificates.push_back(std::move(certificate));
}

void TensorWriter::write_vector(const Tensor& tensor, const Edit& edit, const Sink& sink,
                                Certificate& certificate) {
  std::vector<double> values(edit.from.count);
  std::vector<double> scales(edit.from.count);
  double in_double = 0.0;
  if (edit.change == Change::neutral_gain) {
    std::fill(values.begin(), values.end(), 1.0 - model_.norms[*edit.norm].gain_offset);
  } else if (edit.change == Change::divide_by_gain) {
    values = read(tensor, edit.from.offset, edit.from.count);
    for (std::size_t j = 0; j < values.size(); ++j) {
      if (values[j] != 0.0) values[j] /= plan_.specs[*edit.norm].gain_at(j);
      scales[j] = std::abs(values[j]);
    }
    in_double = 0x1p-52;
  } else if (edit.change == Change::divide_by_scale) {
    const double offset = offset_of(*edit.norm, edit.from);
    values = divided_by_scale(*edit.norm, edit.from);
    for (std::size_t j = 0; j < values.size(); ++j) scales[j] = std::abs(values[j]) + offset;
    in_double = offset == 0.0 ? 0.0 : of_an_offset;
  } else if (edit.change == Change::center) {
    values = read(tensor, edit.from.offset, edit.from.count);
    double squares = 0.0;
    for (const double value : values) squares += value * value;
    center(values);
    std::fill(scales.begin(), scales.end(), std::sqrt(squares));
    in_double = 0x1p-50;
  } else if (edit.change == Change::rotate) {
    values = read(tensor, edit.from.offset, edit.from.count);
    for (std::size_t j = 0; edit.divides && j < values.size(); ++j) {
      if (values[j] != 0.0) values[j] /= plan_.specs[*edit.norm].gain_at(j);
    }
    double squares = 0.0;
    for (const double value : values) squares += value * value;
    if (edit.centers) center(values);
    edit.rotation->apply(values);
    std::fill(scales.begin(), scales.end(), std::sqrt(squares));
    in_double = 2.0 * edit.rotation->error() + 0x1p-50;
  } else if (edit.change == Change::add_folded_bias) {
    values = read(tensor, edit.from.offset, edit.from.count);
    const WeightedSums folded = sums_over_inputs({*checkpoint_.find(edit.map.weight.tensor), edit.map},
                                                 plan_.specs[*edit.norm].bias, threads_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      scales[i] = std::abs(values[i]) + folded.magnitude[i];
      values[i] += folded.sum[i];
    }
    in_double = 0x1p-51;
  }
  const std::vector<double> stored = store(tensor, values, sink);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double bound = (std::abs(stored[i] - values[i]) + in_double * scales[i]) * (1.0 + 1e-9);
    certificate.bound = std::max(certificate.bound, bound);
    if (scales[i] == 0.0) continue;
    certificate.relative_bound = std::max(certificate.relative_bound, bound / scales[i]);
    certificate.observed_as_stored =
        std::max(certificate.observed_as_stored, std::abs(stored[i] - values[i]) / scales[i]);
  }
}

}  // namespace normscope::rewrite
