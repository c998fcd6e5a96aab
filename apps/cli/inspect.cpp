#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <normscope/analysis/report.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>
#include <normscope/results/documents.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

std::string tensors_of(const std::vector<models::Linear>& linears) {
  std::string result;
  for (const models::Linear& linear : linears) {
    result +=
        fmt::format("{}{} {}", result.empty() ? "" : ", ", linear.role, printable(linear.weight.selector()));
  }
  return result.empty() ? "nothing known in the file" : result;
}

/// What stands in the way of the norm and of the maps around it, each once.
std::vector<std::string> not_modelled(const models::Norm& norm) {
  std::vector<std::string> result = {norm.not_modelled};
  for (const auto* maps : {&norm.readers, &norm.writers}) {
    for (const models::Linear& map : *maps) result.push_back(map.not_modelled);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  if (result.front().empty()) result.erase(result.begin());
  return result;
}

/// How the gain of a class that stores it minus 1 is stored, and what its entries tell about that.
void print_gain(const Session& session, const files::Checkpoint& checkpoint, const models::Norm& norm) {
  if ((norm.gain_offset == 0.0 && !norm.gain_was_shifted) || !norm.not_modelled.empty()) return;
  const models::GainShifts shifts = models::gain_shifts(checkpoint, norm);
  const char* const how = norm.gain_was_shifted ? "stored with 1 added" : "1 + what is stored";
  if (!shifts.most) {
    session.say(fmt::format("    gain        {}; no entry tells how often 1 was added before", how));
    return;
  }
  session.say(fmt::format("    gain        {}; in its type 1 was {} added before: entry {} is {:.6g}", how,
                          *shifts.most == 0 ? "never" : "at most once", shifts.index, shifts.value));
}

void print_norm(const Session& session, const files::Checkpoint& checkpoint, const models::Norm& norm) {
  session.say(fmt::format("{}  {}, {}{} of width {}{}, eps {:g}{}{}", printable(norm.name), norm.role,
                          to_string(norm.kind), norm.kind_is_assumed ? " (assumed)" : "", norm.width,
                          norm.groups > 1 ? fmt::format(" in {} groups", norm.groups) : "", norm.eps,
                          norm.eps_source == models::Source::assumed ? " (assumed)" : "",
                          norm.applications > 1 ? fmt::format(", applied {} times", norm.applications) : ""));
  print_gain(session, checkpoint, norm);
  const char* others = norm.connections_known ? "" : " (others may too)";
  session.say(fmt::format("    read by     {}{}", tensors_of(norm.readers), others));
  session.say(fmt::format("    written by  {}{}", tensors_of(norm.writers), others));
  for (const std::string& what : not_modelled(norm)) session.say("    not modelled: " + printable(what));
  for (const std::string& reason : norm.reasons) session.say("    because     " + printable(reason));
}

int run_inspect(const Session& session, Inputs& inputs, Outputs& outputs, const ModelName& file) {
  const files::Checkpoint& checkpoint = inputs.checkpoint(file.path);
  files::check_sums(checkpoint);
  const models::Model& model = inputs.model_of(checkpoint, file.stated);
  outputs.commit([&] { return json_text(results::inspection(checkpoint, model), 1); });
  if (session.quiet) return ok;
  std::size_t width = 5;
  for (const files::Tensor& tensor : checkpoint.tensors()) {
    width = std::max(width, tensor.stored_type().size());
  }
  for (const files::Tensor& tensor : checkpoint.tensors()) {
    session.say(fmt::format("{:<{}} {:<20} {}", tensor.stored_type(), width,
                            fmt::format("[{}]", fmt::join(tensor.shape, ", ")), printable(tensor.name)));
  }
  session.say(fmt::format("\n{}: {}, {} tensors, {} parameters\n{} ({})\n", printable(file.path),
                          checkpoint.format(), checkpoint.tensors().size(), model.parameters, model.title,
                          printable(model.evidence)));
  for (const models::Norm& norm : model.norms) print_norm(session, checkpoint, norm);
  for (const models::NearMiss& miss : model.near_misses) {
    session.say(fmt::format("no norm: {}: {}", printable(miss.node), printable(miss.why)));
  }
  for (const std::string& name : model.missing) session.say("missing: " + printable(name));
  if (checkpoint.format() == "pytorch") {
    for (const auto& [key, object] : checkpoint.metadata()) {
      session.say(fmt::format("{}: {}", printable(key), printable(object)));
    }
  }
  say_notes(session, model.notes);
  return ok;
}

}  // namespace

Command inspect_command() {
  const auto file = std::make_shared<ModelName>();
  return {.name = "inspect",
          .text = "Check a checkpoint strictly; list its tensors and norms",
          .inputs = {input("FILE", file->path, "Checkpoint to check").required()},
          .options = model_options(*file),
          .without = {"--threads"},  // reading headers is not parallel
          .footer =
              "The columns, a tensor a line: the type it is stored in, its shape, its name.\nThen each norm, "
              "with "
              "the tensors that read its output and those that write its input.",
          .examples = {"normscope inspect models/kjv_gpt"},
          .run = with(run_inspect, file)};
}

}  // namespace normscope::cli
