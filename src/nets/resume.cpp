#include "resume.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>

namespace normscope::nets {

namespace {

constexpr SnapshotKind build_state{.name = "build",
                                   .version = 3,
                                   .others = "other samples, labels or options",
                                   .former = "normscope.construct"};
constexpr const char* misfit = "holds what build did not save; delete it to start again";

bool is_finite(const DoubleDouble& value) { return std::isfinite(value.high) && std::isfinite(value.low); }

bool is_row(std::size_t row, std::size_t rows) { return row == no_row || row < rows; }

/// Whether the parts are consistent and all numbers are in range.
bool is_line(const Line<DoubleDouble>& line, const StateBounds& bounds) {
  const std::size_t clusters = line.q.size();
  if (clusters == 0 || line.folds.empty() || clusters > bounds.rows || line.classes.size() != clusters ||
      line.rows.size() != clusters) {
    return false;
  }
  for (std::size_t k = 0; k < clusters; ++k) {
    if (!is_finite(line.q[k]) || (k > 0 && line.q[k] > line.q[k - 1]) || line.classes[k] >= bounds.classes ||
        line.rows[k] >= bounds.rows) {
      return false;
    }
  }
  return std::all_of(line.folds.begin(), line.folds.end(), [&](const Crease<DoubleDouble>& fold) {
    return is_row(fold.first, bounds.rows) && is_row(fold.second, bounds.rows) && is_finite(fold.midpoint) &&
           is_finite(fold.radius) && !std::isnan(fold.gap) && fold.runs <= bounds.rows;
  });
}

}  // namespace

Digest fingerprint_of(const std::vector<double>& x, const std::vector<std::uint32_t>& classes,
                      const ConstructOptions& options) {
  Packer inputs;
  inputs.put(piecewise_sha256(std::as_bytes(std::span(x)), options.threads));
  inputs.put(piecewise_sha256(std::as_bytes(std::span(classes)), options.threads));
  inputs.put(options.seed);
  inputs.put(options.early_stop);
  inputs.put(options.precision.has_value());
  inputs.put(options.precision.value_or(Precision::float64));
  return sha256(inputs.bytes());
}

void save_state(const std::filesystem::path& path, const Digest& fingerprint, const ResumeState& state) {
  if (path.empty()) return;
  Packer payload;
  payload.put<std::uint64_t>(state.attempt);
  payload.put(state.line.q);
  payload.put(state.line.classes);
  payload.put(state.line.rows);
  payload.put(state.line.folds);
  save_snapshot(path, build_state, fingerprint, payload.bytes());
}

std::optional<ResumeState> load_state(const std::filesystem::path& path, const Digest& fingerprint,
                                      const StateBounds& bounds) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  const std::vector<std::byte> payload = load_snapshot(path, build_state, fingerprint);
  Unpacker from(payload, fmt::format("{}: {}", path.string(), misfit));
  ResumeState state;
  std::uint64_t attempt = 0;
  from.get(attempt);
  from.get(state.line.q);
  from.get(state.line.classes);
  from.get(state.line.rows);
  from.get(state.line.folds);
  from.finish();
  if (attempt >= bounds.attempts || !is_line(state.line, bounds)) {
    throw Error(ErrorCode::Format, fmt::format("{}: {}", path.string(), misfit));
  }
  state.attempt = attempt;
  state.line.runs = count_runs(state.line.classes);
  return state;
}

}  // namespace normscope::nets
