#include <normscope/results/documents.hpp>

#include <array>

#include "fields.hpp"

namespace normscope {

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace normscope

namespace normscope::results {

/// Makes the schema of a kind of document; defined beside the `fields` of the result.
using Describe = Json(SchemaMaker& maker);
Describe describe_activations, describe_apply, describe_attribute, describe_build, describe_build_trace,
    describe_charts, describe_compare, describe_count, describe_curvature, describe_geometry, describe_heads,
    describe_hierarchy, describe_inspect, describe_lab, describe_morph, describe_ranges, describe_reach,
    describe_report, describe_rewrite, describe_run, describe_select, describe_select_table,
    describe_separate, describe_signature_compare, describe_signature_extract, describe_signature_kind,
    describe_signature_verify, describe_token_trace, describe_trace, describe_train, describe_undo,
    describe_verify;

namespace {

struct Renamed {
  const char* name;
  const char* here;
};

/// A kind of document. This table is the only list of them.
struct Kind {
  const char* name;
  const char* title;
  const char* about;
  const char* written_by;
  Describe* describe;
  std::vector<Renamed> renamed{};  ///< shapes with another name here, or none: they stand where they occur
  const char* id = "";  ///< what the table of schemas calls it, if documents do not name their schema
};

std::vector<Kind> kinds() {
  return {
      {"report", "Everything about the norms of one checkpoint",
       "Written by `normscope report`; the same document fills the HTML page.",
       "`normscope report MODEL --json FILE`", describe_report},
      {"inspect",
       "Tensors, architecture and norms of one checkpoint",
       "Written by `normscope inspect`, once the file has passed every check.",
       "`normscope inspect FILE --json FILE`",
       describe_inspect,
       {{"norm_kind", ""}}},
      {"geometry", "The image of one norm", "Written by `normscope geometry`.",
       "`normscope geometry … --json FILE`", describe_geometry},
      {"curvature", "How nonlinear a norm is, by group count", "Written by `normscope curvature`.",
       "`normscope curvature X --json FILE`", describe_curvature},
      {"select", "Selectable keys", "Written by `normscope select KEYS`.",
       "`normscope select KEYS --json FILE`", describe_select},
      {"heads",
       "Bounds of attention heads",
       "Written by `normscope heads MODEL`.",
       "`normscope heads MODEL --json FILE`",
       describe_heads,
       {{"head", ""}, {"bounds", ""}}},
      {"separate", "Separation of classes of rows", "Written by `normscope separate`.",
       "`normscope separate A B` or `A --labels L`, `--json FILE`", describe_separate},
      {"select-table", "Random keys that cannot be selected", "Written by `normscope select --random-table`.",
       "`normscope select --random-table --json FILE`", describe_select_table},
      {"reach", "Tokens a model can output",
       "Written by `normscope reach`. Logits after the final norm are A u + a with u in the unit ball; a "
       "token is reachable when its logit is strictly the largest for some u.",
       "`normscope reach MODEL --json FILE`", describe_reach},
      {"verify", "Check of a result's statements",
       "Written by `normscope verify RESULT INPUTS`; of ranges and rewrites by `normscope.verify` of Python.",
       "`normscope verify RESULT INPUTS --json FILE`", describe_verify},
      {"apply", "Result of `normscope apply`",
       "Written by `normscope apply`; the result itself is the .npy file.",
       "`normscope apply X -o Y.npy --json FILE`", describe_apply},
      {"ranges",
       "What every norm guarantees its readers",
       "Written by `normscope ranges`. Intervals of the numbers that linear maps compute directly behind "
       "a norm, over every input of the norm.",
       "`normscope ranges MODEL --json FILE`",
       describe_ranges,
       {{"range_end", "end"},
        {"range_rows", "rows"},
        {"number_types", "types"},
        {"reader_ranges", "reader"},
        {"norm_ranges", "norm"}}},
      {"signature-verify", "Whether rows of outputs are a model's",
       "Written by `normscope signature verify`.", "`normscope signature verify MODEL OUTPUTS --json FILE`",
       describe_signature_verify},
      {"signature-extract", "The ellipse that outputs lie on",
       "Written by `normscope signature extract`; axes and centre are in the file that `path` names.",
       "`normscope signature extract OUTPUTS -o ELLIPSE --json FILE`", describe_signature_extract},
      {"signature-kind", "The norm behind outputs", "Written by `normscope signature kind`.",
       "`normscope signature kind OUTPUTS --json FILE`", describe_signature_kind},
      {"signature-compare", "Two ellipses", "Written by `normscope signature compare`.",
       "`normscope signature compare ONE OTHER --json FILE`", describe_signature_compare},
      {"rewrite", "Rewritten checkpoint",
       "Written by `normscope rewrite IN -o OUT`: the plan, and a certificate for every tensor whose "
       "values were computed.",
       "`normscope rewrite IN -o OUT`, `OUT/rewrite.json` or `OUT.rewrite.json`, and `--json FILE`",
       describe_rewrite},
      {"undo", "Rewrite undone", "Written by `normscope rewrite IN -o OUT --undo --json FILE`.",
       "`normscope rewrite IN -o OUT --undo --json FILE`", describe_undo},
      {"compare", "Two checkpoints compared", "Written by `normscope compare OLD NEW`. Errors are relative.",
       "`normscope compare OLD NEW --json FILE`", describe_compare},
      {"activations", "What data does in the norms of a model",
       "Made by `normscope.watch` of the Python package.",
       "`normscope.watch` of the Python package, `normscope trace MODEL TEXT --activations FILE`, "
       "`normscope report MODEL --text TEXT --activations FILE`",
       describe_activations},
      {"token-trace", "A text through a model",
       "Written by `normscope trace`. What each norm on the residual stream does with each token, which "
       "keys of the text each head can select, and which tokens may follow.",
       "`normscope trace MODEL TEXT --json FILE`", describe_token_trace},
      {"attribute", "What each component contributes to a logit",
       "Written by `normscope attribute`. A reading is a logit or a difference of two; a component is an "
       "addend of the residual stream. [attribution.md](../attribution.md) explains the numbers.",
       "`normscope attribute MODEL TEXT --target TOKEN --json FILE`", describe_attribute},
      {"train", "Result of `normscope nets train`",
       "One training, or several, with consecutive seeds or several counts of groups, of which the best "
       "is given in full. Arrays over the steps hold one value every `record_every` steps, for that "
       "step's batch and before the step.",
       "`normscope nets train TASK --json FILE`", describe_train},
      {"lab", "What `normscope lab` knows or found",
       "All experiments, from `lab list`, or one with the results of its runs, from `lab run NAME` and "
       "`lab show NAME`.",
       "`normscope lab list --json FILE`, `normscope lab run NAME --json FILE`", describe_lab},
      {"count", "How a recurrent network counts", "Written by `normscope nets count`.",
       "`normscope nets count --json FILE`", describe_count},
      {"trace", "Inside a recurrent network while it reads a word",
       "Written by `normscope nets count --states`.", "`normscope nets count --states FILE`", describe_trace},
      {"morph", "Samples on their way through an LN-Net",
       "What an animation from layer to layer needs. At time s in [l, l + 1] a point stands at (1 - (s - "
       "l)) states[l] + (s - l) states[l + 1].",
       "`normscope nets train TASK --figures FOLDER`, `morph.json`", describe_morph},
      {"build", "Result of `normscope nets build`", "The net itself is in the file `output`.",
       "`normscope nets build X LABELS -o NET.safetensors --json FILE`", describe_build},
      {"charts",
       "Figures of a report",
       "In the pages of `normscope report` and `normscope compare`, as the element `chart-data`.",
       "the element `chart-data` of the pages that `report`, `compare -o`, `ranges -o` and `trace -o` write",
       describe_charts,
       {},
       "no name"},
      {"hierarchy", "Hierarchy of recurrent architectures", "What the explorer's chapter on counting shows.",
       "the core, for the explorer's chapter on counting", describe_hierarchy},
      {"build-trace",
       "A line of `normscope nets build --folds FILE`",
       "What one layer of the net does: a fold w' = sqrt(1 + ((w - midpoint)/radius)^2) of the line that "
       "the samples lie on. Coordinate w is the projection in the first layer (of the rows over a power "
       "of two where they are beyond 2^200 or below 2^-100), 1/p after it, p being what the layer before "
       "gives; p itself in paper mode.",
       "`normscope nets build … --folds FILE`",
       describe_build_trace,
       {},
       "one line per layer"},
      {"run", "Result of `normscope nets run`", "The class of each row.",
       "`normscope nets run NET.safetensors X --json FILE`", describe_run},
  };
}

constexpr std::size_t line_width = 120;

/// JSON with as many members a line as fit, every property and definition on a line of its own.
class CompactText {
 public:
  [[nodiscard]] static std::string of(const Json& value) {
    CompactText text;
    text.write(value, 0, false);
    return text.text_ + "\n";
  }

 private:
  void write(const Json& value, std::size_t indent, bool one_a_line) {
    const bool is_list = value.is_array();
    if (!value.is_structured() || (!one_a_line && fits(value, 2))) {
      put(line(value));
      return;
    }
    put(is_list ? "[" : "{");
    bool first = true;
    for (const auto& [name, member] : value.items()) {
      const std::string label = is_list ? "" : Json(name).dump() + ": ";
      const bool own_lines = name == "properties" || name == "$defs";
      const bool breaks = one_a_line || (!first && (own_lines || !fits(member, label.size() + 4)));
      if (!first) put(breaks ? "," : ", ");
      if (breaks) start_line(indent + 1);
      put(label);
      write(member, indent + 1, own_lines && !one_a_line);
      first = false;
    }
    put(is_list ? "]" : "}");
  }

  /// On one line.
  static std::string line(const Json& value) {
    if (!value.is_structured()) return value.dump();
    std::string text = value.is_array() ? "[" : "{";
    for (const auto& [name, member] : value.items()) {
      if (text.size() > 1) text += ", ";
      text += (value.is_array() ? "" : Json(name).dump() + ": ") + line(member);
    }
    return text + (value.is_array() ? "]" : "}");
  }
  [[nodiscard]] bool fits(const Json& value, std::size_t beside) const {
    return text_.size() - start_ + beside + line(value).size() <= line_width;
  }
  void put(const std::string& text) { text_ += text; }
  void start_line(std::size_t indent) {
    text_ += '\n';
    start_ = text_.size();
    text_.append(indent, ' ');
  }

  std::string text_{};
  std::size_t start_ = 0;
};

}  // namespace

Json SchemaMaker::described(const Json& schema, const char* about) {
  if (*about == '\0') return schema;
  Json text = Json::object();
  for (const auto& [keyword, value] : schema.items()) {
    // A reader meets the description after what is short, and before the members.
    const bool is_short = !value.is_structured() || keyword == "type" || keyword == "enum";
    if (!is_short && !text.contains("description")) text["description"] = about;
    if (keyword != "description") text[keyword] = value;
  }
  text["description"] = about;
  return text;
}

Json SchemaMaker::list_of(Json items, std::size_t fixed) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (fixed > 0) {
    schema["minItems"] = fixed;
    schema["maxItems"] = fixed;
  }
  return schema;
}

Json SchemaMaker::or_null(Json schema) {
  if (schema.contains("type") && schema["type"].is_array()) return schema;
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
  } else if (schema.contains("type") && schema["type"].is_string()) {
    schema["type"] = {schema["type"], "null"};
  } else {
    schema = {{"anyOf", {schema, {{"type", "null"}}}}};
  }
  return schema;
}

void SchemaMaker::narrow(Json& schema, const Limits& limits) {
  const auto set = [&](const char* keyword, std::optional<double> value) {
    if (!value) return;
    const bool is_whole = *value == std::floor(*value);
    schema[keyword] = is_whole ? Json(static_cast<std::int64_t>(*value)) : Json(*value);
  };
  set("minimum", limits.minimum);
  set("maximum", limits.maximum);
  set("exclusiveMinimum", limits.above);
  if (limits.pattern != nullptr) schema["pattern"] = limits.pattern;
  if (limits.min_items) schema["minItems"] = *limits.min_items;
  if (limits.max_items) schema["maxItems"] = *limits.max_items;
}

void SchemaMaker::add(std::string_view name, const Json& schema, const char* about) {
  properties_[std::string(name)] = described(schema, about);
}

Json SchemaMaker::finish() {
  Json schema = {{"type", "object"}, {"required", required_}, {"additionalProperties", false}};
  schema.update(rules_);
  schema["properties"] = std::move(properties_);
  return *name_ == '\0' ? schema : refer(name_, schema, about_);
}

Json SchemaMaker::refer(const char* shape, const Json& schema, const char* about) {
  const auto renamed = definitions_.renamed.find(shape);
  const std::string name = renamed == definitions_.renamed.end() ? shape : renamed->second;
  if (name.empty()) return schema;
  definitions_.schemas[name] = described(schema, about);
  return {{"$ref", "#/$defs/" + name}};
}

std::vector<Schema> schemas() {
  std::vector<Schema> made;
  for (const Kind& kind : kinds()) {
    SchemaMaker::Definitions definitions;
    for (const Renamed& shape : kind.renamed) definitions.renamed[shape.name] = shape.here;
    SchemaMaker maker(definitions);
    Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", kind.title}};
    schema.update(SchemaMaker::described(kind.describe(maker), kind.about));
    if (!definitions.schemas.empty()) schema["$defs"] = std::move(definitions.schemas);
    const std::string id = *kind.id == '\0' ? "`normscope." + std::string(kind.name) + "/1`" : kind.id;
    made.push_back({kind.name, id, kind.written_by, CompactText::of(schema)});
  }
  return made;
}

}  // namespace normscope::results
