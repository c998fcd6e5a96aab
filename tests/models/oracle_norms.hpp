#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// Compares the description of a fixture with its truth.json. Maps that a description cuts into parts (the
/// query rows of a fused matrix) are compared by the outputs of the stored matrix: the union over the parts
/// must be what the truth's one map covers. Norms are matched by their gain's tensor, by their name where
/// they have none.
namespace normscope::test {

class OracleNorms {
 public:
  OracleNorms(const files::Checkpoint& checkpoint, nlohmann::json truth)
      : checkpoint_(checkpoint), truth_(std::move(truth)), model_(models::describe(checkpoint)) {}

  void compare_all_norms() {
    compare_norms();
    for (const Json& norm : truth_.at("norms")) compare_norm(norm);
    for (const std::string& tensor : model_.missing) differ("missing {}", tensor);
  }

 protected:
  using Json = nlohmann::json;
  // Outputs of stored matrices: by tensor, with the entry of a stack where there is one.
  using Outputs = std::map<std::string, std::set<std::uint64_t>>;

  template <class... Args>
  void differ(fmt::format_string<Args...> format, Args&&... args) {
    differences_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  static std::string text(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }
  static std::string key_of(const Json& norm) {
    return norm.at("gain").is_string() ? text(norm.at("gain")) : text(norm.at("module"));
  }
  static std::string key_of(const models::Norm& norm) {
    return norm.gain ? norm.gain->selector() : norm.name;
  }
  static std::string tensor_of(const std::optional<models::Slice>& slice) {
    return slice ? slice->selector() : "";
  }

  // In a model of several towers their order is arbitrary, so each is compared separately.
  void compare_norms() {
    std::map<std::string, std::vector<std::string>> expected;
    std::map<std::string, std::string> tower;
    for (const Json& norm : truth_.at("norms")) {
      if (is_over_positions(norm)) continue;  // described by a note alone
      expected[text(norm.at("tower"))].push_back(key_of(norm));
      tower[key_of(norm)] = text(norm.at("tower"));
    }
    std::map<std::string, std::vector<std::string>> found;
    for (const models::Norm& norm : model_.norms) {
      if (!tower.contains(key_of(norm))) differ("{} is no norm of the model", key_of(norm));
      found[tower[key_of(norm)]].push_back(key_of(norm));
    }
    for (const auto& [name, norms] : expected) {
      if (found[name] != norms) {
        differ("norms of {}: {}, in truth {}", name, fmt::join(found[name], " "), fmt::join(norms, " "));
      }
    }
  }

  // A module of torch.nn inside code of unknown form.
  [[nodiscard]] bool is_module() const { return text(truth_.at("case")).starts_with("torch_"); }
  [[nodiscard]] bool states_norm_first() const {
    const auto& config = checkpoint_.config_text();
    return config && config->find("norm_first") != std::string::npos;
  }

  // Whether a norm of such a module is connected with the code around it. Without norm_first, all are
  // assumed.
  [[nodiscard]] bool is_border(const Json& truth) const {
    if (!is_module()) return false;
    if (!states_norm_first() || key_of(truth).find(".layers.") == std::string::npos) return true;
    std::set<std::string> tensors;
    collect(truth.at("reads"), tensors);
    for (const Json& reader : truth.at("readers")) {
      if (reader.contains("weight")) tensors.insert(text(reader.at("weight")));
    }
    return std::any_of(tensors.begin(), tensors.end(), [](const std::string& tensor) {
      return tensor.find(".layers.") == std::string::npos;
    });
  }

  // A GroupNorm of channels over positions is no norm of feature vectors.
  static bool is_over_positions(const Json& norm) { return text(norm.at("axes")) == "group and positions"; }

  const models::Norm* find(const std::string& key) const {
    const auto found = std::find_if(model_.norms.begin(), model_.norms.end(),
                                    [&](const models::Norm& norm) { return key_of(norm) == key; });
    return found == model_.norms.end() ? nullptr : &*found;
  }

  void compare_norm(const Json& truth) {
    const std::string key = key_of(truth);
    const models::Norm* const norm = find(key);
    if (norm == nullptr) return;  // reported by compare_norms
    const auto expect = [&](const char* what, const auto& value, const auto& expected) {
      if (value != expected) differ("{}: {} {}, in truth {}", key, what, value, expected);
    };
    expect("kind", std::string(facts(norm->kind).name), text(truth.at("kind")));
    // Norms of the same width for every head are described as groups of one.
    const Json& shape = truth.at("gain_shape");
    const std::size_t each = shape.is_array() && shape.size() == 2 ? shape[0].get<std::size_t>() : 1;
    expect("width", norm->width, each * truth.at("width").get<std::size_t>());
    expect("groups", norm->groups, each * truth.at("groups").get<std::size_t>());
    expect("bias", tensor_of(norm->bias), text(truth.at("bias")));
    expect("offset", norm->gain_offset, truth.at("gain_offset").get<double>());
    expect("applications", norm->applications, truth.at("executions").get<int>());
    const double eps = truth.at("eps").get<double>();
    const double tolerance = truth.at("eps_is_the_module_attribute").get<bool>() ? 1e-12 : 1e-2;
    const bool told = !is_module() || norm->eps_source == models::Source::config;
    if (told && !(std::abs(norm->eps - eps) <= tolerance * eps)) expect("eps", norm->eps, eps);
    compare_readers(truth, *norm);
    compare_writers(truth, *norm);
  }

  static void add(Outputs& outputs, const Json& map) {
    std::string tensor = text(map.at("weight"));
    if (map.contains("slice") && map.at("slice").is_number()) {
      tensor += fmt::format("[{}]", map.at("slice").get<int>());
    }
    std::set<std::uint64_t>& place = outputs[tensor];
    if (map.contains("out_indices")) {
      for (const Json& index : map.at("out_indices")) place.insert(index.get<std::uint64_t>());
      return;
    }
    const auto first = map.at("first_out").get<std::uint64_t>();
    for (std::uint64_t j = 0; j < map.at("out").get<std::uint64_t>(); ++j) place.insert(first + j);
  }

  static void add(Outputs& outputs, const models::Linear& map) {
    std::set<std::uint64_t>& place = outputs[map.weight.selector()];
    for (std::uint64_t j = 0; j < map.out; ++j) {
      place.insert(map.out_indices.empty() ? map.first_out + j : map.out_indices[j]);
    }
  }

  // All of `part` in `whole`; otherwise the tensor where it is not.
  static std::string outside(const Outputs& part, const Outputs& whole) {
    for (const auto& [tensor, outputs] : part) {
      const auto found = whole.find(tensor);
      if (found == whole.end() ||
          !std::includes(found->second.begin(), found->second.end(), outputs.begin(), outputs.end())) {
        return tensor;
      }
    }
    return {};
  }

  // "a.experts.2.b" where `seen` has "a.experts.0.b": the run that the truth is of did not reach every
  // expert.
  static bool is_unreached_expert(const std::string& tensor, const std::set<std::string>& seen) {
    const std::string experts = ".experts.";
    const std::size_t at = tensor.find(experts);
    if (at == std::string::npos) return false;
    const std::size_t after = tensor.find('.', at + experts.size());
    for (const std::string& other : seen) {
      if (other.compare(0, at + experts.size(), tensor, 0, at + experts.size()) != 0) continue;
      const std::size_t ends = other.find('.', at + experts.size());
      if (ends != std::string::npos && other.substr(ends) == tensor.substr(after)) return true;
    }
    return false;
  }

  // Whether the file stores the tensor under one of those names as well, as files without shared storage do.
  bool is_copy(const std::string& tensor, const std::set<std::string>& names) const {
    const auto bytes = [&](const std::string& name) {
      const files::Tensor* const found = checkpoint_.find(name);
      std::vector<std::byte> buffer;
      if (found == nullptr) return buffer;
      const std::span<const std::byte> held = found->bytes.fetch(buffer);
      return std::vector<std::byte>(held.begin(), held.end());
    };
    const std::vector<std::byte> own = bytes(tensor);
    return !own.empty() && std::any_of(names.begin(), names.end(),
                                       [&](const std::string& name) { return bytes(name) == own; });
  }

  // A description may say that it does not know all readers or writers where more than linear maps is
  // between.
  void compare_readers(const Json& truth, const models::Norm& norm) {
    Outputs expected;
    Outputs found;
    for (const Json& reader : truth.at("readers")) {
      const std::string op = text(reader.at("op"));
      if (op == "linear" && reader.at("weight").is_string()) add(expected, reader);
    }
    for (const models::Linear& reader : norm.readers) {
      add(found, reader);
      for (const Json& linear : truth.at("readers")) {
        if (text(linear.at("op")) != "linear" || text(linear.at("weight")) != reader.weight.selector())
          continue;
        if (text(linear.at("bias")) != tensor_of(reader.bias)) {
          differ("{}: bias \"{}\", in truth {}", reader.weight.selector(), tensor_of(reader.bias),
                 linear.at("bias").dump());
        }
        const bool in_out = reader.layout == models::Layout::in_out;
        if ((text(linear.at("layout")) == "in_out") != in_out) differ("{}: layout", reader.weight.selector());
      }
    }
    std::set<std::string> reached;
    for (const auto& [tensor, outputs] : expected) reached.insert(tensor);
    for (auto at = found.begin(); at != found.end();) {
      const bool unreached = !expected.contains(at->first) && is_unreached_expert(at->first, reached);
      at = unreached ? found.erase(at) : std::next(at);
    }
    if (const std::string tensor = outside(found, expected); !tensor.empty()) {
      differ("{} is not read by {}", key_of(norm), tensor);
    }
    const std::string unread = outside(expected, found);
    if (norm.connections_known && !unread.empty()) differ("{} is also read by {}", key_of(norm), unread);
    const bool has_others = has_other_reader(truth);
    if (norm.readers_known && !norm.readers.empty() && (has_others || !unread.empty())) {
      differ("{} has other readers than those that are said to be all", key_of(norm));
    }
    const bool is_added = std::any_of(truth.at("readers").begin(), truth.at("readers").end(),
                                      [](const Json& reader) { return text(reader.at("op")) == "add"; });
    if (norm.readers_known && is_added && !enters_stream(norm)) {
      differ("{} is itself added to the stream", key_of(norm));
    }
    if (!norm.connections_known && !is_indirect(truth) && !is_border(truth)) {
      differ("{}: connections not known", key_of(norm));
    }
  }

  bool enters_stream(const models::Norm& norm) const {
    return std::any_of(model_.norms.begin(), model_.norms.end(), [&](const models::Norm& later) {
      return std::find(later.writing_norms.begin(), later.writing_norms.end(), norm.name) !=
             later.writing_norms.end();
    });
  }

  // Other than additions, norms, and linear maps of whole rows.
  static bool has_other_reader(const Json& truth) {
    return std::any_of(truth.at("readers").begin(), truth.at("readers").end(), [&](const Json& reader) {
      const std::string op = text(reader.at("op"));
      if (op != "linear") return op != "add" && op != "norm";
      return !reader.at("weight").is_string() || reader.contains("kernel") ||
             reader.at("in") != truth.at("width");
    });
  }

  // Whether something other than linear maps, norms and additions reads the norm or writes what it reads.
  static bool is_indirect(const Json& truth) {
    if (has_other_reader(truth)) return true;
    for (const Json& execution : truth.at("reads")) {
      for (const Json& term : execution) {
        const std::string kind = text(term.at("kind"));
        if (kind == "op" || kind == "concatenation" || term.contains("scaled_by")) return true;
      }
    }
    return false;
  }

  static void collect(const Json& value, std::set<std::string>& tensors) {
    if (value.is_string()) tensors.insert(value.get<std::string>());
    if (!value.is_structured()) return;
    for (const auto& [key, inner] : value.items()) {
      if (key != "kind" && key != "op" && key != "module" && key != "norm") collect(inner, tensors);
    }
  }

  void compare_writers(const Json& truth, const models::Norm& norm) {
    std::set<std::string> expected;
    collect(truth.at("reads"), expected);
    for (const models::Linear& writer : norm.writers) {
      if (!expected.contains(writer.weight.tensor) && !expected.contains(writer.weight.selector()) &&
          !is_unreached_expert(writer.weight.tensor, expected) && !is_copy(writer.weight.tensor, expected)) {
        differ("{} does not write what {} reads", writer.weight.tensor, key_of(norm));
      }
    }
    if (!norm.connections_known) return;
    std::set<std::string> newest;  // of the last term that a linear map adds
    for (const Json& execution : truth.at("reads")) {
      for (const Json& term : execution) {
        if (text(term.at("kind")) == "linear") newest = term.at("weights").get<std::set<std::string>>();
      }
    }
    for (const models::Linear& writer : norm.writers) {
      newest.erase(writer.weight.tensor);
      newest.erase(writer.weight.selector());
    }
    const bool beside = !newest.empty() && wrote_before(norm, newest);
    if (!newest.empty() && !beside) {
      differ("{} also reads what {} write", key_of(norm), fmt::join(newest, " and "));
    }
  }

  // Whether these tensors write to the stream of an earlier norm, as where no branch ends between two norms.
  bool wrote_before(const models::Norm& norm, const std::set<std::string>& tensors) const {
    for (const models::Norm& earlier : model_.norms) {
      if (&earlier == &norm) return false;
      for (const models::Linear& writer : earlier.writers) {
        if (tensors.contains(writer.weight.tensor)) return true;
      }
    }
    return false;
  }

  const files::Checkpoint& checkpoint_;
  Json truth_;
  models::Model model_;
  std::vector<std::string> differences_;
};

}  // namespace normscope::test
