#include "reach_certificates.hpp"

#include <initializer_list>
#include <span>
#include <utility>

#include "array_folder.hpp"

namespace normscope::cli {

namespace {

constexpr std::initializer_list<const char*> array_names = {"rows",
                                                            "offsets",
                                                            "reachable",
                                                            "witnesses",
                                                            "leads",
                                                            "probability_tokens",
                                                            "probability_points",
                                                            "tangent_tokens",
                                                            "tangent_points",
                                                            "far_tokens",
                                                            "far_points"};

/// Points of some tokens, as NAME_tokens.npy and NAME_points.npy.
class Points {
 public:
  void add(std::size_t token, std::span<const double> point) {
    if (point.empty()) return;
    tokens_.push_back(static_cast<double>(token));
    points_.insert(points_.end(), point.begin(), point.end());
  }
  void write(const ArrayFolder& folder, const std::string& tokens, const std::string& points,
             std::size_t width) && {
    folder.write(tokens.c_str(), std::move(tokens_));
    folder.write(points.c_str(), std::move(points_), width);
  }

 private:
  std::vector<double> tokens_{};
  std::vector<double> points_{};
};

}  // namespace

std::vector<std::string> witness_files(const std::string& folder) { return array_files(folder, array_names); }

void write_witnesses(const std::string& folder, const selectability::Logits& logits,
                     const selectability::Survey& results, double tolerance) {
  if (folder.empty()) return;
  const double stretch = selectability::without_ball(logits, tolerance).stretch;
  Points witnesses;
  Points probabilities;
  Points tangents;
  Points far;
  std::vector<double> leads;
  for (std::size_t token = 0; token < results.tokens.size(); ++token) {
    const selectability::TokenReach& reach = results.tokens[token];
    if (reach.answer == proof::Answer::yes) {
      witnesses.add(token, selectability::witness(logits, token, reach));
      leads.push_back(reach.lower);
    }
    probabilities.add(token, results.probabilities[token].point);
    tangents.add(token, results.probabilities[token].proving_tangent());
    std::vector<double> cone = reach.unbounded_witness;
    if (!cone.empty()) cone.back() *= stretch;
    far.add(token, cone);
  }
  const ArrayFolder arrays(folder);
  arrays.write("rows", logits.rows, logits.width);
  arrays.write("offsets", logits.offsets);
  arrays.write("leads", std::move(leads));
  std::move(witnesses).write(arrays, "reachable", "witnesses", logits.width);
  std::move(probabilities).write(arrays, "probability_tokens", "probability_points", logits.width);
  std::move(tangents).write(arrays, "tangent_tokens", "tangent_points", logits.width);
  std::move(far).write(arrays, "far_tokens", "far_points", logits.width + 1);
}

}  // namespace normscope::cli
