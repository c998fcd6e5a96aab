#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

/// Checks results of `select`, `separate`, `reach`, `heads` and `attribute` from their JSON and their inputs
/// alone, by plain arithmetic that shares no code with the search; docs/certificates.md has the formats and
/// inequalities.
namespace normscope::verify {

/// An input named on the command line, with its role: "keys", "model", ...
struct Argument {
  std::string role{};
  std::string name{};
};

/// An array that a result was computed from: its role, its shape, and the piecewise SHA-256 of its values as
/// float64, little-endian, row by row.
struct InputArray {
  std::string role{};
  std::vector<std::size_t> shape{};
  std::string sha256{};
};

[[nodiscard]] InputArray describe_array(std::string role, std::vector<std::size_t> shape,
                                        std::span<const double> values, unsigned threads = 0);

struct Inputs {
  std::vector<Argument> arguments{};
  std::vector<InputArray> arrays{};
  std::optional<double> gain_offset{};  ///< --gain-offset of the command line, added to the gain's array
  models::Stated stated{};              ///< what the user stated about the model
};

/// A statement of a result, and why it does not hold or cannot be checked.
struct Finding {
  std::string item;
  std::string reason;
};

struct Verification {
  std::size_t checked = 0;  ///< statements, those that failed among them
  std::vector<Finding> failed{};
  std::vector<Finding> not_checkable{};

  /// Counts a statement, and records it as failed, with that reason, unless it holds.
  void check(bool holds, const std::string& item, std::string_view reason);
};

/// A result read from its JSON.
class Result {
 public:
  /// `source` names it in messages.
  ///
  /// Errors    Format for text that is no result of a kind that can be checked
  Result(std::string_view text, std::string source);
  Result(Result&&) noexcept;
  Result& operator=(Result&&) noexcept;
  ~Result();

  /// "select", "separate", "reach", "heads" or "attribute".
  [[nodiscard]] const std::string& kind() const;
  [[nodiscard]] const std::string& source() const;
  [[nodiscard]] const Inputs& inputs() const;
  /// The name that the command line gave for that role, or empty.
  [[nodiscard]] std::string argument(std::string_view role) const;
  /// Errors    Argument if `found` differs from the arrays that the result states; `who` names them
  void expect_arrays(const std::vector<InputArray>& found, const std::string& who) const;
  /// A text, a number or a list of texts of the result, at a path of nested names.
  ///
  /// Errors    Format if there is none
  [[nodiscard]] std::string text(std::initializer_list<const char*> path) const;
  [[nodiscard]] double number(std::initializer_list<const char*> path) const;
  [[nodiscard]] std::vector<std::string> texts(std::initializer_list<const char*> path) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::initializer_list<const char*> path) const;
  [[nodiscard]] bool has(std::initializer_list<const char*> path) const;  ///< and is not null
  /// The folder that its certificates were written into; none where they are in the JSON.
  [[nodiscard]] const std::optional<std::string>& folder() const;

  struct Fields;
  [[nodiscard]] const Fields& fields() const { return *fields_; }

 private:
  std::unique_ptr<Fields> fields_;
};

struct VerifyOptions {
  unsigned threads = 0;
  Progress progress{};
};

/// Arrays of certificates that were written into a folder, by name.
class Folder {
 public:
  virtual ~Folder() = default;
  /// The values of NAME.npy.
  ///
  /// Errors    as a reader of arrays
  [[nodiscard]] virtual std::vector<double> read(const std::string& name) const = 0;
};

/// Checks every statement of a `select` result. `keys` are the keys of the result, after the norm if there
/// was one; each of their entries may then be off by 16 u of the largest, because kernels of other machines
/// round differently.
///
/// Errors    Format, Shape; Cancelled
///
/// Accuracy  a statement that holds in exact arithmetic by more than 64 u of the magnitudes in it passes, and
///           one that does not hold fails (tests: VerifySelect.GoodResultsPass, VerifySelect.ForgedOnesFail)
[[nodiscard]] Verification verify_select(const Result& result, MatrixView<const double> keys,
                                         bool behind_norm, const Folder* folder,
                                         const VerifyOptions& options = {});

/// Rows of several classes, sorted by class.
struct ClassRows {
  std::vector<MatrixView<const double>> rows{};
  /// The number of each row in the array that it came from, as weights name it.
  std::vector<std::vector<std::size_t>> numbers{};
  std::vector<std::int64_t>
      labels{};  ///< every label of the array, ascending; none where there are no labels
};

/// Checks every statement of a `separate` result.
///
/// Errors    Format, Shape; Cancelled
[[nodiscard]] Verification verify_separate(const Result& result, const ClassRows& classes,
                                           const VerifyOptions& options = {});

/// What a `reach` result says of a head beside its numbers, read anew.
struct HeadFacts {
  std::optional<std::string> norm_name{};
  bool tied = false;
  std::vector<std::string> notes{};
  std::vector<std::string> names{};  ///< of tokens; empty where no file of names is known
};

/// A vocabulary's head: logits are l = scale · (W h + c) with h the norm's output, and C tanh(l/C) with a
/// soft cap C.
///
/// Shapes    unembedding (tokens × norm.width), bias (tokens, or none)
struct VocabularyHead {
  NormSpec norm{};
  MatrixView<const double> unembedding{};
  std::span<const double> bias{};
  double scale = 1.0;
  double soft_cap = 0.0;  ///< 0 for none
  HeadFacts facts{};
};

/// Checks every statement of a `reach` result.
///
/// Errors    Format, Shape; Unsupported for several groups; Cancelled
[[nodiscard]] Verification verify_reach(const Result& result, const VocabularyHead& head,
                                        const Folder* folder, const VerifyOptions& options = {});

/// A model's vocabulary head with its own values, read from the checkpoint anew.
struct ModelHead {
  NormSpec norm{};
  std::vector<double> unembedding{};  ///< tokens × norm.width
  std::vector<double> bias{};         ///< tokens, or none
  double scale = 1.0;
  double soft_cap = 0.0;
  std::size_t tokens = 0;
  HeadFacts facts{};

  [[nodiscard]] VocabularyHead head() const {
    return {norm, {unembedding.data(), tokens, norm.width}, bias, scale, soft_cap, facts};
  }
  /// Reads the names of tokens from a file beside the model, if there is one.
  ///
  /// Errors    as `models::read_token_names`
  void read_names(const files::Checkpoint& checkpoint);
  /// The arrays that a `reach` result states: unembedding, its bias, gain and bias of the norm, if present.
  [[nodiscard]] std::vector<InputArray> arrays(unsigned threads = 0) const;
};

/// Errors    Unsupported for a model whose logits read no norm, or are not modelled
[[nodiscard]] ModelHead read_model_head(const files::Checkpoint& checkpoint, const models::Model& model);

/// y = W x + b, row-major, and the norm of the queries' or keys' own that follows, if any.
struct HeadMap {
  std::vector<double> weight{};  ///< head_dim × what it reads
  std::vector<double> bias{};    ///< head_dim, or none
  std::optional<NormSpec> own{};
  std::string own_name{};
};

/// An attention head and the norm that it reads, in the passes in which it reads that one.
struct AttentionHead {
  models::Head head{};
  std::string norm_name{};
  std::string pass{};     ///< "first" or "later" where passes read different norms, else empty
  std::string refused{};  ///< why its scores cannot be worked out, or empty
  NormSpec norm{};
  HeadMap query{}, key{};
  /// The map between the norm and both (in × norm.width, in), or none.
  std::optional<HeadMap> between{};
};

/// Every head of a checkpoint with each norm that it reads, in the order of a `heads` result, read anew from
/// the checkpoint one at a time.
class ModelHeads {
 public:
  ModelHeads(const files::Checkpoint& checkpoint, const models::Model& model);

  [[nodiscard]] const models::Model& model() const { return model_; }
  [[nodiscard]] std::size_t size() const { return readings_.size(); }
  /// Errors    as `models::read_weight`
  [[nodiscard]] AttentionHead read(std::size_t index) const;
  /// Weights, biases and norms of all heads as they are used, which a result with certificates states.
  [[nodiscard]] std::vector<InputArray> arrays(unsigned threads = 0) const;

 private:
  struct Reading {
    std::size_t head = 0;
    std::string norm{};
    std::string pass{};
  };
  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  std::vector<Reading> readings_{};
};

/// Checks every statement of a `heads` result that has certificates.
///
/// Errors    Format, Shape; Cancelled; as `ModelHeads::read`
///
/// Accuracy  as `verify_select` (tests: VerifyHeads.GoodResultsPass, VerifyHeads.ForgedOnesFail)
///
/// Cost      width head_dim² operations in double-double a head, and head_dim³ a distance where those are
///           enumerated
[[nodiscard]] Verification verify_heads(const Result& result, const ModelHeads& heads,
                                        const VerifyOptions& options = {});

/// Checks every statement of an `attribute` result that has proofs, of the rows in it: that they are the
/// model's is listed as not proved.
///
/// Errors    Format; Unsupported for a model whose logits are not modelled; as `models::read_weight`
///
/// Accuracy  deviations of 1e-9 of the sizes of terms pass (test: cli.forgeries)
///
/// Cost      components² · width; bounds over sets by a search that leaves out what the bound's own value
///           excludes
[[nodiscard]] Verification verify_attribute(const Result& result, const files::Checkpoint& checkpoint,
                                            const models::Model& model);

}  // namespace normscope::verify
