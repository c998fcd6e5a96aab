#include <normscope/results/construction.hpp>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::results {

using Json = nlohmann::ordered_json;

Json construction(const nets::Construction& made, nets::Mode mode, const std::string& output) {
  return {{"schema", "normscope.build/1"},
          {"version", version},
          {"output", output.empty() ? Json() : Json(output)},
          {"mode", mode == nets::Mode::paper ? "paper" : "stable"},
          {"precision", std::string(to_string(made.net.precision))},
          {"layers", made.net.layers.size()},
          {"width", made.net.layers.empty() ? 0 : 3},
          {"classes", made.net.classes},
          {"correct", made.correct},
          {"total", made.total},
          {"distinct", made.distinct},
          {"relabelled", made.relabelled},
          {"attempts", made.attempts}};
}

std::string fold_lines(const std::vector<nets::Fold>& folds) {
  std::string lines;
  for (std::size_t l = 0; l < folds.size(); ++l) {
    const nets::Fold& fold = folds[l];
    Json line = {{"layer", l},      {"pair", nullptr},  {"midpoint", fold.midpoint}, {"radius", fold.radius},
                 {"gap", fold.gap}, {"runs", fold.runs}};
    if (fold.first != nets::no_row) line["pair"] = {fold.first, fold.second};
    lines += line.dump() + "\n";
  }
  return lines;
}

}  // namespace normscope::results
