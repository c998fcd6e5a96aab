#include <normscope/results/documents.hpp>

#include <nlohmann/json.hpp>

namespace normscope {

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace normscope

namespace normscope::results {

using Json = nlohmann::ordered_json;

Json inputs(const verify::Inputs& inputs) {
  Json arguments = Json::array();
  for (const verify::Argument& argument : inputs.arguments) {
    arguments.push_back({{"role", argument.role}, {"name", argument.name}});
  }
  Json arrays = Json::array();
  for (const verify::InputArray& array : inputs.arrays) {
    arrays.push_back({{"role", array.role}, {"shape", array.shape}, {"sha256", array.sha256}});
  }
  Json json = {{"arguments", arguments}, {"arrays", arrays}};
  if (inputs.gain_offset) json["gain_offset"] = *inputs.gain_offset;
  if (!inputs.stated.architecture.empty()) json["architecture"] = inputs.stated.architecture;
  if (inputs.stated.heads != 0) json["heads"] = inputs.stated.heads;
  return json;
}

Json certificates(bool here, const std::string& folder) {
  if (here) return "here";
  if (folder.empty()) return "nowhere";
  return {{"folder", folder}};
}

}  // namespace normscope::results
