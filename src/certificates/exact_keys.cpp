#include "exact_keys.hpp"

#include <algorithm>

namespace normscope::certificates {

ExactKey read_exact_key(const Field& field, std::size_t rows) {
  ExactKey result{.answer = field["answer"].text()};
  if (result.answer == "selectable") {
    const Field query = field["query"];
    for (std::size_t i = 0; i < query.size(); ++i) result.query.push_back(query[i].text());
  } else if (result.answer == "unselectable") {
    const Field weights = field["weights"];
    for (std::size_t i = 0; i < weights.size(); ++i) {
      result.weights.push_back({weights[i]["key"].index(rows), weights[i]["numerator"].text()});
    }
    result.denominator = field["denominator"].text();
  } else if (result.answer != "undecided") {
    field["answer"].refuse("selectable, unselectable or undecided");
  }
  return result;
}

std::optional<bool> proves(const ExactKey& exact, MatrixView<const double> keys, std::size_t index) {
  const MatrixView<const double> key(keys.row(index).data(), 1, keys.width());
  std::vector<double> others;
  const auto add = [&](std::size_t row) {
    others.insert(others.end(), keys.row(row).begin(), keys.row(row).end());
  };
  if (exact.answer == "selectable") {
    for (std::size_t row = 0; row < keys.rows(); ++row) {
      if (row != index) add(row);
    }
    return separates(exact.query, key, {others.data(), keys.rows() - 1, keys.width()});
  }
  // Only the keys with positive weights matter.
  std::vector<Numerator> weights;
  for (const Numerator& weight : exact.weights) {
    if (weight.row == index) return false;
    weights.push_back({weights.size(), weight.digits});
    add(weight.row);
  }
  return meet({{0, exact.denominator}}, weights, exact.denominator, key,
              {others.data(), weights.size(), keys.width()});
}

}  // namespace normscope::certificates
