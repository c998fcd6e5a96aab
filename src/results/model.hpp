#pragma once

#include <normscope/models/model.hpp>
#include <normscope/results/words.hpp>

#include "shared.hpp"

/// What reports and inspections say of a model and of each norm.
namespace normscope::results {

template <class V>
void fields(V& v, const models::Linear& linear) {
  v.define("linear", "A linear map that reads or writes a norm");
  v("role", linear.role, "query, key, value, attention out, mlp in, mlp out, unembedding, …");
  v("tensor", linear.weight.selector(), "stored matrix it is a part of");
  v("bias", slice_or_null(linear.bias));
  v("layout", layout_text(linear.layout), "y = Wx or y = Wᵀx");
  v("in", linear.in, "features it reads");
  v("first_out", linear.first_out, "first output feature of the part");
  v("out", linear.out, "output features of the part");
  v.maybe(!linear.not_modelled.empty(), "not_modelled", linear.not_modelled,
          "what stands between the stored matrix and the map that the model applies; absent if nothing does");
}

/// What reports and inspections say first of a norm.
template <class V>
void add_identity(V& v, const models::Norm& norm) {
  v("name", norm.name, "tensor name without its last part");
  v("role", norm.role);
  v("layer", norm.layer);
  v("stack", norm.stack, "encoder or decoder where a model has both");
  v("kind", defined("norm_kind", norm.kind));
  v("width", norm.width);
  v("groups", norm.groups);
  v("eps", norm.eps, "added to the mean square");
  v("eps_source", one_of<"config", "tensors", "metadata", "assumed">(norm.eps_source));
  v("placement", one_of<"pre", "post", "inside", "unknown">(norm.placement));
  v("order_known", norm.order_known, "whether it stands in this list where the forward pass has it");
  v("applications", not_negative(norm.applications), "times the forward pass applies it");
  v("gain_offset", norm.gain_offset, "added to the stored gain; 1 where the file stores gain − 1");
  v("effect", norm.effect(), about_effect);
  v.maybe(norm.alpha.has_value(), "alpha", or_empty(norm.alpha).selector(),
          "the tensor of α, elementwise kinds only");
  v.maybe(norm.shift.has_value(), "shift", or_empty(norm.shift).selector(), "the tensor of s, derf only");
}

template <class V>
void add_connections(V& v, const models::Norm& norm) {
  v("connections_known", norm.connections_known, "whether readers and writers are complete");
  v("readers", norm.readers);
  v("writers", norm.writers, "since the previous norm of the same stream");
  v("writing_norms", norm.writing_norms, "norms whose output itself enters that stream");
}

template <class V>
void fields(V& v, const models::OtherNorms& other) {
  v("kind", other.kind, "such as BatchNorm");
  v("count", positive(other.count));
}

template <class V>
void add_model(V& v, const models::Model& model) {
  v("architecture", model.architecture);
  v("title", model.title);
  v("evidence", model.evidence, "why this architecture");
  v("layers", not_negative(model.layers));
  v("width", model.width);
  v("heads_per_layer", model.heads_per_layer);
  v("key_value_heads", model.key_value_heads);
  v("parameters", model.parameters);
  v("other_norms", model.other_norms, "normalization that the file shows and that is not analysed");
  v("missing", model.missing, "tensors the architecture has and the file lacks");
  v("notes", model.notes, "what was assumed or reinterpreted");
}

}  // namespace normscope::results
