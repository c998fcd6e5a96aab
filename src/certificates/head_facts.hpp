#pragma once

#include <string>

#include <normscope/certificates/model_heads.hpp>

#include "fields.hpp"

/// Compares the fields of a `heads` entry other than bounds with the model.
namespace normscope::certificates {

/// Whether the field equals the text, or is null if the text is empty.
[[nodiscard]] bool is_null_or(const Field& field, const std::string& text);
/// Compares layer, head, scale, weights, rotation, soft cap and window.
[[nodiscard]] bool facts_hold(const Field& entry, const AttentionHead& head);
/// Compares the kinds of norms, and the eps of the head's own norms, in its certificates.
[[nodiscard]] bool norms_hold(const Field& certificates, const AttentionHead& head);

}  // namespace normscope::certificates
