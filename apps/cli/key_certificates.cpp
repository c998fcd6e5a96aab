#include "key_certificates.hpp"

#include <filesystem>

#include <fmt/core.h>

#include <normscope/checkpoint/array.hpp>
#include <normscope/core/error.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::vector<double> values, std::size_t width) {
  checkpoint::Array array{.shape = {values.size()}, .dtype = Dtype::F64, .values = {}};
  if (width > 0) array.shape = {values.size() / width, width};
  array.values = std::move(values);
  checkpoint::write_npy(path, array);
}

}  // namespace

std::vector<std::string> certificate_files(const std::string& folder) {
  std::vector<std::string> result;
  if (folder.empty()) return result;
  for (const char* name :
       {"keys", "selectable", "queries", "margins", "unselectable", "residuals", "weights"}) {
    result.push_back((fs::path(folder) / (std::string(name) + ".npy")).string());
  }
  return result;
}

void write_certificates(const std::string& folder, MatrixView<const double> keys,
                        const selectability::Selection& selection) {
  if (folder.empty()) return;
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(ErrorCode::Io, fmt::format("{}: {}", printable(folder), failure.message()));
  std::vector<double> all;
  std::vector<double> selectable;
  std::vector<double> queries;
  std::vector<double> margins;
  std::vector<double> unselectable;
  std::vector<double> residuals;
  std::vector<double> weights;
  for (std::size_t i = 0; i < keys.rows(); ++i) {
    all.insert(all.end(), keys.row(i).begin(), keys.row(i).end());
    const selectability::Verdict& verdict = selection.keys[i];
    const double row = static_cast<double>(i);
    if (verdict.answer == selectability::Answer::selectable) {
      const std::vector<double> query = selection.query(keys, i);
      selectable.push_back(row);
      queries.insert(queries.end(), query.begin(), query.end());
      margins.push_back(verdict.margin);
    } else if (verdict.answer == selectability::Answer::unselectable) {
      unselectable.push_back(row);
      residuals.push_back(verdict.residual);
      for (const convex::Share& share : verdict.weights) {
        weights.insert(weights.end(), {row, static_cast<double>(share.id), share.weight});
      }
    }
  }
  const fs::path at(folder);
  write(at / "keys.npy", std::move(all), keys.width());
  write(at / "selectable.npy", std::move(selectable), 0);
  write(at / "queries.npy", std::move(queries), keys.width());
  write(at / "margins.npy", std::move(margins), 0);
  write(at / "unselectable.npy", std::move(unselectable), 0);
  write(at / "residuals.npy", std::move(residuals), 0);
  write(at / "weights.npy", std::move(weights), 3);
}

}  // namespace normscope::cli
