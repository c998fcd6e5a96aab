#include "token_claims.hpp"

#include <map>
#include <string>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::verify {
namespace {

/// Points that are stored in a folder instead of the JSON: NAME_tokens.npy has the tokens, NAME_points.npy a
/// row for each; those of witnesses are reachable.npy and witnesses.npy.
class PointFolder {
 public:
  explicit PointFolder(const Folder* folder) : folder_(folder) {}

  /// The point of that token; empty if there is none.
  [[nodiscard]] std::vector<double> find(const std::string& name, std::size_t token, std::size_t width) {
    if (folder_ == nullptr) return {};
    if (!known_.contains(name)) read(name, width);
    const auto& at = known_[name].at;
    const auto found = at.find(token);
    if (found == at.end()) return {};
    const std::vector<double>& values = known_[name].values;
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(found->second * width);
    return {begin, begin + static_cast<std::ptrdiff_t>(width)};
  }

 private:
  struct Points {
    std::map<std::size_t, std::size_t> at{};
    std::vector<double> values{};
  };

  void read(const std::string& name, std::size_t width) {
    const bool witnesses = name == "witness";
    const std::vector<double> tokens = folder_->read(witnesses ? "reachable" : name + "_tokens");
    Points points{.values = folder_->read(witnesses ? "witnesses" : name + "_points")};
    if (points.values.size() != tokens.size() * width) {
      throw Error(
          ErrorCode::Shape,
          "certificates: " + name + "_points.npy does not hold a point for each of " + name + "_tokens.npy");
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] >= 0.0 && tokens[i] < 0x1p53) points.at[static_cast<std::size_t>(tokens[i])] = i;
    }
    known_[name] = std::move(points);
  }

  const Folder* folder_;
  std::map<std::string, Points> known_{};
};

Answer answer(const Field& field) {
  const std::string text = field.text();
  if (text == "yes") return Answer::yes;
  if (text == "no") return Answer::no;
  if (text == "undecided") return Answer::undecided;
  if (text == "open") return Answer::open;
  field.refuse("yes, no, undecided or open");
}

class Reader {
 public:
  Reader(const Field& root, const Folder* folder, std::size_t tokens, std::size_t width)
      : root_(root), points_(folder), width_(width), claims_(tokens), listed_(tokens) {}

  std::vector<TokenClaims> read() {
    const std::size_t tokens = claims_.size();
    const Field proofs = root_["proofs"];
    if (proofs.size() != tokens) proofs.refuse("an entry a token");
    for (const char* end : {"lower", "upper"}) {
      for (const char* bound : {"lead", "max_probability"}) {
        if (root_[bound][end].size() != tokens) root_[bound][end].refuse("a number a token");
      }
    }
    for (std::size_t i = 0; i < tokens; ++i) read_token(i, proofs[i]);
    for (const char* list : {"unreachable", "undecided"}) {
      const Field losers = root_[list];
      for (std::size_t i = 0; i < losers.size(); ++i) read_loser(losers[i], list);
    }
    for (std::size_t i = 0; i < tokens; ++i) {
      if ((claims_[i].answer == Answer::no || claims_[i].answer == Answer::undecided) && !listed_[i]) {
        proofs[i].refuse("a token among unreachable or undecided");
      }
    }
    return std::move(claims_);
  }

 private:
  Point point(const Field& field, const std::string& name, std::size_t token, std::vector<double>& into) {
    if (field.is_null()) return Point::none;
    if (field.is_list()) {
      into = field.numbers(width_);
      return Point::given;
    }
    const std::string text = field.text();
    if (text == "own_direction") return Point::own_direction;
    if (text != "elsewhere") field.refuse("a point, own_direction or elsewhere");
    into = points_.find(name, token, width_);
    return into.empty() ? Point::omitted : Point::given;
  }

  void read_token(std::size_t index, const Field& proof) {
    TokenClaims& claims = claims_[index];
    claims.answer = answer(proof["answer"]);
    claims.lower =
        root_["lead"]["lower"][index].number_or(claims.answer == Answer::yes ? infinity : -infinity);
    claims.upper = root_["lead"]["upper"][index].number_or(infinity);
    claims.probability_lower = root_["max_probability"]["lower"][index].number();
    claims.probability_upper = root_["max_probability"]["upper"][index].number();
    if (proof.has("witness"))
      claims.witness = point(proof["witness"], "witness", index, claims.witness_point);
    if (claims.answer == Answer::yes && claims.witness == Point::none && claims_.size() > 1) {
      proof.refuse("a witness, a point of the ball");
    }
    if (proof.has("weights")) claims.weights = proof["weights"].weights("token", claims_.size());
    if (proof.has("probability_point")) {
      claims.point = point(proof["probability_point"], "probability", index, claims.probable_point);
    }
    if (proof.has("probability_tangent")) {
      claims.tangent = point(proof["probability_tangent"], "tangent", index, claims.tangent_point);
    }
    if (proof.has("probability_weights")) {
      claims.probability_weights = proof["probability_weights"].weights("token", claims_.size());
    }
  }

  void read_loser(const Field& loser, const char* list) {
    const std::size_t index = loser["token"].index(claims_.size());
    TokenClaims& claims = claims_[index];
    const Answer expected = std::string(list) == "undecided" ? Answer::undecided : Answer::no;
    if (claims.answer != expected || listed_[index]) loser["token"].refuse("one with that answer, once");
    listed_[index] = true;
    if (loser["lead_at_most"].number_or(infinity) != claims.upper) {
      loser["lead_at_most"].refuse("the upper end of the token's lead");
    }
    claims.weights = loser["weights"].weights("token", claims_.size());
    claims.without_ball = answer(loser["without_ball"]);
    claims.far_weights = loser["without_ball_weights"].weights("token", claims_.size() + 1);
    if (claims.without_ball != Answer::yes) return;
    const Field witness = loser["without_ball_witness"];
    claims.far_witness = Point::given;
    if (witness.is_text()) {
      // The last entry is the height.
      claims.far_point = points_.find("far", index, width_ + 1);
      claims.far_witness = claims.far_point.empty() ? Point::omitted : Point::given;
      if (claims.far_point.empty()) return;
      claims.far_height = claims.far_point.back();
      claims.far_point.pop_back();
      return;
    }
    claims.far_point = witness["point"].numbers(width_);
    claims.far_height = witness["height"].number();
  }

  const Field& root_;
  PointFolder points_;
  std::size_t width_;
  std::vector<TokenClaims> claims_;
  std::vector<bool> listed_;
};

}  // namespace

std::vector<TokenClaims> read_token_claims(const Field& root, const Folder* folder, std::size_t tokens,
                                           std::size_t width) {
  return Reader(root, folder, tokens, width).read();
}

}  // namespace normscope::verify
