#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include <normscope/models/model.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "command.hpp"
#include "inputs.hpp"
#include "matrix_input.hpp"
#include "norm_rows.hpp"

namespace normscope::cli {
namespace {

struct RewriteOptions {
  std::string model;
  models::Stated stated;
  std::string output;
  std::string fold;
  std::vector<std::string> activations;
  std::string rotate;
  bool migrate = false;
  bool center = false;
  bool untie = false;
  bool dry_run = false;
  bool undo = false;
};

/// The last parts of the readers' names, each once.
std::string short_readers(const models::Norm& norm) {
  std::vector<std::string> names;
  for (const models::Linear& reader : norm.readers) {
    std::string name = reader.weight.tensor;
    if (name.ends_with(".weight")) name.resize(name.size() - 7);
    name = name.substr(name.rfind('.') + 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names.empty() ? "-" : printable(fmt::format("{}", fmt::join(names, ", ")));
}

std::string outcome(const rewrite::NormPlan& plan) {
  switch (plan.fold) {
    case rewrite::Fold::nothing: return "left: " + printable(plan.reason);
    case rewrite::Fold::neutral: return "nothing to fold: " + printable(plan.reason);
    case rewrite::Fold::gain:
      return "gain folded" + (plan.reason.empty() ? "" : "; " + printable(plan.reason));
    case rewrite::Fold::gain_and_bias: return "gain and bias folded";
    case rewrite::Fold::scales: return "powers of two moved into its readers";
  }
  return {};
}

std::string stream_of(const std::string& stack) {
  return stack.empty() ? "residual stream" : "residual stream of the " + stack;
}

void print_plan(const Session& session, const models::Model& model, const rewrite::Plan& plan) {
  std::size_t widest_name = 4;
  std::size_t widest_readers = 7;
  for (const models::Norm& norm : model.norms) {
    widest_name = std::max(widest_name, printable(norm.name).size());
    widest_readers = std::max(widest_readers, short_readers(norm).size());
  }
  if (plan.options.fold_gains || plan.options.migrate) {
    session.say(fmt::format("{:<{}}  {:<{}}  gain and bias", "norm", widest_name, "read by", widest_readers));
    for (const rewrite::NormPlan& item : plan.norms) {
      const models::Norm& norm = model.norms[item.norm];
      session.say(fmt::format("{:<{}}  {:<{}}  {}", printable(norm.name), widest_name, short_readers(norm),
                              widest_readers, outcome(item)));
    }
  }
  for (const rewrite::StreamPlan& stream : plan.streams) {
    const std::string name = stream_of(stream.stack);
    session.say(stream.centered ? fmt::format("{}: {} centred; its {} may be RMSNorms of the same eps", name,
                                              counted(stream.writers.size(), "writer"),
                                              counted(stream.norms.size(), "LayerNorm"))
                                : fmt::format("{}: not centred: {}", name, printable(stream.reason)));
  }
  for (const rewrite::RotationPlan& stream : plan.rotations) {
    const std::string name = stream_of(stream.stack);
    session.say(stream.rotation ? fmt::format("{}: rotated, with {} and {}", name,
                                              counted(stream.writers.size(), "writer"),
                                              counted(stream.norms.size(), "norm"))
                                : fmt::format("{}: not rotated: {}", name, printable(stream.reason)));
  }
  if (plan.untied) {
    session.say(fmt::format("head: separated from {}, {} bytes more", printable(plan.untied->table),
                            plan.untied->bytes));
  }
}

std::string worst(const std::vector<rewrite::Certificate>& certificates) {
  const auto largest =
      std::max_element(certificates.begin(), certificates.end(), [](const auto& a, const auto& b) {
        return a.relative_bound / a.rounding < b.relative_bound / b.rounding;
      });
  if (largest == certificates.end()) return "no value changed";
  return fmt::format(
      "{} rewritten; largest proved error {:.3g} of an output's range, {:.2g} roundings of {} ({})",
      counted(certificates.size(), "tensor"), largest->relative_bound,
      largest->relative_bound / largest->rounding, to_string(largest->dtype), printable(largest->tensor));
}

std::string on_rows(const rewrite::NormOnRows& norm) {
  double worst = 0.0;
  for (const rewrite::ReaderOnRows& reader : norm.readers) worst = std::max(worst, reader.relative);
  return fmt::format("{}: outputs of {} differ by at most {:.2g} of their length on {}{}",
                     printable(norm.norm), counted(norm.readers.size(), "reader"), worst,
                     counted(norm.tried, "row"),
                     norm.tried < norm.given ? fmt::format(" of {}", norm.given) : "");
}

/// The value of --rotate: random:SEED, or the name of a square array.
std::optional<rewrite::RotationRequest> rotation_of(const std::string& text, Inputs& inputs) {
  if (text.empty()) return std::nullopt;
  constexpr std::string_view random = "random:";
  if (text.starts_with(random)) {
    rewrite::RotationRequest request;
    const char* const begin = text.data() + random.size();
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(begin, end, request.seed);
    if (begin == end || parsed.ec != std::errc() || parsed.ptr != end) {
      throw CLI::ValidationError("--rotate", "expected random:SEED with a number, or a file");
    }
    return request;
  }
  const MatrixInput matrix = read_matrix(inputs.array(text));
  if (matrix.rows != matrix.width) {
    throw Error(ErrorCode::Shape, fmt::format("rewrite: {}: has {} x {} numbers, expected a square matrix",
                                              printable(text), matrix.rows, matrix.width));
  }
  return rewrite::RotationRequest{
      0, std::make_shared<const rewrite::Rotation>(rewrite::Rotation::nearest(matrix.values, matrix.width))};
}

void say_taken_over(const Session& session, std::size_t files) {
  if (files > 0)
    session.say(fmt::format("{} that a killed process had finished taken over", counted(files, "file")));
}

int run_undo(const Session& session, const RewriteOptions& options) {
  if (options.output.empty()) throw CLI::ValidationError("rewrite", "expected -o OUT");
  const files::Checkpoint checkpoint =
      files::open_noted(options.model, inputs_of_process(), files::read_file);
  Inputs inputs;
  for (const std::filesystem::path& file : checkpoint.files()) inputs.add_file(file);
  inputs.add_file(options.model);
  inputs.keep_apart({options.output, session.json});
  const rewrite::Restoration restoration =
      rewrite::undo(checkpoint, options.output, session.threads, session.progress());
  if (session.wants_json()) session.write_json(json_text(results::undone(checkpoint, restoration), 1));
  const auto exact = std::count_if(restoration.tensors.begin(), restoration.tensors.end(),
                                   [](const auto& tensor) { return tensor.roundings == 0.0; });
  double worst = 0.0;
  for (const rewrite::Restored& tensor : restoration.tensors) worst = std::max(worst, tensor.roundings);
  say_taken_over(session, restoration.taken_over);
  for (const std::string& name : restoration.not_copied) session.say("not copied: " + printable(name));
  session.say(fmt::format("{}: {} restored, {} of them bit for bit{}", printable(options.output),
                          counted(restoration.tensors.size(), "tensor"), exact,
                          worst == 0.0 ? "" : fmt::format(", the others within {:.2g} roundings", worst)));
  return ok;
}

int run_rewrite(const Session& session, const RewriteOptions& options) {
  if (options.undo) return run_undo(session, options);
  if (options.fold.empty() && options.rotate.empty() && !options.migrate && !options.center &&
      !options.untie) {
    throw CLI::ValidationError("rewrite",
                               "expected --fold gains, --migrate, --center, --rotate, --untie or --undo");
  }
  if (options.output.empty() && !options.dry_run) {
    throw CLI::ValidationError("rewrite", "expected -o OUT, or --dry-run");
  }
  // Read in ranges: every byte is needed once, and pages of a mapped file would count as memory of the
  // process.
  const files::Checkpoint checkpoint =
      files::open_noted(options.model, inputs_of_process(), files::read_file);
  Inputs inputs;
  for (const std::filesystem::path& file : checkpoint.files()) inputs.add_file(file);
  inputs.add_file(options.model);
  const models::Model model = models::describe(checkpoint, options.stated);
  const std::vector<rewrite::Activations> activations = read_activations(options.activations, model, inputs);
  const std::optional<rewrite::RotationRequest> rotation = rotation_of(options.rotate, inputs);
  inputs.keep_apart({options.output, session.json});
  const rewrite::Plan plan = rewrite::make_plan(checkpoint, model,
                                                {.fold_gains = !options.fold.empty(),
                                                 .migrate = options.migrate,
                                                 .center = options.center,
                                                 .untie = options.untie,
                                                 .rotation = rotation});
  const auto document = [&](const rewrite::Result* result) {
    return json_text(results::rewrite(checkpoint, model, plan, result), 1);
  };
  if (options.dry_run) {
    if (session.wants_json()) session.write_json(document(nullptr));
    print_plan(session, model, plan);
    return ok;
  }
  std::string text;
  const rewrite::Result result = rewrite::write(
      checkpoint, model, plan, options.output, session.threads, session.progress(),
      [&](const rewrite::Result& written) { return (text = document(&written)) + "\n"; }, activations);
  if (session.wants_json()) session.write_json(text);
  print_plan(session, model, plan);
  for (const std::string& change : result.configuration) session.say("config.json: " + printable(change));
  for (const std::string& name : result.not_copied) session.say("not copied: " + printable(name));
  for (const rewrite::NormOnRows& norm : result.on_rows) session.say(on_rows(norm));
  say_taken_over(session, result.taken_over);
  if (!result.not_undone.empty()) session.say("no recipe to undo this: " + result.not_undone);
  session.say(fmt::format("{}: {}", printable(options.output), worst(result.certificates)));
  return ok;
}

}  // namespace

void add_rewrite(CLI::App& root, Session& session) {
  const auto options = std::make_shared<RewriteOptions>();
  CLI::App* command = add_command(
      root, session, "rewrite",
      "Rewrite a checkpoint exactly: fold gains, centre or rotate the residual stream; or undo it",
      [&session, options] { return run_rewrite(session, *options); });
  command->add_option("IN", options->model, "Checkpoint to rewrite: a .safetensors file or a folder")
      ->required();
  add_stated(*command, options->stated);
  command
      ->add_option(
          "-o,--output", options->output,
          "File to write, or a new folder if IN is a folder; the certificate is written beside the weights")
      ->type_name("OUT");
  CLI::Option* const fold =
      command
          ->add_option(
              "--fold", options->fold,
              "Fold the gain and bias of every norm into the linear maps that read it, where that is exact")
          ->check(CLI::IsMember({"gains"}));
  command
      ->add_flag(
          "--migrate", options->migrate,
          "Move powers of two from each norm's gain and bias into its readers, so that the features have "
          "similar ranges")
      ->excludes(fold);
  command->add_flag("--center", options->center,
                    "Remove the mean from all that writes to the residual stream, so that RMSNorms can "
                    "replace its LayerNorms");
  command
      ->add_option(
          "--rotate", options->rotate,
          "Rotate the residual stream by a random orthogonal matrix (random:SEED) or by one from a file; "
          "its norms must have no gain, as after --fold gains")
      ->type_name("random:SEED|FILE");
  command->add_flag(
      "--untie", options->untie,
      "Store the unembedding as a tensor of its own if the file shares it with the token embedding");
  command
      ->add_option(
          "--activations", options->activations,
          "Inputs of norms, on which old and new outputs are compared: an .npz or .safetensors file with "
          "one array per norm, under its name, or NORM=FILE.npy; may be repeated")
      ->type_name("FILE");
  command
      ->add_flag("--undo", options->undo,
                 "Restore the checkpoint that IN was rewritten from, by the recipe beside IN")
      ->excludes(fold)
      ->excludes("--migrate")
      ->excludes("--center")
      ->excludes("--untie")
      ->excludes("--rotate")
      ->excludes("--activations");
  command->add_flag("--dry-run", options->dry_run, "Print what would happen to each norm, and write nothing");
  add_examples(*command, {"normscope rewrite models/wordlist_gpt -o folded --fold gains",
                          "normscope rewrite folded -o original --undo"});
}

}  // namespace normscope::cli
