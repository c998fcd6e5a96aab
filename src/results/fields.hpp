#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/norm_kind.hpp>
#include <normscope/core/version.hpp>
#include <normscope/proof/separate.hpp>

/// One list of fields a result, from which its JSON and its JSON schema are made.
///
/// A result, and any object in it, has a function template `fields(V& v, const T& value)` that names every
/// member once, in the order of the JSON: `v("rank", axis.rank, "1: the longest")`. `JsonWriter` visits a
/// result; `SchemaMaker` visits a default-constructed one, so `fields` must be defined for it: no element is
/// taken from a list that may be empty, and no optional is dereferenced.
///
/// The type of an expression decides the schema: integers, numbers, texts, lists, enumerations
/// (`last_value`), objects with `fields`, and an optional that may be null. The functions below narrow it.
namespace normscope::results {

using Json = nlohmann::ordered_json;

class SchemaMaker;

/// A value as JSON.
template <class T>
Json json_of(const T& value);

/// Makes the JSON object of a result from its fields.
class JsonWriter {
 public:
  template <class T>
  void operator()(std::string_view name, const T& value, const char* /*about*/ = "") {
    object_.emplace(std::string(name), json_of(value));
  }
  /// A member that is absent unless `there`.
  template <class T>
  void maybe(bool there, std::string_view name, const T& value, const char* about = "") {
    if (there) (*this)(name, value, about);
  }
  template <class T>
  void maybe(std::string_view name, const std::optional<T>& value, const char* about = "") {
    if (value) (*this)(name, *value, about);
  }
  /// The name of the object in the schema's $defs; without one it is written where it occurs.
  void define(const char* /*name*/, const char* /*about*/ = "") {}
  /// A keyword of the object's schema, as JSON: which members depend on others.
  void rule(const char* /*keyword*/, const char* /*json*/) {}

  [[nodiscard]] Json take() { return std::move(object_); }

 private:
  Json object_ = Json::object();
};

/// A default-constructed value, to which references of documents are bound where only fields are named.
template <class T>
const T& empty() {
  static const T value{};
  return value;
}
template <class T>
const T& or_empty(const std::optional<T>& value) {
  return value ? *value : empty<T>();
}

/// The last enumerator of an enumeration whose values a schema lists, by `to_string` from 0 on.
template <class E>
E unknown_last_value() = delete;
template <class E>
inline constexpr E last_value = unknown_last_value<E>();
template <>
inline constexpr auto last_value<NormKind> = norm_kinds.back().kind;
template <>
inline constexpr auto last_value<NormEffect> = NormEffect::off;
template <>
inline constexpr auto last_value<proof::Answer> = proof::Answer::undecided;

/// How a shape holds a value that it was given as a T&&: numbers themselves, others by reference where they
/// outlive the call.
template <class T>
using Held = std::conditional_t<std::is_arithmetic_v<std::remove_cvref_t<T>>, std::remove_cvref_t<T>, T>;

/// Keywords of a schema beside the type of a number, a text or a list.
struct Limits {
  std::optional<double> minimum{};
  std::optional<double> maximum{};
  std::optional<double> above{};  ///< less than the number
  const char* pattern = nullptr;
  std::optional<std::size_t> min_items{};
  std::optional<std::size_t> max_items{};
};

/// A value and its limits.
template <class T>
struct Narrowed {
  T value;
  Limits limits;

  [[nodiscard]] Json json() const { return json_of(value); }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    Json schema = maker.schema_of(value);
    M::narrow(schema, limits);
    return schema;
  }
};

template <class T>
Narrowed<Held<T>> narrowed(T&& value, const Limits& limits) {
  return {std::forward<T>(value), limits};
}
template <class T>
auto at_least(double minimum, T&& value) {
  return narrowed(std::forward<T>(value), {.minimum = minimum});
}
template <class T>
auto positive(T&& count) {
  return at_least(1, std::forward<T>(count));
}
template <class T>
auto not_negative(T&& number) {
  return at_least(0, std::forward<T>(number));
}
inline auto fraction(double part) { return narrowed(part, {.minimum = 0, .maximum = 1}); }
inline auto above_zero(double number) { return narrowed(number, {.above = 0}); }
template <class T>
auto matching(const char* pattern, T&& text) {
  return narrowed(std::forward<T>(text), {.pattern = pattern});
}
template <class T>
auto at_least_items(std::size_t items, T&& list) {
  return narrowed(std::forward<T>(list), {.min_items = items});
}
template <class T>
auto at_most_items(std::size_t items, T&& list) {
  return narrowed(std::forward<T>(list), {.max_items = items});
}

/// A value that may be null: null unless `there`.
template <class T>
struct Nullable {
  bool there;
  T value;

  [[nodiscard]] Json json() const { return there ? json_of(value) : Json(); }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    return M::or_null(maker.schema_of(value));
  }
};

template <class T>
Nullable<Held<T>> nullable(bool there, T&& value) {
  return {there, std::forward<T>(value)};
}
/// A number, or null since JSON has neither infinities nor NaN.
inline Nullable<double> finite_or_null(double number) { return {std::isfinite(number), number}; }
/// A text, or null for an empty one.
inline Nullable<const std::string&> text_or_null(const std::string& text) { return {!text.empty(), text}; }

/// What `convert` makes of an optional value, or null.
template <class T, class F>
struct NullableBy {
  const T* value;
  F convert;

  [[nodiscard]] Json json() const { return value == nullptr ? Json() : json_of(convert(*value)); }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    return M::or_null(maker.schema_of(convert(empty<T>())));
  }
};

template <class T, class F>
NullableBy<T, F> nullable(const std::optional<T>& value, F convert) {
  return {value ? &*value : nullptr, std::move(convert)};
}

/// What `convert` makes of every item of a list, and of its index where it takes one.
template <class R, class F>
struct Each {
  using Item = typename std::remove_cvref_t<R>::value_type;
  R list;
  F convert;

  [[nodiscard]] decltype(auto) at(const Item& item, std::size_t index) const {
    if constexpr (std::is_invocable_v<const F&, const Item&, std::size_t>) {
      return convert(item, index);
    } else {
      return convert(item);
    }
  }

  [[nodiscard]] Json json() const {
    Json json = Json::array();
    std::size_t index = 0;
    for (const Item& item : list) json.push_back(json_of(at(item, index++)));
    return json;
  }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    return M::list_of(maker.schema_of(at(empty<Item>(), 0)));
  }
};

template <class R, class F>
Each<R, F> each(R&& list, F convert) {
  return {std::forward<R>(list), std::move(convert)};
}

/// An object with a member for each pair of a name and a value, of which `convert` makes the member.
template <class R, class F>
struct ByName {
  const R& pairs;
  F convert;

  [[nodiscard]] Json json() const {
    Json object = Json::object();
    for (const auto& [name, value] : pairs) object[name] = json_of(convert(value));
    return object;
  }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    const auto& none = empty<typename R::value_type>().second;
    return {{"type", "object"}, {"additionalProperties", maker.schema_of(convert(none))}};
  }
};

template <class R, class F = std::identity>
ByName<R, F> by_name(const R& pairs, F convert = {}) {
  return {pairs, std::move(convert)};
}

/// An object whose members `visit` names.
template <class F>
struct Object {
  F visit;

  [[nodiscard]] Json json() const {
    JsonWriter writer;
    visit(writer);
    return writer.take();
  }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    return maker.object_of(visit);
  }
};

template <class F>
Object<F> object(F visit) {
  return {std::move(visit)};
}

/// A text as an argument of a template.
template <std::size_t n>
struct Literal {
  char text[n]{};

  constexpr Literal(const char (&literal)[n]) { std::copy_n(literal, n, text); }  // NOLINT: not explicit
};

/// One of some texts: `one_of<"here", "nowhere">(text)`.
template <Literal... texts>
struct OneOf {
  std::string_view text;

  [[nodiscard]] Json json() const { return std::string(text); }
  template <class M>
  [[nodiscard]] Json schema(M& /*maker*/) const {
    return {{"enum", {texts.text...}}};
  }
};

template <Literal... texts>
OneOf<texts...> one_of(std::string_view text) {
  return {text};
}

/// The texts of an enumeration in the order of its values.
template <Literal... texts, class E>
requires std::is_enum_v<E> OneOf<texts...> one_of(E value) {
  constexpr std::array<std::string_view, sizeof...(texts)> all{texts.text...};
  return {all[static_cast<std::size_t>(value)]};
}

/// Two values as a list, whose items have the type of the second.
template <class A, class B>
struct Pair {
  A first;
  B second;

  [[nodiscard]] Json json() const { return {first, second}; }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    return M::list_of(maker.schema_of(second), 2);
  }
};

template <class A, class B>
Pair<A, B> pair(A first, B second) {
  return {first, second};
}

/// A value whose shape has a name in the schema's $defs.
template <class T>
struct Defined {
  const char* name;
  T value;
  const char* about;

  [[nodiscard]] Json json() const { return json_of(value); }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    return maker.refer(name, maker.schema_of(value), about);
  }
};

template <class T>
Defined<Held<T>> defined(const char* name, T&& value, const char* about = "") {
  return {name, std::forward<T>(value), about};
}

/// The first value, or the second: alternatives of different shape.
template <class A, class B>
struct Either {
  bool is_first;
  A first;
  B second;

  [[nodiscard]] Json json() const { return is_first ? json_of(first) : json_of(second); }
  template <class M>
  [[nodiscard]] Json schema(M& maker) const {
    return {{"oneOf", Json::array({maker.schema_of(first), maker.schema_of(second)})}};
  }
};

template <class A, class B>
Either<Held<A>, Held<B>> either(bool is_first, A&& first, B&& second) {
  return {is_first, std::forward<A>(first), std::forward<B>(second)};
}

/// A value that is the same in every result.
template <class T>
struct Constant {
  T value;

  [[nodiscard]] Json json() const { return value; }
  template <class M>
  [[nodiscard]] Json schema(M& /*maker*/) const {
    return {{"const", value}};
  }
};

template <class T>
Constant<T> constant(T value) {
  return {std::move(value)};
}

/// A JSON object of any members.
struct AnyObject {
  const Json& value;

  [[nodiscard]] Json json() const { return value; }
  template <class M>
  [[nodiscard]] Json schema(M& /*maker*/) const {
    return {{"type", "object"}, {"additionalProperties", true}};
  }
};

template <class T>
concept Shaped = requires(const T& value, SchemaMaker& maker) {
  value.json();
  value.schema(maker);
};
template <class T>
concept Text = std::is_convertible_v<const T&, std::string_view>;
template <class T>
concept List = !Text<T> && requires(const T& value) {
  value.begin();
  value.end();
};
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr std::size_t fixed_items = 0;
template <class T, std::size_t n>
inline constexpr std::size_t fixed_items<std::array<T, n>> = n;

template <class T>
Json json_of(const T& value) {
  if constexpr (Shaped<T>) {
    return value.json();
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(to_string(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (Text<T>) {
    return std::string(value);
  } else if constexpr (is_optional<T>) {
    return value ? json_of(*value) : Json();
  } else if constexpr (List<T>) {
    Json list = Json::array();
    for (const typename T::value_type& item : value) list.push_back(json_of(item));
    return list;
  } else {
    JsonWriter writer;
    fields(writer, value);
    return writer.take();
  }
}

/// Makes the schema of a result's objects from their fields.
class SchemaMaker {
 public:
  /// The schemas in $defs, and the names there in this document: empty for a shape that is written where it
  /// occurs.
  struct Definitions {
    Json schemas = Json::object();
    std::map<std::string, std::string, std::less<>> renamed{};
  };

  explicit SchemaMaker(Definitions& definitions) : definitions_(definitions) {}

  template <class T>
  void operator()(std::string_view name, const T& value, const char* about = "") {
    add(name, schema_of(value), about);
    required_.push_back(std::string(name));
  }
  template <class T>
  void maybe(bool /*there*/, std::string_view name, const T& value, const char* about = "") {
    add(name, schema_of(value), about);
  }
  template <class T>
  void maybe(std::string_view name, const std::optional<T>& /*value*/, const char* about = "") {
    add(name, schema_of(T{}), about);
  }
  void define(const char* name, const char* about = "") {
    name_ = name;
    about_ = about;
  }
  void rule(const char* keyword, const char* json) { rules_[keyword] = Json::parse(json); }

  template <class T>
  Json schema_of(const T& value) {
    if constexpr (Shaped<T>) {
      return value.schema(*this);
    } else if constexpr (std::is_enum_v<T>) {
      Json names = Json::array();
      for (int i = 0; i <= static_cast<int>(last_value<T>); ++i) {
        names.push_back(std::string(to_string(static_cast<T>(i))));
      }
      return {{"enum", names}};
    } else if constexpr (std::is_same_v<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::is_unsigned_v<T>) {
      return {{"type", "integer"}, {"minimum", 0}};
    } else if constexpr (std::is_integral_v<T>) {
      return {{"type", "integer"}};
    } else if constexpr (std::is_floating_point_v<T>) {
      return {{"type", "number"}};
    } else if constexpr (Text<T>) {
      return {{"type", "string"}};
    } else if constexpr (is_optional<T>) {
      return or_null(schema_of(typename T::value_type{}));
    } else if constexpr (List<T>) {
      return list_of(schema_of(typename T::value_type{}), fixed_items<T>);
    } else {
      return object_of([&value](SchemaMaker& inner) { fields(inner, value); });
    }
  }

  template <class F>
  Json object_of(F visit) {
    SchemaMaker inner(definitions_);
    visit(inner);
    return inner.finish();
  }

  /// A reference to the schema, which goes into $defs; the schema itself where the document has no such name.
  Json refer(const char* name, const Json& schema, const char* about = "");
  static Json described(const Json& schema, const char* about);
  static Json list_of(Json items, std::size_t fixed = 0);
  static Json or_null(Json schema);
  static void narrow(Json& schema, const Limits& limits);

 private:
  void add(std::string_view name, const Json& schema, const char* about);
  Json finish();

  Definitions& definitions_;
  const char* name_ = "";
  const char* about_ = "";
  Json properties_ = Json::object();
  std::vector<std::string> required_{};
  Json rules_ = Json::object();
};

/// The name of the schema that a document of this kind has.
template <class V>
void name_schema(V& v, std::string_view kind) {
  v("schema", constant("normscope." + std::string(kind) + "/1"));
}

/// The first members of a result of this kind.
template <class V>
void begin(V& v, std::string_view kind) {
  name_schema(v, kind);
  v("version", version, "Version of normscope that wrote this");
}

}  // namespace normscope::results
