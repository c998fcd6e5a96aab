#pragma once

#include <string>

#include <normscope/certificates/model_heads.hpp>

#include "fields.hpp"

/// What an entry of a `heads` result says of its head besides bounds, against the model.
namespace normscope::certificates {

/// Whether the field is null for an empty text, and else the text.
[[nodiscard]] bool is_null_or(const Field& field, const std::string& text);
/// Layer, head, scale, weights, rotation, cap and window.
[[nodiscard]] bool facts_hold(const Field& entry, const AttentionHead& head);
/// Kinds of norms, and eps of the head's own, in its certificates.
[[nodiscard]] bool norms_hold(const Field& certificates, const AttentionHead& head);

}  // namespace normscope::certificates
