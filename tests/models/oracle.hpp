#pragma once

#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/oracle_norms.hpp"
#include "support/fixtures.hpp"
#include "support/scratch.hpp"

namespace normscope::test {

/// The comparison of heads and of the vocabulary; see oracle_norms.hpp.
class OracleComparison : OracleNorms {
 public:
  using OracleNorms::OracleNorms;

  std::vector<std::string> run() {
    compare_all_norms();
    compare_heads();
    compare_vocabulary();
    return std::move(differences_);
  }

 private:
  // A map for each head, stored as entries of one tensor, whose bias the truth lists as added.
  static bool is_stack(const Json& side) {
    return side.at("maps").size() > 1 && side.at("maps")[0].contains("slice") &&
           side.at("maps")[0].at("slice").is_number();
  }

  // Each token chooses the maps of its queries.
  static bool is_chosen(const Json& side) {
    const Json& operations = side.at("operations");
    return std::find(operations.begin(), operations.end(), "topk") != operations.end();
  }

  // Terms of a head's scores that the bounds do not cover.
  static bool beyond_heads(const Json& attention) {
    for (const Json& operation : attention.at("score_operations")) {
      if (!operation.contains("what")) continue;
      const std::string what = text(operation.at("what"));
      if (what != "mask" && what != "zeros") return true;
    }
    for (const char* side : {"query", "key"}) {
      if (attention.at(side).at("scaled_by_position").get<bool>()) return true;
      if (!is_stack(attention.at(side)) && attention.at(side).at("maps").size() != 1) return true;
      for (const Json& operation : attention.at(side).at("operations")) {
        if (text(operation) == "clamp") return true;
      }
      if (!is_stack(attention.at(side)) && !attention.at(side).at("added").empty()) return true;
    }
    // Bounds over distances are for keys at or before the query, and for one norm of queries and keys.
    const std::string visible = text(attention.at("visible"));
    if (visible == "all" && attention.at("query").at("position_table").get<bool>()) return true;
    if (attention.at("query").at("reads") != attention.at("key").at("reads")) return true;
    return !attention.at("sinks").is_null() || attention.at("windows") != 1 ||
           (visible != "causal" && visible != "all") ||
           (visible == "all" && !attention.at("window").is_null());
  }

  // A description may say that no head is modelled.
  bool leaves_out_heads() const {
    return model_.heads.empty() &&
           std::any_of(model_.notes.begin(), model_.notes.end(),
                       [](const std::string& note) { return note.starts_with("heads are not modelled"); });
  }

  void compare_heads() {
    if (leaves_out_heads()) return;
    for (const Json& attention : truth_.at("attention")) {
      const Json& maps = attention.at("query").at("maps");
      const std::string module = text(attention.at("module"));
      if (maps.empty()) continue;  // learned queries: no head of linear maps
      if (is_chosen(attention.at("query")) && model_.heads.empty()) continue;
      if (maps.size() > 1 && refuses(maps)) continue;
      if ((maps.size() != 1 && !is_stack(attention.at("query"))) || !maps[0].at("weight").is_string()) {
        differ("{}: queries of {} maps", module, maps.size());
        continue;
      }
      const Outputs whole = [&] {
        Outputs outputs;
        add(outputs, maps[0]);
        return outputs;
      }();
      std::vector<const models::Head*> heads;
      for (const models::Head& head : model_.heads) {
        const bool stacked = is_stack(attention.at("query"));
        if (head.query && (stacked ? head.query->weight.tensor == text(maps[0].at("weight"))
                                   : head.query->weight.selector() == whole.begin()->first)) {
          heads.push_back(&head);
        }
      }
      // Without a configuration their number is unknown.
      if (heads.empty() &&
          !std::filesystem::exists(checkpoint_.files().front().parent_path() / "config.json")) {
        continue;
      }
      // Where heads are refused, blocks of keys or of n-grams count as heads of their own.
      const bool refused =
          !heads.empty() && std::all_of(heads.begin(), heads.end(),
                                        [](const models::Head* head) { return !head->not_modelled.empty(); });
      if (refused && attention.at("heads").get<std::size_t>() % heads.size() == 0 &&
          attention.at("heads").get<std::size_t>() != heads.size()) {
        continue;
      }
      if (heads.size() != attention.at("heads").get<std::size_t>()) {
        differ("{}: {} heads, in truth {}", module, heads.size(), attention.at("heads").get<int>());
        continue;
      }
      for (std::size_t h = 0; h < heads.size(); ++h) compare_head(attention, *heads[h], h);
    }
    if (truth_.at("attention").empty() && !model_.heads.empty()) differ("heads in a model without attention");
  }

  // Whether nothing is said of the scores of queries that several maps add up to.
  bool refuses(const Json& maps) const {
    std::set<std::string> tensors;
    for (const Json& map : maps) tensors.insert(text(map.at("weight")));
    bool found = false;
    for (const models::Head& head : model_.heads) {
      if (!head.query || !tensors.contains(head.query->weight.tensor)) continue;
      found = true;
      if (head.not_modelled.empty()) return false;
    }
    return found;
  }

  void compare_part(const Json& attention, const char* side, std::size_t h,
                    const std::optional<models::Linear>& part) {
    const std::string place = fmt::format("{} {} of head {}", text(attention.at("module")), side, h);
    const Json& truth = attention.at(side);
    const bool stacked = is_stack(truth);
    if (!stacked && truth.at("maps").size() != 1) return;  // beyond heads
    if (!part) return differ("{} is not there", place);
    Outputs found;
    add(found, *part);
    Outputs expected;
    const std::size_t share =
        stacked ? h * truth.at("maps").size() / attention.at("heads").get<std::size_t>() : 0;
    const Json& map = truth.at("maps")[share];
    add(expected, map);
    if (stacked) {
      if (found != expected) differ("{}: another entry than in truth", place);
      if (!part->bias || part->bias->tensor != text(map.at("bias")) ||
          part->bias->index != map.at("slice").get<std::uint64_t>()) {
        differ("{}: bias", place);
      }
      return;
    }
    const std::vector<std::uint64_t> rows(expected.begin()->second.begin(), expected.begin()->second.end());
    std::set<std::uint64_t> own;
    for (const Json& range : truth.at("features")[h]) {
      for (std::size_t j = 0; j < range[1].get<std::size_t>(); ++j) {
        own.insert(rows[range[0].get<std::size_t>() + j]);
      }
    }
    expected.begin()->second = own;
    if (found != expected) differ("{}: other outputs than in truth", place);
    if (tensor_of(part->bias) != text(map.at("bias"))) differ("{}: bias", place);
  }

  void compare_head(const Json& attention, const models::Head& head, std::size_t h) {
    const std::string place = fmt::format("{} head {}", text(attention.at("module")), h);
    compare_part(attention, "query", h, head.query);
    compare_part(attention, "key", h, head.key);
    const bool beyond = beyond_heads(attention) || (is_module() && !states_norm_first());
    const bool is_bounded = head.not_modelled.empty() && models::beyond_bounds(head).empty();
    if (beyond && is_bounded) differ("{}: nothing is said to be beyond bounds", place);
    if (!beyond && !head.not_modelled.empty()) differ("{}: not modelled: {}", place, head.not_modelled);
    if (!is_bounded) return;
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
    for (const models::Norm& norm : model_.norms) {
      if (norm.name == name) return key_of(norm);
    }
    return name;
  }

  void compare_vocabulary() {
    const Json& outputs = truth_.at("outputs");
    if (is_module()) return;  // its head is the model's own code
    if (!outputs.contains("logits") || !model_.vocabulary) {
      if (outputs.contains("logits") && is_language_head(outputs.at("logits"))) differ("no vocabulary");
      return;
    }
    const Json& truth = outputs.at("logits");
    const models::Vocabulary& vocabulary = *model_.vocabulary;
    const Json& map = truth.at("maps").at(0);
    if (!vocabulary.unembedding) return differ("no unembedding");
    if (vocabulary.unembedding->weight.selector() != text(map.at("weight"))) {
      differ("unembedding {}, in truth {}", vocabulary.unembedding->weight.selector(),
             map.at("weight").dump());
    }
    // A bias added separately from the map shows only in the values.
    const bool apart = truth.at("operations") == Json::parse(R"([{"op": "add"}])");
    if (!apart && tensor_of(vocabulary.unembedding->bias) != text(truth.at("bias"))) {
      differ("bias of the unembedding");
    }
    const std::set<std::string> tables = embeddings(map.at("stored_out").get<std::uint64_t>());
    const bool tied = tables.contains(text(map.at("weight")));
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
    const files::Tensor* const tensor = checkpoint_.find(text(maps[0].at("weight")));
    return tensor != nullptr && tensor->shape.size() == 2 && tensor->shape[0] == 29;
  }

  // Tables of `rows` rows that a norm reads unchanged; empty where a map lies between (OPT-350M).
  std::set<std::string> embeddings(std::uint64_t rows) const {
    std::set<std::string> tables;
    for (const Json& norm : truth_.at("norms")) {
      for (const Json& execution : norm.at("reads")) {
        for (const Json& term : execution) {
          if (text(term.at("kind")) != "embedding") continue;
          const files::Tensor* const table = checkpoint_.find(text(term.at("tensor")));
          if (table != nullptr && table->shape[0] == rows) tables.insert(text(term.at("tensor")));
        }
      }
    }
    return tables;
  }

  void compare_logits(const Json& truth, const models::Vocabulary& vocabulary) {
    const models::Linear& map = *vocabulary.unembedding;
    const std::vector<double> weight = models::read_weight(checkpoint_, map, 0, map.out);
    const std::vector<double> bias = models::read_bias(checkpoint_, map);
    const auto hidden = truth.at("hidden").at(0).get<std::vector<double>>();
    // These numbers are the norm's times a factor, which the description has in its scale.
    const Json& reads = truth.at("reads");
    const double factor = reads.size() == 1 ? reads[0].value("factor", 1.0) : 1.0;
    const auto values = truth.at("values").at(0).get<std::vector<double>>();
    if (hidden.size() != map.in || values.size() != map.out)
      return differ("the unembedding has another shape");
    for (std::size_t token = 0; token < map.out; ++token) {
      double logit = bias.empty() ? 0.0 : bias[token];
      for (std::size_t j = 0; j < map.in; ++j) logit += weight[token * map.in + j] * hidden[j] / factor;
      logit *= vocabulary.logit_scale;
      if (vocabulary.soft_cap > 0.0) logit = vocabulary.soft_cap * std::tanh(logit / vocabulary.soft_cap);
      if (!(std::abs(logit - values[token]) <= 1e-4 * (1.0 + std::abs(values[token])))) {
        return differ("logit {} is {}, in truth {}", token, logit, values[token]);
      }
    }
  }
};

/// The differences between the description of a fixture and its truth; empty if there are none. `config`: a
/// configuration for a fixture that has none.
inline std::vector<std::string> oracle_differences(const std::string& name, const std::string& config = {}) {
  try {
    const Scratch scratch;
    const std::filesystem::path folder = config.empty() ? fixture(name) : scratch / "model";
    if (!config.empty()) {
      std::filesystem::copy(fixture(name), folder);
      std::ofstream(folder / "config.json") << config;
    }
    const files::Checkpoint checkpoint(folder);
    std::ifstream file(fixture(name) / "truth.json");
    return OracleComparison(checkpoint, nlohmann::json::parse(file)).run();
  } catch (const std::exception& error) {
    return {fmt::format("{}: {}", name, error.what())};
  }
}

}  // namespace normscope::test
