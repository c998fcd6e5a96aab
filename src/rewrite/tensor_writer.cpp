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
#include "planning.hpp"

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

double TensorWriter::offset_of(std::size_t index, const models::Slice& part) const {
  const models::Norm& norm = model_.norms[index];
  return norm.gain && norm.gain->tensor == part.tensor ? norm.gain_offset : 0.0;
}

const Edit* TensorWriter::edit_of(const models::Slice& part) const {
  const auto found = edits_.find(part.tensor);
  if (found == edits_.end()) return nullptr;
  const auto& edits = found->second;
  const auto edit = std::find_if(edits.begin(), edits.end(),
                                 [&](const Edit* item) { return item->from.offset == part.offset; });
  return edit == edits.end() ? nullptr : *edit;
}

/// What a norm keeps when the readers' edits are those of the plan.
KeptParts TensorWriter::kept_by(std::size_t index, const models::Linear& reader) const {
  KeptParts kept;
  const models::Norm& norm = model_.norms[index];
  const NormSpec before = models::read_norm(checkpoint_, norm);
  const auto stored = [&](const Edit& edit, const Vector& vector) {
    std::vector<std::byte> encoded;
    return store(*checkpoint_.find(edit.from.tensor), vector.values, [&](std::size_t size) {
      encoded.resize(size);
      return std::span(encoded);
    });
  };
  if (norm.bias) {
    const Edit* const edit = edit_of(*norm.bias);
    if (edit == nullptr || edit->change != Change::zero) {
      kept.old_bias = before.bias;
      kept.new_bias = edit == nullptr ? before.bias : stored(*edit, vector_of(*edit));
      if (!reader.bias) {
        kept.constants.assign(reader.stored_out, 0.0);
      } else if (reader.bias->count == reader.stored_out) {
        kept.constants =
            read(*checkpoint_.find(reader.bias->tensor), reader.bias->offset, reader.bias->count);
      }
    }
  }
  if (plan_.norms[index].fold != Fold::scales) return kept;
  kept.old_gain = before.gain.empty() ? std::vector<double>(norm.width, 1.0) : before.gain;
  if (!norm.gain) return kept;
  const Edit& edit = *edit_of(*norm.gain);
  const Vector exact = vector_of(edit);
  const std::vector<double> gain = stored(edit, exact);
  const double offset = offset_of(index, *norm.gain);
  kept.largest_gain = 0.0;
  for (std::size_t j = 0; j < gain.size(); ++j) {
    kept.largest_gain = std::max(kept.largest_gain, std::abs(gain[j] + offset));
    kept.gain_error =
        std::max(kept.gain_error, std::abs(gain[j] - exact.values[j]) + exact.in_double * exact.sizes[j]);
  }
  return kept;
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
    scale_inputs({tensor, edit.map}, plan_.specs[*edit.norm], kept_by(*edit.norm, edit.map), threads_, sink,
                 certificate, part);
  } else if (edit.change == Change::rotate_inputs) {
    rotate_inputs({tensor, edit.map}, plan_.specs[*edit.norm], kept_by(*edit.norm, edit.map), *edit.rotation,
                  threads_, sink, certificate, part);
  } else if (edit.change == Change::center_outputs || edit.change == Change::rotate_outputs) {
    const models::Norm& norm = model_.norms[*edit.norm];
    NormSpec reader;
    reader.kind = norm.kind;
    reader.width = norm.width;
    reader.eps = norm.eps;
    if (edit.rotation) {
      std::optional<KeptParts> head;
      if (is_head_table(model_, edit.map) && !plan_.untied) {
        head = kept_by(*edit.norm, *model_.vocabulary->unembedding);
      }
      rotate_outputs({tensor, edit.map}, reader, head ? &*head : nullptr, edit.centers, *edit.rotation,
                     threads_, sink, certificate, part);
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

TensorWriter::Vector TensorWriter::vector_of(const Edit& edit) const {
  Vector result;
  auto& [values, sizes, in_double] = result;
  sizes.resize(edit.from.count);
  if (edit.change == Change::neutral_gain || edit.change == Change::zero) {
    const double gain = 1.0 - model_.norms[*edit.norm].gain_offset;
    values.assign(edit.from.count, edit.change == Change::zero ? 0.0 : gain);
    return result;
  }
  values = read(*checkpoint_.find(edit.from.tensor), edit.from.offset, edit.from.count);
  const double length = length_of(values);
  const bool divides = edit.change == Change::divide_by_gain || edit.divides;
  for (std::size_t j = 0; divides && j < values.size(); ++j) {
    if (values[j] != 0.0) values[j] /= plan_.specs[*edit.norm].gain_at(j);
    sizes[j] = std::abs(values[j]);
    in_double = 0x1p-52;
  }
  if (edit.change == Change::divide_by_scale) {
    const double offset = offset_of(*edit.norm, edit.from);
    for (std::size_t j = 0; j < values.size(); ++j) {
      values[j] = (values[j] + offset) / plan_.specs[*edit.norm].gain_at(j) - offset;
      sizes[j] = std::abs(values[j]) + offset;
    }
    in_double = offset == 0.0 ? 0.0 : of_an_offset;
  } else if (edit.change == Change::center) {
    center(values);
    std::fill(sizes.begin(), sizes.end(), length);
    in_double = 0x1p-50;
  } else if (edit.change == Change::rotate) {
    std::fill(sizes.begin(), sizes.end(), divides ? length_of(values) : length);
    if (edit.centers) center(values);
    edit.rotation->apply(values);
    in_double = 2.0 * edit.rotation->error() + 0x1p-50;
  } else if (edit.change == Change::add_folded_bias) {
    const WeightedSums folded = sums_over_inputs({*checkpoint_.find(edit.map.weight.tensor), edit.map},
                                                 plan_.specs[*edit.norm].bias, threads_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      sizes[i] = std::abs(values[i]) + folded.magnitude[i];
      values[i] += folded.sum[i];
    }
    in_double = 0x1p-51;
  }
  return result;
}

void TensorWriter::write_vector(const Tensor& tensor, const Edit& edit, const Sink& sink,
                                Certificate& certificate) {
  const auto [values, sizes, in_double] = vector_of(edit);
  const std::optional<models::Slice>& bias = model_.norms[*edit.norm].bias;
  const bool is_kept = bias && place_of(*bias) == place_of(edit.from);
  const std::vector<double> stored = store(tensor, values, sink);
  std::vector<double> errors(values.size());
  std::vector<double> bounds(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    errors[i] = std::abs(stored[i] - values[i]);
    bounds[i] = (errors[i] + in_double * sizes[i]) * (1.0 + 1e-9);
    certificate.bound = std::max(certificate.bound, bounds[i]);
  }
  if (edit.change == Change::add_folded_bias) {
    const StoredMatrix reader{*checkpoint_.find(edit.map.weight.tensor), edit.map};
    const std::vector<double> ranges = half_ranges(reader, plan_.specs[*edit.norm], threads_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double largest = ranges[i] + std::abs(values[i]);
      if (largest == 0.0) continue;
      certificate.relative_bound = std::max(certificate.relative_bound, bounds[i] / largest);
      certificate.observed_as_stored = std::max(certificate.observed_as_stored, errors[i] / largest);
    }
  } else if (edit.change == Change::center || (edit.change == Change::rotate && !is_kept)) {
    const double length = length_of(values);
    certificate.bound = length_of(bounds);
    if (length <= 0x1p-40 * sizes.front()) return;  // as of `center_outputs`
    certificate.relative_bound = certificate.bound / length;
    certificate.observed_as_stored = length_of(errors) / length;
  }
}

}  // namespace normscope::rewrite
