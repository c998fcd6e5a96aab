#include <normscope/certificates/result.hpp>

#include <algorithm>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/sha256.hpp>
#include <normscope/core/text.hpp>

#include "fields.hpp"

namespace normscope::certificates {
namespace {

constexpr std::string_view prefix = "normscope.";
constexpr std::string_view layout = "/1";

std::string kind_of(const Field& root) {
  const std::string schema = root["schema"].text();
  for (const char* kind : {"select", "separate", "reach", "heads"}) {
    if (schema == fmt::format("{}{}{}", prefix, kind, layout)) return kind;
  }
  root["schema"].refuse("normscope.select/1, separate/1, reach/1 or heads/1");
}

Inputs read_inputs(const Field& field) {
  Inputs inputs;
  const Field arguments = field["arguments"];
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    inputs.arguments.push_back({arguments[i]["role"].text(), arguments[i]["name"].text()});
  }
  if (field.has("gain_offset")) inputs.gain_offset = field["gain_offset"].number();
  if (field.has("architecture")) inputs.stated.architecture = field["architecture"].text();
  if (field.has("heads")) inputs.stated.heads = field["heads"].count();
  const Field arrays = field["arrays"];
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    InputArray array;
    array.role = arrays[i]["role"].text();
    array.sha256 = arrays[i]["sha256"].text();
    const Field shape = arrays[i]["shape"];
    for (std::size_t axis = 0; axis < shape.size(); ++axis) array.shape.push_back(shape[axis].count());
    inputs.arrays.push_back(std::move(array));
  }
  return inputs;
}

/// The value at the end of a path of names; none where one is not there.
std::optional<Field> find(Field from, std::initializer_list<const char*> path) {
  for (const char* name : path) {
    if (!from.has(name)) return std::nullopt;
    from = from[name];
  }
  return from;
}

Field at(Field from, std::initializer_list<const char*> path) {
  for (const char* name : path) from = from[name];
  return from;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text;
  for (const std::size_t length : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", length);
  return text;
}

}  // namespace

InputArray describe_array(std::string role, std::vector<std::size_t> shape, std::span<const double> values,
                          unsigned threads) {
  return {std::move(role), std::move(shape), to_hex(piecewise_sha256(std::as_bytes(values), threads))};
}

void Verification::check(bool holds, const std::string& item, std::string_view reason) {
  ++checked;
  if (!holds) failed.push_back({item, std::string(reason)});
}

Result::Result(std::string_view text, std::string source) : fields_(std::make_unique<Fields>()) {
  fields_->source = std::move(source);
  fields_->document = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!fields_->document.is_object()) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: is not JSON, expected what --json wrote", fields_->source));
  }
  const Field root = fields_->root();
  fields_->kind = kind_of(root);
  if (!root.has("inputs")) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: does not say what its inputs were, expected a result of this version",
                            fields_->source));
  }
  fields_->inputs = read_inputs(root["inputs"]);
  if (root.has("certificates") && !root["certificates"].is_text()) {
    fields_->folder = root["certificates"]["folder"].text();
  }
}

Result::Result(Result&&) noexcept = default;
Result& Result::operator=(Result&&) noexcept = default;
Result::~Result() = default;

const std::string& Result::kind() const { return fields_->kind; }
const std::string& Result::source() const { return fields_->source; }
const Inputs& Result::inputs() const { return fields_->inputs; }
const std::optional<std::string>& Result::folder() const { return fields_->folder; }

std::string Result::argument(std::string_view role) const {
  for (const Argument& argument : fields_->inputs.arguments) {
    if (argument.role == role) return argument.name;
  }
  return {};
}

std::string Result::text(std::initializer_list<const char*> path) const {
  return at(fields_->root(), path).text();
}

double Result::number(std::initializer_list<const char*> path) const {
  return at(fields_->root(), path).number();
}

std::vector<std::string> Result::texts(std::initializer_list<const char*> path) const {
  const Field list = at(fields_->root(), path);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < list.size(); ++i) result.push_back(list[i].text());
  return result;
}

std::vector<std::int64_t> Result::integers(std::initializer_list<const char*> path) const {
  const Field list = at(fields_->root(), path);
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < list.size(); ++i) result.push_back(list[i].integer());
  return result;
}

bool Result::has(std::initializer_list<const char*> path) const {
  const std::optional<Field> field = find(fields_->root(), path);
  return field && !field->is_null();
}

void Result::expect_arrays(const std::vector<InputArray>& found, const std::string& who) const {
  const std::vector<InputArray>& stated = fields_->inputs.arrays;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {}", who, what));
  };
  if (found.size() != stated.size()) {
    refuse(fmt::format("gives {}, expected {} as {} states them", counted(found.size(), "array"),
                       stated.size(), fields_->source));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].role != stated[i].role || found[i].shape != stated[i].shape) {
      refuse(fmt::format("its {} is {}, expected {} of {} as {} states it", found[i].role,
                         shape_text(found[i].shape), stated[i].role, shape_text(stated[i].shape),
                         fields_->source));
    }
    if (found[i].sha256 != stated[i].sha256) {
      refuse(
          fmt::format("its {} has other values than {} was computed from", found[i].role, fields_->source));
    }
  }
}

}  // namespace normscope::certificates
