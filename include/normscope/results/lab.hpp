#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

/// What `normscope lab` knows or found.
namespace normscope::results {

/// The rule that judges a claim, and the runs that it had.
struct LabRule {
  std::string says{};
  std::string test{};
  std::size_t seeds = 1;
  double least = 0.0;
  double absent = 0.0;
  std::string missing{};
  double confidence = 0.0;
  std::string hash{};
  std::size_t runs = 0;
  std::size_t runs_before = 0;
  std::string provenance{};
};

/// A claim of an experiment and its verdict.
struct LabClaim {
  std::string name{};
  std::string claim{};
  std::string paper{};
  std::string kind{};
  std::string made_by{};
  LabRule rule{};
  std::string ours{};
  std::optional<std::array<double, 2>> interval{};
  std::string outcome{};
  double factor = 1.0;
  std::string verdict{};
};

/// The results of an experiment's runs at one size.
struct LabResults {
  std::string size{};
  std::string paper_size{};
  std::string our_size{};
  double factor = 1.0;
  std::size_t done = 0;
  std::size_t planned = 1;
  std::vector<std::string> origins{};
  std::vector<LabClaim> claims{};
  std::string ours{};
};

/// An experiment, and its results where they were asked for.
struct LabExperiment {
  std::string name{};
  std::string paper{};
  std::string claim{};
  double quick_seconds = 0.0;
  double full_minutes = 0.0;
  std::string backend{};
  std::optional<LabResults> results{};
};

/// Schema "normscope.lab/1" (docs/schemas/lab.schema.json).
[[nodiscard]] nlohmann::ordered_json lab(const std::vector<LabExperiment>& experiments);

}  // namespace normscope::results
