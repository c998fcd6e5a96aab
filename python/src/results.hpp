#pragma once

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/verify/verify.hpp>

/// Results that models and arrays share, as JSON documents.
namespace normscope::python {

/// A document and its charts.
using Illustrated = std::tuple<std::string, std::string>;

/// A figure of that name in a document of charts.
[[nodiscard]] nlohmann::ordered_json chart_entry(std::string name, nlohmann::ordered_json specification);

/// The image of a norm; `has_gain` where the gain is the caller's.
[[nodiscard]] Illustrated geometry_document(const NormSpec& spec, bool has_gain, std::size_t axes,
                                            bool null_space, unsigned threads, const Progress& progress);

struct ReachSearch {
  std::vector<std::size_t> tokens{};  ///< whose largest probability is optimized besides the nearest
  std::size_t nearest = 20;
  double budget = std::numeric_limits<double>::infinity();
  double tolerance = 1e-12;
};

/// Which tokens `head` can output.
/// Errors    Argument for a token that it does not have
[[nodiscard]] Illustrated reach_document(const selectability::VocabularyHead& head,
                                         results::ReachDetails details, const ReachSearch& search,
                                         unsigned threads, const Progress& progress);

[[nodiscard]] std::string verification_document(const verify::Result& result,
                                                const verify::Verification& found);

}  // namespace normscope::python
