#include "result_inputs.hpp"

namespace normscope::cli {

using Json = nlohmann::ordered_json;

Json inputs_json(const certificates::Inputs& inputs) {
  Json arguments = Json::array();
  for (const certificates::Argument& argument : inputs.arguments) {
    arguments.push_back({{"role", argument.role}, {"name", argument.name}});
  }
  Json arrays = Json::array();
  for (const certificates::InputArray& array : inputs.arrays) {
    arrays.push_back({{"role", array.role}, {"shape", array.shape}, {"sha256", array.sha256}});
  }
  Json json = {{"arguments", arguments}, {"arrays", arrays}};
  if (inputs.gain_offset) json["gain_offset"] = *inputs.gain_offset;
  return json;
}

void add_array(certificates::Inputs& inputs, const std::string& role, const std::string& name,
               const MatrixInput& matrix, unsigned threads) {
  inputs.arguments.push_back({role, name});
  inputs.arrays.push_back(
      certificates::describe_array(role, {matrix.rows, matrix.width}, matrix.values, threads));
}

void add_norm(certificates::Inputs& inputs, const NormOptions& options, const NormSpec& norm) {
  if (!options.gain.empty()) inputs.arguments.push_back({"gain", options.gain});
  if (!options.bias.empty()) inputs.arguments.push_back({"norm bias", options.bias});
  inputs.gain_offset = options.gain_offset;
  const auto add = [&](const char* role, const std::vector<double>& values) {
    if (!values.empty()) inputs.arrays.push_back(certificates::describe_array(role, {values.size()}, values));
  };
  add("gain", norm.gain);
  add("norm bias", norm.bias);
}

Json certificates_json(bool here, const std::string& folder) {
  if (here) return "here";
  if (folder.empty()) return "nowhere";
  return {{"folder", folder}};
}

}  // namespace normscope::cli
