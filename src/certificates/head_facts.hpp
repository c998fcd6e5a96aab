#pragma once

#include <string>

#include <normscope/certificates/model_heads.hpp>

#include "document.hpp"

/// Compares the fields of a `heads` entry other than bounds with the model.
namespace normscope::certificates {

/// Whether the field equals the text, or is null if the text is empty.
[[nodiscard]] bool is_null_or(const Field& field, const std::string& text);
/// The names of the members that differ from the model's head, empty if none does: layer, head, scale,
/// weights, rotation, soft cap, window and so on.
[[nodiscard]] std::string differing_facts(const Field& entry, const AttentionHead& head);
/// The same of the norms in its certificates: kinds, and the eps of the head's own norms.
[[nodiscard]] std::string differing_norms(const Field& certificates, const AttentionHead& head);

}  // namespace normscope::certificates
