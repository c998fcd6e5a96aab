#include <algorithm>

#include <normscope/files/source.hpp>

#include "builder.hpp"

namespace normscope::models {

namespace {

// An unembedding that shares the table of the token embedding.
Linear transposed(Linear embedding) {
  embedding.role = "unembedding";
  embedding.layout = Layout::out_in;
  std::swap(embedding.in, embedding.out);
  embedding.stored_out = embedding.out;
  return embedding;
}

}  // namespace

bool Builder::repeats_token_embedding(const Linear& map) const {
  if (!token_embedding_) return false;
  const files::Tensor* stored = checkpoint_.find(map.weight.tensor);
  const files::Tensor* table = checkpoint_.find(token_embedding_->weight.tensor);
  return stored->dtype == table->dtype && files::equal(stored->bytes, table->bytes);
}

void Builder::unembedding(std::initializer_list<std::string_view> names, bool tied, bool reads_norm,
                          std::string_view bias) {
  const std::optional<bool> configured = config_.flag({"tie_word_embeddings"});
  tied = configured.value_or(tied);
  std::optional<Linear> map;
  std::optional<Slice> apart;  // a bias stored without the map that it belongs to, or elsewhere
  for (const std::string_view name : names) {
    if (map) break;
    where(name, [&] {
      map = find_linear("unembedding", "", reads_norm ? read_width() : 0, 0);
      if (!map) apart = find_bias("", {".bias"}, 0);
    });
  }
  const bool stored = map.has_value();
  if (!stored && tied && token_embedding_) map = transposed(*token_embedding_);
  if (!map) {
    const bool headless = !tied && scope_.prefix.empty();
    if (headless) note("no unembedding is stored: the model has no language head");
    if (!headless && !tied) miss(std::string(*names.begin()) + ".weight");
    if (!headless && reads_norm) reads_are_indirect();
    return;
  }
  const bool same = !stored || repeats_token_embedding(*map);
  const bool contradicts = !same && configured.value_or(false);
  if (contradicts) {
    note(
        "the configuration ties the token embedding to the unembedding, but the file stores a different one");
  }
  if (!bias.empty()) {
    where(bias, [&] { apart = find_bias("", {""}, map->out); });
  }
  if (!map->bias && apart && apart->count == map->out) map->bias = apart;
  if (reads_norm) add_reader(*map);
  Vocabulary vocabulary;
  vocabulary.size = map->out;
  vocabulary.tied = same;
  vocabulary.logit_scale = logit_scale_;
  vocabulary.soft_cap = logit_cap_;
  if (contradicts) {
    vocabulary.not_modelled = "tie_word_embeddings: true, beside an unembedding that is not the embedding";
  }
  if (reads_norm && reading_) vocabulary.final_norm = model_.norms[*reading_].name;
  vocabulary.unembedding = std::move(map);
  model_.vocabulary = std::move(vocabulary);
}

}  // namespace normscope::models
