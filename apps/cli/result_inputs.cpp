#include "result_inputs.hpp"

namespace normscope::cli {

void add_array(verify::Inputs& inputs, const std::string& role, const std::string& name,
               const MatrixInput& matrix, unsigned threads) {
  inputs.arguments.push_back({role, name});
  inputs.arrays.push_back(verify::describe_array(role, {matrix.rows, matrix.width}, matrix.values, threads));
}

void add_norm(verify::Inputs& inputs, const NormOptions& options, const NormSpec& norm) {
  if (!options.gain.empty()) inputs.arguments.push_back({"gain", options.gain});
  if (!options.bias.empty()) inputs.arguments.push_back({"norm bias", options.bias});
  inputs.gain_offset = options.gain_offset;
  const auto add = [&](const char* role, const std::vector<double>& values) {
    if (!values.empty()) inputs.arrays.push_back(verify::describe_array(role, {values.size()}, values));
  };
  add("gain", norm.gain);
  add("norm bias", norm.bias);
}

}  // namespace normscope::cli
