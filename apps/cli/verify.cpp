#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/array.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/verify/verify.hpp>

#include "norm_options.hpp"

namespace normscope::cli {
namespace {

using verify::Finding;
using verify::Result;
using verify::Verification;

/// Largest number of findings printed of each kind.
constexpr std::size_t findings_said = 10;

/// The files and folder that `verify` reads a result's inputs and certificates from.
struct VerifyInputs {
  std::vector<std::string> names;  ///< in the order of the result's arguments; empty: those the result names
  std::string folder;              ///< of the certificates; empty: the one that the result names
  unsigned threads = 0;
  Progress progress{};
};

/// A folder written by --certificates.
class CertificateFolder : public verify::Folder {
 public:
  explicit CertificateFolder(std::string folder) : folder_(std::move(folder)) {}

  [[nodiscard]] std::vector<double> read(const std::string& name) const override {
    return files::read_array((std::filesystem::path(folder_) / (name + ".npy")).string()).values;
  }

 private:
  std::string folder_;
};

/// Opens the inputs that a result names and compares them with what the result states.
class ResultReader {
 public:
  ResultReader(const Result& result, const VerifyInputs& given, Inputs& inputs)
      : result_(result), given_(given), inputs_(inputs) {
    const std::vector<verify::Argument>& arguments = result.inputs().arguments;
    const std::vector<std::string>& names = given.names;
    if (!names.empty() && names.size() != arguments.size()) {
      std::string roles;
      for (const verify::Argument& argument : arguments) {
        roles += (roles.empty() ? "" : ", ") + printable(argument.role);
      }
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: was computed from {} ({}), expected as many INPUTS, got {}",
                              result.source(), counted(arguments.size(), "input"), roles, names.size()));
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      names_.emplace_back(arguments[i].role, names.empty() ? arguments[i].name : names[i]);
    }
    const std::string folder = given.folder.empty() ? result.folder().value_or("") : given.folder;
    if (!folder.empty()) folder_.emplace(folder);
    for (const auto& [role, name] : names_) {
      if (role == "model") {
        static_cast<void>(inputs_.checkpoint(name));
      } else {
        static_cast<void>(inputs_.array(name));
      }
    }
  }

  [[nodiscard]] Verification verify() {
    if (result_.kind() == "select") return verify_select();
    if (result_.kind() == "separate") return verify_separate();
    if (result_.kind() == "heads") return verify_heads();
    if (result_.kind() == "attribute") return verify_attribute();
    return verify_reach();
  }

 private:
  /// The file for that role; empty where the result names none.
  [[nodiscard]] std::string name(std::string_view role) const {
    const auto found =
        std::find_if(names_.begin(), names_.end(), [&](const auto& entry) { return entry.first == role; });
    return found == names_.end() ? std::string() : found->second;
  }
  [[nodiscard]] std::string needed(std::string_view role) const {
    std::string file = name(role);
    if (file.empty()) {
      throw Error(ErrorCode::Format, fmt::format("{}: names no {} among its inputs", result_.source(), role));
    }
    return file;
  }

  [[nodiscard]] MatrixInput take(const char* role, MatrixInput (*read)(const files::OpenedArray&)) {
    const files::OpenedArray array = inputs_.array(needed(role));
    MatrixInput matrix = read(array);
    add_array(found_, role, array.name(), matrix, given_.threads);
    return matrix;
  }

  /// Compares the arrays read with those that the result states.
  void expect_inputs() const {
    std::string who;
    for (const auto& [role, file] : names_) who += (who.empty() ? "" : ", ") + printable(file);
    result_.expect_arrays(found_.arrays, who);
  }

  [[nodiscard]] NormOptions norm_options() const {
    NormOptions options;
    options.kind = result_.text({"norm", "kind"});
    options.eps = result_.number({"norm", "eps"});
    if (result_.has({"norm", "groups"})) {
      options.groups = static_cast<std::size_t>(result_.number({"norm", "groups"}));
    }
    options.gain = name("gain");
    options.bias = name("norm bias");
    options.gain_offset = result_.inputs().gain_offset;
    return options;
  }

  [[nodiscard]] verify::VerifyOptions options() const { return {given_.threads, given_.progress}; }
  [[nodiscard]] const verify::Folder* folder() const { return folder_ ? &*folder_ : nullptr; }

  [[nodiscard]] Verification verify_select() {
    MatrixInput keys =
        take("keys", [](const files::OpenedArray& array) { return read_matrix(array, Rows::any); });
    const bool behind_norm = result_.has({"norm"});
    if (behind_norm) {
      const NormOptions options = norm_options();
      KeyNorm norm{options.open(inputs_), result_.texts({"norm", "steps"})};
      const GivenNorm spec = norm.norm->of_width(keys.width);
      add_norm(found_, options, spec);
      if (norm.steps.empty()) {
        throw Error(ErrorCode::Format,
                    fmt::format("{}: norm.steps is empty, expected a step of the norm", result_.source()));
      }
      // All four steps in their order are the norm itself.
      if (norm.steps == KeyNorm::all_steps()) norm.steps.clear();
      expect_inputs();
      norm.apply(spec, {keys.values.data(), keys.rows, keys.width});
    } else {
      expect_inputs();
    }
    return verify::verify_select(result_, keys.view(), behind_norm, folder(), options());
  }

  [[nodiscard]] Verification verify_separate() {
    verify::ClassRows classes;
    if (name("labels").empty()) {
      const auto read = [](const files::OpenedArray& array) { return read_matrix(array); };
      const MatrixInput a = take("a", read);
      const MatrixInput b = take("b", read);
      expect_inputs();
      add_class(classes, a, all_rows(a.rows));
      add_class(classes, b, all_rows(b.rows));
      return verify(classes);
    }
    const MatrixInput samples = take("samples", read_samples);
    const std::vector<std::int64_t> labels = read_labels(inputs_.array(needed("labels")));
    add_array(found_, "labels", name("labels"), {{labels.begin(), labels.end()}, labels.size(), 1},
              given_.threads);
    expect_inputs();
    const std::vector<std::int64_t> stated = result_.integers({"classes"});
    if (labels.size() != samples.rows) {
      throw Error(ErrorCode::Shape,
                  fmt::format("{}: has {}, expected one for each of {}", name("labels"),
                              counted(labels.size(), "label"), counted(samples.rows, "row")));
    }
    if (std::set<std::int64_t>(stated.begin(), stated.end()).size() != stated.size()) {
      throw Error(ErrorCode::Format, fmt::format("{}: names a class twice", result_.source()));
    }
    const std::set<std::int64_t> every(labels.begin(), labels.end());
    classes.labels.assign(every.begin(), every.end());
    for (const std::int64_t label : stated) {
      std::vector<std::size_t> rows;
      for (std::size_t row = 0; row < labels.size(); ++row) {
        if (labels[row] == label) rows.push_back(row);
      }
      add_class(classes, samples, std::move(rows));
    }
    return verify(classes);
  }

  static std::vector<std::size_t> all_rows(std::size_t count) {
    std::vector<std::size_t> rows(count);
    for (std::size_t i = 0; i < count; ++i) rows[i] = i;
    return rows;
  }

  void add_class(verify::ClassRows& classes, const MatrixInput& from, std::vector<std::size_t> rows) {
    std::vector<double> values;
    for (const std::size_t row : rows) {
      values.insert(values.end(), from.view().row(row).begin(), from.view().row(row).end());
    }
    values_.push_back(std::move(values));
    classes.rows.emplace_back(values_.back().data(), rows.size(), from.width);
    classes.numbers.push_back(std::move(rows));
  }

  [[nodiscard]] Verification verify(const verify::ClassRows& classes) const {
    return verify::verify_separate(result_, classes, options());
  }

  [[nodiscard]] Verification verify_reach() {
    if (const std::string file = name("model"); !file.empty()) {
      const files::Checkpoint& checkpoint = inputs_.checkpoint(file);
      verify::ModelHead head =
          verify::read_model_head(checkpoint, inputs_.model_of(checkpoint, result_.inputs().stated));
      head.read_names(checkpoint);
      found_.arrays = head.arrays(given_.threads);
      expect_inputs();
      return verify::verify_reach(result_, head.head(), folder(), options());
    }
    const MatrixInput weights =
        take("unembedding", [](const files::OpenedArray& array) { return read_matrix(array); });
    std::vector<double> bias;
    if (const std::string file = name("unembedding bias"); !file.empty()) {
      bias = inputs_.array(file).row();
      found_.arrays.push_back(verify::describe_array("unembedding bias", {bias.size()}, bias));
    }
    const NormOptions norm = norm_options();
    const GivenNorm spec = norm.open(inputs_).of_width(weights.width);
    add_norm(found_, norm, spec);
    expect_inputs();
    verify::VocabularyHead head{spec, weights.view(), bias};
    if (spec.model) head.facts.norm_name = spec.model->name;
    return verify::verify_reach(result_, head, folder(), options());
  }

  [[nodiscard]] Verification verify_heads() {
    const files::Checkpoint& checkpoint = inputs_.checkpoint(needed("model"));
    const models::Model& model = inputs_.model_of(checkpoint, result_.inputs().stated);
    const verify::ModelHeads heads(checkpoint, model);
    // Without certificates a result names no arrays.
    if (!result_.inputs().arrays.empty()) found_.arrays = heads.arrays(given_.threads);
    expect_inputs();
    return verify::verify_heads(result_, heads, options());
  }

  [[nodiscard]] Verification verify_attribute() {
    const files::Checkpoint& checkpoint = inputs_.checkpoint(needed("model"));
    return verify::verify_attribute(result_, checkpoint,
                                    inputs_.model_of(checkpoint, result_.inputs().stated));
  }

  const Result& result_;
  const VerifyInputs& given_;
  Inputs& inputs_;
  std::vector<std::pair<std::string, std::string>> names_{};
  std::optional<CertificateFolder> folder_{};
  verify::Inputs found_{};
  std::vector<std::vector<double>> values_{};  ///< of the classes
};

struct VerifyOptions {
  std::string result;
  std::vector<std::string> inputs;
  std::string certificates;
};

Result read_result(const std::string& path) {
  const MappedFile file(path);
  return {{reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, printable(path)};
}

void say_findings(const Session& session, const char* what, const std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < findings.size() && i < findings_said; ++i) {
    session.say(fmt::format("  {}: {}: {}", what, printable(findings[i].item), findings[i].reason));
  }
  if (findings.size() > findings_said)
    session.say(fmt::format("  ... and {} more", findings.size() - findings_said));
}

int run_verify(const Session& session, Inputs& inputs, Outputs& outputs, const VerifyOptions& options) {
  const Result result = read_result(options.result);
  inputs.add_file(options.result);
  const VerifyInputs given{options.inputs, options.certificates, session.threads, session.progress()};
  const Verification found = ResultReader(result, given, inputs).verify();
  outputs.commit([&] { return json_text(results::verification(result.kind(), found)); });
  session.say(fmt::format("{}: {} checked, {} failed, {} not proved", result.kind(),
                          counted(found.checked, "statement"), found.failed.size(),
                          found.not_checkable.size()));
  say_findings(session, "failed", found.failed);
  say_findings(session, "not proved", found.not_checkable);
  if (!found.failed.empty()) return negative;
  return found.not_checkable.empty() ? ok : undecided;
}

}  // namespace

Command verify_command() {
  const auto options = std::make_shared<VerifyOptions>();
  return {.name = "verify",
          .text = "Recheck a result from its JSON and its inputs alone",
          .inputs = {input("RESULT", options->result,
                           "Result of select, separate, reach, heads or attribute (their --json)")
                         .required(),
                     input("INPUTS", options->inputs,
                           "Inputs of the result, in the order in which it names them (default: the files it "
                           "names)")},
          .options = {option("--folder", options->certificates)},
          .footer =
              "Exit status 0 if every statement is proved, 1 if one does not hold, 4 if all that fail to "
              "be proved are without a proof in the result. `heads --proofs`, `attribute --proofs`, and "
              "--certificates "
              "of the others keep the proofs.",
          .examples = {"normscope heads models/kjv_gpt --proofs --json heads.json",
                       "normscope verify heads.json"},
          .run = with(run_verify, options)};
}

}  // namespace normscope::cli
