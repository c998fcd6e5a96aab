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
#include <normscope/core/file.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>
#include <normscope/models/model.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "command.hpp"

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
      std::max_element(certificates.begin(), certificates.end(),
                       [](const auto& a, const auto& b) { return a.relative_bound < b.relative_bound; });
  if (largest == certificates.end()) return "no value changed";
  return fmt::format(
      "{} rewritten; largest proved error {:.3g} of an output's largest value, {:.2g} roundings of {} ({})",
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

/// The norms that arrays of a file are named after.
std::vector<std::string> names_in(const std::string& file, Inputs& inputs) {
  std::vector<std::string> names;
  if (std::filesystem::path(file).extension() == ".npz") {
    const MappedFile mapped(file);
    for (const files::ZipMember& member : files::read_zip_directory(mapped.bytes(), file)) {
      std::string name(member.name);
      if (name.ends_with(".npy")) name.resize(name.size() - 4);
      names.push_back(std::move(name));
    }
    return names;
  }
  for (const files::Tensor& tensor : inputs.checkpoint(file).tensors()) names.emplace_back(tensor.name);
  return names;
}

rewrite::Activations rows_of(std::size_t norm, const models::Norm& description,
                             const files::OpenedArray& array) {
  const MatrixInput matrix = read_matrix(array);
  if (matrix.width != description.width) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has rows of {} numbers, expected {}, the width of {}",
                                              printable(array.name()), matrix.width, description.width,
                                              printable(description.name)));
  }
  rewrite::Activations result{norm, matrix.rows, {}};
  const std::size_t tried = std::min(matrix.rows, rewrite::most_rows);
  for (std::size_t i = 0; i < tried; ++i) {
    const auto first =
        matrix.values.begin() + static_cast<std::ptrdiff_t>(i * matrix.rows / tried * matrix.width);
    result.rows.insert(result.rows.end(), first, first + static_cast<std::ptrdiff_t>(matrix.width));
  }
  return result;
}

/// Rows that enter norms of `model`, from files on the command line: FILE.npz and FILE.safetensors hold
/// arrays by the norms' names, NORM=FILE.npy is one norm's. The last axis is the norm's width. Of more than
/// `rewrite::most_rows` rows, that many are taken, spread evenly.
///
/// Errors    as `OpenedArray`; Argument for a name that is no norm's, or a norm given twice; Shape for
///           another width; Argument for numbers that are not finite
std::vector<rewrite::Activations> read_activations(const std::vector<std::string>& names,
                                                   const models::Model& model, Inputs& inputs) {
  std::vector<rewrite::Activations> result;
  const auto add = [&](const std::string& name, const std::string& array) {
    const auto found = std::find_if(model.norms.begin(), model.norms.end(),
                                    [&](const models::Norm& norm) { return norm.name == name; });
    if (found == model.norms.end()) {
      throw Error(
          ErrorCode::Argument,
          fmt::format("{}: {} is no norm of the model, expected a name such as {}", printable(array),
                      printable(name), model.norms.empty() ? "-" : printable(model.norms.front().name)));
    }
    const auto norm = static_cast<std::size_t>(found - model.norms.begin());
    if (std::any_of(result.begin(), result.end(), [&](const auto& item) { return item.norm == norm; })) {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: rows of {} are given twice", printable(array), printable(name)));
    }
    result.push_back(rows_of(norm, *found, inputs.array(array)));
  };
  for (const std::string& name : names) {
    std::error_code ignored;
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos && !std::filesystem::exists(name, ignored)) {
      add(name.substr(0, equals), name.substr(equals + 1));
    } else if (std::filesystem::path(name).extension() == ".npy") {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: holds one array, expected NORM=FILE.npy, or arrays by the norms' names in "
                              "an .npz or .safetensors file",
                              printable(name)));
    } else {
      for (const std::string& member : names_in(name, inputs)) add(member, name + ":" + member);
    }
  }
  return result;
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

int run_undo(const Session& session, Inputs& inputs, Outputs& outputs, const RewriteOptions& options) {
  if (options.output.empty()) throw CLI::ValidationError("rewrite", "expected -o OUT");
  const files::Checkpoint checkpoint =
      files::open_noted(options.model, inputs_of_process(), files::read_file);
  inputs.add_checkpoint(checkpoint);
  const rewrite::Restoration restoration =
      rewrite::undo(checkpoint, options.output, session.threads, session.progress());
  outputs.commit([&] { return json_text(results::undone(checkpoint, restoration), 1); });
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

int run_rewrite(const Session& session, Inputs& inputs, Outputs& outputs, const RewriteOptions& options) {
  if (options.undo) return run_undo(session, inputs, outputs, options);
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
  inputs.add_checkpoint(checkpoint);
  const models::Model model = models::describe(checkpoint, options.stated);
  const std::vector<rewrite::Activations> activations = read_activations(options.activations, model, inputs);
  const std::optional<rewrite::RotationRequest> rotation = rotation_of(options.rotate, inputs);
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
    outputs.commit([&] { return document(nullptr); });
    print_plan(session, model, plan);
    return ok;
  }
  std::string text;
  const rewrite::Result result = rewrite::write(
      checkpoint, model, plan, options.output, session.threads, session.progress(),
      [&](const rewrite::Result& written) { return (text = document(&written)) + "\n"; }, activations);
  outputs.commit([&] { return text; });
  print_plan(session, model, plan);
  for (const std::string& change : result.configuration) session.say("config.json: " + printable(change));
  for (const std::string& name : result.not_copied) session.say("not copied: " + printable(name));
  for (const rewrite::NormOnRows& norm : result.on_rows) session.say(on_rows(norm));
  say_taken_over(session, result.taken_over);
  if (!result.not_undone.empty()) session.say("no recipe to undo this: " + result.not_undone);
  session.say(fmt::format("{}: {}", printable(options.output), worst(result.certificates)));
  return ok;
}

/// A name each time the option is given; a name may have a comma.
Argument norm_inputs(std::vector<std::string>& names) {
  return {"--norm-inputs", "", [&names](CLI::App& command, const auto& name, const auto& text) {
            return command.add_option(name, names, text);
          }};
}

}  // namespace

Command rewrite_command() {
  const auto options = std::make_shared<RewriteOptions>();
  return {
      .name = "rewrite",
      .text = "Rewrite a checkpoint exactly: fold, centre, rotate; undo",
      .inputs =
          {input("IN", options->model, "Checkpoint to rewrite: a .safetensors file or a folder").required()},
      .outputs = {output("-o,--output", options->output, Role::own)
                      .typed("OUT")
                      .says("a file, or a new folder if IN is a folder, with the certificate beside the "
                            "weights")},
      .options = joined(
          {option("--fold", options->fold).one_of({"gains"}),
           option("--migrate", options->migrate).excludes({"--fold"}), option("--center", options->center),
           option("--rotate", options->rotate), option("--untie", options->untie),
           option("--undo", options->undo)
               .excludes({"--fold", "--migrate", "--center", "--untie", "--rotate", "--norm-inputs"}),
           option("--dry-run", options->dry_run), norm_inputs(options->activations)},
          stated_options(options->stated)),
      .footer =
          "The columns:\n"
          "  norm           name of the norm\n"
          "  read by        linear maps that read its output\n"
          "  gain and bias  what happens to them, and why if they are left",
      .examples = {"normscope rewrite models/kjv_gpt -o folded --fold gains",
                   "normscope rewrite folded -o original --undo"},
      .run = with(run_rewrite, options)};
}

}  // namespace normscope::cli
