#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>
#include <normscope/model/model.hpp>

/// Compares the description of a fixture with its truth.json. Maps that a description cuts into parts (the
/// query rows of a fused matrix) are compared by the outputs of the stored matrix: the union over the parts
/// must be what the truth's one map covers. Norms are matched by their gain's tensor, by their name where
/// they have none.
namespace normscope::test {

inline std::filesystem::path oracle_folder() {
  return std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "tests/model/fixtures";
}

/// Every fixture, by the name of its folder.
inline std::vector<std::string> oracle_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(oracle_folder())) {
    if (std::filesystem::exists(entry.path() / "truth.json")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class OracleComparison {
 public:
  OracleComparison(const checkpoint::Checkpoint& checkpoint, nlohmann::json truth)
      : checkpoint_(checkpoint), truth_(std::move(truth)), model_(model::describe(checkpoint)) {}

  std::vector<std::string> run() {
    compare_norms();
    for (const Json& norm : truth_.at("norms")) compare_norm(norm);
    compare_heads();
    compare_vocabulary();
    for (const std::string& tensor : model_.missing) differ("missing {}", tensor);
    return std::move(differences_);
  }

 private:
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
  static std::string key_of(const model::Norm& norm) { return norm.gain ? norm.gain->selector() : norm.name; }
  static std::string tensor_of(const std::optional<model::Slice>& slice) {
    return slice ? slice->selector() : "";
  }

  // In a model of several towers their order means nothing, so each is compared on its own.
  void compare_norms() {
    std::map<std::string, std::vector<std::string>> expected;
    std::map<std::string, std::string> tower;
    for (const Json& norm : truth_.at("norms")) {
      expected[text(norm.at("tower"))].push_back(key_of(norm));
      tower[key_of(norm)] = text(norm.at("tower"));
    }
    std::map<std::string, std::vector<std::string>> found;
    for (const model::Norm& norm : model_.norms) {
      if (tower.count(key_of(norm)) == 0) differ("{} is no norm of the model", key_of(norm));
      found[tower[key_of(norm)]].push_back(key_of(norm));
    }
    for (const auto& [name, norms] : expected) {
      if (found[name] != norms) {
        differ("norms of {}: {}, in truth {}", name, fmt::join(found[name], " "), fmt::join(norms, " "));
      }
    }
  }

  const model::Norm* find(const std::string& key) const {
    const auto found = std::find_if(model_.norms.begin(), model_.norms.end(),
                                    [&](const model::Norm& norm) { return key_of(norm) == key; });
    return found == model_.norms.end() ? nullptr : &*found;
  }

  void compare_norm(const Json& truth) {
    const std::string key = key_of(truth);
    const model::Norm* const norm = find(key);
    if (norm == nullptr) return;  // reported by compare_norms
    const auto expect = [&](const char* what, const auto& value, const auto& expected) {
      if (value != expected) differ("{}: {} {}, in truth {}", key, what, value, expected);
    };
    expect("kind", std::string(facts(norm->kind).name), text(truth.at("kind")));
    expect("width", norm->width, truth.at("width").get<std::size_t>());
    expect("groups", norm->groups, truth.at("groups").get<std::size_t>());
    expect("bias", tensor_of(norm->bias), text(truth.at("bias")));
    expect("offset", norm->gain_offset, truth.at("gain_offset").get<double>());
    expect("applications", norm->applications, truth.at("executions").get<int>());
    const double eps = truth.at("eps").get<double>();
    const double tolerance = truth.at("eps_is_the_module_attribute").get<bool>() ? 1e-12 : 1e-2;
    if (!(std::abs(norm->eps - eps) <= tolerance * eps)) expect("eps", norm->eps, eps);
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

  static void add(Outputs& outputs, const model::Linear& map) {
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

  // A description may say that it does not know all readers or writers where more than linear maps is
  // between.
  void compare_readers(const Json& truth, const model::Norm& norm) {
    Outputs expected;
    Outputs found;
    for (const Json& reader : truth.at("readers")) {
      const std::string op = text(reader.at("op"));
      if (op == "linear" && reader.at("weight").is_string()) add(expected, reader);
    }
    for (const model::Linear& reader : norm.readers) {
      add(found, reader);
      for (const Json& linear : truth.at("readers")) {
        if (text(linear.at("op")) != "linear" || text(linear.at("weight")) != reader.weight.selector())
          continue;
        if (text(linear.at("bias")) != tensor_of(reader.bias)) {
          differ("{}: bias \"{}\", in truth {}", reader.weight.selector(), tensor_of(reader.bias),
                 linear.at("bias").dump());
        }
        const bool in_out = reader.layout == model::Layout::in_out;
        if ((text(linear.at("layout")) == "in_out") != in_out) differ("{}: layout", reader.weight.selector());
      }
    }
    if (const std::string tensor = outside(found, expected); !tensor.empty()) {
      differ("{} is not read by {}", key_of(norm), tensor);
    }
    const std::string unread = outside(expected, found);
    if (norm.connections_known && !unread.empty()) differ("{} is also read by {}", key_of(norm), unread);
    if (!norm.connections_known && !is_indirect(truth)) differ("{}: connections not known", key_of(norm));
  }

  // Whether something other than linear maps, norms and additions reads the norm or writes what it reads.
  static bool is_indirect(const Json& truth) {
    for (const Json& reader : truth.at("readers")) {
      const std::string op = text(reader.at("op"));
      if (op != "linear" && op != "add" && op != "norm") return true;
      if (op == "linear" && !reader.at("weight").is_string()) return true;
    }
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

  void compare_writers(const Json& truth, const model::Norm& norm) {
    std::set<std::string> expected;
    collect(truth.at("reads"), expected);
    for (const model::Linear& writer : norm.writers) {
      if (expected.count(writer.weight.tensor) == 0) {
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
    for (const model::Linear& writer : norm.writers) newest.erase(writer.weight.tensor);
    const bool beside = !newest.empty() && wrote_before(norm, newest);
    if (!newest.empty() && !beside) {
      differ("{} also reads what {} write", key_of(norm), fmt::join(newest, " and "));
    }
  }

  // Whether these tensors write to the stream of an earlier norm, as where no branch ends between two norms.
  bool wrote_before(const model::Norm& norm, const std::set<std::string>& tensors) const {
    for (const model::Norm& earlier : model_.norms) {
      if (&earlier == &norm) return false;
      for (const model::Linear& writer : earlier.writers) {
        if (tensors.count(writer.weight.tensor) != 0) return true;
      }
    }
    return false;
  }

  // What a head's scores have that no bound of a head covers.
  static bool beyond_heads(const Json& attention) {
    for (const Json& operation : attention.at("score_operations")) {
      if (!operation.contains("what")) continue;
      const std::string what = text(operation.at("what"));
      if (what != "mask" && what != "zeros") return true;
    }
    for (const char* side : {"query", "key"}) {
      if (attention.at(side).at("scaled_by_position").get<bool>()) return true;
      if (!attention.at(side).at("added").empty()) return true;
    }
    const std::string visible = text(attention.at("visible"));
    return !attention.at("sinks").is_null() || attention.at("windows") != 1 ||
           (visible != "causal" && visible != "all") ||
           (visible == "all" && !attention.at("window").is_null());
  }

  void compare_heads() {
    for (const Json& attention : truth_.at("attention")) {
      const Json& maps = attention.at("query").at("maps");
      const std::string module = text(attention.at("module"));
      if (maps.size() != 1 || !maps[0].at("weight").is_string()) {
        differ("{}: queries of {} maps", module, maps.size());
        continue;
      }
      const Outputs whole = [&] {
        Outputs outputs;
        add(outputs, maps[0]);
        return outputs;
      }();
      std::vector<const model::Head*> heads;
      for (const model::Head& head : model_.heads) {
        if (head.query && head.query->weight.selector() == whole.begin()->first) heads.push_back(&head);
      }
      if (heads.size() != attention.at("heads").get<std::size_t>()) {
        differ("{}: {} heads, in truth {}", module, heads.size(), attention.at("heads").get<int>());
        continue;
      }
      for (std::size_t h = 0; h < heads.size(); ++h) compare_head(attention, *heads[h], h);
    }
    if (truth_.at("attention").empty() && !model_.heads.empty()) differ("heads in a model without attention");
  }

  void compare_part(const Json& attention, const char* side, std::size_t h,
                    const std::optional<model::Linear>& part) {
    const std::string place = fmt::format("{} {} of head {}", text(attention.at("module")), side, h);
    const Json& truth = attention.at(side);
    if (!part || truth.at("maps").size() != 1) return differ("{} is not there", place);
    Outputs found;
    add(found, *part);
    Outputs expected;
    const Json& map = truth.at("maps")[0];
    add(expected, map);
    const std::vector<std::uint64_t> rows(expected.begin()->second.begin(), expected.begin()->second.end());
    std::set<std::uint64_t> own;
    for (const Json& range : truth.at("features")[h]) {
      for (int j = 0; j < range[1].get<int>(); ++j) {
        own.insert(rows[static_cast<std::size_t>(range[0].get<int>() + j)]);
      }
    }
    expected.begin()->second = own;
    if (found != expected) differ("{}: other outputs than in truth", place);
    if (tensor_of(part->bias) != text(map.at("bias"))) differ("{}: bias", place);
  }

  void compare_head(const Json& attention, const model::Head& head, std::size_t h) {
    const std::string place = fmt::format("{} head {}", text(attention.at("module")), h);
    compare_part(attention, "query", h, head.query);
    compare_part(attention, "key", h, head.key);
    const bool beyond = beyond_heads(attention);
    if (beyond && head.not_modelled.empty()) differ("{}: nothing is said to be not modelled", place);
    if (!beyond && !head.not_modelled.empty()) differ("{}: not modelled: {}", place, head.not_modelled);
    if (!head.not_modelled.empty()) return;
    const double scale = attention.at("scale").get<double>();
    if (!(std::abs(head.scale - scale) <= 1e-6 * scale))
      differ("{}: scale {}, in truth {}", place, head.scale, scale);
    if (std::abs(head.soft_cap - attention.at("soft_cap").get<double>()) > 1e-6)
      differ("{}: soft cap", place);
    const Json& window = attention.at("window");
    const std::size_t positions = window.is_null() ? 0 : window.get<std::size_t>();
    if (head.window.value_or(0) != positions) {
      differ("{}: window {}, in truth {}", place, head.window.value_or(0), positions);
    }
    const bool turns = attention.at("query").at("position_table").get<bool>();
    if (head.rotary.has_value() != turns) differ("{}: rotary {}", place, head.rotary.has_value());
    const std::set<std::string> norms = norms_read_by(text(attention.at("query").at("maps")[0].at("weight")));
    std::set<std::string> found;
    if (!head.norm.empty() && !head.between) found.insert(key_of_norm_named(head.norm));
    for (const std::string& norm : head.later_norms) found.insert(key_of_norm_named(norm));
    if (found != norms)
      differ("{}: reads {}, in truth {}", place, fmt::join(found, " "), fmt::join(norms, " "));
  }

  // Gains of the norms whose output alone is what these queries are computed from, in some execution.
  std::set<std::string> norms_read_by(const std::string& query) const {
    std::map<std::string, std::string> key_of_module;
    for (const Json& norm : truth_.at("norms")) key_of_module[text(norm.at("module"))] = key_of(norm);
    std::set<std::string> norms;
    for (const Json& attention : truth_.at("attention")) {
      const Json& side = attention.at("query");
      if (side.at("maps").empty() || text(side.at("maps")[0].at("weight")) != query) continue;
      for (const Json& execution : side.at("reads")) {
        if (execution.size() == 1 && text(execution[0].at("kind")) == "norm") {
          norms.insert(key_of_module[text(execution[0].at("norm"))]);
        }
      }
    }
    return norms;
  }

  std::string key_of_norm_named(const std::string& name) const {
    for (const model::Norm& norm : model_.norms) {
      if (norm.name == name) return key_of(norm);
    }
    return name;
  }

  void compare_vocabulary() {
    const Json& outputs = truth_.at("outputs");
    if (!outputs.contains("logits") || !model_.vocabulary) {
      if (outputs.contains("logits") && is_language_head(outputs.at("logits"))) differ("no vocabulary");
      return;
    }
    const Json& truth = outputs.at("logits");
    const model::Vocabulary& vocabulary = *model_.vocabulary;
    const Json& map = truth.at("maps").at(0);
    if (!vocabulary.unembedding) return differ("no unembedding");
    if (vocabulary.unembedding->weight.selector() != text(map.at("weight"))) {
      differ("unembedding {}, in truth {}", vocabulary.unembedding->weight.selector(),
             map.at("weight").dump());
    }
    if (tensor_of(vocabulary.unembedding->bias) != text(truth.at("bias"))) differ("bias of the unembedding");
    const std::set<std::string> tables = embeddings();
    const bool tied = tables.count(text(map.at("weight"))) != 0;
    if (!tables.empty() && vocabulary.tied != tied) differ("tied: {}", vocabulary.tied);
    if (!vocabulary.not_modelled.empty()) return differ("logits: not modelled: {}", vocabulary.not_modelled);
    const Json& reads = truth.at("reads");
    const bool is_norm = reads.size() == 1 && text(reads[0].at("kind")) == "norm";
    std::string norm;
    for (const Json& truth_norm : truth_.at("norms")) {
      if (is_norm && truth_norm.at("module") == reads[0].at("norm")) norm = key_of(truth_norm);
    }
    const std::string found = key_of_norm_named(vocabulary.final_norm);
    if (found != norm) differ("final norm {}, in truth {}", found, norm);
    compare_logits(truth, vocabulary);
  }

  // A language head names as many outputs as a token embedding has rows.
  bool is_language_head(const Json& logits) const {
    const Json& maps = logits.at("maps");
    if (maps.empty() || !maps[0].at("weight").is_string()) return false;
    const checkpoint::Tensor* const tensor = checkpoint_.find(text(maps[0].at("weight")));
    return tensor != nullptr && tensor->shape.size() == 2 && tensor->shape[0] == 29;
  }

  // Tables whose rows a norm reads unchanged; empty where a map lies between (OPT-350M).
  std::set<std::string> embeddings() const {
    std::set<std::string> tables;
    for (const Json& norm : truth_.at("norms")) {
      for (const Json& execution : norm.at("reads")) {
        for (const Json& term : execution) {
          if (text(term.at("kind")) == "embedding") tables.insert(text(term.at("tensor")));
        }
      }
    }
    return tables;
  }

  void compare_logits(const Json& truth, const model::Vocabulary& vocabulary) {
    const model::Linear& map = *vocabulary.unembedding;
    const std::vector<double> weight = model::read_weight(checkpoint_, map, 0, map.out);
    const std::vector<double> bias = model::read_bias(checkpoint_, map);
    const auto hidden = truth.at("hidden").at(0).get<std::vector<double>>();
    const auto values = truth.at("values").at(0).get<std::vector<double>>();
    if (hidden.size() != map.in || values.size() != map.out)
      return differ("the unembedding has another shape");
    for (std::size_t token = 0; token < map.out; ++token) {
      double logit = bias.empty() ? 0.0 : bias[token];
      for (std::size_t j = 0; j < map.in; ++j) logit += weight[token * map.in + j] * hidden[j];
      logit *= vocabulary.logit_scale;
      if (vocabulary.soft_cap > 0.0) logit = vocabulary.soft_cap * std::tanh(logit / vocabulary.soft_cap);
      if (!(std::abs(logit - values[token]) <= 1e-4 * (1.0 + std::abs(values[token])))) {
        return differ("logit {} is {}, in truth {}", token, logit, values[token]);
      }
    }
  }

  const checkpoint::Checkpoint& checkpoint_;
  Json truth_;
  model::Model model_;
  std::vector<std::string> differences_;
};

/// What the description of a fixture says otherwise than its truth; empty where it is right.
inline std::vector<std::string> oracle_differences(const std::string& name) {
  try {
    const checkpoint::Checkpoint checkpoint(oracle_folder() / name);
    std::ifstream file(oracle_folder() / name / "truth.json");
    return OracleComparison(checkpoint, nlohmann::json::parse(file)).run();
  } catch (const std::exception& error) {
    return {fmt::format("{}: {}", name, error.what())};
  }
}

}  // namespace normscope::test
