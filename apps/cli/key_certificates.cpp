#include "key_certificates.hpp"

#include "array_folder.hpp"

namespace normscope::cli {

std::vector<std::string> certificate_files(const std::string& folder) {
  return array_files(folder,
                     {"keys", "selectable", "queries", "margins", "unselectable", "residuals", "weights"});
}

void write_certificates(const std::string& folder, MatrixView<const double> keys,
                        const selectability::Selection& selection) {
  if (folder.empty()) return;
  const ArrayFolder arrays(folder);
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
    if (verdict.answer == selectability::Selectability::selectable) {
      const std::vector<double> query = selection.query(keys, i);
      selectable.push_back(row);
      queries.insert(queries.end(), query.begin(), query.end());
      margins.push_back(verdict.margin);
    } else if (verdict.answer == selectability::Selectability::unselectable) {
      unselectable.push_back(row);
      residuals.push_back(verdict.residual);
      for (const proof::PointWeight& share : verdict.weights) {
        weights.insert(weights.end(), {row, static_cast<double>(share.id), share.weight});
      }
    }
  }
  arrays.write("keys", std::move(all), keys.width());
  arrays.write("selectable", std::move(selectable));
  arrays.write("queries", std::move(queries), keys.width());
  arrays.write("margins", std::move(margins));
  arrays.write("unselectable", std::move(unselectable));
  arrays.write("residuals", std::move(residuals));
  arrays.write("weights", std::move(weights), 3);
}

}  // namespace normscope::cli
