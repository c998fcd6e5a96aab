#include <cmath>

#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include <normscope/norm/norm.hpp>
#include <normscope/proof/minimum_norm.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/selectability/select.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

using selectability::RandomCell;
using selectability::RandomTable;
using selectability::Selection;

struct Keys {
  std::vector<double> values{};
  std::size_t width = 0;

  [[nodiscard]] MatrixView<double> view() { return {values.data(), values.size() / width, width}; }
};

Keys keys_of(const val& values, double width) {
  Keys keys{numbers(values), static_cast<std::size_t>(width)};
  if (keys.width == 0 || keys.values.empty() || keys.values.size() % keys.width != 0) {
    throw Error(ErrorCode::Shape, "keys: expected whole rows of them");
  }
  return keys;
}

val indices(const std::vector<std::size_t>& rows) {
  return int32_array(std::vector<std::int32_t>(rows.begin(), rows.end()));
}

/// Each face as the keys around it.
val faces_of(MatrixView<const double> keys) {
  val result = val::array();
  for (const std::vector<std::size_t>& face : proof::hull_faces(keys))
    result.call<void>("push", indices(face));
  return result;
}

val verdict_of(MatrixView<const double> keys, const Selection& selection, std::size_t index) {
  const selectability::Verdict& verdict = selection.keys[index];
  std::vector<std::size_t> others;
  std::vector<double> shares;
  for (const proof::PointWeight& share : verdict.weights) {
    others.push_back(static_cast<std::size_t>(share.id));
    shares.push_back(share.weight);
  }
  val result = val::object();
  result.set("answer", std::string(to_string(verdict.answer)));
  result.set("proof", std::string(to_string(verdict.proof)));
  result.set("margin", verdict.margin);
  result.set("residual", verdict.residual);
  result.set("query", float64_array(selection.query(keys, index)));
  result.set("others", indices(others));
  result.set("shares", float64_array(shares));
  result.set("verified", selectability::verify(keys, selection, index));
  return result;
}

/// {keys, verdicts, faces}: the keys after the steps of LayerNorm that are asked for, and what is so of each.
val select(const val& values, double width, bool project, bool scale) {
  return guarded([&] {
    Keys keys = keys_of(values, width);
    const NormSpec norm{.kind = NormKind::layer, .width = keys.width, .eps = 0.0};
    if (project) norm::project(norm, keys.view(), keys.view());
    if (scale) norm::scale(norm, keys.view(), keys.view());
    const Selection selection = selectability::select_keys(keys.view());
    val verdicts = val::array();
    for (std::size_t i = 0; i < selection.keys.size(); ++i) {
      verdicts.call<void>("push", verdict_of(keys.view(), selection, i));
    }
    val result = val::object();
    result.set("keys", float64_array(keys.values));
    result.set("verdicts", verdicts);
    result.set("faces", keys.width == 2 || keys.width == 3 ? faces_of(keys.view()) : val::array());
    return result;
  });
}

val weights(const val& values, double width, const val& query) {
  return guarded([&] {
    Keys keys = keys_of(values, width);
    return float64_array(selectability::attention_weights(keys.view(), numbers(query)));
  });
}

std::string figure(const val& values, double width, const val& query) {
  return guarded([&] {
    Keys keys = keys_of(values, width);
    return json_text(figures::attention_bars(selectability::attention_weights(keys.view(), numbers(query)),
                                             selectability::select_keys(keys.view())));
  });
}

RandomTable table_of(const val& options) {
  RandomTable table{.runs = size(options, "runs", 100),
                    .seed = static_cast<std::uint64_t>(get<double>(options, "seed", 1.0))};
  if (get<bool>(options, "norm", false)) {
    table.transform = [](MatrixView<double> keys) {
      norm::forward({.kind = NormKind::layer, .width = keys.width(), .eps = 0.0}, keys, keys);
    };
  }
  return table;
}

/// The table's row of `count` keys: Float64Array of (width, count, any, mean) a cell.
val table_row(const val& options, double count) {
  return guarded([&] {
    RandomTable table = table_of(options);
    table.least_count = table.most_count = static_cast<std::size_t>(count);
    std::vector<double> result;
    for (const RandomCell& cell : selectability::random_table(table, 1)) {
      result.insert(result.end(),
                    {static_cast<double>(cell.width), static_cast<double>(cell.count), cell.any, cell.mean});
    }
    return float64_array(result);
  });
}

/// The heat map of cells as `table_row` gives them.
std::string table_figure(const val& options, const val& cells, bool mean, const std::string& title) {
  return guarded([&] {
    const std::vector<double> flat = numbers(cells);
    std::vector<RandomCell> rows;
    for (std::size_t i = 0; i + 4 <= flat.size(); i += 4) {
      rows.push_back({.width = static_cast<std::size_t>(flat[i]),
                      .count = static_cast<std::size_t>(flat[i + 1]),
                      .any = flat[i + 2],
                      .mean = flat[i + 3]});
    }
    return json_text(
        figures::random_table(table_of(options), rows, mean ? &RandomCell::mean : &RandomCell::any, title));
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(selectability) {
  emscripten::function("selectKeys", &select);
  emscripten::function("attentionWeights", &weights);
  emscripten::function("attentionFigure", &figure);
  emscripten::function("randomTableRow", &table_row);
  emscripten::function("randomTableFigure", &table_figure);
}

}  // namespace normscope::wasm
